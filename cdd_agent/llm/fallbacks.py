"""Fallbacks: where a model's provider is down, or has no quota left, the next model is
asked, and that is told.
"""

from collections.abc import Sequence

from msgspec import Struct

from cdd_agent.llm.pictures import as_seen_by, has_pictures
from cdd_agent.llm.port import (
    Done,
    EmptyReply,
    Hear,
    Model,
    ModelError,
    ModelEvent,
    NotReachable,
    QuotaUsedUp,
    RateLimited,
    Replaced,
    Request,
    StartedAgain,
    Waiting,
    WebPageAnswered,
)
from cdd_agent.llm.retrying import Clock
from cdd_agent.llm.token_estimates import estimated_prompt
from cdd_agent.llm.wrapper import ModelWrapper, innermost

REST = 600.0
"""Seconds for which a model that could not be asked is left alone, or longer where its
provider says so.
"""


class _Resting(Struct):
    """A model that could not be asked, and until when it is left alone."""

    model: Model
    until: float


class WithFallbacks(ModelWrapper):
    """A model, and others to ask where it cannot be asked: to a person it is the one
    that is asked next.

    Each has its own patience and price; the budget that they have in common is for
    whoever puts them here. A model that failed rests for a while, so that calls go on
    with one and the same; one that was exchanged meanwhile does not.
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
        return self._in_turn()[0].name

    @property
    def calls_tools(self) -> bool:
        return self._in_turn()[0].calls_tools

    @property
    def sees(self) -> bool | None:
        return self._in_turn()[0].sees

    @property
    def window(self) -> int | None:
        return self._in_turn()[0].window

    async def check(self, *, connect: bool) -> None:
        models = self._in_turn()
        for model in models:
            try:
                await model.check(connect=connect)
                return
            except ModelError as error:
                if model is models[-1] or not _is_out_of_service(error):
                    raise

    async def reply(self, request: Request, hear: Hear) -> Done:
        has_begun = False

        def note(event: ModelEvent) -> None:
            nonlocal has_begun
            has_begun = has_begun or not isinstance(event, Waiting)
            hear(event)

        model, *left = self._in_turn()
        size = estimated_prompt(request)
        left = [other for other in left if other.window is None or size <= other.window]
        if (before := self._asked_last) is not None and innermost(
            before
        ) is not innermost(model):
            hear(Replaced(model.name, before.name, "It is its turn again."))
        while True:
            self._asked_last = model
            try:
                return await model.reply(as_seen_by(model, request), note)
            except ModelError as error:
                if not _is_out_of_service(error):
                    raise
                now, asked = (
                    self._clock.seconds(),
                    error.retry_after if isinstance(error, RateLimited) else None,
                )
                self._resting = [one for one in self._resting if one.until > now]
                self._resting.append(
                    _Resting(innermost(model), now + max(REST, asked or 0.0))
                )
                if not left:
                    raise
                failed, model = model, left.pop(0)
                reason = error.message
                if has_pictures(request) and model.sees is False:
                    reason += " It cannot see pictures, and goes on without them."
            hear(Replaced(model.name, failed.name, reason))
            if has_begun:
                hear(StartedAgain())
                has_begun = False

    def _in_turn(self) -> list[Model]:
        """Those that can be asked, the first first; where all of them rest, all."""
        now = self._clock.seconds()
        resting = {id(one.model) for one in self._resting if one.until > now}
        models = [self.inner, *self.others]
        return [
            model for model in models if id(innermost(model)) not in resting
        ] or models


def _is_out_of_service(error: ModelError) -> bool:
    """Whether the provider is down or has no quota left. An empty reply is the model's
    own, and no sign of it.
    """
    return isinstance(error, QuotaUsedUp | NotReachable | WebPageAnswered) or (
        error.is_transient and not isinstance(error, EmptyReply)
    )
