"""The clock of an event loop."""

import asyncio
from collections.abc import Callable


def leap(seconds: float) -> None:
    """Move the running loop's clock forward by some seconds."""
    loop = asyncio.get_running_loop()
    now = loop.time
    loop.time = lambda: now() + seconds  # type: ignore[method-assign]


async def leap_when(come: Callable[[], bool], seconds: float) -> None:
    """Do so once the condition holds."""
    while not come():
        await asyncio.sleep(0.01)
    leap(seconds)
