from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Static

from cdd_agent.commands.settings import Setting
from cdd_agent.commands.typed_settings import check_value
from cdd_agent.errors import BadInput
from cdd_agent.text.sanitize import sanitize_for_display
from cdd_agent.tui.screens.chooser import Chooser, ChooserRow
from cdd_agent.tui.screens.overlay import Overlay

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from textual.widget import Widget

OTHER = "other"
"""The result if the user wants to type a value."""
_CURRENT, _OTHER_SIGN = "●", " "


class ChoiceList(Chooser):
    """The described choices of a setting. The result is a value, or `OTHER`."""

    KEYS = "↑↓: choose · Enter: next · Esc: cancel"

    def __init__(
        self,
        title: str,
        choices: Mapping[str, str],
        current: str,
        *,
        has_other: bool = False,
    ) -> None:
        """`has_other`: the user can also type a value."""
        rows = []
        for value, words in choices.items():
            sign = _CURRENT if value == current else _OTHER_SIGN
            rows.append(ChooserRow(value, _name_value(value), words, sign))
        if has_other:
            rows.append(ChooserRow(OTHER, "another …", "type it", _OTHER_SIGN))
        super().__init__(title, rows)
        self._current = current

    def on_mount(self) -> None:
        super().on_mount()
        self.highlight(self._current)


def _name_value(value: str) -> str:
    return "not set" if value == "null" else value


class ValueField(Overlay):
    """A field that checks the value at each key. The result is the text."""

    DEFAULT_CSS = """
    ValueField {
        & > #overlay { max-width: 80; }
        & #purpose { height: auto; padding: 0 1; }
        & #value {
            height: auto; min-height: 1; max-height: 3; padding: 0 1;
            background: $surface;
        }
        & #check { height: auto; min-height: 2; padding: 0 1; color: $text-muted; }
        & #check.-wrong { color: $text-error; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "accept", "Accept the value", show=False),
        Binding("backspace", "shorten(1)", "Delete a letter", show=False),
        Binding("ctrl+u", "shorten(1000000)", "Clear the line", show=False),
    ]
    KEYS = "Enter: next · Ctrl+U: clear · Esc: cancel"

    def __init__(self, setting: Setting) -> None:
        super().__init__()
        self._setting = setting
        self._typed = "" if setting.value == "null" else setting.value
        self._error = ""
        self._refusals = 0

    def content(self) -> Iterator[Widget]:
        purpose = self._setting.description.purpose
        yield Static(sanitize_for_display(purpose), id="purpose", markup=False)
        yield Static(id="value", markup=False)
        yield Static(id="check", markup=False)

    def on_mount(self) -> None:
        self.head(self._setting.description.title)
        self._check()

    def seen(self) -> tuple[str, int]:
        return self._typed, self._refusals

    def type(self, text: str) -> None:
        self._typed += text
        self._check()

    def action_shorten(self, by: int) -> None:
        self._typed = self._typed[: max(len(self._typed) - by, 0)]
        self._check()

    def action_accept(self) -> None:
        if self._error:
            self._refusals += 1
            self.hint(f"{self._setting.name} cannot have this value · Esc: cancel")
        else:
            self.dismiss(self._typed.strip() or self._value_of_nothing)

    @property
    def _value_of_nothing(self) -> str:
        is_list = self._setting.allowed.startswith("a list")
        return "[]" if is_list else "null"

    def _check(self) -> None:
        self._error = ""
        try:
            check_value(self._setting.name, self._typed)
        except BadInput as error:
            self._error = " ".join(f"{error.message} {error.hint}".split())
        allowed = self._setting.allowed
        unset = self._setting.description.unset
        if unset:
            allowed += f"; empty: {unset}"
        check = self.query_one("#check", Static)
        check.update(sanitize_for_display(self._error or allowed))
        check.set_class(bool(self._error), "-wrong")
        line = f"› {sanitize_for_display(self._typed)}▏"
        self.query_one("#value", Static).update(Content(line))
