"""Blocking work that can be left behind: name look-ups, conversions, searches, waiting
for a program to end.

anyio's threads keep neither promise: the end of the program waits for them, and a task
that is cancelled by asyncio leaves them at work also where it is to wait for their end.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


class LeftBehind(Exception):
    """Nobody waits any more for the work of this thread."""


class _Here(threading.local):
    left: Future[None] | None = None
    """Done as soon as nobody waits any more for the work of this thread."""


_here = _Here()


def stop_if_left() -> None:
    """To be called now and then by work that may take long and can be stopped: raises
    `LeftBehind` if it was begun by `in_thread`, and whoever waited has stopped waiting.
    """
    if _here.left is not None and _here.left.done():
        raise LeftBehind


async def in_thread(work: Callable[[], T], *, name: str, patience: float = 0.0) -> T:
    """Run `work` in a thread of its own.

    Unlike with `asyncio.to_thread`, it begins at once, however much other work there
    is, and whoever stops waiting leaves the thread behind for good: neither the end of
    the event loop nor that of the program waits for it. With `patience` it is given so
    many seconds to stop by itself, as work does that calls `stop_if_left`.
    """
    left = Future[None]()
    future = _begin(work, name, left)
    try:
        return await asyncio.shield(future) if patience else await future
    except asyncio.CancelledError:
        left.set_result(None)
        if patience:
            await asyncio.wait([future], timeout=patience)
            if not future.cancel():  # it has ended: how is of no concern to anybody
                future.exception()
        raise


async def to_its_end(work: Callable[[], T], *, name: str) -> T:
    """The same for work that must not go on behind a caller's back: whoever is
    cancelled waits for its end first.
    """
    future = _begin(work, name)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        while not future.done():
            # cancelled once more: it is passed on below
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([future])
        raise


def waited_for(work: Coroutine[Any, Any, T]) -> T:
    """Run work to its end for whoever cannot await it; an event loop that is running
    here is held up. Raises `LeftBehind` where `stop_if_left` would, once the work is
    cancelled.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:  # there is none
        return asyncio.run(_unless_left(work))
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


async def _unless_left(work: Coroutine[Any, Any, T]) -> T:
    loop, task, left = (
        asyncio.get_running_loop(),
        asyncio.ensure_future(work),
        _here.left,
    )

    def cancel(_: Future[None]) -> None:
        # it has ended meanwhile, and its loop is closed
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(task.cancel)

    if left is not None:
        left.add_done_callback(cancel)
    try:
        return await task
    except asyncio.CancelledError:
        stop_if_left()
        raise


def _begin(
    work: Callable[[], T], name: str, left: Future[None] | None = None
) -> asyncio.Future[T]:
    future: Future[T] = Future()
    # from now on, a cancelled caller does not cancel the work
    future.set_running_or_notify_cancel()

    def run() -> None:
        _here.left = left
        try:
            result = work()
        # whatever it is belongs to whoever waits
        except BaseException as error:  # noqa: BLE001
            future.set_exception(error)
        else:
            future.set_result(result)

    threading.Thread(target=run, name=name, daemon=True).start()
    return asyncio.wrap_future(future)
