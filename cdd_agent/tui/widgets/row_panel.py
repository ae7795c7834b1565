"""A panel next to the transcript: a fixed heading, and rows that scroll."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rich.segment import Segment
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from cdd_agent.text.sanitize import sanitize_for_display
from cdd_agent.tui.faults import GuardedWidget
from cdd_agent.tui.transcript.wrapping import wrap


class PanelRow(NamedTuple):
    text: str
    look: str
    """The suffix of its component class."""


class RowPanel(GuardedWidget, ScrollView, can_focus=False):
    """Draws only visible rows. The panel is hidden while it is empty."""

    PREFIX = ""
    """The prefix of its component classes."""
    DEFAULT_CSS = """
    RowPanel {
        padding: 0 1; background: $surface; scrollbar-size-vertical: 1;
        overflow-x: hidden;
        &.-empty { display: none; }
    }
    """

    def __init__(self) -> None:
        super().__init__(classes="-empty")
        self._rows: list[PanelRow] = []

    def heading(self) -> str:
        raise NotImplementedError

    def rows(self, width: int) -> Iterable[PanelRow]:
        raise NotImplementedError

    def show_rows(self, *, is_empty: bool) -> None:
        self.set_class(is_empty, "-empty")
        self._lay_out()

    def on_resize(self) -> None:
        self._lay_out()

    def _lay_out(self) -> None:
        width = self.scrollable_content_region.width
        self._rows = []
        if width and not self.has_class("-empty"):
            self._rows = list(self.rows(width))
        self.virtual_size = Size(width, len(self._rows) + 1)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        if y == 0:
            return self._strip(PanelRow(self.heading(), "total"))
        place = y + self.scroll_offset.y - 1
        row = self._rows[place] if place < len(self._rows) else PanelRow("", "text")
        return self._strip(row)

    def _strip(self, row: PanelRow) -> Strip:
        style = self.get_component_rich_style(f"{self.PREFIX}--{row.look}")
        strip = Strip([Segment(row.text, style)])
        strip = strip.adjust_cell_length(self.size.width, style)
        return strip.apply_style(self.rich_style + style)


def wrapped_rows(
    text: str, width: int, first: str, look: str, most_rows: int
) -> Iterator[PanelRow]:
    """Yield the first rows of a text, the first one after `first`, the others indented
    as far.
    """
    room = max(width - len(first) - 1, 1)
    rows = []
    for line in text.splitlines():
        shown = sanitize_for_display(line.strip())
        if shown:
            rows += [
                shown[start:end] for start, end in wrap(shown, room, by_words=True)
            ]
    visible = rows[:most_rows]
    if len(rows) > len(visible):
        visible[-1] = f"{visible[-1]}…"
    indent = first
    for row in visible:
        yield PanelRow(f"{indent}{row}", look)
        indent = " " * len(first)
