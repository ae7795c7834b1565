from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.binding import Binding, BindingType

from cdd_agent.commands.listing import view
from cdd_agent.commands.overview import next_command
from cdd_agent.commands.registry import commands
from cdd_agent.errors import CddError
from cdd_agent.tui.key_help import everywhere
from cdd_agent.tui.screens.chooser import Chooser, ChooserRow
from cdd_agent.tui.themes import THEMES, describe_theme

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from cdd_agent.session.open_project import Project

ACTION = "action:"
"""The prefix of results that are actions of the shell. These change only the
display.
"""
_KEYS_ONLY = ("stop", "leave", "scroll_transcript")


class Palette(Chooser):
    """The result is a line for the prompt, or an `ACTION`."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+p", "close", "Close", show=False)
    ]
    KEYS = "Enter: put it into the prompt · Esc: close"
    PROMPT = "type to find a command, a ticket or a key"

    def __init__(self, project: Project) -> None:
        super().__init__("Commands, tickets, screens, themes, keys")
        self._project = project
        self._tickets: tuple[ChooserRow, ...] | None = None

    def on_mount(self) -> None:
        self._rows = list(_fixed_rows())
        super().on_mount()
        self.read_tickets()

    def seen(self) -> Hashable:
        return super().seen(), self._tickets is None

    @work(group="palette")
    async def read_tickets(self) -> None:
        try:
            self._tickets = await asyncio.to_thread(
                lambda: tuple(_ticket_rows(self._project))
            )
        except CddError as error:
            self.hint(error.message)
            return
        self.show([*self._rows, *self._tickets])


def _ticket_rows(project: Project) -> Iterator[ChooserRow]:
    for ticket in project.tickets.list():
        ticket_view = view(ticket)
        line = next_command(ticket, ticket_view)
        steps = f" {ticket_view.done}/{ticket_view.total}" if ticket_view.total else ""
        detail = f"ticket · {ticket_view.state}{steps}"
        yield ChooserRow(line, line, detail, section="Tickets of this project")


def _fixed_rows() -> Iterator[ChooserRow]:
    for command in commands().values():
        begun = f"/{command.name} {command.required}".rstrip()
        line = f"/{command.name} " if command.required else f"/{command.name}"
        yield ChooserRow(line, begun, command.summary, section=command.group)
    for key in everywhere():
        if key.action and key.action.partition("(")[0] not in _KEYS_ONLY:
            yield ChooserRow(
                f"{ACTION}{key.action}", key.words, f"key {key.names}", section="Keys"
            )
    for name in THEMES:
        action = f"{ACTION}use_theme({name!r})"
        yield ChooserRow(
            action, f"Theme: {name}", describe_theme(name), section="Themes"
        )
