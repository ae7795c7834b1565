"""Fallbacks: if a provider is down or its quota is used up, the next model is called
and the user informed.
"""

from collections.abc import Sequence

from msgspec import Struct

from cdd_agent.llm.pictures import as_seen_by, has_pictures
from cdd_agent.llm.port import (
    Done,
    EmptyReply,
    Model,
    ModelError,
    ModelEvent,
    NotReachable,
    OnEvent,
    QuotaUsedUp,
    RateLimited,
    Replaced,
    Request,
    StartedAgain,
    Waiting,
    WebPageAnswered,
)
from cdd_agent.llm.retrying import Clock
from cdd_agent.llm.token_estimates import estimate_prompt
from cdd_agent.llm.wrapper import ModelWrapper, innermost

REST = 600.0
"""Seconds for which a failed model is not called; longer if its provider asks for
it.
"""


class _Resting(Struct):
    """A failed model, not to be called before `until`."""

    model: Model
    until: float


class WithFallbacks(ModelWrapper):
    """A model with fallbacks. Its name and abilities are those of the model to call
    next.

    Each model has its own retries and price; they share one budget. A failed model
    rests for a while, so that the next calls use the same fallback. Exchanging the
    model ends its rest.
    """

    def __init__(
        self, model: Model, others: Sequence[Model], clock: Clock | None = None
    ) -> None:
        super().__init__(model)
        self.others = tuple(others)
        self._clock = clock or Clock()
        self._resting: list[_Resting] = []
        self._asked_last: Model | None = None

    @property
    def name(self) -> str:
        return self._next.name

    @property
    def calls_tools(self) -> bool:
        return self._next.calls_tools

    @property
    def sees(self) -> bool | None:
        return self._next.sees

    @property
    def window(self) -> int | None:
        return self._next.window

    async def check(self, *, connect: bool) -> None:
        models = self._available_models()
        for model in models:
            try:
                await model.check(connect=connect)
                return
            except ModelError as error:
                if model is models[-1] or not _is_out_of_service(error):
                    raise

    async def reply(self, request: Request, on_event: OnEvent) -> Done:
        has_begun = False

        def note(event: ModelEvent) -> None:
            nonlocal has_begun
            has_begun = has_begun or not isinstance(event, Waiting)
            on_event(event)

        model, *fallbacks = self._models_for(request)
        self._report_return(model, on_event)
        while True:
            self._asked_last = model
            try:
                return await model.reply(as_seen_by(model, request), note)
            except ModelError as error:
                if not _is_out_of_service(error):
                    raise
                self._let_rest(model, error)
                if not fallbacks:
                    raise
                failed, reason = model, error.message
            model = fallbacks.pop(0)
            if has_pictures(request) and model.sees is False:
                reason += " It cannot see pictures, and continues without them."
            on_event(Replaced(model.name, failed.name, reason))
            if has_begun:
                on_event(StartedAgain())
                has_begun = False

    @property
    def _next(self) -> Model:
        return self._available_models()[0]

    def _models_for(self, request: Request) -> list[Model]:
        model, *fallbacks = self._available_models()
        size = estimate_prompt(request)
        models = [model]
        for fallback in fallbacks:
            if fallback.window is None or size <= fallback.window:
                models.append(fallback)
        return models

    def _available_models(self) -> list[Model]:
        now = self._clock.seconds()
        resting = [one.model for one in self._resting if one.until > now]
        models = [self.inner, *self.others]
        available = []
        for model in models:
            if not any(innermost(model) is other for other in resting):
                available.append(model)
        return available or models

    def _report_return(self, model: Model, on_event: OnEvent) -> None:
        last = self._asked_last
        if last is not None and innermost(last) is not innermost(model):
            on_event(Replaced(model.name, last.name, "it is available again"))

    def _let_rest(self, model: Model, error: ModelError) -> None:
        now = self._clock.seconds()
        seconds = REST
        if isinstance(error, RateLimited) and error.retry_after is not None:
            seconds = max(REST, error.retry_after)
        resting = [one for one in self._resting if one.until > now]
        self._resting = [*resting, _Resting(innermost(model), now + seconds)]


def _is_out_of_service(error: ModelError) -> bool:
    """True if the provider is down, unreachable, or out of quota. An empty reply is the
    model's fault, not the provider's.
    """
    if isinstance(error, QuotaUsedUp | NotReachable | WebPageAnswered):
        return True
    return error.is_transient and not isinstance(error, EmptyReply)
