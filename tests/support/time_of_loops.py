"""The time that an event loop waits by."""

import asyncio
from collections.abc import Callable


def leap(seconds: float) -> None:
    """So many seconds pass at once, for all that waits in the running loop."""
    loop = asyncio.get_running_loop()
    now = loop.time
    loop.time = lambda: now() + seconds  # type: ignore[method-assign]


async def leap_when(come: Callable[[], bool], seconds: float) -> None:
    """They pass as soon as it is so."""
    while not come():
        await asyncio.sleep(0.01)
    leap(seconds)
