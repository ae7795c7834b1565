from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.geometry import Size
from textual.message import Message
from textual.widgets import Static

from cdd_agent.events.question_events import Choice
from cdd_agent.text.sanitize import sanitize_for_display
from cdd_agent.tui.faults import GuardedWidget
from cdd_agent.tui.transcript.actions import show_diff
from cdd_agent.tui.transcript.blocks import BlockKind
from cdd_agent.tui.transcript.diff import DiffLayout
from cdd_agent.tui.transcript.widget import Transcript

_AROUND = 6
"""Rows of all other widgets: plan, cut text, answers, prompt, activity, status line."""
_FRAME = 2
"""Rows of the prompt's frame, which a low screen does not have."""
_ROWS_OF_KEYS = 2
"""Maximum rows of the answers about changes; longer ones are shortened."""
_SCROLLING = ("up", "down", "pageup", "pagedown", "home", "end")
_MOST_ROWS = 1_000_000
"""Maximum lines of a diff. It is so large that a question never omits a part."""


if TYPE_CHECKING:
    from textual.widget import Widget

    _Mixin = Widget
else:
    # A second widget class in the hierarchy would hide the first one's styles.
    _Mixin = object


class _InSight(_Mixin):
    """A text that leaves room for its answers, and reports scrolling."""

    SHARE = 0.5
    around = _AROUND

    class VisiblePartMoved(Message):
        pass

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        # A scroll bar would take a column, so a text may need one more row.
        rows = super().get_content_height(container, viewport, width - 1)
        return min(rows, self.room)

    @property
    def room(self) -> int:
        rows = self.app.size.height
        around = self.around + _FRAME * (not self.screen.has_class("-low"))
        return max(min(int(rows * self.SHARE), rows - around), 1)

    @property
    def is_laid_out(self) -> bool:
        return self.size.height > 0

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self.post_message(self.VisiblePartMoved())

    def on_resize(self) -> None:
        self.post_message(self.VisiblePartMoved())

    def move(self, key: str) -> None:
        page, end = self.size.height, self.max_scroll_y
        distances = {
            "up": -1,
            "down": 1,
            "pageup": -page,
            "pagedown": page,
            "home": -end,
            "end": end,
        }
        y = self.scroll_offset.y + distances[key]
        self.scroll_to(y=y, animate=False, immediate=True)

    def seen(self) -> Hashable:
        return self.scroll_offset

    @property
    def above(self) -> int:
        return self.scroll_offset.y

    @property
    def below(self) -> int:
        return self.max_scroll_y - self.scroll_offset.y


class _QuestionText(_InSight, GuardedWidget, VerticalScroll, can_focus=False):
    pass


class _Diffs(_InSight, Transcript, can_focus=False):
    SHARE = 0.65

    def __init__(self, layout: DiffLayout) -> None:
        super().__init__(max_lines=_MOST_ROWS, follows=False)
        self.diff_layout = layout

    @property
    def is_laid_out(self) -> bool:
        return 0 < min(self.virtual_size.height, self.room) <= self.size.height

    def lay_out_again(self) -> None:
        self._fit(self.scrollable_content_region.width, following=False)
        self.refresh(layout=True)

    def show(self, about: Sequence[str], diff: str) -> None:
        self.clear()
        self.add(BlockKind.OUTPUT, "\n".join(about))
        show_diff(self, diff)
        self.scroll_home(animate=False, immediate=True)
        self.call_after_refresh(self.post_message, self.VisiblePartMoved())


