"""The prompt: where the person types. Enter sends, Up and Down walk through history, Tab completes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os.path import commonprefix

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import OptionList, Static, TextArea

from cdd_agent.sanitize import sanitize_for_display
from cdd_agent.tui.faults import GuardedWidget
from cdd_agent.tui.history import PromptHistory

_WAITING = "  waits for the end of this · Esc takes it back"
_ASIDE = "  comes back when the question is answered"
_UNSENT = "  not sent · ↑ brings it back"


class PromptArea(GuardedWidget, TextArea):
    """The text itself. Keys that mean something to the whole prompt are handed to it.

    They are handed over by a call, not by a message: the keys after them may be waiting already, and must not get
    into the line that Enter sends.
    """

    _KEYS = frozenset({"enter", "tab", "up", "down", "escape"})

    def __init__(self, pressed: Callable[[str], None]) -> None:
        super().__init__(compact=True, highlight_cursor_line=False)
        self.cursor_blink = False  # an idle shell redraws nothing
        self._pressed = pressed

    async def _on_key(self, event: events.Key) -> None:
        if event.key in ("shift+enter", "ctrl+j", "alt+enter"):
            event.prevent_default().stop()
            self.insert("\n")
        elif event.key in self._KEYS and self._is_for_the_prompt(event.key):
            event.prevent_default().stop()
            self._pressed(event.key)

    def _is_for_the_prompt(self, key: str) -> bool:
        """Up and Down belong to the text while there is a row above or below the cursor, also in a wrapped line."""
        if key == "up":
            return self.navigator.is_first_wrapped_line(self.cursor_location)
        return self.navigator.is_last_wrapped_line(self.cursor_location) if key == "down" else True


class Prompt(GuardedWidget, Vertical):
    """Text area, completions, and the lines that were sent while something else runs and wait for its end.

    What was typed is never lost: a line that is not sent comes back into the prompt, or is behind Up. No two lines
    become one.
    """

    DEFAULT_CSS = """
    Prompt { height: auto; }
    Prompt OptionList {
        height: auto; max-height: 12; border: none; padding: 0 1; display: none; background: $panel;
        scrollbar-size-vertical: 1;
    }
    Prompt.-completing OptionList { display: block; }
    Prompt Horizontal { height: auto; background: $surface; padding: 0 1; }
    Prompt Horizontal Static { width: 1; color: $text-accent; text-style: bold; }
    Prompt #waiting {
        height: auto; max-height: 4; padding: 0 1; display: none; background: $surface; color: $text-muted;
        text-wrap: nowrap; text-overflow: ellipsis;
    }
    Prompt.-waiting #waiting { display: block; }
    Prompt PromptArea { width: 1fr; height: auto; max-height: 6; background: $surface; scrollbar-size-vertical: 1; }
    """

    @dataclass
    class Submitted(Message):
        """A line was sent, and is out of the prompt. To be answered by `accepted`, `hold`, `set_aside` or
        `bring_back`."""

        line: str

    class Stopped(Message):
        """Escape, with nothing of the prompt's own to close."""

    def __init__(self, complete: Callable[[str], list[str]], history: PromptHistory) -> None:
        super().__init__()
        self._complete = complete
        self._history = history
        self._waiting: list[str] = []
        self._aside: list[str] = []
        """Drafts that make room for the answer to a question."""
        self._unsent: list[str] = []
        """Lines that came back when there was a text in the prompt; they are in the history."""
        self._found: list[str] = []
        """The completions on offer."""
        self._walked = False
        """The person moved within the completions: Enter takes one instead of sending."""
        self._quiet_for: str | None = None
        """A text for which no completions are wanted: it was just taken from them, or from history."""

    def compose(self) -> ComposeResult:
        completions = OptionList(markup=False)
        completions.can_focus = False
        yield completions
        yield Static(id="waiting", markup=False)
        with Horizontal():
            yield Static("❯", markup=False)
            yield PromptArea(self._key_pressed)

    @property
    def area(self) -> PromptArea:
        return self.query_one(PromptArea)

    @property
    def text(self) -> str:
        return self.area.text

    @property
    def is_completing(self) -> bool:
        return self.has_class("-completing")

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

    def _key_pressed(self, key: str) -> None:
        completing = self.is_completing
        match key:
            case "enter" if completing and self._walked:
                self._take()
            case "enter":
                self._send()
            case "tab" if completing and not self._complete_common():
                self._take()
            case "tab" if completing:
                pass
            case "tab":  # also when it comes faster than the completions are shown
                self._offer()
                if len(self.query_one(OptionList).options) == 1:
                    self._take()
            case "up" | "down" if completing:
                self._walk(key)
            case "up" | "down":
                self._recall(key)
            case "escape" if completing:
                self._close()
            case "escape" if self._waiting:
                self.bring_back([self._waiting.pop()])
            case "escape":
                self.post_message(self.Stopped())

    def _send(self) -> None:
        line = self.text
        self.replace("")
        self._unsent.clear()
        self._show_waiting()
        self.post_message(self.Submitted(line))

    def accepted(self, line: str) -> None:
        """The line that was sent has been taken: remember it."""
        self._history.add(line)

    def bring_back(self, lines: Sequence[str], *, is_typing: bool = False) -> None:
        """These lines, the first one first, are not sent after all: into the prompt with one, if nothing is there and
        nobody types; the others are behind Up."""
        left = [line for line in lines if line.strip()]
        if left and not self.text and not is_typing:
            self.replace(left.pop(0))
        for line in reversed(left):
            self._history.add(line)
        self._unsent += left
        self._show_waiting()

    def set_aside(self, line: str | None = None) -> None:
        """Make room for an answer: a line that was sent, or what is in the prompt, comes back after it."""
        if line is None:
            line = self.text
            self.replace("")
        if line.strip():
            self._aside.append(line)
        self._show_waiting()

    def bring_back_aside(self) -> None:
        """The question is over."""
        aside, self._aside = self._aside, []
        self.bring_back(aside)

    def put_away(self) -> None:
        """Empty the prompt; Up brings it back."""
        self._history.add(self.text)
        self.replace("")

    def keep_drafts(self) -> None:
        """The person leaves: what was typed and not sent is behind Up in the next session."""
        for line in self._drafts:
            self._history.add(line)
        self._waiting.clear()
        self._aside.clear()

    @property
    def loses_drafts(self) -> bool:
        """There is something that was typed and not sent, and no place for it."""
        return bool(self._drafts) and not self._history.lasts

    @property
    def _drafts(self) -> list[str]:
        return [line for line in (*self._waiting, *self._aside, self.text) if line.strip()]

    def hold(self, line: str) -> None:
        """The line that was sent has to wait: show it until it is taken, or Escape brings it back."""
        self._waiting.append(line)
        self._show_waiting()

    def take_waiting(self) -> str | None:
        """The line that waits longest, to be sent now."""
        line = self._waiting.pop(0) if self._waiting else None
        self._show_waiting()
        return line

    def take_held(self, line: str) -> bool:
        """A line that waits is sent now, if it still does."""
        if line not in self._waiting:
            return False
        self._waiting.remove(line)
        self._show_waiting()
        self.accepted(line)
        return True

    def give_back(self, *, is_typing: bool = False) -> None:
        """What waits was meant for another end of what ran."""
        waiting, self._waiting = self._waiting, []
        self.bring_back(waiting, is_typing=is_typing)

    def _show_waiting(self) -> None:
        rows = list[str]()
        for lines, mark, label in (
            (self._unsent, "↩", _UNSENT),
            (self._waiting, "⋯", _WAITING),
            (self._aside, "↩", _ASIDE),
        ):
            rows += [f"{mark} {sanitize_for_display(' '.join(line.split()))}" for line in lines[-3:]]
            rows += [label] if lines else []
        self.query_one("#waiting", Static).update("\n".join(rows[-4:]))
        self.set_class(bool(rows), "-waiting")

    def _offer(self) -> None:
        self._found = self._complete(self.text)
        completions = self.query_one(OptionList)
        completions.set_options([sanitize_for_display(_offered(line)) for line in self._found])
        completions.highlighted = 0 if self._found else None
        self._walked = False
        self.set_class(bool(self._found), "-completing")

    def _walk(self, key: str) -> None:
        completions = self.query_one(OptionList)
        if key == "up":
            completions.action_cursor_up()
        else:
            completions.action_cursor_down()
        self._walked = True

    def _complete_common(self) -> bool:
        """Type what all completions have in common, if that is more than there is; as in a shell."""
        common = commonprefix(self._found)  # noqa: RUF071  # characters are meant
        if self._walked or len(self._found) < 2 or not common.startswith(self.text) or common == self.text:
            return False
        self.replace(common)
        self._quiet_for = None
        self._offer()
        return True

    def _take(self) -> None:
        highlighted = self.query_one(OptionList).highlighted
        if highlighted is None:
            return
        line = self._found[highlighted]
        further = line if line.endswith("/") else f"{line} "  # into a folder, or to the next word
        more = self._complete(further)
        self.replace(further if more else line)
        if more:
            self._quiet_for = None
            self._offer()

    def _recall(self, key: str) -> None:
        line = self._history.previous(self.text) if key == "up" else self._history.next(self.text)
        if line is not None:
            self.replace(line)

    def _close(self) -> None:
        self.remove_class("-completing")
        self._walked = False


def _offered(line: str) -> str:
    """What is shown of a completion: a command with its line, a path without the words before it."""
    return line if line.startswith("/") else line[max(line.rfind("@"), 0) :]
