"""The lines of a diff, with numbers, colours and marked words, in one or two columns.

`diff_reading.py` makes them from a unified diff.
"""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise, zip_longest

from msgspec import Struct
from rich.cells import cell_len

from cdd_agent.pattern import Pattern
from cdd_agent.tui.transcript.code import CodeWindow
from cdd_agent.tui.transcript.lines import Ink, LineRow, Mark, TranscriptLine, clip
from cdd_agent.tui.transcript.wrapping import wrap

SIDE_BY_SIDE_WIDTH = 140
_MOST_WORDS = 120
"""Maximum words of two lines that are compared one by one. In longer lines, all words
between the common ends count as changed.
"""
_ALIKE = 0.35
"""Minimum similarity of two lines that are shown as one changed line."""
WORD = Pattern(r"\w+|\s+|[^\w\s]")
SIGN_INKS = {" ": "", "-": "deleted", "+": "inserted"}
LINE_INKS = {" ": "diff", "-": "diff removed", "+": "diff added"}
_WORD_INKS = {"-": "removed-word", "+": "added-word"}


class DiffLayout(Struct):
    """The layout that all diffs of a transcript share."""

    is_side_by_side: bool = True

    def splits(self, width: int) -> bool:
        return self.is_side_by_side and width >= SIDE_BY_SIDE_WIDTH


def number_text(number: int | str, digits: int) -> str:
    """Return the column of a line number; empty without numbers."""
    return f"{number:>{digits}} " if digits else ""


