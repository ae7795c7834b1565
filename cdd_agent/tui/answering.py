"""Decides whether keys answer an open question or belong to a draft.

All keys type into the prompt. A text can be an answer only if its first key came into
an empty prompt while the question was visible, and the keyboard rested before that key
or before Enter. A single letter with a rest before and after it is an answer without
Enter.

`next_typed` and `sent_as` contain all rules: they map a state and a key to the next
state, and to the meaning of Enter.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Iterable
from enum import Enum, auto
from math import inf
from time import monotonic, perf_counter

from msgspec import Struct
from textual.events import Event

from cdd_agent.pattern import Pattern

_NO = Pattern(r"no?[\s,:]\s*(.*\w.*)", re.IGNORECASE | re.DOTALL)


class KeyClock(Struct, frozen=True):
    # The clock of Textual's events.
    now: Callable[[], float] = perf_counter if os.name == "nt" else monotonic
    pressed: Callable[[Event], float] = lambda event: event.time
    """Returns the time of the key press, which may be long before its handling."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


class KeyKind(Enum):
    TEXT = auto()
    ENTER = auto()
    OTHER = auto()


class Timing(Enum):
    """The time of a key relative to the question."""

    UNSEEN = auto()
    """The question was not visible yet."""
    SEEN = auto()
    """The question was visible, but the keyboard had not rested since."""
    RESTED = auto()
    """The keyboard rested after the previous key and after the question became
    visible.
    """


class Typed(Enum):
    """The role of the text in the prompt, decided by its first key."""

    NOTHING = auto()
    """The last key typed no text."""
    DRAFT = auto()
    """The text began before the question was visible."""
    SEEN = auto()
    """The text began while the question was visible, without a rest. It is an answer if
    the user rests before Enter.
    """
    ANSWER = auto()
    """The text began after a rest."""


class Sent(Enum):
    DRAFT = auto()
    DRAFT_AFTER_REST = auto()
    """A draft, but the user rested before Enter while the question was visible."""
    ANSWER = auto()


_BEGUN = {
    Timing.UNSEEN: Typed.DRAFT,
    Timing.SEEN: Typed.SEEN,
    Timing.RESTED: Typed.ANSWER,
}


def next_typed(typed: Typed, kind: KeyKind, timing: Timing, *, is_empty: bool) -> Typed:
    """Return the state after a key. `is_empty`: the prompt shows no text."""
    if kind is not KeyKind.TEXT:
        return Typed.NOTHING
    if _is_first(typed, timing, is_empty=is_empty):
        return _BEGUN[timing]
    return Typed.DRAFT if typed is Typed.NOTHING else typed


def sent_as(typed: Typed, timing: Timing, *, is_empty: bool) -> Sent:
    """Return the role of a sent line. `is_empty`: the prompt shows no text."""
    has_rested = timing is Timing.RESTED
    if _is_first(typed, timing, is_empty=is_empty):
        typed = Typed.NOTHING
    if typed is Typed.ANSWER or (typed is Typed.SEEN and has_rested):
        return Sent.ANSWER
    return Sent.DRAFT_AFTER_REST if has_rested else Sent.DRAFT


def _is_first(typed: Typed, timing: Timing, *, is_empty: bool) -> bool:
    """True if the key is the first one of a text. An empty prompt alone is no proof: it
    may not show a fast typist's keys yet.
    """
    return is_empty and (timing is Timing.RESTED or typed is Typed.NOTHING)


class Answering:
    def __init__(
        self, words: Iterable[str] = (), *, takes_reason: bool = False
    ) -> None:
        """`words` are the possible answers; the first letter is enough. Without
        `words`, every line is an answer. `takes_reason`: text after "no" is its reason.
        """
        self.answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.seen_at = inf
        self.reason = ""
        self.typed = Typed.NOTHING
        self._sent = Sent.DRAFT
        self._words: dict[str, str] = {}
        for word in words:
            self._words |= {word[0]: word, word: word}
        self._takes_reason = takes_reason
        self._refused_line = ""

    def find_word(self, text: str) -> str | None:
        return self._words.get(text.strip().lower())

    def find_answer(self, text: str) -> str | None:
        if self.typed not in (Typed.SEEN, Typed.ANSWER):
            return None
        reason = self._find_reason(text)
        return f"no: {reason}" if reason else self.find_word(text)

    def _find_reason(self, text: str) -> str:
        if not self._takes_reason:
            return ""
        match = _NO.fullmatch(text.strip())
        return match[1].strip() if match else ""

    def receive_key(
        self, kind: KeyKind, timing: Timing, *, character: str = "", is_empty: bool
    ) -> str | None:
        """Note a key before the prompt receives it. Return the answer that the key
        gives if no other key follows.
        """
        is_first = _is_first(self.typed, timing, is_empty=is_empty)
        if kind is KeyKind.ENTER:
            self._sent = sent_as(self.typed, timing, is_empty=is_empty)
        self.typed = next_typed(self.typed, kind, timing, is_empty=is_empty)
        if is_first and self.typed is Typed.ANSWER:
            return self.find_word(character)
        return None

    def receive_line(self, line: str) -> str | None:
        """Return the answer that a sent line means; None for a draft. If any line can
        be an answer, a draft must be sent twice.
        """
        if self._words:
            if self._sent is not Sent.ANSWER:
                return None
            self.reason = self._find_reason(line)
            return "no" if self.reason else self.find_word(line)
        is_repeated = line == self._refused_line
        if self._sent is Sent.ANSWER or (
            self._sent is Sent.DRAFT_AFTER_REST and is_repeated
        ):
            return line if line.strip() else None
        self._refused_line = line
        return None
