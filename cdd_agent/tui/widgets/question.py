"""A question to the person, answered by one key."""

import asyncio
from collections.abc import Mapping

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.events import Key
from textual.geometry import Size
from textual.message import Message
from textual.widgets import Static

from cdd_agent.events import Choice
from cdd_agent.harmless import harmless

_SCROLLING = ("up", "down", "pageup", "pagedown", "home", "end")


class _Text(VerticalScroll, can_focus=False):
    """The question itself, on a third of the window at most. Says when another part of it may be in sight."""

    class Moved(Message):
        pass

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return min(super().get_content_height(container, viewport, width), max(self.app.size.height // 2, 1))

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self.post_message(self.Moved())

    def on_resize(self) -> None:
        self.post_message(self.Moved())

    def move(self, key: str) -> None:
        page, end = self.size.height, self.max_scroll_y
        by = {"up": -1, "down": 1, "pageup": -page, "pagedown": page, "home": -end, "end": end}[key]
        self.scroll_to(y=self.scroll_offset.y + by, animate=False, immediate=True)

    @property
    def above(self) -> int:
        """The lines that are out of sight above."""
        return self.scroll_offset.y

    @property
    def below(self) -> int:
        return self.max_scroll_y - self.scroll_offset.y


class Question(Vertical, can_focus=True):
    """Offers answers, each by its first letter; Esc is no. `answer` waits for one; the widget goes away by itself.

    A text that is too long for the window scrolls. It cannot be agreed to before its end was in sight.
    """

    DEFAULT_CSS = """
    Question {
        height: auto; padding: 0 1; border-left: outer $warning; background: $panel;
        _Text { height: auto; scrollbar-size-vertical: 1; }
        Static { width: 1fr; height: auto; }
        .more { height: 1; color: $text-muted; text-wrap: nowrap; text-overflow: ellipsis; display: none; }
        .more.-refused { color: $text-error; text-style: bold; }
        .keys { text-style: bold; color: $text-warning; }
    }
    """

    def __init__(self, text: str, answers: Mapping[str, Choice]) -> None:
        super().__init__()
        self._answers = answers
        self._answer: asyncio.Future[Choice] = asyncio.get_running_loop().create_future()
        self._is_read = False
        text = "\n".join(map(harmless, text.split("\n")))
        self._view = _Text(Static(text, markup=False))
        self._more = Static(markup=False, classes="more")

    def compose(self) -> ComposeResult:
        yield self._view
        yield self._more
        keys = "   ".join(f"[{word[0]}] {word}" for word in self._answers)
        yield Static(keys, markup=False, classes="keys")

    def on_mount(self) -> None:
        self.call_after_refresh(self.focus)  # a key is an answer only to what is on the screen

    async def answer(self) -> Choice:
        """The person's answer. Cancelling takes the question away."""
        try:
            return await self._answer
        finally:
            await self.remove()

    def check_consume_key(self, key: str, character: str | None) -> bool:
        """The keys that scroll are the text's, not the transcript's, while there is something to scroll."""
        del character
        return key in _SCROLLING and self._view.max_scroll_y > 0

    def on_key(self, event: Key) -> None:
        if self.check_consume_key(event.key, event.character):
            event.stop()
            self._view.move(event.key)
            return
        keys = {"escape": Choice.NO} | {word[0]: choice for word, choice in self._answers.items()}
        choice = keys.get(event.key)
        if choice is None:
            return
        event.stop()
        self._say_what_is_cut()
        if choice in (Choice.YES, Choice.ALWAYS) and not self._is_read:
            self._more.update(f"scroll to the end first: ↓ {_lines(self._view.below)}")
            self._more.add_class("-refused")
        elif not self._answer.done():
            self._answer.set_result(choice)

    @on(_Text.Moved)
    def _say_what_is_cut(self) -> None:
        if not self._view.size.height:
            return
        above, below = self._view.above, self._view.below
        self._is_read = self._is_read or below <= 0
        sides = [f"{arrow} {_lines(count, 'more ')}" for arrow, count in (("↑", above), ("↓", below)) if count > 0]
        self._more.update("   ".join(sides))
        self._more.remove_class("-refused")
        self._more.display = bool(sides)


def _lines(count: int, more: str = "") -> str:
    return f"{count} {more}line" + "s" * (count != 1)