class DiffLine(TranscriptLine, eq=False, kw_only=True):
    """A line of the old or new file. In two columns, its partner draws an added
    line.
    """

    sign: str
    number: int
    """In the new file; for a removed line, in the old file."""
    number_before: int
    """The old number of an unchanged line."""
    digits: int
    """The width of line numbers; 0 without numbers."""
    window: CodeWindow
    place: int
    layout: DiffLayout
    partner: "DiffLine | None" = None
    """The line on the other side, in two columns."""
    counterpart: "DiffLine | None" = None
    """The line that this one replaced, or was replaced by."""
    _lines: Sequence[TranscriptLine] | None = None
    """The rows of two columns; None in one column."""

    @property
    def final(self) -> bool:
        return self.window.closed

    def laid_out(self) -> Sequence[TranscriptLine]:
        return (self,) if self._lines is None else self._lines

    @property
    def gutter_width(self) -> int:
        return len(number_text(0, self.digits)) + 2

    def rows(self, width: int) -> list[LineRow]:
        if not self.layout.splits(width):
            self._lines = None
            return [
                LineRow(self, start, end)
                for start, end in wrap(self.text, self.room(width), by_words=False)
            ]
        if self.sign == "+" and self.partner is not None:
            self._lines = ()
            return []
        old = None if self.sign == "+" else self
        new = self.partner if self.sign == "-" else self
        self._lines = list(_side_by_side(old, new, (width - 1) // 2))
        return [LineRow(line, 0, len(line.text)) for line in self._lines]

    def inks(self) -> Sequence[Mark]:
        code = self.window.inks(self.place)
        if self.counterpart is None or self.sign == " ":
            return code
        old, new = (
            (self, self.counterpart) if self.sign == "-" else (self.counterpart, self)
        )
        old_spans, new_spans = changed_words(old.text, new.text)
        return _on_top(
            code,
            old_spans if self.sign == "-" else new_spans,
            _WORD_INKS[self.sign],
            len(self.text),
        )


class _TwoColumns(TranscriptLine, eq=False, kw_only=True):
    halves: tuple["_Half", "_Half"]

    @property
    def final(self) -> bool:
        return all(half.line is None or half.line.final for half in self.halves)

    def inks(self) -> Sequence[Mark]:
        old_half, right = self.halves
        return [*old_half.marks(0), *right.marks(len(old_half.text))]


class _Half:
    """One row of a line in one column. The first row has the line's number."""

    __slots__ = ("gutter", "line", "part", "text")

    def __init__(
        self, line: DiffLine | None, part: tuple[int, int], number: int, width: int
    ) -> None:
        self.line, self.part, self.gutter, self.text = line, part, "", ""
        if line is not None:
            start, end = part
            column = number_text(number, line.digits)
            if start:
                self.gutter = " " * len(column) + "↳ "
            else:
                self.gutter = f"{column}{line.sign} "
            self.text = self.gutter + line.text[start:end]
        self.text += " " * (width - cell_len(self.text))

    def marks(self, shift: int) -> Iterator[Mark]:
        if (line := self.line) is None:
            return
        ink, first = LINE_INKS[line.sign], shift + len(self.gutter)
        yield shift, first, f"{ink} {SIGN_INKS[line.sign] or 'line-number'}"
        place = first
        for begin, stop, code in clip(line.inks(), *self.part, first - self.part[0]):
            if place < begin:
                yield place, begin, ink
            yield begin, stop, f"{ink} {code}"
            place = stop
        if place < shift + len(self.text):
            yield place, shift + len(self.text), ink


def _side_by_side(
    old: DiffLine | None, new: DiffLine | None, column: int
) -> Iterator[TranscriptLine]:
    """Yield the rows of two lines; one may be missing. An unchanged line is on both
    sides.
    """
    parts = [
        wrap(line.text, max(column - line.gutter_width, 1), by_words=False)
        if line
        else []
        for line in (old, new)
    ]
    number = (
        new.number_before
        if new is not None and new is old
        else old.number
        if old
        else 0
    )
    for old_row, right in zip_longest(*parts, fillvalue=None):
        halves = (
            _Half(old if old_row else None, old_row or (0, 0), number, column),
            _Half(
                new if right else None,
                right or (0, 0),
                new.number if new else 0,
                column,
            ),
        )
        yield _TwoColumns(
            text=halves[0].text + halves[1].text, halves=halves, by_words=False
        )


def _on_top(
    below: Sequence[Mark], spans: Sequence[tuple[int, int]], ink: Ink, length: int
) -> list[Mark]:
    """Return the marks with `ink` on top of the spans. Both are sorted."""
    ends = [(start, end) for start, end, _ in below] + list(spans)
    places = sorted({0, length, *(place for span in ends for place in span)})
    marks = list[Mark]()
    first, over = 0, 0
    for start, end in pairwise(places):
        while first < len(below) and below[first][1] <= start:
            first += 1
        while over < len(spans) and spans[over][1] <= start:
            over += 1
        inks = (
            [below[first][2]] if first < len(below) and below[first][0] <= start else []
        )
        inks += [ink] if over < len(spans) and spans[over][0] <= start else []
        if inks:
            marks.append((start, end, " ".join(inks)))
    return marks


@lru_cache(maxsize=1024)
def changed_words(
    before: str, after: str
) -> tuple[Sequence[tuple[int, int]], Sequence[tuple[int, int]]]:
    """Return the spans of the words that differ; none if the lines are too
    different.
    """
    old, new = WORD.findall(before), WORD.findall(after)
    head = next(
        (n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b),
        min(len(old), len(new)),
    )
    most = min(len(old), len(new)) - head
    tail = next(
        (
            n
            for n, (a, b) in enumerate(zip(reversed(old), reversed(new), strict=False))
            if a != b
        ),
        most,
    )
    tail = min(tail, most)
    inner = old[head : len(old) - tail], new[head : len(new) - tail]
    if max(map(len, inner)) > _MOST_WORDS:
        same = [(0, 0, head), (len(old) - tail, len(new) - tail, tail)]
    else:
        matcher = SequenceMatcher(None, *inner, autojunk=False)
        blocks = [
            (a + head, b + head, size) for a, b, size in matcher.get_matching_blocks()
        ]
        same = [(0, 0, head), *blocks, (len(old) - tail, len(new) - tail, tail)]
    common = sum(
        len(word.strip())
        for start, _, size in same
        for word in old[start : start + size]
    )
    whole = sum(len(word.strip()) for word in (*old, *new))
    if not whole or 2 * common / whole < _ALIKE:
        return (), ()
    return (
        _spans(old, [(start, start + size) for start, _, size in same]),
        _spans(new, [(start, start + size) for _, start, size in same]),
    )


def _spans(words: list[str], same: list[tuple[int, int]]) -> list[tuple[int, int]]:
    same_places = {place for start, end in same for place in range(start, end)}
    spans, at = list[tuple[int, int]](), 0
    for place, word in enumerate(words):
        if place not in same_places:
            if spans and (spans[-1][1] == at):
                spans[-1] = (spans[-1][0], at + len(word))
            else:
                spans.append((at, at + len(word)))
        at += len(word)
    return spans
