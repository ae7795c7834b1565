"""A model's reply, as tests receive it."""

import asyncio

from cdd_agent.llm.port import Done, Model, ModelEvent, Request


async def all_of(model: Model, request: Request) -> list[ModelEvent | Done]:
    """Return the events of a reply, then its end."""
    events: list[ModelEvent | Done] = []
    events.append(await model.reply(request, events.append))
    return events


async def stopped(
    model: Model, request: Request, *, after: int = 1
) -> list[ModelEvent]:
    """Return the events of a reply that is cancelled, as by Escape, after this many."""
    events: list[ModelEvent] = []

    def on_event(event: ModelEvent) -> None:
        events.append(event)
        if len(events) == after:
            call.cancel()

    call = asyncio.ensure_future(model.reply(request, on_event))
    await asyncio.wait([call])
    assert call.cancelled(), f"it was not cancelled: {call}"
    return events
