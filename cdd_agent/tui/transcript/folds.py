"""Blocks that fold: a fixed header, with all, some or none of the lines below."""

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
    HEADER = 0
    SOME = 1
    """A sample: the first or the last lines below the header."""
    ALL = 2


class Fold(Struct, eq=False):
    """The state that a header shares with its lines."""

    opening: Opening = Opening.HEADER
    has_sample: bool = False
    """True if a part of the lines is useful alone."""
    has_more: bool = True

    def turn(self) -> None:
        """Open further; fold a fully opened block."""
        if self.opening is Opening.ALL:
            self.opening = Opening.HEADER
        elif self.opening is Opening.HEADER and self.has_sample:
            self.opening = Opening.SOME
        else:
            self.opening = Opening.ALL


class FoldedLine(TranscriptLine, eq=False, kw_only=True):
    """A line below a header. It has rows only if the block is opened far enough."""

    fold: Fold
    line: TranscriptLine
    since: Opening = Opening.ALL

    def rows(self, width: int) -> list[LineRow]:
        return self.line.rows(width) if self.fold.opening >= self.since else []

    def laid_out(self) -> Sequence[TranscriptLine]:
        return self.line.laid_out()


class MoreLine(TranscriptLine, eq=False, kw_only=True):
    """The number of lines outside the sample. A click opens them."""

    fold: Fold

    def rows(self, width: int) -> list[LineRow]:
        del width
        return (
            [LineRow(self, 0, len(self.text))]
            if self.fold.opening is Opening.SOME
            else []
        )

    def laid_out(self) -> Sequence[TranscriptLine]:
        return ()  # it is not part of the block's text


class FoldHeader(TranscriptLine, eq=False, kw_only=True):
    """The header, always one row: a title, cut if necessary, and a remark at the
    right.
    """

    fold: Fold
    title: str
    """Without control characters."""
    remark: str = ""
    remark_ink: Ink = ""
    title_marks: Sequence[Mark] = ()
    is_over: bool = True
    """True if only its opening can still change."""

    @property
    def final(self) -> bool:
        return self.is_over

    def rows(self, width: int) -> list[LineRow]:
        self.lay_out(width)
        return [LineRow(self, 0, READING_WIDTH)]

    def lay_out(self, width: int) -> None:
        """Build its text for the width of its row."""
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
    """Return a text cut to `room` cells, with … at the cut."""
    return (
        text
        if cell_len(text) <= room
        else f"{set_cell_size(text, max(room - 1, 0)).rstrip()}…"
    )


class Foldable(Struct, frozen=True):
    header: FoldHeader
    body: Sequence[TranscriptLine]
    source: str
    sample: int = 0
    """The number of lines in the sample: the first ones, or the last ones if
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
