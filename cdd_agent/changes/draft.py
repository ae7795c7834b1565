"""A file's text during edits. Unedited lines keep their exact bytes: line ends, normal
form, and bytes that are not text.
"""

import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate

from cdd_agent.actions.model import MultipleMatchesFoundError, SearchTextNotFoundError
from cdd_agent.changes.look_alikes import (
    common_ends,
    compare,
    find_boundaries,
    fold,
    keep_characters,
)
from cdd_agent.changes.misses import describe_miss
from cdd_agent.changes.model import Hint, Replacement
from cdd_agent.changes.search import (
    ALIKE_RUNGS,
    CLOSE_RUNGS,
    SURE_RUNGS,
    EditPlace,
    Lines,
    Rung,
    SearchedLines,
    find_numbered,
    find_runs,
)
from cdd_agent.files.text import (
    FileText,
    NormalForm,
    as_shown,
    in_normal_form,
    lines_of,
    normalize,
)
from cdd_agent.pattern import Pattern

_WORD = Pattern(r"\w")
_LINE_END = Pattern(r"\r{1,2}\n|\r")
_SHOWN_PLACES = 10
_MOST_MISSES = 20
"""Misses for which the difference is computed; it is slow."""

Reading = tuple[Lines, Lines]
"""Lines to find and new lines: one way to read an edit."""