class Question(GuardedWidget, Vertical):
    """A question and its answers. The user types the first letter of an answer into the
    prompt; Escape is no. A long text scrolls, and the user must see its end before they
    can agree.
    """

    DEFAULT_CSS = """
    Question {
        height: auto; padding: 0 1; border-left: outer $warning; background: $panel;
        _QuestionText { height: auto; scrollbar-size-vertical: 1; }
        Static { width: 1fr; height: auto; }
        .more {
            height: 1; color: $text-muted; text-wrap: nowrap; text-overflow: ellipsis;
            display: none;
        }
        .more.-refused { color: $text-error; text-style: bold; }
        .keys { text-style: bold; color: $text-warning; }
    }
    """

    def __init__(self, text: str, answers: Mapping[str, Choice]) -> None:
        super().__init__()
        self._answers = answers
        self._is_read = False
        self._has_draft = False
        self._answer: str | None = None
        self._reactions = 0
        text = "\n".join(map(sanitize_for_display, text.split("\n")))
        self._view: _InSight = _QuestionText(Static(text, markup=False))
        self._more = Static(markup=False, classes="more")
        self._offered = "   ".join(f"[{word[0]}] {word}" for word in answers)
        self._keys = Static(self._offered, markup=False, classes="keys")

    def compose(self) -> ComposeResult:
        yield self._view
        yield self._more
        yield self._keys

    def show_keys(self, *, has_draft: bool, answer: str | None = None) -> None:
        """Show how to answer: by a letter, after Tab if there is a draft; or show the
        `answer` that follows without another key.
        """
        self._has_draft, self._answer = has_draft, answer
        if answer is not None:
            self._keys.update(f"{sanitize_for_display(answer)} …   Enter: at once")
        elif has_draft:
            self._keys.update(f"Tab, then {self._offered}")
        else:
            self._keys.update(self._offered)

    def can_take(self, answer: str) -> bool:
        """True if this answer is allowed. Agreeing is not, until the end of the text
        was visible; a hint says so.
        """
        self._show_hidden_lines()
        if self._answers[answer] not in (Choice.YES, Choice.ALWAYS) or self._is_read:
            return True
        self.show_hint(f"scroll to the end first: ↓ {_count_lines(self._view.below)}")
        return False

    def seen(self) -> Hashable:
        return self._reactions

    def note_answer(self) -> None:
        self._reactions += 1

    def show_hint(self, text: str) -> None:
        self._reactions += 1
        self._more.update(text)
        self._more.add_class("-refused")
        self._more.display = True

    @property
    def is_in_sight(self) -> bool:
        return self._view.is_laid_out

    def can_scroll(self, key: str) -> bool:
        return key in _SCROLLING and self._view.max_scroll_y > 0

    def scroll_by(self, key: str) -> None:
        self._view.move(key)

    @on(_InSight.VisiblePartMoved)
    def _show_hidden_lines(self) -> None:
        if not self._view.is_laid_out:
            return
        above, below = self._view.above, self._view.below
        self._is_read = self._is_read or below <= 0
        sides = []
        if above > 0:
            sides.append(f"↑ {_count_lines(above, 'more ')}")
        if below > 0:
            sides.append(f"↓ {_count_lines(below, 'more ')}")
        self._more.update("   ".join(sides))
        self._more.remove_class("-refused")
        self._more.display = bool(sides)


def _count_lines(count: int, more: str = "") -> str:
    return f"1 {more}line" if count == 1 else f"{count} {more}lines"


class ReviewQuestion(Question):
    """A question about all changes, or about one part at a time."""

    DEFAULT_CSS = """
    ReviewQuestion {
        .keys { max-height: 2; }
        .asked {
            height: 1; text-style: bold; text-wrap: nowrap; text-overflow: ellipsis;
        }
    }
    """

    def __init__(self, layout: DiffLayout) -> None:
        super().__init__("", {})
        self.is_part = False
        self._long_offer = ""
        self._diffs = _Diffs(layout)
        self._diffs.around = _AROUND + _ROWS_OF_KEYS + 1
        self._view = self._diffs
        self._asked = Static(markup=False, classes="asked")

    def compose(self) -> ComposeResult:
        yield self._asked
        yield from super().compose()

    def ask(
        self,
        text: str,
        diff: str,
        words: Mapping[str, Choice],
        offered: str,
        *,
        is_part: bool,
    ) -> None:
        first, *about = map(sanitize_for_display, text.split("\n"))
        self._asked.update(first)
        self._diffs.show(about, diff)
        self._answers, self._long_offer, self.is_part = words, offered, is_part
        self._is_read = False
        self._fit_keys()
        self.show_keys(has_draft=False)

    def on_resize(self) -> None:
        self._fit_keys()
        self.show_keys(has_draft=self._has_draft, answer=self._answer)

    def _fit_keys(self) -> None:
        room = 0
        if not self.screen.has_class("-low"):
            # A word may not end at the end of a row.
            room = _ROWS_OF_KEYS * self.content_size.width - len("Tab, then ") - 8
        words = "   ".join(f"[{word[0]}] {word}" for word in self._answers)
        if len(self._long_offer) <= room:
            self._offered = self._long_offer
        elif len(words) <= room:
            self._offered = words
        else:
            self._offered = self._shortest_offer()

    def _shortest_offer(self) -> str:
        parts, letters = [], ""
        for word in self._answers:
            if word in ("yes", "no"):
                parts.append(f"[{word[0]}] {word}")
            else:
                letters += f"[{word[0]}]"
        if letters:
            parts.append(letters)
        return "   ".join(parts)

    def lay_out_again(self) -> None:
        """Lay out the text again if it is not visible yet."""
        self._diffs.lay_out_again()

    @property
    def diffs(self) -> Transcript:
        return self._diffs
