from collections.abc import Callable, Hashable
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widgets import Input, Static

from cdd_agent.tui.faults import GuardedWidget
from cdd_agent.tui.transcript.widget import Transcript

_SOON = 0.5
"""Seconds until new text is searched."""


_ROOMY = 60
"""Columns from which the keys are shown next to the text."""


class FindInput(GuardedWidget, Input):
    def seen(self) -> Hashable:
        return self.value, self.selection


class FindBar(GuardedWidget, Horizontal):
    """The field of a search, visible until the search ends. Enter: next match,
    Shift+Enter or Up: previous match, Escape: close.
    """

    DEFAULT_CSS = """
    FindBar { height: 1; background: $panel; padding: 0 1; }
    FindBar FindInput {
        width: 1fr; border: none; height: 1; padding: 0; background: $panel;
    }
    FindBar FindInput:focus { border: none; }
    FindBar Static { width: auto; color: $text-muted; padding: 0 0 0 1; }
    FindBar #label { padding: 0 1 0 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,down,f3", "step(1)", "Next match", show=False, priority=True),
        Binding(
            "shift+enter,up,shift+f3",
            "step(-1)",
            "Previous match",
            show=False,
            priority=True,
        ),
        Binding("escape", "close", "Close", show=False, priority=True),
    ]

    def __init__(self, transcript: Transcript, give_back: Callable[[], object]) -> None:
        """`give_back` returns the focus to its usual widget."""
        super().__init__()
        self._transcript, self._give_back = transcript, give_back

    def compose(self) -> ComposeResult:
        yield Static("Find", id="label", markup=False)
        yield FindInput(select_on_focus=False)
        yield Static(id="count", markup=False)

    def on_mount(self) -> None:
        self.query_one(FindInput).focus()
        self._say_how_many()
        self.set_interval(_SOON, self._catch_up)

    def _catch_up(self) -> None:
        if self._transcript.finder.catch_up():
            self._say_how_many()

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._transcript.find(event.value)
        self._say_how_many()

    def on_descendant_blur(self, event: events.DescendantBlur) -> None:
        """End the search after a click elsewhere."""
        event.stop()
        self.action_close()

    def action_step(self, step: int) -> None:
        self._transcript.finder.step(step)
        self._say_how_many()

    def action_close(self) -> None:
        if self.is_attached:
            self._transcript.finder.end()
            # Otherwise Textual would focus any widget.
            if self.query_one(FindInput).has_focus:
                self._give_back()
            self.remove()

    def _say_how_many(self) -> None:
        current, count = self._transcript.finder.position
        parts = []
        if count:
            parts.append(f"{current:,} of {count:,}")
        elif self.query_one(FindInput).value:
            parts.append("no match")
        if self.app.size.width >= _ROOMY:
            parts.append("Enter: next · ↑: previous · Esc: close")
        self.query_one("#count", Static).update(" · ".join(parts))
