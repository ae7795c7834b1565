import asyncio
from collections.abc import Callable
from typing import TypeVar

from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.events.stream import Emit
from cdd_agent.threads import in_thread

NOTICE_DELAY = 1.0
"""Seconds until a notice reports a slow search."""
STOP_PATIENCE = 1.0
"""Seconds that a cancelled search may take to end."""
T = TypeVar("T")


async def search_in_thread(search: Callable[[], T], emit: Emit, notice: str) -> T:
    """Return the result of a search; emit the notice if it is slow. A cancelled search
    stops at the next file.
    """
    task = asyncio.ensure_future(
        in_thread(search, name="looking for code", patience=STOP_PATIENCE)
    )
    try:
        done, _ = await asyncio.wait([task], timeout=NOTICE_DELAY)
        if not done:
            emit(Notice(notice, Tone.QUIET, kind=NoticeKind.SEARCHING))
        return await task
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task])
