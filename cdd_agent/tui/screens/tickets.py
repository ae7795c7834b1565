"""The list of tickets. Enter puts a ticket's next command into the prompt."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, ClassVar

from rich.cells import set_cell_size
from textual import work
from textual.binding import Binding, BindingType

from cdd_agent.commands.overview import TicketOverview, overviews
from cdd_agent.errors import CddError
from cdd_agent.tui.screens.chooser import Chooser, ChooserRow

if TYPE_CHECKING:
    from collections.abc import Hashable

    from cdd_agent.session.open_project import Project

_SIGNS = {
    "done": "✓",
    "completed": "●",
    "in progress": "◐",
    "failed": "✗",
    "unreadable": "!",
    "spec changed": "!",
    "planned": "○",
}
_NEW = ChooserRow("/new ", "New ticket", "/new TYPE NAME", "+")


class TicketsScreen(Chooser):
    """Opens at once; rows appear after the tickets are read."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+n", "new", "New ticket", show=False),
        Binding("f4", "close", "Close", show=False),
    ]
    KEYS = "Enter: continue · Ctrl+N: new ticket · Esc: close"
    NOTHING = "No ticket matches."

    def __init__(self, project: Project) -> None:
        super().__init__("Tickets")
        self._project = project
        self._count: int | None = None

    def on_mount(self) -> None:
        super().on_mount()
        self.head("Tickets: reading …")
        self.read()

    def seen(self) -> Hashable:
        return super().seen(), self._count

    @work(group="tickets")
    async def read(self) -> None:
        try:
            tickets = await asyncio.to_thread(lambda: list(overviews(self._project)))
        except CddError as error:
            self.head("Tickets")
            self.hint(error.message)
            return
        self._count = len(tickets)
        self.head(_count_by_state(tickets))
        now = datetime.now(UTC)
        self.show([*(_row(ticket, now) for ticket in tickets), _NEW])

    def action_new(self) -> None:
        self.dismiss(_NEW.key)


def ago(then: datetime, now: datetime) -> str:
    """Return the time since `then`, in one unit."""
    seconds = max((now - then).total_seconds(), 0)
    for name, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length:.0f} {name} ago"
    return "just now"


def _row(ticket: TicketOverview, now: datetime) -> ChooserRow:
    view = ticket.view
    progress = f"{view.done}/{view.total}" if view.total else ""
    money = f"${ticket.usd:.2f}" if ticket.usd else ""
    when = ago(ticket.touched, now) if ticket.touched else ""
    columns = (
        (view.state, 13),
        (f"{progress:>5}", 6),
        (f"{money:>7}", 8),
        (f"{when:>10}", 11),
    )
    facts = "".join(set_cell_size(text, width) for text, width in columns)
    return ChooserRow(
        ticket.next_line,
        view.slug,
        f"{facts} {view.error or ticket.next_line.split()[0]}",
        _SIGNS.get(view.state, "·"),
    )


def _count_by_state(tickets: list[TicketOverview]) -> str:
    states = [ticket.view.state for ticket in tickets]
    order = ("in progress", "failed", "spec changed", "planned", "completed", "done")
    parts = [f"{states.count(state)} {state}" for state in order]
    return " · ".join(
        [
            f"Tickets: {len(tickets)}",
            *(part for part in parts if not part.startswith("0 ")),
        ]
    )
