"""The prompt's text area. A long paste is shown as a mark, and sent in full."""

import re
from collections.abc import Callable, Hashable
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import TextArea

from cdd_agent.tui.faults import GuardedWidget
from cdd_agent.tui.keys import actions_by_key

_MOST_LINES, _MOST_CHARACTERS = 10, 4_000
"""Limits of an unfolded paste."""


class PromptArea(GuardedWidget, TextArea):
    """Passes the keys of the prompt on.

    It calls the prompt instead of posting a message: later keys may be waiting, and
    must not get into the line that Enter sends.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+o", "open_pastes", "Show the pasted text", show=False),
        Binding("ctrl+underscore", "undo", "Undo", show=False),  # Ctrl+Z suspends
        Binding("ctrl+y", "redo", "Redo", show=False),
    ]
    _KEYS = frozenset({"enter", "tab", "up", "down", "escape", "ctrl+r", "ctrl+g"})
    _REPORTED = ("open_pastes",)
    """Actions that show their own message if they have no effect."""

    class NothingDone(Message):
        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    def __init__(self, pressed: Callable[[events.Key], None]) -> None:
        super().__init__(compact=True, highlight_cursor_line=False)
        self.cursor_blink = False  # so an idle shell redraws nothing
        self._pressed = pressed
        self._pasted: dict[str, str] = {}
        self._opened: set[str] = set()
        self._suggested = ""

    @property
    def whole(self) -> str:
        """The text with all pastes."""
        if not self._pasted:
            return self.text
        marks = "|".join(map(re.escape, self._pasted))
        return re.sub(marks, lambda mark: self._pasted[mark[0]], self.text)

    @property
    def is_folded(self) -> bool:
        return any(mark in self.text for mark in self._pasted)

    def seen(self) -> Hashable:
        return self.text, self.selection

    def put(self, text: str) -> None:
        """Replace the text, and move the cursor to its end. Pastes of this session stay
        folded.
        """
        for mark, pasted in self._pasted.items():
            text = text if mark in self._opened else text.replace(pasted, mark)
        self.text = text
        self._suggested = ""
        self.move_cursor(self.document.end)

    def suggest(self) -> None:
        """Select the text as a suggestion. The next letter replaces it; →, End or
        Backspace edits it.
        """
        self._suggested = self.text
        self.select_all()

    @property
    def is_suggesting(self) -> bool:
        return bool(self._suggested) and (
            self._suggested == self.text == self.selected_text
        )

    async def on_paste(self, event: events.Paste) -> None:
        text = re.sub(r"\r\n?", "\n", event.text)
        lines = len(text.removesuffix("\n").split("\n"))
        if lines > _MOST_LINES:
            size = f"{lines:,} lines"
        elif len(text) > _MOST_CHARACTERS:
            size = f"{len(text):,} characters"
        else:
            return
        event.prevent_default()
        mark = self._mark_for(text, size)
        self.replace(mark, *self.selection, maintain_selection_offset=False)

    def _mark_for(self, text: str, size: str) -> str:
        number, mark = 1, f"[pasted {size}]"
        while self._pasted.get(mark, text) != text:
            number += 1
            mark = f"[pasted {size}, {number}]"
        self._pasted[mark] = text
        self._opened.discard(mark)
        return mark

    def action_open_pastes(self) -> None:
        if self.is_folded:
            self._opened.update(mark for mark in self._pasted if mark in self.text)
            self.replace(self.whole, (0, 0), self.document.end)
            self.move_cursor(self.document.end)
        else:
            self.notify("There is no folded paste.")

    def action_undo(self) -> None:
        # Textual uses the cursor's old place, but the text may be shorter now.
        if self.history.undo_stack:
            self.move_cursor((0, 0))
        super().action_undo()

    def action_redo(self) -> None:
        if self.history.redo_stack:
            self.move_cursor((0, 0))
        super().action_redo()

    def action_delete_left(self) -> None:
        if self.is_suggesting:
            self.move_cursor(self.document.end)
        row, column = self.cursor_location
        text_before = self.document.get_line(row)[:column]
        mark = next((mark for mark in self._pasted if text_before.endswith(mark)), None)
        if mark is not None and self.selection.is_empty:
            self._delete((row, column - len(mark)), (row, column))
        else:
            super().action_delete_left()

    def action_delete_to_start_of_line(self) -> None:
        """Delete a whole wrapped line. Otherwise the rest would be sent with the next
        line.
        """
        row, column = self.cursor_location
        if column and self.selection.is_empty:
            self._delete((row, 0), (row, column))
        else:
            super().action_delete_to_start_of_line()

    def action_delete_to_end_of_line(self) -> None:
        row, _ = end = self.selection.end
        self._delete(end, (row, len(self.document.get_line(row))))

    def _delete(self, start: tuple[int, int], end: tuple[int, int]) -> None:
        self.delete(start, end, maintain_selection_offset=False)

    async def on_key(self, event: events.Key) -> None:
        if event.key in ("shift+enter", "ctrl+j", "alt+enter"):
            event.prevent_default().stop()
            self.insert("\n")
        elif event.key in self._KEYS and self._is_for_the_prompt(event.key):
            event.prevent_default().stop()
            self._pressed(event)
        elif event.key in _ACTIONS:
            event.prevent_default().stop()
            await self._run_binding(event.key, _ACTIONS[event.key])

    async def _run_binding(self, key: str, action: str) -> None:
        """Run a key's action at once. With Textual's usual way, waiting letters would
        be inserted first.
        """
        state_before = self.seen()
        await self.run_action(action)
        if self.seen() == state_before and action not in self._REPORTED:
            self.post_message(self.NothingDone(key))

    def _is_for_the_prompt(self, key: str) -> bool:
        if key == "up":
            return self.navigator.is_first_wrapped_line(self.cursor_location)
        if key == "down":
            return self.navigator.is_last_wrapped_line(self.cursor_location)
        return True


_ACTIONS = actions_by_key(PromptArea)
