from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TypeAlias

from msgspec import field
from rich.cells import cell_len

from cdd_agent.tui.transcript.lines import (
    MIN_ROOM,
    Ink,
    LineRow,
    Mark,
    TranscriptLine,
    clip,
)
from cdd_agent.tui.transcript.wrapping import wrap

Cell: TypeAlias = tuple[str, tuple[Mark, ...]]


class Table(TranscriptLine, eq=False, kw_only=True):
    """A grid, or one line for each cell if a grid does not fit."""

    head: list[Cell]
    body: list[list[Cell]]
    aligns: list[str]
    _lines: list[TranscriptLine] = field(default_factory=list)

    def laid_out(self) -> Sequence[TranscriptLine]:
        return self._lines

    def rows(self, width: int) -> list[LineRow]:
        room = self.room(width) - 3 * (len(self.head) - 1)
        self._lines = list(
            self._grid(room) if room >= MIN_ROOM * len(self.head) else self._records()
        )
        rows: list[LineRow] = []
        for line in self._lines:
            line.gutter, line.hang = self.hang if rows else self.gutter, self.hang
            rows += line.rows(width)
        return rows

    def _grid(self, room: int) -> Iterator[TranscriptLine]:
        natural = [
            max(cell_len(text) for text, _ in column)
            for column in zip(self.head, *self.body, strict=True)
        ]
        cap = max(
            cap
            for cap in range(1, room + 1)
            if sum(min(width, cap) for width in natural) <= room
        )
        widths = [min(width, cap) for width in natural]
        yield from self._grid_lines(self.head, widths, "strong")
        yield TranscriptLine(
            text="─┼─".join("─" * width for width in widths), ink="rule"
        )
        for cells in self.body:
            yield from self._grid_lines(cells, widths, "")

    def _grid_lines(
        self, cells: list[Cell], widths: list[int], ink: Ink
    ) -> Iterator[TranscriptLine]:
        wrapped = [
            wrap(text, width, by_words=True)
            for (text, _), width in zip(cells, widths, strict=True)
        ]
        for parts in zip_longest(*wrapped, fillvalue=(0, 0)):
            text, marks = "", list[Mark]()
            for (source, inks), (start, end), width, align in zip(
                cells, parts, widths, self.aligns, strict=True
            ):
                if text:
                    marks.append((len(text) + 1, len(text) + 2, "rule"))
                    text += " │ "
                space = width - cell_len(source[start:end])
                margin = {"right": space, "center": space // 2}.get(align, 0)
                text += " " * margin
                marks += clip(inks, start, end, len(text) - start)
                text += source[start:end] + " " * (space - margin)
            yield TranscriptLine(text=text, marks=marks, ink=ink)

    def _records(self) -> Iterator[TranscriptLine]:
        for number, cells in enumerate(self.body):
            if number:
                yield TranscriptLine(text="───", ink="rule")
            for (name, _), (text, marks) in zip(self.head, cells, strict=True):
                label = f"{name}: "
                inks = [
                    (0, len(label), "strong"),
                    *clip(marks, 0, len(text), len(label)),
                ]
                yield TranscriptLine(text=label + text, marks=inks)
