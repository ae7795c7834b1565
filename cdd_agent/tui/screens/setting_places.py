from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Static

from cdd_agent.commands.setting_changes import (
    SettingPlace,
    reset_setting,
    save_places,
    save_setting,
    usual_place,
)
from cdd_agent.commands.settings import Setting
from cdd_agent.errors import CddError
from cdd_agent.text.sanitize import sanitize_for_display
from cdd_agent.tui.screens.overlay import Overlay

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from textual.widget import Widget

    from cdd_agent.session.session import Session

_HIGHLIGHT = "bold $block-cursor-foreground on $block-cursor-background"


class SettingDialog(Overlay):
    """Changes a setting. Errors stay in the dialog. The result is the outcome as
    text.
    """

    DEFAULT_CSS = """
    SettingDialog {
        & > #overlay { max-width: 80; }
        & #places { height: 1; padding: 0 1; }
        & #note { height: auto; min-height: 1; padding: 0 1; color: $text-muted; }
        & #error { height: auto; padding: 0 1; color: $text-error; }
    }
    """

    def __init__(self, session: Session, setting: Setting) -> None:
        super().__init__()
        self._session = session
        self._setting = setting
        self._attempts = 0

    def content(self) -> Iterator[Widget]:
        yield Static(id="places", markup=False)
        yield Static(id="note", markup=False)
        yield Static(id="error", markup=False)

    def seen(self) -> Hashable:
        return self._attempts

    def action_save(self) -> None:
        self._attempts += 1
        self.save()

    @work(exclusive=True, group="save")
    async def save(self) -> None:
        try:
            outcome = await self.carry_out()
        except CddError as error:
            text = " ".join(f"{error.message}. {error.hint or ''}".split())
            self.query_one("#error", Static).update(sanitize_for_display(text))
            self.call_after_refresh(self.fit)
            return
        self.dismiss(outcome)

    async def carry_out(self) -> str:
        """Change the setting. Raises `CddError`."""
        raise NotImplementedError


class SaveDialog(SettingDialog):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,shift+tab", "walk(-1)", "Place to the left", show=False),
        Binding("right,tab", "walk(1)", "Place to the right", show=False),
        Binding("enter", "save", "Save the setting there", show=False),
    ]
    KEYS = "←→: choose · Enter: save · Esc: cancel"

    def __init__(self, session: Session, setting: Setting, value: str) -> None:
        super().__init__(session, setting)
        self._value = value
        self._places = save_places(setting)
        names = [one.place for one in self._places]
        usual = usual_place(setting)
        self._chosen = names.index(usual) if usual in names else 0

    def on_mount(self) -> None:
        self.head(f"Save {self._setting.description.title}: {self._value}")
        self._show()

    def seen(self) -> Hashable:
        return super().seen(), self._chosen

    def action_walk(self, by: int) -> None:
        self._chosen = (self._chosen + by) % len(self._places)
        self._show()

    async def carry_out(self) -> str:
        place = self._places[self._chosen]
        remark = await save_setting(
            self._session,
            self._setting.name,
            self._value,
            place.place,
            self._setting,
        )
        title = self._setting.description.title
        if place.place is SettingPlace.SESSION:
            return f"{title}: {self._value} in this session. {remark}"
        return f"Saved {title}: {self._value} in {place.path}. {remark}"

    def _show(self) -> None:
        parts: list[str | tuple[str, str]] = []
        for number, place in enumerate(self._places):
            text = f" {place.place} "
            parts += [(text, _HIGHLIGHT) if number == self._chosen else text, "  "]
        self.query_one("#places", Static).update(Content.assemble(*parts))
        chosen = self._places[self._chosen]
        note = chosen.path or "until cdd ends; no file changes"
        if chosen.note:
            note += f"; {chosen.note}"
        self.query_one("#note", Static).update(sanitize_for_display(note))
        self.query_one("#error", Static).update("")


class ResetDialog(SettingDialog):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "save", "Reset the setting", show=False),
    ]
    KEYS = "Enter: reset · Esc: cancel"

    def __init__(self, session: Session, setting: Setting, inherited: str) -> None:
        super().__init__(session, setting)
        self._inherited = inherited

    def on_mount(self) -> None:
        setting = self._setting
        self.head(f"Reset {setting.description.title}")
        self.query_one("#places", Static).display = False
        text = (
            f"Remove {setting.shown} ({setting.source}).\n"
            f"Then this applies: {self._inherited}"
        )
        self.query_one("#note", Static).update(
            "\n".join(map(sanitize_for_display, text.split("\n")))
        )

    async def carry_out(self) -> str:
        inherited = await reset_setting(self._session, self._setting)
        return f"{self._setting.description.title}: {inherited} applies."
