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


class EnterGuard:
    """Knows what Enter does now, and since when the screen says so.

    An effect that the user typed is known to them from the start. Any other effect
    appears by itself: a suggested command, the next step after a turn, a row that is
    highlighted first, a typed line that now means something else.
    """

    def __init__(self, clock: KeyClock) -> None:
        self._clock = clock
        self._text = ""
        self._effect: Hashable = None
        self._since = -inf

    def show(self, text: str, effect: Hashable, *, is_typed: bool = False) -> None:
        """Note what the prompt holds and what Enter does with it, each time that the
        screen may show something else. `effect` is None where Enter does nothing;
        `is_typed`: the user typed the text.
        """
        if (text, effect) == (self._text, self._effect):
            return
        is_known = is_typed and text != self._text
        self._text, self._effect = text, effect
        self._since = -inf if is_known else self._clock.now()

    def is_too_soon(self, enter: Event | None = None) -> bool:
        """True if this Enter, or one that is pressed now, must be ignored."""
        at = self._clock.now() if enter is None else self._clock.pressed(enter)
        return self._effect is not None and at - self._since < QUIET
