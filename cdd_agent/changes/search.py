"""Finds the one place that an edit means. Every form of edit uses these rungs:

1. exactly;
2. except for white space at line ends;
3. with all lines shifted by the same indentation, also between tabs and spaces: new
   lines are shifted alike;
4. as a look-alike (`look_alikes.py`), shifted or not;
5. as the only close match: see `_CLOSE`.

The first rung that finds a place decides. If it finds two, only the edit's own `Hint`
can decide.

Line numbers in the edit are ignored if the file has these lines at these numbers.
"""

import difflib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache

from msgspec import Struct

from cdd_agent.changes.look_alikes import compare, fold
from cdd_agent.pattern import Pattern

_CLOSE = 0.9
"""Share of the text that a close match needs, and of each changed line. Quoted lines
need only `_QUOTED`, because they are kept. The text needs three lines, half of them in
the file. In a changed line, numbers, operators and brackets must match.
"""
_QUOTED = 0.75
_RIVAL = 0.8
"""A second place this similar prevents a close match."""
_NUMBERED = Pattern(
    r"\s*(?P<number>\d{1,7})(?:(?: ?[|│→:]| |\t)(?P<text>.*)|(?P<none>)\s*)"
)
_TAB_WIDTHS = (4, 2, 8, 3)
_MOST_VOTERS = 50
"""Most lines that vote for the place of a close match."""
LONGEST_COMPARED = 1000
"""Longest line, in characters, to compare letter by letter."""
_ANY_QUOTE = str.maketrans('\u2018\u2019\u201c\u201d"', "'''''")

Lines = Sequence[str]


class LineForms:
    """Lines of a file in the forms that are searched."""

    def __init__(self, lines: Lines) -> None:
        self.lines = list(lines)
        self.ended = [line.rstrip() for line in lines]
        """Without trailing white space."""
        self.bare = [line.strip() for line in lines]
        self.counts = Counter(self.bare)
        """Frequencies of bare lines."""

    def splice(self, span: slice, lines: Lines) -> None:
        bare = [line.strip() for line in lines]
        self.counts.subtract(self.bare[span])
        self.counts.update(bare)
        self.lines[span] = lines
        self.bare[span] = bare
        self.ended[span] = [line.rstrip() for line in lines]


class SearchedLines:
    """A file's lines without line ends, searched and edited."""

    def __init__(self, lines: Lines) -> None:
        self.forms = LineForms(lines)
        self._folded: LineForms | None = None

    @property
    def lines(self) -> list[str]:
        return self.forms.lines

    @property
    def folded(self) -> LineForms:
        """Folded lines, computed on first use."""
        if self._folded is None:
            self._folded = LineForms([fold(line) for line in self.lines])
        return self._folded

    def splice(self, span: slice, lines: Lines) -> None:
        self.forms.splice(span, lines)
        if self._folded is not None:
            self._folded.splice(span, [fold(line) for line in lines])


class EditPlace(Struct, frozen=True):
    start: int
    """First line, from 0."""
    find: Lines
    new: Lines
    """Indented as in the file."""
    is_alike: bool = False
    """True if the file's lines only look like those to find."""


Rung = Callable[[SearchedLines, Lines, Lines], Iterator[EditPlace]]


def find_exactly(file: SearchedLines, find: Lines, new: Lines) -> Iterator[EditPlace]:
    for start in find_runs(file.lines, find, file.forms.counts):
        yield EditPlace(start, find, new)


def find_without_line_ends(
    file: SearchedLines, find: Lines, new: Lines
) -> Iterator[EditPlace]:
    ended = [line.rstrip() for line in find]
    for start in find_runs(file.forms.ended, ended, file.forms.counts):
        yield EditPlace(start, find, new)


def find_shifted(file: SearchedLines, find: Lines, new: Lines) -> Iterator[EditPlace]:
    for start, old_lines, new_lines in _shifted(file.forms, find, new, str):
        yield EditPlace(start, old_lines, new_lines)


def find_alike(file: SearchedLines, find: Lines, new: Lines) -> Iterator[EditPlace]:
    ended = [fold(line).rstrip() for line in find]
    for start in find_runs(file.folded.ended, ended, file.folded.counts):
        yield EditPlace(start, find, new, is_alike=True)


