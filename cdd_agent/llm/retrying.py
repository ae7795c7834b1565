"""Repeat failed calls that may soon succeed."""

import asyncio
import math
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from msgspec import Struct

from cdd_agent.llm.port import (
    Done,
    EmptyReply,
    Model,
    ModelError,
    ModelEvent,
    OnEvent,
    RateLimited,
    Request,
    StartedAgain,
    Waiting,
)
from cdd_agent.llm.retry_after import LONGEST, describe_wait
from cdd_agent.llm.shared_waits import SharedWaits
from cdd_agent.llm.wrapper import ModelWrapper

LONGEST_WAIT = 120.0
"""Seconds. For a longer wait the user is asked to come back later."""
_CALLS: dict[type[ModelError], int] = {RateLimited: 7, EmptyReply: 2}
"""Maximum number of calls. The waits between 7 calls last over a minute, the window of
most rate limits.
"""
_OTHER_CALLS = 3
"""For broken connections and failing servers: each such call may cost money."""
_SAVED = "Your progress is saved."


class Clock(Struct, frozen=True):
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    seconds: Callable[[], float] = time.monotonic
    now: Callable[[], datetime] = datetime.now
    chance: Callable[[], float] = random.random
    """Returns a number from 0 to 1, so that clients do not all return at once."""


class Retrying(ModelWrapper):
    """Repeats a call after a transient error and a wait, which doubles each time.

    A longer wait that the provider asks for counts, up to `LONGEST_WAIT`. Emits
    `Waiting` once a second, and `StartedAgain` if a part of the reply was passed on.
    Raises the error of the last call.
    """

    def __init__(
        self,
        model: Model,
        clock: Clock | None = None,
        shared: SharedWaits | None = None,
    ) -> None:
        super().__init__(model)
        self._clock = clock or Clock()
        self._shared = shared

    async def reply(self, request: Request, on_event: OnEvent) -> Done:
        failures: Counter[type[ModelError]] = Counter()
        has_begun = False

        def pass_on(event: ModelEvent) -> None:
            nonlocal has_begun
            has_begun = has_begun or not isinstance(event, Waiting)
            on_event(event)

        while True:
            try:
                return await self.inner.reply(request, pass_on)
            except ModelError as error:
                kind = type(error)
                failures[kind] += 1
                seconds = self._wait_after(error, failures[kind])
                reason = error.message
            if not reason.endswith((".", "!", "?", "…")):
                reason += "."
            await _wait(self._clock, seconds, reason, on_event)
            if has_begun:
                on_event(StartedAgain())
                has_begun = False

    def _wait_after(self, error: ModelError, calls: int) -> float:
        """Return the seconds to wait. Raises the error if no further call is made."""
        if not error.is_transient:
            raise error
        doubled = 2.0 ** (calls - 1)
        chance = self._clock.chance()
        backoff = doubled * (0.75 + chance / 2)
        if isinstance(error, RateLimited):
            asked = error.retry_after
            if self._shared is not None:
                wait = doubled if asked is None else asked
                until = self._clock.now().timestamp() + wait
                self._shared.extend(until, error.message)
            if (asked or 0.0) > LONGEST_WAIT or calls >= _CALLS[RateLimited]:
                raise self._come_back_later(error, calls) from error
            # never sooner than the provider asks, which may be at once
            if asked is not None and asked + chance > backoff:
                return asked + chance
        elif calls >= _CALLS.get(type(error), _OTHER_CALLS):
            raise error
        return backoff

    def _come_back_later(self, error: RateLimited, calls: int) -> RateLimited:
        when = f"It failed {calls} times. Try again in a few minutes."
        if error.retry_after:
            # an adapter of another package may return any number
            seconds = min(error.retry_after, LONGEST)
            until = self._clock.now() + timedelta(seconds=seconds)
            minutes = math.ceil(seconds / 60)
            how_long = f"{minutes} minutes"
            if minutes >= 120:
                how_long = f"{math.ceil(minutes / 60)} hours"
            when = f"Try again in {how_long}, at {until:%H:%M}."
        more = error.hint
        if error.retry_after and more == describe_wait(error.retry_after):
            # `when` says it already
            more = ""
        hint = f"{when} {_SAVED} {more}".rstrip()
        return RateLimited(error.message, hint=hint, retry_after=error.retry_after)


async def wait_for_provider(
    shared: SharedWaits, clock: Clock, on_event: OnEvent
) -> None:
    """Wait as long as the provider has asked any process to. Raises `RateLimited` if
    that is too long.
    """
    while True:
        until, reason = shared.until
        remaining = until - clock.now().timestamp()
        if remaining <= 0:
            return
        if remaining > LONGEST_WAIT:
            raise RateLimited(reason, retry_after=remaining)
        # random extra time, so that processes do not all call at once
        await _wait(clock, remaining + clock.chance(), reason, on_event)


async def _wait(clock: Clock, seconds: float, reason: str, on_event: OnEvent) -> None:
    end = clock.seconds() + seconds
    while (remaining := end - clock.seconds()) > 0:
        on_event(Waiting(math.ceil(remaining), reason))
        await clock.sleep(min(remaining, 1.0))
