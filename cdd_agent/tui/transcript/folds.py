"""Blocks that fold: a header that stays, and below it lines of which all, some or none
are shown.
"""

from collections.abc import Sequence
from enum import IntEnum

from msgspec import Struct
from rich.cells import cell_len, set_cell_size

from cdd_agent.tui.transcript.lines import (
    READING_WIDTH,
    Ink,
    LineRow,
    Mark,
    TranscriptLine,
    blank,
    clip,
)


class Opening(IntEnum):
    """The degree to which a block is opened."""

    HEADER = 0
    SOME = 1
    """A sample: the first lines of what is below the header, or the last."""
    ALL = 2


class Fold(Struct, eq=False):
    """The state that a header shares with the lines below it."""

    opening: Opening = Opening.HEADER
    has_sample: bool = False
    """Some of its lines are worth showing without the others."""
    has_more: bool = True
    """There is something below the header."""

    def turn(self) -> None:
        """Open further; fold what is open."""
        if self.opening is Opening.ALL:
            self.opening = Opening.HEADER
        elif self.opening is Opening.HEADER and self.has_sample:
            self.opening = Opening.SOME
        else:
            self.opening = Opening.ALL


class FoldedLine(TranscriptLine, eq=False, kw_only=True):
    """A line below a header, which has rows only while the block is opened that far."""

    fold: Fold
    line: TranscriptLine
    since: Opening = Opening.ALL

    def rows(self, width: int) -> list[LineRow]:
        return self.line.rows(width) if self.fold.opening >= self.since else []

    def laid_out(self) -> Sequence[TranscriptLine]:
        return self.line.laid_out()


class MoreLine(TranscriptLine, eq=False, kw_only=True):
    """Says how many lines are left out of a sample. A click on it opens them."""

    fold: Fold

    def rows(self, width: int) -> list[LineRow]:
        del width
        return (
            [LineRow(self, 0, len(self.text))]
            if self.fold.opening is Opening.SOME
            else []
        )

    def laid_out(self) -> Sequence[TranscriptLine]:
        return ()  # no text of the block's


class FoldHeader(TranscriptLine, eq=False, kw_only=True):
    """The line that stays. It is always one row: a remark stands at its right, and of a
    long title the end is cut.
    """

    fold: Fold
    title: str
    """Without control characters."""
    remark: str = ""
    remark_ink: Ink = ""
    title_marks: Sequence[Mark] = ()
    is_over: bool = True
    """Nothing of it will change any more but how far it is open."""

    @property
    def final(self) -> bool:
        return self.is_over

    def rows(self, width: int) -> list[LineRow]:
        self.lay_out(width)
        return [LineRow(self, 0, READING_WIDTH)]

    def lay_out(self, width: int) -> None:
        """Build its text again, for the width of its row."""
        glyph = " " if not self.fold.has_more else "▾" if self.fold.opening else "▸"
        self.gutter = ((f"{glyph} ", self.ink),)
        self.hang = blank(self.gutter)
        room = self.room(min(width, READING_WIDTH))
        remark = self.remark if cell_len(self.remark) <= room // 2 else ""
        self.text = shortened(self.title, room - cell_len(remark) - 2 * bool(remark))
        self.marks = list(clip(self.title_marks, 0, len(self.text)))
        if remark:
            self.text = set_cell_size(self.text, room - cell_len(remark)) + remark
            self.marks.append(
                (len(self.text) - len(remark), len(self.text), self.remark_ink)
            )


def shortened(text: str, room: int) -> str:
    """Return the beginning of a text in `room` cells, with a sign that it continues."""
    return (
        text
        if cell_len(text) <= room
        else f"{set_cell_size(text, max(room - 1, 0)).rstrip()}…"
    )


class Foldable(Struct, frozen=True):
    """A block that is complete: its header, and what is below it."""

    header: FoldHeader
    body: Sequence[TranscriptLine]
    source: str
    sample: int = 0
    """The number of body lines to show by themselves: the first ones, or the last if
    negative.
    """

    def lines(self) -> list[TranscriptLine]:
        fold, count = self.header.fold, len(self.body)
        fold.has_more = count > 0
        fold.has_sample = 0 < abs(self.sample) < count
        if fold.opening is Opening.SOME and not fold.has_sample:
            fold.opening = Opening.ALL
        first, end = (
            (0, self.sample) if self.sample >= 0 else (count + self.sample, count)
        )
        lines: list[TranscriptLine] = [
            FoldedLine(
                fold=fold,
                line=line,
                since=Opening.SOME if first <= place < end else Opening.ALL,
            )
            for place, line in enumerate(self.body)
        ]
        if fold.has_sample:
            remaining = count - abs(self.sample)
            more = MoreLine(
                fold=fold,
                text=f"… {remaining:,} more line{'s' * (remaining > 1)}",
                ink="left-out",
                gutter=((" " * 4, ""),),
            )
            lines.insert(end if self.sample > 0 else first, more)
        return [self.header, *lines]
