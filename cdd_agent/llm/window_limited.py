"""A model with a context window that the user has set."""

from cdd_agent.llm.port import ContextTooLong, Done, Model, NotAReply, OnEvent, Request
from cdd_agent.llm.token_estimates import estimate_prompt
from cdd_agent.llm.wrapper import ModelWrapper


class WindowLimited(ModelWrapper):
    """Some servers end without a message if a request is too long. Then the error names
    the window.
    """

    def __init__(self, model: Model, window: int) -> None:
        super().__init__(model)
        self._window = window

    @property
    def window(self) -> int:
        return self._window

    async def reply(self, request: Request, on_event: OnEvent) -> Done:
        try:
            return await self.inner.reply(request, on_event)
        except NotAReply as error:
            size = estimate_prompt(request)
            if size <= self._window:
                raise
            raise ContextTooLong(
                f"The server of {self.name} sent no reply. The request has about"
                f" {size:,} tokens, and the model's window has {self._window:,}",
                hint="Use a model with a larger context, or a smaller step.",
            ) from error
