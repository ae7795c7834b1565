"""Which of the keys are the answer to an open question, and which are what somebody was
typing anyway.

All that is typed is in the prompt. It can be the answer only if it was begun with an
empty prompt and the question in sight, and if the keyboard rested before it or before
it is sent. A letter that was begun after a rest is an answer by itself when the
keyboard rests after it, too.
"""

from __future__ import annotations

import asyncio
import os
import re
from math import inf
from time import monotonic, perf_counter
from typing import TYPE_CHECKING

from msgspec import Struct
from textual.events import Event, Key, Paste

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

_NO = re.compile(r"no?[\s,:]\s*(.*\w.*)", re.IGNORECASE | re.DOTALL)
"""A no with a reason."""


class KeyClock(Struct, frozen=True):
    """The times of keys."""

    # as Textual stamps its events
    now: Callable[[], float] = perf_counter if os.name == "nt" else monotonic
    pressed: Callable[[Event], float] = lambda event: event.time
    """Return the time at which a key was pressed. It may be handled much later."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


class Answering:
    """An open question, and the keys that may answer it."""

    def __init__(
        self, words: Iterable[str] = (), *, takes_reason: bool = False
    ) -> None:
        """`words` are the possible answers; the first letter of each is enough. Without
        words, every line is an answer. `takes_reason`: the text after a no is its
        reason.
        """
        self.answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.seen_at = inf
        """The time at which the question appeared."""
        self.reason = ""
        """The reason after a no."""
        self._words = {typed: word for word in words for typed in (word[0], word)}
        self._takes_reason = takes_reason
        self._is_begun = False
        """True if a key typed text, which the prompt may not show yet."""
        self._is_meant = False
        """True if the text of the prompt was begun as an answer."""
        self._is_since = False
        """True if the text was begun after the question appeared, though perhaps
        without a pause.
        """
        self._is_meant_sent = self._is_sent_after_rest = False
        self._refused = ""

    def knows(self, text: str) -> str | None:
        """Return the answer that a text means, whenever it was typed."""
        return self._words.get(text.strip().lower())

    def meant(self, text: str) -> str | None:
        """Return the answer that the text of the prompt means if Enter is pressed now
        or later.
        """
        if not (self._is_meant or self._is_since):
            return None
        reason = self._reason(text)
        return f"no: {reason}" if reason else self.knows(text)

    def _reason(self, text: str) -> str:
        """Return the reason of a no, if there is one."""
        found = _NO.fullmatch(text.strip()) if self._takes_reason else None
        return found[1].strip() if found else ""

    def receive_key(
        self, event: Key | Paste, *, typed: str, rested: bool, seen: bool
    ) -> str | None:
        """Note a key before the prompt receives it. `typed` is the text of the prompt.
        `seen`: the question was visible when the key was pressed. Returns the answer to
        give if nothing follows.
        """
        is_text = isinstance(event, Key) and event.is_printable
        is_enter = isinstance(event, Key) and event.key == "enter"
        is_first = not typed and (rested or not self._is_begun)
        self._is_begun = is_text
        self._is_meant = (
            is_text and rested if is_first else self._is_meant and (is_text or is_enter)
        )
        self._is_since = (
            is_text and seen if is_first else self._is_since and (is_text or is_enter)
        )
        if is_enter:
            self._is_meant_sent = self._is_meant or (self._is_since and rested)
            self._is_sent_after_rest = rested
            self._is_begun = self._is_meant = self._is_since = False
        return (
            self.knows(event.character or "")
            if is_first and self._is_meant and isinstance(event, Key)
            else None
        )

    def sent(self, line: str) -> str | None:
        """Return the answer that a sent line means. If any line is an answer, a line
        begun before the question must be sent twice.
        """
        if self._words:
            if not self._is_meant_sent:
                return None
            self.reason = self._reason(line)
            return "no" if self.reason else self.knows(line)
        if self._is_meant_sent or (self._is_sent_after_rest and line == self._refused):
            return line if line.strip() else None
        self._refused = line
        return None
