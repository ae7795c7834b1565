"""Finding the one place in a file that an edit means: one ladder for every form of
edit.

    1. exactly;
    2. but for white space at the ends of lines;
    3. with all lines shifted by the same indentation, also between tabs and spaces: the
       new lines are shifted alike;
    4. a close match, if it is the only one: see `_CLOSE`.

Blank lines around a text that are not in the file count as setting it off. A text whose
lines are told with their numbers is taken without them, where the file has it in just
those lines.

The first rung on which there is a place decides. Two places on it are never decided
between, unless the edit itself says which (`Hint`). Lines that an edit only quotes stay
as the file has them; everything else stays byte for byte.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from msgspec import Struct

from cdd_agent.actions.model import MultipleMatchesFoundError, SearchTextNotFoundError
from cdd_agent.changes.model import Hint, Replacement

_BOM = "\ufeff"
_CLOSE = 0.9
"""How much of a text must be there for a close match, and of each line that it changes.
Of lines that it only quotes 0.75 is enough: they stay as they are. It needs three
lines, half of them as they are in the file; and no number, operator or bracket in a
line that is changed may differ.
"""
_QUOTED = 0.75
_RIVAL = 0.8
"""Another place as close as this makes it two."""
_WORD = re.compile(r"\w")
_NUMBERED = re.compile(
    r"\s*(?P<number>\d{1,7})(?:(?: ?[|│→:]| |\t)(?P<text>.*)|(?P<none>)\s*)"
)
_TAB_WIDTHS = (4, 2, 8, 3)
_SHOWN_PLACES = 10
_SHOWN_LINES = 8
_MOST_MISSES = 20
"""Texts that are not found, and whose closest lines are looked for."""
_MOST_COMPARED = 50_000

Lines = Sequence[str]


class TextDraft:
    """A file's text while it is edited: its lines, and the same without white space,
    for searching.
    """

    def __init__(self, content: bytes) -> None:
        text = content.decode("utf-8", errors="surrogateescape")
        self._mark = _BOM if text.startswith(_BOM) else ""
        text = text.removeprefix(_BOM)
        self._is_crlf = text.count("\r\n") * 2 > text.count("\n")
        self.final_newline = text.endswith("\n") or not text
        raw = text.removesuffix("\n").split("\n") if text else []
        self._raw = raw
        self.lines = [line.removesuffix("\r") for line in raw]
        self._ended = [line.rstrip() for line in self.lines]
        self._bare = [line.strip() for line in self.lines]
        self._counts = Counter(self._bare)
        """How often each line is there: what is searched for is a text's rarest line.
        """
        self._moves: list[tuple[int, int]] = []
        """For hints of line numbers: after which line, by how many, each edit has moved
        what follows.
        """
        self._misses = 0

    @property
    def content(self) -> bytes:
        text = "\n".join(self._raw)
        if self._raw and self.final_newline:
            text += "\n"
        return (self._mark + text).encode("utf-8", errors="surrogateescape")

    def replace(self, edit: Replacement) -> bool:
        """Do one edit; False when it was done already: the new text is there, and the
        old is not, or only within it.

        Raises `SearchTextNotFoundError` or `MultipleMatchesFoundError`, which carry the
        content as text.
        """
        readings = [
            (edit.find, edit.replace),
            *([edit.otherwise] if edit.otherwise else []),
        ]
        readings += [
            bare for bare in [_without_blank_ends(edit.find, edit.replace)] if bare
        ]
        for rungs in (
            (self._exact, self._without_line_ends, self._shifted),
            (self._close,),
        ):
            for find, new in readings:
                match = self._match(rungs, find, new, edit.hint)
                if match is None:
                    continue
                if self._is_done(match, find, new):
                    return False
                self._put(match)
                if edit.final_newline is not None:
                    self.final_newline = edit.final_newline
                    self._settle_end()
                return True
            if any(self._is_there(find, new) for find, new in readings):
                return False  # before a close match: that could be the new text itself
        if (numbered := self._numbered(edit.find, edit.replace)) is not None:
            self._put(numbered)
            return True
        self._misses += 1
        raise SearchTextNotFoundError(
            self._text(),
            self._closest(edit.find) if self._misses <= _MOST_MISSES else "",
        )

    def _text(self) -> str:
        return self.content.decode("utf-8", errors="replace")

    def _match(
        self, rungs: Iterable[_Rung], find: Lines, new: Lines, hint: Hint
    ) -> _Match | None:
        """The place and what will stand there, by the first rung that has one."""
        for rung in rungs if find else ():
            matches = list(rung(find, new))
            if len(matches) > 1:
                matches = self._hinted(matches, hint)
            if len(matches) > 1:
                places = [match.start + 1 for match in matches[:_SHOWN_PLACES]]
                raise MultipleMatchesFoundError(self._text(), places)
            if matches:
                return matches[0]
        return None

    def _hinted(self, matches: list[_Match], hint: Hint) -> list[_Match]:
        """Those that a hint speaks for: the one in its line, or the first after the
        lines that it names.
        """
        line = self._now(hint.line or 0)
        at_line = [match for match in matches if match.start + 1 == line]
        if len(at_line) == 1:
            return at_line
        after = 0
        for name in hint.after:
            places = [
                place
                for place in range(after, len(self._bare))
                if self._bare[place] == name.strip()
            ]
            if len(places) != 1:
                return matches
            after = places[0] + 1
        return (
            [match for match in matches if match.start >= after][:1] or matches
            if hint.after
            else matches
        )

    def _now(self, line: int) -> int:
        """Where a line is now that had this number before the edits."""
        for start, moved in self._moves:
            line += moved if line > start + 1 else 0
        return line

    def _numbered(self, find: Lines, new: Lines) -> _Match | None:
        """The place of lines that are told with the numbers that they have in the
        file.
        """
        told = [_NUMBERED.fullmatch(line) for line in find]
        numbers = [int(line["number"]) for line in told if line]
        if not numbers or numbers != list(range(numbers[0], numbers[0] + len(find))):
            return None
        bare = [line["text"] or "" for line in told if line]
        new = [
            line["text"] or "" if (line := _NUMBERED.fullmatch(text)) else text
            for text in new
        ]
        matches = (
            match
            for rung in (self._without_line_ends, self._shifted)
            for match in rung(bare, new)
        )
        return next(
            (match for match in matches if match.start + 1 == self._now(numbers[0])),
            None,
        )

    def _exact(self, find: Lines, new: Lines) -> Iterator[_Match]:
        for start in _places(self.lines, find, self._counts):
            yield _Match(start, find, new)

    def _without_line_ends(self, find: Lines, new: Lines) -> Iterator[_Match]:
        for start in _places(
            self._ended, [line.rstrip() for line in find], self._counts
        ):
            yield _Match(start, find, new)

    def _shifted(self, find: Lines, new: Lines) -> Iterator[_Match]:
        bare = [line.strip() for line in find]
        if not any(bare):
            return
        for start in _places(self._bare, bare, self._counts):
            there = self._ended[start : start + len(find)]
            for old_lines, new_lines in _tab_forms(find, new, there):
                shift = _shift([line.rstrip() for line in old_lines], there)
                moved = shift.applied(new_lines) if shift else None
                if shift and moved is not None:
                    kept = shift.applied(old_lines)
                    assert kept is not None  # it leads from these to the file's
                    yield _Match(start, kept, moved)
                    break

    def _close(self, find: Lines, new: Lines) -> Iterator[_Match]:
        bare = [line.strip() for line in find]
        told = sorted(
            (place for place, line in enumerate(bare) if line),
            key=lambda place: -len(bare[place]),
        )[:50]
        if len(told) < 3:
            return
        votes: Counter[int] = Counter()
        for place in told:
            for found in _places(self._bare, [bare[place]], self._counts):
                votes[found - place] += 1
        quoted = {
            place
            for tag, start, end, _, _ in _opcodes(find, new)
            if tag == "equal"
            for place in range(start, end)
        }
        rivals = 0
        good: list[_Match] = []
        for start, count in votes.items():
            if (
                count * 2 < len(told)
                or start < 0
                or start + len(find) > len(self.lines)
            ):
                continue
            there = self._bare[start : start + len(find)]
            equal = [
                place
                for place, line in enumerate(bare)
                if line and line == there[place]
            ]
            ended = [find[place].rstrip() for place in equal]
            shift = (
                _shift(ended, [self._ended[start + place] for place in equal])
                if equal
                else None
            )
            likeness = _likeness(bare, there, quoted)
            moved = shift.applied(new) if shift else None
            kept = shift.applied(find) if shift else None
            if likeness >= _CLOSE and moved is not None and kept is not None:
                good.append(_Match(start, kept, moved))
            elif _overall(bare, there) >= _RIVAL:
                rivals += 1
            if rivals or len(good) > 1:
                break  # whatever comes, it is not the only one
        if len(good) > 1 or not rivals:
            yield from good

    def _is_done(self, match: _Match, find: Lines, new: Lines) -> bool:
        """The text to find is part of the new one, which stands around it already."""
        if len(new) <= len(find):
            return False
        bare = [line.strip() for line in new]
        offsets = _places(bare, [line.strip() for line in find], Counter(bare))
        return any(
            match.start >= offset
            and self._bare[match.start - offset : match.start - offset + len(new)]
            == bare
            for offset in offsets
        )

    def _is_there(self, find: Lines, new: Lines) -> bool:
        """The new text is in the file, and says something that the old one did not; or
        leaves out what is not there.
        """
        old, left = {line.strip() for line in find}, {line.strip() for line in new}
        says = any(_WORD.search(line) and line.strip() not in old for line in new)
        # lines between two others went
        if not says and find and new and find[0] == new[0] and find[-1] == new[-1]:
            says = any(_WORD.search(line) for line in old - left) and not any(
                self._counts[line] for line in old - left
            )
        return (
            says
            and len(
                list(
                    _places(self._ended, [line.rstrip() for line in new], self._counts)
                )
            )
            == 1
        )

    def _put(self, match: _Match) -> None:
        count = len(match.find)
        span = slice(match.start, match.start + count)
        raw: list[str] = []
        for tag, old_from, old_to, new_from, new_to in _opcodes(match.find, match.new):
            if tag == "equal":  # only quoted: as the file has them
                raw += self._raw[match.start + old_from : match.start + old_to]
            else:
                raw += [
                    line + ("\r" if self._is_crlf else "")
                    for line in match.new[new_from:new_to]
                ]
        lines = [line.removesuffix("\r") for line in raw]
        at_end = span.stop == len(self._raw)
        self._raw[span] = raw
        self.lines[span] = lines
        self._ended[span] = [line.rstrip() for line in lines]
        self._counts.subtract(self._bare[span])
        self._bare[span] = [line.strip() for line in lines]
        self._counts.update(self._bare[span])
        if len(lines) != count:
            self._moves.append((match.start, len(lines) - count))
        if at_end:
            self._settle_end()

    def _settle_end(self) -> None:
        """The last line has no line end where the file has none there, and those above
        it have theirs.
        """
        if not self._is_crlf or not self._raw:
            return
        if len(self._raw) > 1 and not self._raw[-2].endswith("\r"):
            self._raw[-2] += "\r"
        self._raw[-1] = self._raw[-1].removesuffix("\r") + (
            "\r" if self.final_newline else ""
        )

    def _closest(self, find: Lines) -> str:
        """The lines of the file that are most like a text, with their numbers; empty
        when nothing is.
        """
        bare = [line.strip() for line in find]
        told = sorted((line for line in set(bare) if line), key=len, reverse=True)[
            :_SHOWN_LINES
        ]
        votes: Counter[int] = Counter()
        for line in told:
            for found in _places(self._bare, [line], self._counts):
                votes[found - bare.index(line)] += 1
        places: Iterable[int]
        if votes:
            start = max(0, max(votes, key=lambda place: (votes[place], -place)))
            places = range(
                start,
                min(len(self.lines), start + max(3, min(len(find), _SHOWN_LINES))),
            )
        elif told:
            # few enough are compared letter by letter: of about its length, with a word
            # of it
            words = set(re.findall(r"\w{3,}", told[0]))
            sized = (
                line
                for line in self._bare
                if abs(len(line) - len(told[0])) <= len(told[0]) // 2
            )
            near = [
                line
                for line in sized
                if not words or any(word in line for word in words)
            ][:300]
            places = sorted(
                self._bare.index(line)
                for line in {*difflib.get_close_matches(told[0], near, n=3)}
            )
        else:
            places = ()
        return "\n".join(f"{place + 1:>5}  {self.lines[place]}" for place in places)


class _Match(Struct, frozen=True):
    """A place in a file, and both texts as the file would write them."""

    start: int
    find: Lines
    new: Lines


_Rung = Callable[[Lines, Lines], Iterator[_Match]]


class _Shift(Struct, frozen=True):
    """White space that lines lose, and get, at their beginning."""

    less: str
    more: str

    def applied(self, lines: Lines) -> list[str] | None:
        """None for lines that do not begin with what they should lose."""
        if any(line.strip() and not line.startswith(self.less) for line in lines):
            return None
        return [
            self.more + line.removeprefix(self.less) if line.strip() else line
            for line in lines
        ]


def replaced_once(content: bytes, find: str, replace: str) -> bytes | None:
    """The content with the one occurrence of `find` replaced; None when that was done
    already.

    The text may be less than a line; where it is not in the file exactly, it is looked
    for as lines. In a file whose lines end in CRLF, the line ends of both texts are
    taken for those. Raises as `TextDraft.replace`.
    """
    old, new = find.encode(), replace.encode()
    if content.count(b"\r\n") * 2 > content.count(b"\n"):
        new = _with_crlf(new)
        old = old if old in content else _with_crlf(old)
    first = content.find(old)
    if first < 0:
        draft = TextDraft(content)
        return (
            draft.content
            if draft.replace(Replacement("", as_lines(find), as_lines(replace)))
            else None
        )
    if content.find(old, first + 1) >= 0:
        places = [first]
        while (
            len(places) < _SHOWN_PLACES
            and (after := content.find(old, places[-1] + 1)) >= 0
        ):
            places.append(after)
        lines = [content.count(b"\n", 0, place) + 1 for place in places]
        raise MultipleMatchesFoundError(
            content.decode("utf-8", errors="replace"), lines
        )
    around = new.find(old)
    if (
        around >= 0
        and len(new) > len(old)
        and content.count(new) == 1
        and content.find(new) == first - around
    ):
        return None
    return content[:first] + new + content[first + len(old) :]


def as_lines(text: str) -> tuple[str, ...]:
    """A text's lines without their ends; none for an empty text."""
    text = text.replace("\r\n", "\n")
    return tuple(text.removesuffix("\n").split("\n")) if text else ()


