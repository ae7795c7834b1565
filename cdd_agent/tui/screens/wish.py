from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Static

from cdd_agent.text.sanitize import sanitize_for_display
from cdd_agent.tui.screens.overlay import Overlay

if TYPE_CHECKING:
    from collections.abc import Iterator

    from textual.widget import Widget


class Wish(Overlay):
    """A field for the user's wish, which becomes a ticket. The result is the text;
    empty if the user closed the dialog.
    """

    DEFAULT_CSS = """
    Wish {
        & > #overlay { max-width: 80; }
        & #words {
            height: auto; min-height: 1; max-height: 3; padding: 0 1;
            background: $surface;
        }
        & #about { height: auto; padding: 0 1; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "make", "Create the ticket", show=False),
        Binding("backspace", "shorten(1)", "Delete a letter", show=False),
        Binding("ctrl+u", "shorten(1000000)", "Clear the line", show=False),
    ]
    KEYS = "Enter: create the ticket · Esc: close"

    def __init__(self) -> None:
        super().__init__()
        self._typed = ""

    def content(self) -> Iterator[Widget]:
        yield Static(
            "Say it in a sentence or two. cdd creates a ticket. Then Socrates asks what"
            " is unclear, the Planner writes the steps, and the Executor runs one each"
            " time you press Enter.",
            id="about",
            markup=False,
        )
        yield Static(id="words", markup=False)

    def on_mount(self) -> None:
        self.head("New ticket: what do you want?")
        self._show()

    def seen(self) -> str:
        return self._typed

    def why_nothing(self, key: str) -> str:
        if key == "enter":
            return "Type what you want first · Esc: close"
        return super().why_nothing(key)

    def type(self, text: str) -> None:
        self._typed += text
        self._show()

    def action_shorten(self, by: int) -> None:
        self._typed = self._typed[: max(len(self._typed) - by, 0)]
        self._show()

    def action_make(self) -> None:
        if self._typed.strip():
            self.dismiss(self._typed.strip())

    def _show(self) -> None:
        self.query_one("#words", Static).update(
            Content(f"› {sanitize_for_display(self._typed)}▏")
        )