class FileDraft:
    def __init__(self, before: FileText) -> None:
        self._before = before
        lines = lines_of(before.text)
        self._file = SearchedLines([line.rstrip("\r\n") for line in lines])
        self._ends = [
            line[len(bare) :]
            for line, bare in zip(lines, self._file.lines, strict=True)
        ]
        self._has_final_end = not lines or bool(self._ends[-1])
        self._moves: list[tuple[int, int]] = []
        """For line numbers in hints: pairs of a line and the shift of the lines below
        it.
        """
        self._misses = 0

    @property
    def lines(self) -> list[str]:
        return self._file.lines

    @property
    def text(self) -> str:
        pairs = zip(self.lines, self._ends, strict=True)
        return "".join([line + end for line, end in pairs])

    def replace(self, edit: Replacement) -> bool:
        """Make one edit; False if it was made already: the new text is there, and the
        old text is not or only within the new one.

        Raises `SearchTextNotFoundError` or `MultipleMatchesFoundError`.
        """
        readings = _readings(edit)
        for rungs in (SURE_RUNGS, ALIKE_RUNGS):
            for find, new in readings:
                place = self._find_place(rungs, find, new, edit.hint)
                if place is not None:
                    return self._carry_out(place, edit.final_newline)
        # first, because a close match could be the new text itself
        if any(self._has_new_text(find, new) for find, new in readings):
            return False
        for find, new in readings:
            place = self._find_place(CLOSE_RUNGS, find, new, edit.hint)
            if place is not None:
                return self._carry_out(place, edit.final_newline)
        find, new = readings[0]
        place = find_numbered(self._file, find, new, self._current_number)
        if place is None:
            raise self._not_found(find)
        self._put(place)
        return True

    def replace_text(self, find: str, new: str) -> bool:
        """Replace the one occurrence of a text, which may be part of a line. If there
        is none, search by lines. Returns and raises as `replace`.
        """
        find, new = _with_line_feeds(find), _with_line_feeds(new)
        flat = self._flat()
        spans = _spans(flat, find) or self._alike_spans(flat, find)
        if not spans:
            return self.replace(Replacement("", as_lines(find), as_lines(new)))
        if len(spans) > 1:
            numbers = [flat.count("\n", 0, start) + 1 for start, _ in spans]
            raise MultipleMatchesFoundError(self._shown, numbers)
        start, end = spans[0]
        new = self._keep_characters(flat[start:end], find, new)
        before = new.find(flat[start:end])
        is_longer = before >= 0 and len(new) > end - start
        around = (start - before, start - before + len(new))
        if is_longer and _spans(flat, new) == [around]:
            return False
        self._put_text(flat, start, end, new)
        return True

    def replace_all(self, content: str) -> None:
        """Replace the whole text. Lines that differ only in normal form or line end are
        kept, and so is the last line end.
        """
        old = [_composed(line) for line in self.lines]
        old_paths = set(old)
        new: list[str] = []
        for line in as_lines(content.removeprefix("\ufeff")):
            composed = _composed(line)
            new.append(composed if composed in old_paths else line)
        head, tail = common_ends(old, new)
        find = old[head : len(old) - tail]
        is_blank = not self._before.text.strip()
        if is_blank and old[-1:] != new[-1:]:
            self._has_final_end = content.endswith(("\n", "\r"))
        self._splice(head, find, new[head : len(new) - tail], is_alike=True)

    def _find_place(
        self, rungs: Sequence[Rung], find: Lines, new: Lines, hint: Hint
    ) -> EditPlace | None:
        """Return the place by the first rung that matches. Raises
        `MultipleMatchesFoundError` if it matches several.
        """
        if not find:
            return None
        for rung in rungs:
            places = list(rung(self._file, find, new))
            if len(places) > 1:
                places = self._choose_by_hint(places, hint)
            if len(places) > 1:
                numbers = [place.start + 1 for place in places[:_SHOWN_PLACES]]
                raise MultipleMatchesFoundError(self._shown, numbers)
            if places:
                return places[0]
        return None

    def _choose_by_hint(self, places: list[EditPlace], hint: Hint) -> list[EditPlace]:
        """Return the place on the hint's line, or the first after the lines that it
        names. All places if the hint fits none.
        """
        number = self._current_number(hint.line or 0)
        at_line = [place for place in places if place.start + 1 == number]
        if len(at_line) == 1:
            return at_line
        if not hint.after:
            return places
        after = 0
        for name in hint.after:
            named = [
                place
                for place, line in enumerate(self._file.forms.bare)
                if place >= after and line == name.strip()
            ]
            if len(named) != 1:
                return places
            after = named[0] + 1
        return [place for place in places if place.start >= after][:1] or places

    def _current_number(self, line: int) -> int:
        for start, moved in self._moves:
            if line > start + 1:
                line += moved
        return line

    def _carry_out(self, place: EditPlace, final_newline: bool | None) -> bool:
        if self._is_done(place):
            return False
        self._put(place)
        if final_newline is not None:
            self._has_final_end = final_newline
            self._settle_ends(len(self.lines) - 1)
        return True

    def _is_done(self, place: EditPlace) -> bool:
        """True if the place has the new text: it equals the text, or surrounds the text
        to find.
        """
        forms = self._file.folded if place.is_alike else self._file.forms
        form = fold if place.is_alike else str
        present = self.lines[place.start : place.start + len(place.find)]
        if place.is_alike and present == list(place.new):
            return True
        if len(place.new) <= len(place.find):
            return False
        # a different indentation makes a different text
        new = [form(line).rstrip() for line in place.new]
        find = [form(line).rstrip() for line in place.find]
        counts = Counter(line.strip() for line in new)
        for offset in find_runs(new, find, counts):
            start = place.start - offset
            if start >= 0 and forms.ended[start : start + len(new)] == new:
                return True
        return False

    def _has_new_text(self, find: Lines, new: Lines) -> bool:
        """True if the new text occurs once, and adds words or removes lines that the
        file no longer has.
        """
        forms = self._file.folded
        find, new = [fold(line) for line in find], [fold(line) for line in new]
        old_lines = {line.strip() for line in find}
        new_lines = {line.strip() for line in new}
        says_more = any(_WORD.search(line) for line in new_lines - old_lines)
        is_between = bool(find and new) and (find[0], find[-1]) == (new[0], new[-1])
        if not says_more and is_between:
            gone = old_lines - new_lines
            is_gone = not any(forms.counts[line] for line in gone)
            says_more = is_gone and any(_WORD.search(line) for line in gone)
        if not says_more:
            return False
        ended = [line.rstrip() for line in new]
        return len(list(find_runs(forms.ended, ended, forms.counts))) == 1

    def _put(self, place: EditPlace) -> None:
        self._splice(place.start, place.find, place.new, is_alike=place.is_alike)
        moved = len(place.new) - len(place.find)
        if moved:
            self._moves.append((place.start, moved))

    def _splice(self, start: int, find: Lines, new: Lines, *, is_alike: bool) -> None:
        """Replace lines. Lines in both `find` and `new` stay untouched; new lines get
        the line ends of those they replace.
        """
        lines: list[str] = []
        ends: list[str] = []
        for tag, find_from, find_to, new_from, new_to in compare(find, new):
            replaced = slice(start + find_from, start + find_to)
            if tag == "equal":
                lines += self.lines[replaced]
                ends += self._ends[replaced]
                continue
            changed = "\n".join(new[new_from:new_to])
            quoted = "\n".join(find[find_from:find_to])
            if is_alike and changed and quoted:
                present = "\n".join(self.lines[replaced])
                changed = self._keep_characters(present, quoted, changed)
            else:
                changed = self._in_its_form(changed)
            if new_to > new_from:
                lines += changed.split("\n")
            more = new_to - new_from - (find_to - find_from)
            ends += self._ends[replaced][: new_to - new_from] + [self._end] * more
        span = slice(start, start + len(find))
        is_at_end = span.stop >= len(self.lines)
        self._file.splice(span, lines)
        self._ends[span] = ends
        if is_at_end:
            self._settle_ends(start)

    def _settle_ends(self, start: int) -> None:
        """Give each line from `start` - 1 a line end; the last only if the file had
        one.
        """
        if not self.lines:
            return
        for place in range(max(0, start - 1), len(self.lines)):
            self._ends[place] = self._ends[place] or self._end
        if not self._has_final_end:
            self._ends[-1] = ""

    def _put_text(self, flat: str, start: int, end: int, new: str) -> None:
        first = flat.count("\n", 0, start)
        last = flat.count("\n", 0, end)
        changed = flat[:start] + new + flat[end:]
        new_lines = as_lines(changed)
        tail = max(0, len(self.lines) - last - 1)
        self._has_final_end = not changed or changed.endswith("\n")
        find = self.lines[first : len(self.lines) - tail]
        self._put(
            EditPlace(first, find, new_lines[first : len(new_lines) - tail], True)
        )

    def _keep_characters(self, replaced: str, find: str, new: str) -> str:
        """Return the new text in the file's normal form. Parts repeated from `find`
        keep the file's characters.
        """
        if replaced == find and new.isascii():
            return new
        return keep_characters(
            replaced, self._in_its_form(find), self._in_its_form(new)
        )

    def _in_its_form(self, new: str) -> str:
        return new if new.isascii() else in_normal_form(new, self._normal_form)

    @cached_property
    def _normal_form(self) -> NormalForm | None:
        return self._before.normal_form

    @cached_property
    def _end(self) -> str:
        return self._before.line_end

    @property
    def _shown(self) -> str:
        return as_shown(self.text)

    def _flat(self) -> str:
        text = "\n".join(self.lines)
        return f"{text}\n" if self.lines and self._has_final_end else text

    def _alike_spans(self, flat: str, find: str) -> list[tuple[int, int]]:
        """Find texts that look like `find`, at bounds of whole characters."""
        folded_find = fold(find)
        if not folded_find or (flat.isascii() and folded_find == find):
            return []
        tail = [""] if self._has_final_end else []
        lines = [*self.lines, *tail]
        folded = [*self._file.folded.lines, *tail]
        starts = _starts(lines)
        folded_starts = _starts(folded)
        spans: list[tuple[int, int]] = []
        folded_text = "\n".join(folded)
        for folded_span in _spans(folded_text, folded_find):
            bounds: list[int] = []
            for offset in folded_span:
                line = folded_text.count("\n", 0, offset)
                ends = {**find_boundaries(lines[line]), 0: 0}
                in_line = ends.get(offset - folded_starts[line])
                if in_line is not None:
                    bounds.append(starts[line] + in_line)
            if len(bounds) == 2:
                spans.append((bounds[0], bounds[1]))
        return spans

    def _not_found(self, find: Lines) -> SearchTextNotFoundError:
        self._misses += 1
        if self._misses > _MOST_MISSES:
            return SearchTextNotFoundError(self._shown)
        earlier: list[str] = []
        if self.text != self._before.text:
            earlier = FileDraft(self._before).lines
        miss = describe_miss(self._file, find, earlier)
        return SearchTextNotFoundError(
            self._shown, as_shown(miss.closest), as_shown(miss.difference)
        )


