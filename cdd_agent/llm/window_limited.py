"""A model whose window somebody has set."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from cdd_agent.llm.budget import estimated_prompt
from cdd_agent.llm.port import ContextTooLong, Model, ModelEvent, NotAReply, Request
from cdd_agent.llm.wrapper import ModelWrapper


class WindowLimited(ModelWrapper):
    """Some servers end without a word where a request is too long: then this says so."""

    def __init__(self, model: Model, window: int) -> None:
        super().__init__(model)
        self._window = window

    @property
    def window(self) -> int:
        return self._window

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        try:
            async with aclosing(self.inner.stream(request)) as events:
                async for event in events:
                    yield event
        except NotAReply as error:
            if (size := estimated_prompt(request)) <= self._window:
                raise
            raise ContextTooLong(
                f"The server of {self.name} ended without a reply: the request has about {size:,} tokens, and it "
                f"takes in {self._window:,}",
                hint="Use a model with a larger context, or a smaller step.",
            ) from error
