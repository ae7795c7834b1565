"""Looking for code before a model is asked: in a thread, and told where people would wonder what goes on."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from cdd_agent.events import About, Emit, Notice, Tone
from cdd_agent.threads import in_thread

_PATIENCE = 1.0
"""Seconds after which it is told."""
T = TypeVar("T")


async def told_if_slow(work: Callable[[], T], emit: Emit, words: str) -> T:
    """The result of `work`, which is done in a thread; `words` are told where it takes long. Who is cancelled leaves it
    behind, and it stops at the next file."""
    task = asyncio.ensure_future(in_thread(work, name="looking for code"))
    try:
        done, _ = await asyncio.wait([task], timeout=_PATIENCE)
        if not done:
            emit(Notice(words, Tone.QUIET, about=About.LOOKING))
        return await task
    finally:
        task.cancel()
