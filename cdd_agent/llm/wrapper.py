"""What every model around a model has in common, and the smallest of them."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from cdd_agent.llm.known_models import Price
from cdd_agent.llm.port import Done, EmptyReply, Model, ModelEvent, Request, StopReason, TextDelta, ToolCall, WasThought


class ModelWrapper:
    """A model around another: to a person it is that other one."""

    def __init__(self, model: Model) -> None:
        self.inner = model

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def calls_tools(self) -> bool:
        return self.inner.calls_tools

    @property
    def sees(self) -> bool | None:
        return self.inner.sees

    @property
    def window(self) -> int | None:
        return self.inner.window

    @property
    def price(self) -> Price | None:
        return self.inner.price

    def warm_up(self) -> None:
        self.inner.warm_up()


class SwappableModel(ModelWrapper):
    """A model that can be exchanged for another (`inner`): whoever holds this one asks that from the next call on."""

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        async with aclosing(self.inner.stream(request)) as events:
            async for event in events:
                yield event


class RejectEmpty(ModelWrapper):
    """A reply that is over and has nothing in it is an `EmptyReply`: it is of no use. One that was cut stays cut."""

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        is_empty = True
        async with aclosing(self.inner.stream(request)) as events:
            async for event in events:
                match event:
                    case TextDelta(text=text):
                        is_empty = is_empty and not text.strip()
                    case WasThought():
                        is_empty = True
                    case ToolCall():
                        is_empty = False
                    case Done(stop_reason=StopReason.STOP, usage=usage) if is_empty:
                        raise EmptyReply(
                            f"{self.name} sent an empty reply.",
                            hint="Ask again, or use another model.",
                            usage=usage,
                        )
                    case _:
                        pass
                yield event


def innermost(model: Model) -> Model:
    """The adapter that a model is around, or the model itself."""
    while isinstance(model, ModelWrapper):
        model = model.inner
    return model
