"""Blocking work that can be left behind: name look-ups, conversions, searches, waiting for a program to end.

anyio's threads keep neither promise: the end of the program waits for them, and a task that is cancelled by asyncio
leaves them at work also where it is to wait for their end.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


async def in_thread(work: Callable[[], T], *, name: str) -> T:
    """Run `work` in a thread of its own.

    Unlike with `asyncio.to_thread`, it begins at once, however much other work there is, and whoever stops waiting
    leaves the thread behind for good: neither the end of the event loop nor that of the program waits for it.
    """
    return await _begin(work, name)


async def to_its_end(work: Callable[[], T], *, name: str) -> T:
    """The same for work that must not go on behind a caller's back: whoever is cancelled waits for its end first."""
    future = _begin(work, name)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        while not future.done():
            with contextlib.suppress(asyncio.CancelledError):  # cancelled once more: it is passed on below
                await asyncio.wait([future])
        raise


def waited_for(work: Coroutine[Any, Any, T]) -> T:
    """Run work to its end for whoever cannot await it; an event loop that is running here is held up."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:  # there is none
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def _begin(work: Callable[[], T], name: str) -> asyncio.Future[T]:
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()  # from now on, a cancelled caller does not cancel the work

    def run() -> None:
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001  # whatever it is belongs to whoever waits
            future.set_exception(error)
        else:
            future.set_result(result)

    threading.Thread(target=run, name=name, daemon=True).start()
    return asyncio.wrap_future(future)
