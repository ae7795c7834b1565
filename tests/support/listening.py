"""Events in tests: each goes to the current listeners."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager

from cdd_agent.events.stream import Emit, Event

_listeners: list[Emit] = []


def tell(event: Event) -> None:
    """The `emit` of the sessions and engines of tests."""
    for listener in tuple(_listeners):
        listener(event)


@contextmanager
def told_to(listener: Emit) -> Iterator[None]:
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


async def collect(work: Awaitable[object]) -> list[Event]:
    """Return the events until the work is done."""
    events: list[Event] = []
    with told_to(events.append):
        await work
    return events


async def stop_at(
    work: Coroutine[object, object, object], is_last: Callable[[Event], bool]
) -> list[Event]:
    """Stop the work like Escape at a matching event. Return all events, including those
    while it stopped.
    """
    task, events = asyncio.ensure_future(work), list[Event]()

    def listen(event: Event) -> None:
        events.append(event)
        if is_last(event):
            task.cancel()

    with told_to(listen):
        await asyncio.wait([task])
    assert task.cancelled(), f"it was not stopped: {task}"
    return events
