"""The guard against a second, accidental Enter: Enter acts only on what has been on the
screen for half a second, or on what the user typed.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable

    from textual.events import Event

    from cdd_agent.tui.answering import KeyClock

QUIET = 0.5
"""Seconds for which an effect of Enter must have been on the screen."""
HELD = 0.15
"""Seconds between two Enters of a key that is held down, at most."""


class EnterGuard:
    """Records the effect of Enter, and the time since which the screen shows it.

    The user knows an effect that they typed. Any other effect appears by itself: a
    suggested command, the next step after a turn, the first highlighted row, a typed
    line whose meaning has changed. If Enter is held down, or pressed twice to close
    another screen, the repeated presses are ignored.
    """

    def __init__(self, clock: KeyClock) -> None:
        self._clock = clock
        self._text = ""
        self._effect: Hashable = None
        self._since = -inf
        self._pressed_at = self._pressed_elsewhere_at = -inf
        """The times of the last Enter, and of the last one on another screen."""

    def show(self, text: str, effect: Hashable, *, is_typed: bool = False) -> None:
        """Note the text of the prompt and the effect of Enter; call this whenever
        either may have changed. `effect` is None if Enter does nothing. `is_typed`: the
        user typed the text.
        """
        if (text, effect) == (self._text, self._effect):
            return
        is_known = is_typed and text != self._text
        self._text, self._effect = text, effect
        self._since = self._clock.now()
        if is_known:
            self._since = self._pressed_elsewhere_at = -inf

    def press_elsewhere(self, enter: Event) -> None:
        """Note an Enter that another screen gets."""
        self._pressed_at = self._pressed_elsewhere_at = self._clock.pressed(enter)

    def is_too_soon(self, enter: Event | None = None) -> bool:
        """True if this Enter, by default one pressed now, must be ignored."""
        at = self._clock.now() if enter is None else self._clock.pressed(enter)
        last, self._pressed_at = self._pressed_at, at
        if self._effect is None:
            return False
        is_held = at - last < HELD and self._since > -inf
        return is_held or at - max(self._since, self._pressed_elsewhere_at) < QUIET
