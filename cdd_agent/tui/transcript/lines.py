"""Styled lines, independent of the width, and their rows. Nothing is drawn here.

A `TranscriptLine` names its looks with inks, words that `looks.py` maps to styles. So a
new theme costs nothing, and a new width costs only new line breaks.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from msgspec import Struct
from rich.cells import cell_len

from cdd_agent.tui.transcript.wrapping import wrap

MIN_ROOM = 4
"""Minimum cells for text in a row."""

READING_WIDTH = 100
"""Maximum cells of a row of prose. Code, output and tables use the whole width."""

Ink: TypeAlias = str
"""Names of looks, separated by spaces; empty for plain text."""
InkedText: TypeAlias = tuple[str, Ink]
Gutter: TypeAlias = tuple[InkedText, ...]
Mark: TypeAlias = tuple[int, int, Ink]
"""The start, end and ink of a part of a text."""


def blank(gutter: Gutter) -> Gutter:
    """Return spaces as wide as the gutter."""
    return tuple((" " * cell_len(text), "") for text, _ in gutter)


def clip(marks: Iterable[Mark], start: int, end: int, shift: int = 0) -> Iterator[Mark]:
    """Yield the marks between two indexes, moved by `shift`."""
    for begin, stop, ink in marks:
        if begin < end and stop > start:
            yield max(begin, start) + shift, min(stop, end) + shift, ink


class LineRow(NamedTuple):
    line: "TranscriptLine"
    start: int
    end: int


class TranscriptLine(Struct, eq=False, kw_only=True):
    text: str = ""
    marks: Sequence[Mark] = ()
    ink: Ink = ""
    """The ink of the whole text, below the marks."""
    gutter: Gutter = ()
    hang: Gutter = ()
    """The gutter of later rows, as wide as the first."""
    fill: InkedText = (" ", "")
    """A character that fills the last row to its end; a space fills every row."""
    by_words: bool = True
    is_prose: bool = False

    @property
    def final(self) -> bool:
        """True if the colours can no longer change."""
        return True

    def inks(self) -> Sequence[Mark]:
        return self.marks

    def laid_out(self) -> Sequence["TranscriptLine"]:
        """Return the lines that the rows show: usually this line, else lines made for
        the width.
        """
        return (self,)

    def room(self, width: int) -> int:
        width = min(width, READING_WIDTH) if self.is_prose else width
        return max(width - sum(cell_len(text) for text, _ in self.gutter), MIN_ROOM)

    def rows(self, width: int) -> list[LineRow]:
        return [
            LineRow(self, start, end)
            for start, end in wrap(self.text, self.room(width), by_words=self.by_words)
        ]


class ItemLine(TranscriptLine, eq=False, kw_only=True):
    """A list item. Its later rows are indented like its text."""

    lead: int
    """Characters before the text: indentation, sign, number."""

    def rows(self, width: int) -> list[LineRow]:
        indent = cell_len(self.text[: self.lead])
        words = wrap(
            self.text[self.lead :],
            max(self.room(width) - indent, MIN_ROOM),
            by_words=self.by_words,
        )
        rows = [
            LineRow(self, start + self.lead, end + self.lead) for start, end in words
        ]
        return [LineRow(self, 0, rows[0].end), *rows[1:]]