def _places(
    lines: list[str], wanted: Lines, counts: Mapping[str, int]
) -> Iterator[int]:
    """Where lines are found one after the other. Looks for the rarest one, by what is
    counted of lines' texts.
    """
    if not wanted or len(wanted) > len(lines):
        return
    wanted = list(wanted)
    pivot = min(
        range(len(wanted)), key=lambda place: counts.get(wanted[place].strip(), 0)
    )
    if not counts.get(wanted[pivot].strip(), 0):
        return
    at = pivot
    while True:
        try:
            at = lines.index(wanted[pivot], at, len(lines) - len(wanted) + pivot + 1)
        except ValueError:
            return
        if lines[at - pivot : at - pivot + len(wanted)] == wanted:
            yield at - pivot
        at += 1


def _without_blank_ends(
    find: Lines, new: Lines
) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Both texts without the blank lines around the one to find, which set it off from
    its marks; None without any.
    """
    told = [place for place, line in enumerate(find) if line.strip()]
    before, after = (told[0], len(find) - told[-1] - 1) if told else (0, 0)
    if not before and not after:
        return None
    new = list(new)
    for _ in range(before):
        if new and not new[0].strip():
            del new[0]
    for _ in range(after):
        if new and not new[-1].strip():
            del new[-1]
    return tuple(find[before : len(find) - after]), tuple(new)


def _tab_forms(find: Lines, new: Lines, there: Lines) -> Iterator[tuple[Lines, Lines]]:
    """Both texts as they are, then with the kind of indentation that the file has."""

    def with_tabs(line: str, width: int) -> str:
        text = line.lstrip(" ")
        spaces = len(line) - len(text)
        return "\t" * (spaces // width) + " " * (spaces % width) + text

    def with_spaces(line: str, width: int) -> str:
        text = line.lstrip("\t")
        return " " * (width * (len(line) - len(text))) + text

    yield find, new
    has_tabs = any(line.startswith("\t") for line in there)
    if has_tabs or any(line.startswith("\t") for line in find):
        form = with_tabs if has_tabs else with_spaces
        for width in _TAB_WIDTHS:
            yield (
                [form(line, width) for line in find],
                [form(line, width) for line in new],
            )


def _shift(old: Lines, there: Lines) -> _Shift | None:
    """The one shift that makes all lines the file's."""
    pairs = [(a, b) for a, b in zip(old, there, strict=True) if a]
    before, after = (line[: len(line) - len(line.lstrip())] for line in pairs[0])
    if after.endswith(before):
        shift = _Shift("", after.removesuffix(before))
    elif before.endswith(after):
        shift = _Shift(before.removesuffix(after), "")
    else:
        return None
    return (
        shift if shift.applied([a for a, _ in pairs]) == [b for _, b in pairs] else None
    )


