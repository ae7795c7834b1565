"""Prevents accidental presses of Enter: it acts only on an effect that was visible for
half a second, or that the user typed.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable

    from textual.events import Event

    from cdd_agent.tui.answering import KeyClock

QUIET = 0.5
"""Seconds for which the effect must have been visible."""
HELD = 0.15
"""Maximum seconds between two presses of a key that is held down."""


class EnterGuard:
    """Tracks the effect of Enter, and since when it is visible.

    The user knows an effect that they typed. Other effects appear by themselves: a
    suggestion, the next step, the first row of a list, a new meaning of a typed line.
    Enter is also ignored if it is held down, or pressed right after it closed another
    screen.
    """

    def __init__(self, clock: KeyClock) -> None:
        self._clock = clock
        self._text = ""
        self._effect: Hashable = None
        self._since = -inf
        self._pressed_at = self._pressed_elsewhere_at = -inf
        """Times of the last Enter here or elsewhere, and of the last one elsewhere."""

    def show(self, text: str, effect: Hashable, *, is_typed: bool = False) -> None:
        """Note the prompt's text and the effect of Enter; None if it has none. Call
        this after each possible change. `is_typed`: the user typed the text.
        """
        if (text, effect) == (self._text, self._effect):
            return
        is_known = is_typed and text != self._text
        self._text, self._effect = text, effect
        self._since = self._clock.now()
        if is_known:
            self._since = self._pressed_elsewhere_at = -inf

    def press_elsewhere(self, enter: Event) -> None:
        """Note an Enter on another screen."""
        self._pressed_at = self._pressed_elsewhere_at = self._clock.pressed(enter)

    def is_too_soon(self, enter: Event | None = None) -> bool:
        """True if this Enter must be ignored. Default: an Enter pressed now."""
        at = self._clock.now() if enter is None else self._clock.pressed(enter)
        last, self._pressed_at = self._pressed_at, at
        if self._effect is None:
            return False
        is_held = at - last < HELD and self._since > -inf
        return is_held or at - max(self._since, self._pressed_elsewhere_at) < QUIET
