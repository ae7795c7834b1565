"""Patience: a call that failed, and may succeed a little later, is made again."""

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
    Hear,
    Model,
    ModelError,
    ModelEvent,
    RateLimited,
    Request,
    StartedAgain,
    Waiting,
)
from cdd_agent.llm.shared_waits import SharedWaits
from cdd_agent.llm.wrapper import ModelWrapper

LONGEST_WAIT = 120.0
"""Seconds in one go. Who is asked to wait for longer is better told when to come back.
"""
_CALLS: dict[type[ModelError], int] = {RateLimited: 7, EmptyReply: 2}
"""How often a call is made, the first time included. The waits of 7 calls last over a
minute: the window of most rate limits.
"""
_OTHER_CALLS = 3
"""For broken connections and servers that fail: each such call may have been paid for.
"""
_SAVED = "What was done is saved, and the next run goes on from there."


class Clock(Struct, frozen=True):
    """Time and chance, as far as waiting needs them."""

    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    seconds: Callable[[], float] = time.monotonic
    now: Callable[[], datetime] = datetime.now
    chance: Callable[[], float] = random.random
    """From 0 to 1, so that many who wait do not all come back at once."""


class Retrying(ModelWrapper):
    """Makes a call again, after a wait that doubles each time, where its error is
    transient.

    The wait that a provider asks for is kept to, up to `LONGEST_WAIT`. While it lasts,
    a `Waiting` comes once a second; `StartedAgain` follows if something of the reply
    had been passed on. Raises the error of the last call.
    """

    def __init__(
        self,
        model: Model,
        clock: Clock | None = None,
        shared: "SharedWaits | None" = None,
    ) -> None:
        """`shared`: other processes ask this provider too, and none of them while one
        is asked to wait.
        """
        super().__init__(model)
        self._clock = clock or Clock()
        self._shared = shared

    async def reply(self, request: Request, hear: Hear) -> Done:
        failures: Counter[type[ModelError]] = Counter()
        has_begun = False

        def note(event: ModelEvent) -> None:
            nonlocal has_begun
            has_begun = True
            hear(event)

        while True:
            await self._wait_with_others(hear)
            try:
                return await self.inner.reply(request, note)
            except ModelError as error:
                kind = type(error)
                failures[kind] += 1
                if not error.is_transient:
                    raise
                if isinstance(error, RateLimited):
                    if self._shared is not None:
                        wait = (
                            2.0 ** (failures[kind] - 1)
                            if error.retry_after is None
                            else error.retry_after
                        )
                        self._shared.extend(
                            self._clock.now().timestamp() + wait, error.message
                        )
                    self._expect_worth_waiting(error, failures[kind])
                elif failures[kind] >= _CALLS.get(kind, _OTHER_CALLS):
                    raise
                reason, chance = error.message, self._clock.chance()
                seconds = 2.0 ** (failures[kind] - 1) * (0.75 + chance / 2)
                if isinstance(error, RateLimited) and error.retry_after is not None:
                    seconds = error.retry_after + chance  # never sooner than asked
                if not reason.endswith((".", "!", "?", "…")):
                    reason += "."
            await self._wait(seconds, reason, hear)
            if has_begun:
                hear(StartedAgain())
                has_begun = False

    async def _wait(self, seconds: float, reason: str, hear: Hear) -> None:
        end = self._clock.seconds() + seconds
        while (left := end - self._clock.seconds()) > 0:
            hear(Waiting(math.ceil(left), reason))
            await self._clock.sleep(min(left, 1.0))

    async def _wait_with_others(self, hear: Hear) -> None:
        """Until the time that the provider has named to any of them; a little longer,
        so that they do not all come back at once. Raises `RateLimited` where that is
        too long.
        """
        while self._shared is not None:
            until, reason = self._shared.until
            if (left := until - self._clock.now().timestamp()) <= 0:
                return
            if left > LONGEST_WAIT:
                self._expect_worth_waiting(RateLimited(reason, retry_after=left), 1)
            await self._wait(left + self._clock.chance(), reason, hear)

    def _expect_worth_waiting(self, error: RateLimited, calls: int) -> None:
        """Raises the error anew, with words that say when to come back, where waiting
        here makes no sense.
        """
        wait = error.retry_after or 0.0
        if wait <= LONGEST_WAIT and calls < _CALLS[RateLimited]:
            return
        if wait:
            until, minutes = (
                self._clock.now() + timedelta(seconds=wait),
                math.ceil(wait / 60),
            )
            how_long = (
                f"{minutes} minutes"
                if minutes < 120
                else f"{math.ceil(minutes / 60)} hours"
            )
            words = f"Come back in {how_long}, at {until:%H:%M}."
        else:
            words = f"It was asked {calls} times. Come back in a few minutes."
        hint = " ".join(filter(None, (words, _SAVED, error.hint)))
        raise RateLimited(
            error.message, hint=hint, retry_after=error.retry_after
        ) from error