def _likeness(wanted: Lines, there: Lines, quoted: set[int]) -> float:
    """How much of a text is in the file, 0 if one of its lines is too far off."""
    for place, (line, other) in enumerate(zip(wanted, there, strict=True)):
        if line == other:
            continue
        if place in quoted:
            if bool(line) != bool(other) or _ratio(line, other) < _QUOTED:
                return 0.0
        elif _skeleton(line) != _skeleton(other) or _ratio(line, other) < _CLOSE:
            return 0.0
    return _overall(wanted, there)


def _overall(wanted: Lines, there: Lines) -> float:
    pairs = list(zip(wanted, there, strict=True))
    size = sum(len(line) for line in wanted) or 1
    return sum(len(a) * (1.0 if a == b else _ratio(a, b)) for a, b in pairs) / size


@lru_cache(maxsize=4096)
def _ratio(line: str, other: str) -> float:
    if max(len(line), len(other)) > 1000:
        return 0.0
    return difflib.SequenceMatcher(None, line, other, autojunk=False).ratio()


def _skeleton(line: str) -> str:
    """All that must not differ: everything but letters, spaces, and the kind of
    quotes.
    """
    return re.sub(r"[^\W\d]|\s", "", line).translate(_QUOTES)


_QUOTES = str.maketrans('\u2018\u2019\u201c\u201d"', "'''''")


def _opcodes(old: Lines, new: Lines) -> list[tuple[str, int, int, int, int]]:
    """The parts that stay and that change from one text to the other, as `difflib`
    gives them.
    """
    counts = Counter(new)
    # equal pairs are what comparing takes its time for
    if sum(counts[line] for line in old) <= _MOST_COMPARED:
        return list(
            difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        )
    most = min(len(old), len(new))  # else only what both begin and end with stays
    head = next((place for place in range(most) if old[place] != new[place]), most)
    tail = next(
        (place for place in range(most - head) if old[-1 - place] != new[-1 - place]),
        most - head,
    )
    return [
        ("equal", 0, head, 0, head),
        ("replace", head, len(old) - tail, head, len(new) - tail),
        ("equal", len(old) - tail, len(old), len(new) - tail, len(new)),
    ]


def _with_crlf(text: bytes) -> bytes:
    return text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
