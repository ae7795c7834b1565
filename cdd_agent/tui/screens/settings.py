from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len, set_cell_size
from textual import work
from textual.binding import Binding, BindingType
from textual.widgets import OptionList, Static

from cdd_agent.commands.setting_changes import find_inherited
from cdd_agent.commands.settings import Setting, read_settings, session_project
from cdd_agent.errors import CddError
from cdd_agent.text.sanitize import sanitize_for_display
from cdd_agent.tui.screens.chooser import Chooser, ChooserRow

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Iterator

    from textual.widget import Widget

    from cdd_agent.session.session import Session

_AROUND_ROW = 8
_NARROWEST, _WIDEST = 10, 36


class SettingsScreen(Chooser):
    """Enter changes the highlighted setting; Ctrl+R resets it."""

    DEFAULT_CSS = """
    SettingsScreen #about {
        height: 2; padding: 0 1; color: $text-muted;
        text-wrap: nowrap; text-overflow: ellipsis;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f5", "close", "Close", show=False),
        Binding("ctrl+r", "reset", "Reset to the inherited value", show=False),
    ]
    KEYS = "Enter: change · Ctrl+R: reset · Esc: close"
    NOTHING = "No setting matches."

    def __init__(
        self,
        session: Session,
        edit: Callable[[Setting], Awaitable[str]],
        reset: Callable[[Setting, str], Awaitable[str]],
    ) -> None:
        """`edit` asks for a value and saves it; `reset` asks before it uses the
        inherited value. Both return the outcome as text, or nothing.
        """
        super().__init__("Settings")
        self._session = session
        self._edit = edit
        self._reset = reset
        self._settings: dict[str, Setting] = {}
        self._attempts = 0

    def content(self) -> Iterator[Widget]:
        yield from super().content()
        yield Static(id="about", markup=False)

    def on_mount(self) -> None:
        super().on_mount()
        self.read()

    def on_resize(self) -> None:
        super().on_resize()
        self._show_rows()

    def seen(self) -> Hashable:
        return super().seen(), self._attempts

    @work(group="settings")
    async def read(self) -> None:
        project = session_project(self._session)
        try:
            settings = await asyncio.to_thread(read_settings, project)
        except CddError as error:
            self.hint(f"{error.message} · Esc: close")
            return
        self._settings = {setting.name: setting for setting in settings}
        self._show_rows()

    def chosen(self, row: ChooserRow) -> None:
        self._attempts += 1
        setting = self._settings[row.key]
        if setting.can_be_changed:
            self.change(setting)
        else:
            self.hint(
                f"Edit {setting.name} in .cdd/config.yaml. It may hold secrets, so it"
                " is not shown here"
            )

    @work(exclusive=True, group="edit")
    async def change(self, setting: Setting) -> None:
        self._report(await self._edit(setting))

    def action_reset(self) -> None:
        self._attempts += 1
        if self.highlighted is not None:
            self.reset(self._settings[self.highlighted.key])

    @work(exclusive=True, group="edit")
    async def reset(self, setting: Setting) -> None:
        try:
            inherited = await asyncio.to_thread(find_inherited, self._session, setting)
        except CddError as error:
            self._report(f"{error.message}. {error.hint}")
            return
        self._report(await self._reset(setting, inherited))

    def _report(self, outcome: str) -> None:
        if outcome:
            self.hint(" ".join(outcome.split()))
        self.read()

    def on_option_list_option_highlighted(
        self, event: OptionList.OptionHighlighted
    ) -> None:
        event.stop()
        row = self.highlighted
        lines = _describe(self._settings[row.key]) if row is not None else ()
        text = "\n".join(map(sanitize_for_display, lines))
        self.query_one("#about", Static).update(text)

    def _show_rows(self) -> None:
        settings = self._settings.values()
        titles = max((cell_len(one.description.title) for one in settings), default=0)
        room = min(self.size.width, 120) - _AROUND_ROW - titles
        column = min(max(room // 2, _NARROWEST), _WIDEST)
        if settings:
            self.show(_row(setting, titles, column) for setting in settings)


def _row(setting: Setting, titles: int, column: int) -> ChooserRow:
    """`titles` and `column` are the cells of the title and of the value."""
    description, value = setting.description, setting.shown
    if cell_len(value) > column:
        value = f"{set_cell_size(value, column - 1)}…"
    return ChooserRow(
        setting.name,
        set_cell_size(description.title, titles),
        f"{set_cell_size(value, column)}  {setting.source}",
        section=description.group,
        words=f"{setting.name} {description.group} {description.in_short}",
    )


def _describe(setting: Setting) -> tuple[str, str]:
    description = setting.description
    text = description.purpose
    choice = setting.choices.get(setting.value)
    if choice:
        text = f"{text}. {setting.value}: {choice}"
    return text, f"{setting.name}: {setting.shown}, {setting.source}"
