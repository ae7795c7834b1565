from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Static

from cdd_agent.text.sanitize import sanitize_for_display
from cdd_agent.tui.faults import GuardedWidget
from cdd_agent.tui.keys import actions_by_key, shown
from cdd_agent.tui.widgets.key_line import KeyLine
from cdd_agent.wording.faces import Face

if TYPE_CHECKING:
    from collections.abc import Iterator

    from textual.app import ComposeResult


_SHARE = 0.8
_FRAME = 2


SCROLLING: list[BindingType] = [
    Binding(keys, f"scroll('{how}')", description, show=False)
    for keys, how, description in (
        ("up", "up", "Up one line"),
        ("down", "down", "Down one line"),
        ("pageup", "page_up", "Up one page"),
        ("pagedown,space", "page_down", "Down one page"),
        ("home", "home", "Go to the top"),
        ("end", "end", "Go to the end"),
    )
]
"""Keys of dialogs that scroll their `SCROLLS`."""


class Overlay(GuardedWidget, ModalScreen[str]):
    """A dialog: a heading, its content, and a line of keys. Its result is a line for
    the prompt, or an empty string. The help shows the descriptions of its BINDINGS. A
    key without an effect gets a hint; Escape closes the dialog.

    It is as tall as its content, and scrolls in a low window.
    """

    DEFAULT_CSS = """
    Overlay {
        align: center middle;
        & > #overlay {
            width: 94%; max-width: 120; height: auto; max-height: 100%;
            border: round $foreground 40%; background: $background;
        }
        & #heading {
            height: 1; padding: 0 1; text-style: bold; text-wrap: nowrap;
            text-overflow: ellipsis;
        }
        & #keys {
            height: 1; margin-top: 1; padding: 0 1; color: $text-muted;
            text-wrap: nowrap; text-overflow: ellipsis;
        }
    }
    Overlay.-narrow > #overlay { width: 100%; }
    Overlay.-low {
        & > #overlay { height: 100%; border: none; }
        & #keys { margin-top: 0; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "Close", show=False)
    ]
    KEYS: ClassVar[str] = "Esc: close"
    SCROLLS: ClassVar[str] = ""
    """The selector of the part that scrolls."""

    def compose(self) -> ComposeResult:
        with Widget(id="overlay"):
            yield Static(id="heading", markup=False)
            yield from self.content()
            yield KeyLine(self.keys, id="keys", markup=False)

    def content(self) -> Iterator[Widget]:
        raise NotImplementedError

    def on_resize(self) -> None:
        self.call_after_refresh(self.fit)

    def fit(self) -> None:
        parts = self.query(self.SCROLLS) if self.SCROLLS else ()
        for part in parts:
            part.styles.max_height = self.room_for(part)

    def room_for(self, part: Widget) -> int:
        """Return the rows that the other parts leave for this one."""
        others = sum(
            child.outer_size.height + child.styles.margin.height
            for child in self.query_one("#overlay").children
            if child is not part and child.display
        )
        if self.has_class("-low"):
            return max(self.size.height - others, 1)
        return max(int(self.size.height * _SHARE) - _FRAME - others, 1)

    @property
    def keys(self) -> str:
        return self.KEYS

    def head(self, text: str) -> None:
        self.query_one("#heading", Static).update(sanitize_for_display(text))

    def hint(self, text: str) -> None:
        """Show a hint instead of the line of keys, until the next key. An empty text
        restores the line.
        """
        self.query_one("#keys", Static).update(
            Content(Face.SHELL.name_commands(sanitize_for_display(text or self.keys)))
        )

    def why_nothing(self, key: str) -> str:
        """Return the hint after a key without an effect."""
        return f"{shown(key)} does nothing here · {self.keys}"

    def type(self, text: str) -> None:
        """Handle a printable key without a binding, or a pasted text."""

    def dismiss(self, result: str | None = None) -> AwaitComplete:
        """Close the dialog if it is on top. Otherwise it is closed already, or
        covered.
        """
        return super().dismiss(result) if self.is_current else AwaitComplete()

    def pass_on(self, event: events.Key | events.Paste) -> bool:
        """Pass an event to the screen on top, and return False if that is this dialog.
        An event may arrive just after a key closed this dialog or opened another one.
        """
        if self.is_current:
            return False
        copy = (
            event.copy() if isinstance(event, events.Key) else events.Paste(event.text)
        )
        copy.time = event.time
        self.app.post_message(copy)
        return True

    async def on_key(self, event: events.Key) -> None:
        event.stop().prevent_default()
        if self.pass_on(event):
            return
        # A fault has left the dialog empty.
        if event.key == "escape" and not self.query("#keys"):
            self.dismiss("")
            return
        self.hint("")
        state_before = self.seen()
        action = actions_by_key(type(self)).get(event.key)
        if action is not None:
            await self.app.run_action(action, self)
        elif event.is_printable and event.character:
            self.type(event.character)
        if self.is_current and self.seen() == state_before:
            self.hint(self.why_nothing(event.key))

    def on_paste(self, event: events.Paste) -> None:
        event.stop().prevent_default()
        if not self.pass_on(event):
            self.hint("")
            self.type(" ".join(event.text.split()))

    def action_close(self) -> None:
        self.dismiss("")

    def action_scroll(self, how: str) -> None:
        getattr(self.query_one(self.SCROLLS), f"scroll_{how}")(animate=False)
