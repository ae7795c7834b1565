"""The base class of wrappers around a model, and the smallest wrappers."""

from cdd_agent.llm.port import (
    Done,
    EmptyReply,
    Model,
    ModelEvent,
    OnEvent,
    Price,
    Request,
    StopReason,
    TextDelta,
    ToolCall,
    WasThought,
)


class ModelWrapper:
    """A wrapper with the name and abilities of the inner model."""

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
    """A model whose `inner` can be exchanged. The next call goes to the new one."""

    async def reply(self, request: Request, on_event: OnEvent) -> Done:
        return await self.inner.reply(request, on_event)


class RejectEmpty(ModelWrapper):
    """Raises `EmptyReply` for a complete reply without content. A cut reply stays a cut
    reply.
    """

    async def reply(self, request: Request, on_event: OnEvent) -> Done:
        is_empty = True

        def note(event: ModelEvent) -> None:
            nonlocal is_empty
            match event:
                case TextDelta(text=text) if text.strip():
                    is_empty = False
                case ToolCall():
                    is_empty = False
                case WasThought():
                    is_empty = True
                case _:
                    pass
            on_event(event)

        done = await self.inner.reply(request, note)
        if is_empty and done.stop_reason is StopReason.STOP:
            raise EmptyReply(
                f"{self.name} sent an empty reply.",
                hint="Ask again, or use another model.",
                usage=done.usage,
            )
        return done


def innermost(model: Model) -> Model:
    while isinstance(model, ModelWrapper):
        model = model.inner
    return model