def find_shifted_alike(
    file: SearchedLines, find: Lines, new: Lines
) -> Iterator[EditPlace]:
    find = [_with_plain_indentation(line) for line in find]
    new = [_with_plain_indentation(line) for line in new]
    for start, old_lines, new_lines in _shifted(file.folded, find, new, fold):
        yield EditPlace(start, old_lines, new_lines, is_alike=True)


def find_close(file: SearchedLines, find: Lines, new: Lines) -> Iterator[EditPlace]:
    wanted = [line.strip() for line in find]
    quoted = _quoted_lines(find, new)
    has_rival = False
    close: list[EditPlace] = []
    for start in _voted_starts(file, wanted):
        present = file.forms.bare[start : start + len(wanted)]
        place = _shifted_close(file, start, find, new)
        if place is not None and _likeness(wanted, present, quoted) >= _CLOSE:
            close.append(place)
        elif _overall_likeness(wanted, present) >= _RIVAL:
            has_rival = True
        if has_rival or len(close) > 1:
            # ambiguous, wherever other matches are
            break
    if len(close) > 1 or not has_rival:
        yield from close


SURE_RUNGS: tuple[Rung, ...] = (find_exactly, find_without_line_ends, find_shifted)
ALIKE_RUNGS: tuple[Rung, ...] = (find_alike, find_shifted_alike)
CLOSE_RUNGS: tuple[Rung, ...] = (find_close,)


def find_numbered(
    file: SearchedLines, find: Lines, new: Lines, now: Callable[[int], int]
) -> EditPlace | None:
    """Locate lines by the line numbers in the edit. `now` maps an original line number
    to the current one.
    """
    numbered = [_NUMBERED.fullmatch(line) for line in find]
    numbers = [int(line["number"]) for line in numbered if line]
    if not numbers or numbers != list(range(numbers[0], numbers[0] + len(find))):
        return None
    bare_find = [line["text"] or "" for line in numbered if line]
    bare_new = [_without_number(line) for line in new]
    for rung in (find_without_line_ends, find_shifted):
        for place in rung(file, bare_find, bare_new):
            if place.start + 1 == now(numbers[0]):
                return place
    return None


def _without_number(line: str) -> str:
    numbered = _NUMBERED.fullmatch(line)
    if numbered is None:
        return line
    return numbered["text"] or ""


def find_runs(
    lines: Sequence[str], wanted: Lines, counts: Mapping[str, int]
) -> Iterator[int]:
    """Yield the places where lines occur in sequence. `counts` has the frequency of
    bare lines: the rarest is searched for.
    """
    if not wanted or len(wanted) > len(lines):
        return
    wanted = list(wanted)
    rarities = [counts.get(line.strip(), 0) for line in wanted]
    pivot = rarities.index(min(rarities))
    if not rarities[pivot]:
        return
    last = len(lines) - len(wanted) + pivot + 1
    at = pivot
    while True:
        try:
            at = lines.index(wanted[pivot], at, last)
        except ValueError:
            return
        if lines[at - pivot : at - pivot + len(wanted)] == wanted:
            yield at - pivot
        at += 1


class _Shift(Struct, frozen=True):
    less: str
    more: str

    def apply(self, lines: Lines) -> list[str] | None:
        """Return the shifted lines; None if one lacks the indentation to remove."""
        shifted: list[str] = []
        for line in lines:
            if not line.strip():
                shifted.append(line)
            elif line.startswith(self.less):
                shifted.append(self.more + line.removeprefix(self.less))
            else:
                return None
        return shifted


def _shifted(
    forms: LineForms, find: Lines, new: Lines, form: Callable[[str], str]
) -> Iterator[tuple[int, Lines, Lines]]:
    """Yield places where one shift fits all lines, with both texts shifted. `form` maps
    a line to the form of `forms`.
    """
    bare = [form(line).strip() for line in find]
    if not any(bare):
        return
    for start in find_runs(forms.bare, bare, forms.counts):
        present = forms.ended[start : start + len(find)]
        for old_lines, new_lines in _tab_forms(find, new, present):
            shift = _shift_between([form(line).rstrip() for line in old_lines], present)
            if shift is None:
                continue
            old_shifted, new_shifted = shift.apply(old_lines), shift.apply(new_lines)
            if old_shifted is not None and new_shifted is not None:
                yield start, old_shifted, new_shifted
                break


