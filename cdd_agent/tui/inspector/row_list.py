"""A list of groups, each with a head and rows that fold. Only visible rows are drawn,
so it can have thousands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct
from rich.cells import cell_len
from rich.segment import Segment
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from cdd_agent.text.sanitize import sanitize_for_display
from cdd_agent.tui.faults import GuardedWidget
from cdd_agent.tui.transcript.folds import shortened

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from textual import events

_LEAST_TEXT = 20
"""Minimum cells of a row's text next to its facts."""


class ListRow(Struct, frozen=True):
    key: Hashable
    """Identifies the row when the list is updated."""
    text: str
    facts: str = ""
    """Shown at the right if there is room."""
    look: str = ""
    """One of `RowList.LOOKS`."""
    target: object = None
    """The row's subject, for handlers of `Chosen`."""


class RowGroup(Struct, frozen=True):
    head: ListRow
    rows: tuple[ListRow, ...] = ()
    is_open: bool = True
    """The initial state."""


class RowList(GuardedWidget, ScrollView, can_focus=True):
    LOOKS: ClassVar = ("muted", "good", "warning", "error", "strong")
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"rows--{look}" for look in LOOKS),
        "rows--cursor",
    }
    DEFAULT_CSS = """
    RowList {
        padding: 0 1; background: $background; scrollbar-size-vertical: 1;
        overflow-x: hidden; overflow-y: auto;
        & > .rows--muted { color: $text-muted; }
        & > .rows--good { color: $text-success; }
        & > .rows--warning { color: $text-warning; }
        & > .rows--error { color: $text-error; }
        & > .rows--strong { text-style: bold; }
        & > .rows--cursor { text-style: reverse; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "walk(-1)", "Row above", show=False),
        Binding("down", "walk(1)", "Row below", show=False),
        Binding("pageup", "walk_page(-1)", "Page up", show=False),
        Binding("pagedown", "walk_page(1)", "Page down", show=False),
        Binding("home", "walk(-1000000)", "First row", show=False),
        Binding("end", "walk(1000000)", "Last row", show=False),
        Binding("right", "fold(False)", "Open the group", show=False),
        Binding("left", "fold(True)", "Fold the group", show=False),
        Binding("enter", "choose", "Open the step", show=False),
    ]

    class Highlighted(Message):
        def __init__(self, rows: RowList, row: ListRow) -> None:
            super().__init__()
            self.rows, self.row = rows, row

    class Chosen(Message):
        def __init__(self, rows: RowList, row: ListRow) -> None:
            super().__init__()
            self.rows, self.row = rows, row

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002  # Textual's name
        super().__init__(id=id)
        self._groups: tuple[RowGroup, ...] = ()
        self._folds: dict[Hashable, bool] = {}
        """Groups that the user folded (True) or opened, by the key of the head."""
        self._rows: list[tuple[ListRow, RowGroup]] = []
        self.cursor = 0
        self._times_chosen = 0

    def show(self, groups: Sequence[RowGroup], cursor: Hashable | None = None) -> None:
        """Show these groups. The cursor stays at its row, or moves to the key
        `cursor`.
        """
        current = self.row
        self._groups = tuple(groups)
        self._lay_out()
        if cursor is not None:
            self._move_to_key(cursor)
        elif current is not None:
            self._move_to_key(current.key)
        self._report_cursor(current)

    @property
    def row(self) -> ListRow | None:
        return self._rows[self.cursor][0] if self._rows else None

    @property
    def texts(self) -> list[str]:
        return [self._text_of(row, group) for row, group in self._rows]

    def seen(self) -> Hashable:
        return self.cursor, len(self._rows), self._times_chosen

    def move_to_key(self, key: Hashable) -> None:
        current = self.row
        self._move_to_key(key)
        self._report_cursor(current)

    def action_walk(self, by: int) -> None:
        self._move_to(self.cursor + by)

    def action_walk_page(self, pages: int) -> None:
        self._move_to(self.cursor + pages * max(self.size.height - 1, 1))

    def action_fold(self, is_folded: bool) -> None:
        if not self._rows:
            return
        row, group = self._rows[self.cursor]
        if not group.rows or (row is not group.head and not is_folded):
            return
        self._folds[group.head.key] = is_folded
        self._lay_out()
        self._move_to_key(group.head.key)
        self._report_cursor(row)

    def action_choose(self) -> None:
        """Report the row. A head without a subject folds or opens its group."""
        if not self._rows:
            return
        row, group = self._rows[self.cursor]
        if row.target is not None:
            self._times_chosen += 1
            self.post_message(self.Chosen(self, row))
        elif row is group.head:
            self.action_fold(self._is_open(group))

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is None:
            return
        place = offset.y + self.scroll_offset.y
        if place < len(self._rows):
            is_again = place == self.cursor
            self._move_to(place)
            if is_again:
                self.action_choose()

    def _move_to(self, place: int) -> None:
        if not self._rows:
            return
        former_row = self.row
        self.cursor = min(max(place, 0), len(self._rows) - 1)
        self._show_cursor()
        self._report_cursor(former_row)

    def _move_to_key(self, key: Hashable) -> None:
        for place, (row, _) in enumerate(self._rows):
            if row.key == key:
                self.cursor = place
                break
        self._show_cursor()

    def _report_cursor(self, former_row: ListRow | None) -> None:
        row = self.row
        if row is not None and row != former_row:
            self.post_message(self.Highlighted(self, row))

    def _show_cursor(self) -> None:
        self.refresh()
        self.call_after_refresh(self._scroll_to_cursor)

    def _scroll_to_cursor(self) -> None:
        top, height = self.scroll_offset.y, max(self.size.height, 1)
        if self.cursor < top:
            self.scroll_to(y=self.cursor, animate=False)
        elif self.cursor >= top + height:
            self.scroll_to(y=self.cursor - height + 1, animate=False)

    def _lay_out(self) -> None:
        self._rows = list(self._visible_rows())
        self.cursor = min(self.cursor, max(len(self._rows) - 1, 0))
        self.virtual_size = Size(self.size.width, len(self._rows))
        self.refresh(layout=True)

    def _visible_rows(self) -> Iterator[tuple[ListRow, RowGroup]]:
        for group in self._groups:
            yield group.head, group
            if self._is_open(group):
                for row in group.rows:
                    yield row, group

    def _is_open(self, group: RowGroup) -> bool:
        return not self._folds.get(group.head.key, not group.is_open)

    def on_resize(self) -> None:
        self.virtual_size = Size(self.size.width, len(self._rows))
        self._show_cursor()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        del container, viewport, width
        return max(len(self._rows), 1)

    def render_line(self, y: int) -> Strip:
        place = y + self.scroll_offset.y
        room = self.scrollable_content_region.width
        if place >= len(self._rows):
            return Strip.blank(room, self.rich_style)
        row, group = self._rows[place]
        style = self.rich_style
        if row.look:
            look = self.get_component_rich_style(f"rows--{row.look}", partial=True)
            style += look
        if place == self.cursor and self.has_focus:
            style += self.get_component_rich_style("rows--cursor", partial=True)
        text = fit_row(self._text_of(row, group), row.facts, room)
        return Strip([Segment(text, style)]).adjust_cell_length(room, style)

    def _text_of(self, row: ListRow, group: RowGroup) -> str:
        text = sanitize_for_display(" ".join(row.text.split()))
        if row is not group.head:
            return f"    {text}"
        if not group.rows:
            return f"  {text}"
        return f"{'▾' if self._is_open(group) else '▸'} {text}"


def fit_row(text: str, facts: str, room: int) -> str:
    """Return a row of `room` cells. Facts are omitted if the text would be too
    short.
    """
    free = room - cell_len(facts) - 2
    if not facts or free < min(_LEAST_TEXT, cell_len(text)):
        return shortened(text, room)
    text = shortened(text, free)
    gap = " " * (room - cell_len(text) - cell_len(facts))
    return f"{text}{gap}{facts}"
