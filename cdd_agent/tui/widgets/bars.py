"""The line below the prompt: the current activity, or the effect of Enter."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from textual.content import Content
from textual.widget import Widget

from cdd_agent.text.sanitize import sanitize_for_display
from cdd_agent.tui.faults import GuardedWidget
from cdd_agent.tui.hints import fit_hint

if TYPE_CHECKING:
    from textual.timer import Timer

_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_TICK = 0.25
"""Seconds between frames; few frames suit slow connections."""


class ActivityBar(GuardedWidget, Widget):
    """Shows the current activity and its duration, otherwise the keys. It redraws
    itself only during an activity.
    """

    DEFAULT_CSS = """
    ActivityBar {
        height: 1; padding: 0 1; color: $text-muted; text-wrap: nowrap;
        text-overflow: ellipsis;
    }
    """

    def __init__(self, idle: str) -> None:
        super().__init__()
        self._idle = idle
        self._what = self._hint = self._meaning = self._doing = self._said_once = ""
        self._since = 0.0
        self._timer: Timer | None = None

    def busy(self, what: str) -> None:
        """Show a new activity, or continue the current one."""
        if what == self._what:
            return
        self._said_once = ""
        self._what, self._since = what, monotonic()
        if self._timer is None:
            self._timer = self.set_interval(_TICK, self.refresh)
        self.refresh()

    def rest(self, hint: str = "") -> None:
        """End the activity. Show `hint`, the user's next action, or the keys."""
        if self._timer is not None:
            self._timer.stop()
        self._timer, self._what, self._hint, self._said_once = None, "", hint, ""
        self.refresh()

    def say_once(self, text: str) -> None:
        """Show only this text until an activity begins or ends. An empty text removes
        it.
        """
        self._said_once = text
        self.refresh()

    def tell_meaning(self, text: str, doing: str = "") -> None:
        """Show the effect of Enter instead of the keys. `doing` is an effect that is
        shown even during an activity. An empty text restores the keys.
        """
        self._meaning, self._doing = text, doing
        self.refresh()

    @contextmanager
    def interrupted(self, hint: str) -> Iterator[None]:
        what = self._what
        self.rest(hint)
        try:
            yield
        finally:
            if what and self.is_running:
                self.busy(what)

    def render(self) -> Content:
        text = self._said_once or self._doing
        if not text and not self._what:
            text = self._hint or self._meaning or self._idle
        if text:
            return Content(fit_hint(sanitize_for_display(text), self.size.width))
        seconds = monotonic() - self._since
        frame = _FRAMES[int(seconds / _TICK) % len(_FRAMES)]
        since = f"  {seconds:.0f} s · Esc stops"
        what = Content(sanitize_for_display(self._what)).truncate(
            max(self.size.width - len(since) - 2, 8), ellipsis=True
        )
        return Content.assemble((frame, "$text-accent"), " ", what, since)