def _shift_between(lines: Lines, present: Lines) -> _Shift | None:
    pairs = [pair for pair in zip(lines, present, strict=True) if pair[0]]
    if not pairs:
        return None
    before, after = (_indentation(line) for line in pairs[0])
    if after.endswith(before):
        shift = _Shift("", after.removesuffix(before))
    elif before.endswith(after):
        shift = _Shift(before.removesuffix(after), "")
    else:
        return None
    if shift.apply([line for line, _ in pairs]) != [line for _, line in pairs]:
        return None
    return shift


def _tab_forms(
    find: Lines, new: Lines, present: Lines
) -> Iterator[tuple[Lines, Lines]]:
    yield find, new
    has_tabs = any(line.startswith("\t") for line in present)
    if not has_tabs and not any(line.startswith("\t") for line in find):
        return
    indent = _with_tabs if has_tabs else _with_spaces
    for width in _TAB_WIDTHS:
        yield (
            [indent(line, width) for line in find],
            [indent(line, width) for line in new],
        )


def _with_tabs(line: str, width: int) -> str:
    text = line.lstrip(" ")
    tabs, spaces = divmod(len(line) - len(text), width)
    return "\t" * tabs + " " * spaces + text


def _with_spaces(line: str, width: int) -> str:
    text = line.lstrip("\t")
    return " " * (width * (len(line) - len(text))) + text


def _with_plain_indentation(line: str) -> str:
    return fold(_indentation(line)) + line.lstrip()


def _indentation(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _quoted_lines(find: Lines, new: Lines) -> set[int]:
    quoted: set[int] = set()
    for tag, start, end, _, _ in compare(find, new):
        if tag == "equal":
            quoted.update(range(start, end))
    return quoted


def _voted_starts(file: SearchedLines, wanted: Lines) -> Iterator[int]:
    voters = [place for place, line in enumerate(wanted) if line]
    voters.sort(key=lambda place: -len(wanted[place]))
    del voters[_MOST_VOTERS:]
    if len(voters) < 3:
        return
    votes: Counter[int] = Counter()
    for place in voters:
        for run_start in find_runs(file.forms.bare, [wanted[place]], file.forms.counts):
            votes[run_start - place] += 1
    for start, count in votes.items():
        is_inside = start >= 0 and start + len(wanted) <= len(file.lines)
        if is_inside and count * 2 >= len(voters):
            yield start


def _shifted_close(
    file: SearchedLines, start: int, find: Lines, new: Lines
) -> EditPlace | None:
    equal: list[str] = []
    present: list[str] = []
    for offset, line in enumerate(find):
        if line.strip() and line.strip() == file.forms.bare[start + offset]:
            equal.append(line.rstrip())
            present.append(file.forms.ended[start + offset])
    shift = _shift_between(equal, present)
    if shift is None:
        return None
    old_lines, new_lines = shift.apply(find), shift.apply(new)
    if old_lines is None or new_lines is None:
        return None
    return EditPlace(start, old_lines, new_lines)


def _likeness(wanted: Lines, present: Lines, quoted: set[int]) -> float:
    """Return the share of the text that the file has; 0 if a line differs too much."""
    for place, (line, other) in enumerate(zip(wanted, present, strict=True)):
        if line == other:
            continue
        if place in quoted:
            if bool(line) != bool(other) or likeness(line, other) < _QUOTED:
                return 0.0
        elif _skeleton(line) != _skeleton(other) or likeness(line, other) < _CLOSE:
            return 0.0
    return _overall_likeness(wanted, present)


def _overall_likeness(wanted: Lines, present: Lines) -> float:
    size = sum(len(line) for line in wanted)
    if not size:
        return 0.0
    pairs = zip(wanted, present, strict=True)
    return sum(len(line) * likeness(line, other) for line, other in pairs) / size


@lru_cache(maxsize=4096)
def likeness(line: str, other: str) -> float:
    """Return the equal share of two lines; 0 for long lines that differ."""
    if line == other:
        return 1.0
    if max(len(line), len(other)) > LONGEST_COMPARED:
        return 0.0
    return difflib.SequenceMatcher(None, line, other, autojunk=False).ratio()


def _skeleton(line: str) -> str:
    """Return the parts that must match: all but letters, spaces, and the kind of
    quotes.
    """
    return re.sub(r"[^\W\d]|\s", "", line).translate(_ANY_QUOTE)
