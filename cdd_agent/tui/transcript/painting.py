"""Draws rows as strips. Each cell has its place in the text, so that text can be
selected.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.style import Style as VisualStyle
from textual.widget import Widget

from cdd_agent.tui.transcript.lines import (
    MIN_ROOM,
    Gutter,
    Ink,
    LineRow,
    TranscriptLine,
    clip,
)
from cdd_agent.tui.transcript.looks import LOOKS, WITHOUT_COLOURS

Overlay = tuple[int, int, Style]


class RowPainter:
    """Draws rows in the styles of their inks, on a widget's background.

    Cells carry the number of their row, which stays when older rows are dropped.
    """

    def __init__(self, widget: Widget) -> None:
        self._widget = widget
        self._styles: dict[Ink, Style] = {}

    def forget_styles(self) -> None:
        self._styles.clear()

    def blank(self, width: int) -> Strip:
        return Strip.blank(width, self.style(""))

    def strip(
        self, row: LineRow, number: int, width: int, overlays: Sequence[Overlay] = ()
    ) -> Strip:
        line, start, end = row
        gutter = Strip(self._gutter(line.hang if start else line.gutter, number, width))
        text = Strip(self._text(row, overlays)).apply_offsets(0, number)
        space = width - gutter.cell_length - text.cell_length
        char, ink = line.fill
        if char != " " and end < len(line.text):
            char, ink = " ", ""
        # This lets the user select the end of the row.
        place = Segment("", Style.from_meta({"offset": (end - start, number)}))
        fill = Strip([place, Segment(char * max(space, 0), self.style(ink))])
        strip = Strip.join([gutter, text, fill])
        return strip if space >= 0 else strip.crop(0, width)

    def _gutter(self, gutter: Gutter, number: int, width: int) -> Iterator[Segment]:
        """Yield the gutter. Its cells point at the beginning of the text, so that a
        selection contains no gutter.
        """
        place = Style.from_meta({"offset": (0, number)})
        cells = [
            Segment(char, self.style(ink) + place)
            for text, ink in gutter
            for char in text
        ]
        yield from cells[: max(width - MIN_ROOM, 0)]

    def style(self, ink: Ink) -> Style:
        if (style := self._styles.get(ink)) is None:
            looks = [LOOKS[name] for name in ink.split()]
            if self._widget.app.no_color:
                looks += [WITHOUT_COLOURS.get(name, "") for name in ink.split()]
            style = sum(
                map(VisualStyle.parse, looks), start=self._widget.visual_style
            ).rich_style
            self._styles[ink] = style
        return style

    def _text(self, row: LineRow, overlays: Sequence[Overlay]) -> Iterator[Segment]:
        line, start, end = row
        if not overlays:
            yield from self._segments(line, start, end)
            return
        within = [
            (max(first, start), min(last, end), style)
            for first, last, style in overlays
        ]
        within = [(first, last, style) for first, last, style in within if first < last]
        places = {
            start,
            end,
            *(place for first, last, _ in within for place in (first, last)),
        }
        for first, last in pairwise(sorted(places)):
            styles = [
                style
                for begin, stop, style in within
                if begin <= first and last <= stop
            ]
            yield from Segment.apply_style(
                self._segments(line, first, last),
                post_style=Style.combine(styles) if styles else None,
            )

    def _segments(
        self, line: TranscriptLine, start: int, end: int
    ) -> Iterator[Segment]:
        for begin, stop, ink in clip(line.inks(), start, end):
            if start < begin:
                yield Segment(line.text[start:begin], self.style(line.ink))
            yield Segment(line.text[begin:stop], self.style(f"{line.ink} {ink}"))
            start = stop
        if start < end:
            yield Segment(line.text[start:end], self.style(line.ink))
