"""Models around a model: their base class, and the smallest of them."""

from cdd_agent.llm.port import (
    Done,
    EmptyReply,
    Hear,
    Model,
    ModelEvent,
    Price,
    Request,
    StopReason,
    TextDelta,
    ToolCall,
    WasThought,
)


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

    async def check(self, *, connect: bool) -> None:
        await self.inner.check(connect=connect)


class SwappableModel(ModelWrapper):
    """A model that can be exchanged for another (`inner`): whoever holds this one asks
    that from the next call on.
    """

    async def reply(self, request: Request, hear: Hear) -> Done:
        return await self.inner.reply(request, hear)


class RejectEmpty(ModelWrapper):
    """A reply that is over and has nothing in it is an `EmptyReply`: it is of no use.
    One that was cut stays cut.
    """

    async def reply(self, request: Request, hear: Hear) -> Done:
        is_empty = True

        def look(event: ModelEvent) -> None:
            nonlocal is_empty
            match event:
                case TextDelta(text=text):
                    is_empty = is_empty and not text.strip()
                case WasThought():
                    is_empty = True
                case ToolCall():
                    is_empty = False
                case _:
                    pass
            hear(event)

        done = await self.inner.reply(request, look)
        if is_empty and done.stop_reason is StopReason.STOP:
            hint = "Ask again, or use another model."
            raise EmptyReply(
                f"{self.name} sent an empty reply.", hint=hint, usage=done.usage
            )
        return done


def innermost(model: Model) -> Model:
    """The adapter that a model is around, or the model itself."""
    while isinstance(model, ModelWrapper):
        model = model.inner
    return model