def as_lines(text: str) -> tuple[str, ...]:
    text = _with_line_feeds(text)
    return tuple(text.removesuffix("\n").split("\n")) if text else ()


def has_same_lines(text: str, other: str, *, exactly: bool = True) -> bool:
    """True if the texts differ only in normal form and line ends. If not `exactly`,
    look-alikes and trailing white space also count as equal.
    """
    lines, others = as_lines(text), as_lines(other)
    if exactly:
        return [*map(_composed, lines)] == [*map(_composed, others)]
    return _looks(lines) == _looks(others)


def _looks(lines: Lines) -> list[str]:
    return [fold(line).rstrip() for line in lines]


def _with_line_feeds(text: str) -> str:
    return _LINE_END.sub("\n", text) if "\r" in text else text


def _readings(edit: Replacement) -> list[Reading]:
    readings: list[Reading] = [(edit.find, edit.replace)]
    if edit.otherwise:
        readings.append(edit.otherwise)
    readings = [(_plain_lines(find), _plain_lines(new)) for find, new in readings]
    bare = _without_blank_ends(*readings[0])
    if bare:
        readings.append(bare)
    return readings


def _plain_lines(lines: Lines) -> Lines:
    if not any("\r" in line for line in lines):
        return lines
    return as_lines("\n".join(lines) + "\n")


def _without_blank_ends(find: Lines, new: Lines) -> Reading | None:
    """Remove the blank lines at the ends of the text to find, which only separate it
    from its marks. None if there are none.
    """
    filled = [place for place, line in enumerate(find) if line.strip()]
    if not filled:
        return None
    before, after = filled[0], len(find) - filled[-1] - 1
    if not before and not after:
        return None
    bare_new = list(new)
    for _ in range(before):
        if bare_new and not bare_new[0].strip():
            del bare_new[0]
    for _ in range(after):
        if bare_new and not bare_new[-1].strip():
            del bare_new[-1]
    return tuple(find[before : len(find) - after]), tuple(bare_new)


def _starts(lines: Lines) -> list[int]:
    return list(accumulate((len(line) + 1 for line in lines), initial=0))


def _spans(text: str, wanted: str) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    at = text.find(wanted)
    while at >= 0 and len(spans) < _SHOWN_PLACES:
        end = at + len(wanted)
        if not unicodedata.combining(text[end : end + 1] or " "):
            spans.append((at, end))
        at = text.find(wanted, at + 1)
    return spans


def _composed(line: str) -> str:
    """A byte that is not text becomes U+FFFD."""
    if line.isascii():
        return line
    return normalize("NFC", as_shown(line))
