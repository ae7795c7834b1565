"""What tests hear of a model's reply."""

import asyncio

from cdd_agent.llm.port import Done, Model, ModelEvent, Request


async def all_of(model: Model, request: Request) -> list[ModelEvent | Done]:
    """What came of it, and last how it ended."""
    events: list[ModelEvent | Done] = []
    events.append(await model.reply(request, events.append))
    return events


async def stopped(model: Model, request: Request, *, after: int = 1) -> list[ModelEvent]:
    """What came of it until it was cancelled, as Escape does, when so many events had come."""
    events: list[ModelEvent] = []

    def hear(event: ModelEvent) -> None:
        events.append(event)
        if len(events) == after:
            call.cancel()

    call = asyncio.ensure_future(model.reply(request, hear))
    await asyncio.wait([call])
    assert call.cancelled(), f"it was not cancelled: {call}"
    return events
