"""All settings: the value of each, where it comes from, what it is for; one is changed
where it stands.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

from msgspec.structs import replace
from rich.cells import set_cell_size
from textual import work
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Static

from cdd_agent.commands.settings import Setting, change, settings_of
from cdd_agent.errors import CddError
from cdd_agent.sanitize import sanitize_for_display
from cdd_agent.tui.screens.chooser import Chooser, Row

if TYPE_CHECKING:
    from collections.abc import Hashable

    from cdd_agent.session import Session


class SettingsScreen(Chooser):
    """Enter on a row opens its value for typing; Enter once more checks it and writes
    the project's file.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f5", "close", "Close", show=False)
    ]
    KEYS = "Enter: change · Esc: close"
    NOTHING = "No setting matches."

    def __init__(self, session: Session) -> None:
        super().__init__("Settings")
        self._session = session
        self._settings: dict[str, Setting] = {}
        self._edited: Setting | None = None
        self._value = ""
        self._saved = 0

    def on_mount(self) -> None:
        super().on_mount()
        self.read()

    def seen(self) -> Hashable:
        return super().seen(), self._edited, self._value, self._saved

    @work(group="settings")
    async def read(self) -> None:
        """Show what holds now."""
        project = self._session.project
        config = replace(project.config, approval=self._session.approval.value)
        try:
            settings = await asyncio.to_thread(
                settings_of, replace(project, config=config)
            )
        except CddError as error:
            self.hint(f"{error.message} · Esc: close")
            return
        self._settings = {setting.name: setting for setting in settings}
        self.show(map(_row, settings))

    def chosen(self, row: Row) -> None:
        setting = self._settings[row.key]
        if setting.can_be_changed:
            self._edited, self._value = (
                setting,
                "" if setting.value == "null" else setting.value,
            )
            self._show_value()
        else:
            self._saved += 1
            self.hint(
                f"Edit {setting.name} in .cdd/config.yaml. It may hold secrets, so it"
                " is not shown here"
            )

    def type(self, text: str) -> None:
        if self._edited is None:
            super().type(text)
        else:
            self._value += text
            self._show_value()

    def action_shorten(self, by: int) -> None:
        if self._edited is None:
            super().action_shorten(by)
        else:
            self._value = self._value[: max(len(self._value) - by, 0)]
            self._show_value()

    def action_walk(self, how: str) -> None:
        if self._edited is None:
            super().action_walk(how)

    def action_choose(self) -> None:
        if self._edited is None:
            super().action_choose()
        else:
            self._saved += 1
            self.save(self._edited, self._value)

    def action_close(self) -> None:
        """Out of the value first."""
        if self._edited is None:
            super().action_close()
        else:
            self._leave_value()

    @work(exclusive=True, group="save")
    async def save(self, setting: Setting, value: str) -> None:
        """Write it, or say what is allowed."""
        try:
            note = await change(self._session, setting.name, value)
        except CddError as error:
            self.hint(" ".join(f"{error.message} {error.hint}".split()))
            return
        if self._edited is setting:
            self._leave_value()
        self.hint(f"Saved {setting.name} to .cdd/config.yaml. {note}")
        self.read()

    def _leave_value(self) -> None:
        self._edited = None
        self._fill(keep=True)

    def _show_value(self) -> None:
        assert self._edited is not None
        name, value = self._edited.name, sanitize_for_display(self._value)
        self.query_one("#filter", Static).update(
            Content.assemble(f"{name}: ", (value, "bold"), "▏")
        )
        self.hint(f"{self._edited.words} · Enter: save (empty: default) · Esc: cancel")


def _row(setting: Setting) -> Row:
    value, origin = set_cell_size(setting.value, 22), set_cell_size(setting.origin, 10)
    return Row(setting.name, setting.name, f"{value} {origin} {setting.words}")
