"""The prompt: where the person types. Enter sends, Up and Down walk through history, Tab completes."""

from collections.abc import Callable
from dataclasses import dataclass

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import OptionList, Static, TextArea

from cdd_agent.tui.history import History


class PromptArea(TextArea):
    """The text itself. Keys that mean something to the whole prompt are handed to it."""

    @dataclass
    class KeyPressed(Message):
        key: str

    _KEYS = frozenset({"enter", "tab", "up", "down", "escape"})

    async def _on_key(self, event: events.Key) -> None:
        if event.key in ("shift+enter", "ctrl+j", "alt+enter"):
            event.prevent_default().stop()
            self.insert("\n")
        elif event.key in self._KEYS and self._is_for_the_prompt(event.key):
            event.prevent_default().stop()
            self.post_message(self.KeyPressed(event.key))

    def _is_for_the_prompt(self, key: str) -> bool:
        if key == "up":
            return self.cursor_at_first_line
        return self.cursor_at_last_line if key == "down" else True


class Prompt(Vertical):
    """Text area and completions."""

    DEFAULT_CSS = """
    Prompt { height: auto; }
    Prompt OptionList {
        height: auto; max-height: 8; border: none; padding: 0 1; display: none; background: $panel;
    }
    Prompt.-completing OptionList { display: block; }
    Prompt Horizontal { height: auto; background: $surface; padding: 0 1; }
    Prompt Static { width: 1; color: $text-accent; text-style: bold; }
    Prompt PromptArea { width: 1fr; height: auto; max-height: 6; background: $surface; scrollbar-size-vertical: 1; }
    """

    @dataclass
    class Submitted(Message):
        """A line was sent."""

        line: str

    class Stopped(Message):
        """Escape, with nothing of the prompt's own to close."""

    def __init__(self, complete: Callable[[str], list[str]], history: History) -> None:
        super().__init__()
        self._complete = complete
        self._history = history
        self._walked = False
        """The person moved within the completions: Enter takes one instead of sending."""
        self._quiet_for: str | None = None
        """A text for which no completions are wanted: it was just taken from them, or from history."""

    def compose(self) -> ComposeResult:
        completions = OptionList(markup=False)
        completions.can_focus = False
        yield completions
        with Horizontal():
            yield Static("❯", markup=False)
            yield PromptArea(compact=True, highlight_cursor_line=False)

    @property
    def area(self) -> PromptArea:
        return self.query_one(PromptArea)

    @property
    def text(self) -> str:
        return self.area.text

    def replace(self, text: str) -> None:
        """Put a text into the prompt, the cursor behind it, without offering completions for it."""
        self._quiet_for = text
        self.area.text = text
        self.area.move_cursor(self.area.document.end)
        self._close()

    def on_text_area_changed(self) -> None:
        if self.text == self._quiet_for:
            return
        self._quiet_for = None
        self._offer()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self._take()

    def on_prompt_area_key_pressed(self, event: PromptArea.KeyPressed) -> None:
        event.stop()
        completing = self.has_class("-completing")
        match event.key:
            case "enter" if completing and self._walked:
                self._take()
            case "enter":
                self._send()
            case "tab" if completing:
                self._take()
            case "tab":
                self._offer()
            case "up" | "down" if completing:
                self._walk(event.key)
            case "up" | "down":
                self._recall(event.key)
            case "escape" if completing:
                self._close()
            case "escape":
                self.post_message(self.Stopped())

    def _send(self) -> None:
        line = self.text
        self._close()
        self.post_message(self.Submitted(line))

    def accepted(self, line: str) -> None:
        """The line that was sent has been taken: remember it and start afresh."""
        self._history.add(line)
        self.replace("")

    def _offer(self) -> None:
        found = self._complete(self.text)
        completions = self.query_one(OptionList)
        completions.set_options(found)
        completions.highlighted = 0 if found else None
        self._walked = False
        self.set_class(bool(found), "-completing")

    def _walk(self, key: str) -> None:
        completions = self.query_one(OptionList)
        if key == "up":
            completions.action_cursor_up()
        else:
            completions.action_cursor_down()
        self._walked = True

    def _take(self) -> None:
        completions = self.query_one(OptionList)
        if completions.highlighted is None:
            return
        line = str(completions.get_option_at_index(completions.highlighted).prompt)
        more = self._complete(f"{line} ")
        self.replace(f"{line} " if more else line)
        if more:
            self._quiet_for = None
            self._offer()

    def _recall(self, key: str) -> None:
        line = self._history.previous(self.text) if key == "up" else self._history.next()
        if line is not None:
            self.replace(line)

    def _close(self) -> None:
        self.remove_class("-completing")
        self._walked = False
