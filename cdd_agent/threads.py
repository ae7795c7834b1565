"""Blocking work in threads that can be abandoned: name look-ups, conversions, searches,
waiting for a program's end.

anyio's threads do not allow this: the program's end waits for them, and a task that
asyncio cancels leaves them running even if it should wait.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


class LeftBehind(Exception):
    """No caller waits for the work of this thread any more."""


class _Here(threading.local):
    abandoned: Future[None] | None = None
    """Done as soon as no caller waits for this thread's work."""


_here = _Here()


def stop_if_left() -> None:
    """Raise `LeftBehind` if `in_thread` started this work and its caller has stopped
    waiting. Long work calls this from time to time.
    """
    if _here.abandoned is not None and _here.abandoned.done():
        raise LeftBehind


async def in_thread(work: Callable[[], T], *, name: str, patience: float = 0.0) -> T:
    """Run `work` in a separate thread.

    Unlike `asyncio.to_thread`, it starts at once, even with much other work. If the
    caller stops waiting, neither the event loop nor the program waits for the thread.
    With `patience`, the caller waits that many seconds for work that calls
    `stop_if_left`.
    """
    abandoned = Future[None]()
    future = _begin(work, name, abandoned)
    try:
        return await asyncio.shield(future) if patience else await future
    except asyncio.CancelledError:
        abandoned.set_result(None)
        if patience:
            await asyncio.wait([future], timeout=patience)
            if not future.cancel():
                # the work has ended: mark its error as seen
                future.exception()
        raise


async def to_its_end(work: Callable[[], T], *, name: str) -> T:
    """Run `work` in a separate thread, and wait for its end even if cancelled."""
    future = _begin(work, name)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        while not future.done():
            # cancelled again: the first cancellation is raised below
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([future])
        raise


def waited_for(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end for a caller that cannot await it. Blocks a running
    event loop. Raises `LeftBehind` like `stop_if_left`, after cancelling the work.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:  # there is none
        return asyncio.run(_unless_left(work))
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


async def _unless_left(work: Coroutine[Any, Any, T]) -> T:
    loop, abandoned = asyncio.get_running_loop(), _here.abandoned
    task = asyncio.ensure_future(work)

    def cancel(_: Future[None]) -> None:
        # the loop is closed if the work has ended
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(task.cancel)

    if abandoned is not None:
        abandoned.add_done_callback(cancel)
    try:
        return await task
    except asyncio.CancelledError:
        stop_if_left()
        raise


def _begin(
    work: Callable[[], T], name: str, abandoned: Future[None] | None = None
) -> asyncio.Future[T]:
    future: Future[T] = Future()
    # from now on, a cancelled caller does not cancel the work
    future.set_running_or_notify_cancel()

    def run() -> None:
        _here.abandoned = abandoned
        try:
            result = work()
        # the caller gets every error
        except BaseException as error:  # noqa: BLE001
            future.set_exception(error)
        else:
            future.set_result(result)

    threading.Thread(target=run, name=name, daemon=True).start()
    return asyncio.wrap_future(future)
