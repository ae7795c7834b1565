"""A question to the person that one key answers."""

from collections.abc import Hashable, Mapping

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.geometry import Size
from textual.message import Message
from textual.widgets import Static

from cdd_agent.events import Choice
from cdd_agent.sanitize import sanitize_for_display
from cdd_agent.tui.faults import GuardedWidget

_AROUND = 6
"""Rows that are needed beside a question's text: title, plan, what is cut, answers, prompt and activity."""
_SCROLLING = ("up", "down", "pageup", "pagedown", "home", "end")


class _QuestionText(GuardedWidget, VerticalScroll, can_focus=False):
    """The question itself, on half of the window at most, and so that how to answer it is in sight. Says when another
    part of it may be."""

    class Moved(Message):
        pass

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        rows = self.app.size.height
        room = max(min(rows // 2, rows - _AROUND), 1)
        return min(super().get_content_height(container, viewport, width), room)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self.post_message(self.Moved())

    def on_resize(self) -> None:
        self.post_message(self.Moved())

    def move(self, key: str) -> None:
        page, end = self.size.height, self.max_scroll_y
        by = {"up": -1, "down": 1, "pageup": -page, "pagedown": page, "home": -end, "end": end}[key]
        self.scroll_to(y=self.scroll_offset.y + by, animate=False, immediate=True)

    def seen(self) -> Hashable:
        return self.scroll_offset

    @property
    def above(self) -> int:
        """The lines that are out of sight above."""
        return self.scroll_offset.y

    @property
    def below(self) -> int:
        return self.max_scroll_y - self.scroll_offset.y


class Question(GuardedWidget, Vertical):
    """Shows a question, and how it is answered: each answer by its first letter, typed into the prompt; Esc is no.

    A text that is too long for the window scrolls. It cannot be agreed to before its end was in sight.
    """

    DEFAULT_CSS = """
    Question {
        height: auto; padding: 0 1; border-left: outer $warning; background: $panel;
        _QuestionText { height: auto; scrollbar-size-vertical: 1; }
        Static { width: 1fr; height: auto; }
        .more { height: 1; color: $text-muted; text-wrap: nowrap; text-overflow: ellipsis; display: none; }
        .more.-refused { color: $text-error; text-style: bold; }
        .keys { text-style: bold; color: $text-warning; }
    }
    """

    def __init__(self, text: str, answers: Mapping[str, Choice]) -> None:
        super().__init__()
        self._answers = answers
        self._is_read = False
        text = "\n".join(map(sanitize_for_display, text.split("\n")))
        self._view = _QuestionText(Static(text, markup=False))
        self._more = Static(markup=False, classes="more")
        self._offered = "   ".join(f"[{word[0]}] {word}" for word in answers)
        self._keys = Static(self._offered, markup=False, classes="keys")

    def compose(self) -> ComposeResult:
        yield self._view
        yield self._more
        yield self._keys

    def show_keys(self, *, typed: bool, answer: str | None = None) -> None:
        """How to answer now: by a letter; with something else `typed` in the prompt, when that is out of the way; or
        this is the `answer`, if nothing follows."""
        if answer is not None:
            self._keys.update(f"{answer} …   Enter: at once")
        else:
            self._keys.update(f"Tab, then {self._offered}" if typed else self._offered)

    def may_be(self, answer: str) -> bool:
        """Whether it can be answered so: who has not seen the end cannot agree, and is told."""
        self._say_what_is_cut()
        if self._answers[answer] not in (Choice.YES, Choice.ALWAYS) or self._is_read:
            return True
        self._more.update(f"scroll to the end first: ↓ {_lines(self._view.below)}")
        self._more.add_class("-refused")
        return False

    def scrolls(self, key: str) -> bool:
        """The keys that scroll are the text's, not the transcript's, while there is something to scroll."""
        return key in _SCROLLING and self._view.max_scroll_y > 0

    def scroll_by(self, key: str) -> None:
        self._view.move(key)

    @on(_QuestionText.Moved)
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
