"""Looking for code before a model is asked: in a thread, and told where people would
wonder what goes on.
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.events.stream import Emit
from cdd_agent.threads import in_thread

NOTICE_DELAY = 1.0
"""Seconds after which a notice reports that the search takes long."""
_TO_STOP = 1.0
"""Seconds that it is given to stop by itself, with the process that reads many files.
"""
T = TypeVar("T")


async def told_if_slow(work: Callable[[], T], emit: Emit, words: str) -> T:
    """The result of `work`, which is done in a thread; `words` are told where it takes
    long. Who is cancelled stops it at the next file.
    """
    task = asyncio.ensure_future(
        in_thread(work, name="looking for code", patience=_TO_STOP)
    )
    try:
        done, _ = await asyncio.wait([task], timeout=NOTICE_DELAY)
        if not done:
            emit(Notice(words, Tone.QUIET, kind=NoticeKind.SEARCHING))
        return await task
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task])
