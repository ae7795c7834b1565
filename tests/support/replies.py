"""A model's reply as tests on_event it."""

import asyncio

from cdd_agent.llm.port import Done, Model, ModelEvent, Request


async def all_of(model: Model, request: Request) -> list[ModelEvent | Done]:
    """The events of a reply, and last how it ended."""
    events: list[ModelEvent | Done] = []
    events.append(await model.reply(request, events.append))
    return events


async def stopped(
    model: Model, request: Request, *, after: int = 1
) -> list[ModelEvent]:
    """The events until it was cancelled, as Escape does, when so many had come."""
    events: list[ModelEvent] = []

    def on_event(event: ModelEvent) -> None:
        events.append(event)
        if len(events) == after:
            call.cancel()

    call = asyncio.ensure_future(model.reply(request, on_event))
    await asyncio.wait([call])
    assert call.cancelled(), f"it was not cancelled: {call}"
    return events
