"""Styled lines, which know no width, and the rows they are broken into. Nothing here
draws.

A `TranscriptLine` names its looks with *inks*, words that `looks.py` maps to styles. So
a new theme costs nothing, and a new width only costs new breaks between rows.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from msgspec import Struct
from rich.cells import cell_len

from cdd_agent.tui.transcript.wrapping import wrap

MIN_ROOM = 4
"""Cells that text is given in every row, however narrow the screen is."""

READING_WIDTH = 100
"""Cells of a row of prose, at most, however wide the screen is; code, output and tables
take all there are.
"""

Ink: TypeAlias = str
"""Names of looks, separated by spaces; empty for plain text."""
InkedText: TypeAlias = tuple[str, Ink]
Gutter: TypeAlias = tuple[InkedText, ...]
Mark: TypeAlias = tuple[int, int, Ink]
"""The start and end of an ink in a text."""


def blank(gutter: Gutter) -> Gutter:
    """Spaces as wide as the gutter."""
    return tuple((" " * cell_len(text), "") for text, _ in gutter)


def clip(marks: Iterable[Mark], start: int, end: int, shift: int = 0) -> Iterator[Mark]:
    """The marks between two places, moved by `shift`."""
    for begin, stop, ink in marks:
        if begin < end and stop > start:
            yield max(begin, start) + shift, min(stop, end) + shift, ink


class LineRow(NamedTuple):
    """The part of a line on one row of the screen."""

    line: "TranscriptLine"
    start: int
    end: int


class TranscriptLine(Struct, eq=False, kw_only=True):
    """A line of text before it is broken into rows."""

    text: str = ""
    marks: Sequence[Mark] = ()
    ink: Ink = ""
    """The ink of the whole text; marks are applied on top."""
    gutter: Gutter = ()
    hang: Gutter = ()
    """The gutter of the second row and those below, as wide as the first."""
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
        """The lines that its rows are of: others than itself where they depend on the
        width.
        """
        return (self,)

    def room(self, width: int) -> int:
        """The cells that are left for text beside the gutter."""
        width = min(width, READING_WIDTH) if self.is_prose else width
        return max(width - sum(cell_len(text) for text, _ in self.gutter), MIN_ROOM)

    def rows(self, width: int) -> list[LineRow]:
        return [
            LineRow(self, start, end)
            for start, end in wrap(self.text, self.room(width), by_words=self.by_words)
        ]


class ItemLine(TranscriptLine, eq=False, kw_only=True):
    """A line of a list: its further rows, with a wider gutter, stand below its
    words.
    """

    lead: int
    """Characters that are no words: indentation, sign, number."""

    def rows(self, width: int) -> list[LineRow]:
        beside = cell_len(self.text[: self.lead])
        words = wrap(
            self.text[self.lead :],
            max(self.room(width) - beside, MIN_ROOM),
            by_words=self.by_words,
        )
        rows = [
            LineRow(self, start + self.lead, end + self.lead) for start, end in words
        ]
        return [LineRow(self, 0, rows[0].end), *rows[1:]]
