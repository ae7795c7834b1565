"""Budgets: count the costs of calls, and start no call that could exceed the limit."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.cost import NO_COST, Cost
from cdd_agent.errors import BadInput, BudgetExhausted
from cdd_agent.llm.port import (
    Done,
    EmptyReply,
    Model,
    ModelError,
    ModelEvent,
    OnEvent,
    Price,
    Request,
    TextDelta,
    ThoughtDelta,
    ToolCall,
    Usage,
)
from cdd_agent.llm.token_estimates import estimate_prompt, text_bytes, tokens_of
from cdd_agent.llm.usage_check import believable_usage, believable_usd
from cdd_agent.llm.wrapper import ModelWrapper
from cdd_agent.refusals.kinds import Refusal

CEILING = 8_192
"""Tokens to reserve for a reply. Models may write more (often 64,000); reserving that
would stop a run with most of its budget unspent. A reply that grows past the budget is
stopped.
"""

CheckRoom = Callable[[Cost], None]
"""Raises `BudgetExhausted` if a call does not fit next to the spent cost."""
SpentCost = Callable[[], Cost]
"""Returns the spent cost, with the reservations of other calls."""


class Account(Protocol):
    """Counts the spent part of a budget."""

    @property
    def spent(self) -> Cost: ...

    def add(self, usage: Usage) -> None: ...

    def reserve(
        self, worst: Usage, check_room: CheckRoom
    ) -> AbstractAsyncContextManager[SpentCost]:
        """Reserve a call's maximum while it runs. Waits for other calls if it fits
        without them. Raises `BudgetExhausted` if it does not fit next to the spent
        cost.
        """
        ...


class Tally(Struct):
    """A sum of the costs of calls."""

    spent: Cost = NO_COST
    running_calls: int = 0
    """Calls that are not counted yet."""
    reserved: list[Usage] = field(default_factory=list)
    """The maximum of each running call."""
    call_ended: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, usage: Usage) -> None:
        self.spent += usage.cost

    @asynccontextmanager
    async def reserve(
        self, worst: Usage, check_room: CheckRoom
    ) -> AsyncIterator[SpentCost]:
        """See `Account`."""
        check_room(self.spent)
        while self.reserved:
            if _has_room(self._spent_with(self.reserved), check_room):
                break
            self.call_ended.clear()
            await self.call_ended.wait()
            check_room(self.spent)
        self.reserved.append(worst)
        try:
            yield lambda: self._spent_with(self._reserved_except(worst))
        finally:
            self.reserved = self._reserved_except(worst)
            self.call_ended.set()

    def _spent_with(self, calls: list[Usage]) -> Cost:
        spent = self.spent
        for usage in calls:
            spent += usage.cost
        return spent

    def _reserved_except(self, call: Usage) -> list[Usage]:
        return [usage for usage in self.reserved if usage is not call]


def _has_room(spent: Cost, check_room: CheckRoom) -> bool:
    try:
        check_room(spent)
    except BudgetExhausted:
        return False
    return True


class TalliedModel(ModelWrapper):
    def __init__(self, model: Model, tally: Tally) -> None:
        super().__init__(model)
        self._tally = tally

    async def reply(self, request: Request, on_event: OnEvent) -> Done:
        self._tally.running_calls += 1
        try:
            return await self.inner.reply(request, on_event)
        finally:
            self._tally.running_calls -= 1


class Limit(Struct, frozen=True):
    """The maximum that a run may take. None: no limit."""

    tokens: int | None = None
    usd: float | None = None

    def without(self, spent: Cost) -> "Limit":
        tokens, usd = self.tokens, self.usd
        if tokens is not None:
            tokens = max(tokens - spent.tokens, 0)
        if usd is not None:
            usd = max(usd - (spent.usd or 0.0), 0.0)
        return Limit(tokens, usd)

    def check(self, spent: Cost, call: Cost, reason: str) -> None:
        """Raise `BudgetExhausted` if a call exceeds the limit. `reason` has `{}` for
        the amount of the call.
        """
        total = spent + call
        if self.tokens is not None and total.tokens > self.tokens:
            raise _exhausted(
                "tokens",
                f"{spent.about}{spent.tokens:,} of {self.tokens:,} tokens",
                reason.format(f"~{call.tokens:,} tokens"),
            )
        spent_usd, total_usd = spent.usd or 0.0, total.usd or 0.0
        if self.usd is not None and total_usd > self.usd:
            raise _exhausted(
                "usd",
                f"{spent.about}${spent_usd:.4f} of ${self.usd:.2f}",
                reason.format(f"~${total_usd - spent_usd:.4f}"),
            )


def _exhausted(key: str, used: str, reason: str) -> BudgetExhausted:
    return BudgetExhausted(
        f"The budget is too small to continue: {used} used, and {reason}",
        hint=f"Your progress is saved. To continue, raise `budget.{key}` in"
        " .cdd/config.yaml.",
    )


Wait = Callable[[OnEvent], Awaitable[None]]
"""Returns when a provider can be called, and emits `Waiting` until then."""


async def call_at_once(on_event: OnEvent) -> None:
    """Do not wait."""


class Budgeted(ModelWrapper):
    """Counts the cost of each call, also of a failed one, and raises `BudgetExhausted`
    before the limit is exceeded. A refused call costs nothing.
    """

    def __init__(
        self,
        model: Model,
        limit: Limit,
        *,
        account: Account | None = None,
        price: Callable[[], Price | None] = lambda: None,
        spend: Callable[[Usage], None] = lambda usage: None,
        lost: Callable[[Usage], None] = lambda usage: None,
        wait: Wait = call_at_once,
    ) -> None:
        """Raises `BadInput` for a limit in dollars if no price is known.

        `account` has the costs of earlier calls, and other models can share it. `spend`
        receives the usage of each call, `lost` that of each incomplete reply. `wait`
        returns when the provider can be called; waiting costs nothing.
        """
        super().__init__(model)
        self.limit = limit
        self._account = account or Tally()
        self._price, self._spend, self._lost = price, spend, lost
        self._wait = wait
        if limit.usd is not None and price() is None:
            raise BadInput(
                "`budget.usd` cannot be checked, because the price of"
                f" {model.name} is unknown",
                hint="Set `budget.tokens` instead.",
                refusal=Refusal.UNKNOWN_PRICE,
            )

    @property
    def spent(self) -> Cost:
        return self._account.spent

    async def reply(self, request: Request, on_event: OnEvent) -> Done:
        call = _Call(request, await asyncio.to_thread(self._price))

        def check_room(spent: Cost) -> None:
            reason = "the next call could take {}, so it was not made"
            self.limit.check(spent, call.worst.cost, reason)

        async with self._account.reserve(call.worst, check_room) as spent_cost:

            def measure(event: ModelEvent) -> None:
                call.measure(event)
                if call.estimate.completion_tokens > CEILING:
                    reason = "a reply reached {} and was stopped"
                    self.limit.check(spent_cost(), call.estimate.cost, reason)
                on_event(event)

            # within the budget: another run may have to wait for room
            await self._wait(on_event)
            return await self._ask(call, measure)

    async def _ask(self, call: "_Call", on_event: OnEvent) -> Done:
        reported: Usage | None = None
        is_lost = True
        try:
            done = await self.inner.reply(call.request, on_event)
            reported, is_lost = done.usage, False
        except EmptyReply as error:
            reported = error.usage
            raise
        except ModelError:
            # a call that was refused before its reply began costs nothing
            if not call.reply_bytes:
                is_lost = False
            raise
        finally:
            if is_lost:
                self._lost(self._count(call, reported))
        return replace(done, usage=self._count(call, reported))

    def _count(self, call: "_Call", reported: Usage | None) -> Usage:
        usage = call.usage_of(reported)
        self._account.add(usage)
        self._spend(usage)
        return usage


class _Call(Struct):
    """A running call, with an estimate of its usage so far."""

    request: Request
    price: Price | None
    prompt_tokens: int = 0
    """An estimate."""
    reply_bytes: int = 0

    def __post_init__(self) -> None:
        self.prompt_tokens = estimate_prompt(self.request)

    def measure(self, event: ModelEvent) -> None:
        match event:
            case TextDelta(text=text) | ThoughtDelta(text=text):
                self.reply_bytes += text_bytes(text)
            case ToolCall(name=name, arguments=arguments):
                self.reply_bytes += text_bytes(name) + text_bytes(arguments)
            case _:
                pass

    @property
    def estimate(self) -> Usage:
        completion = tokens_of(self.reply_bytes)
        return self._with_price(Usage(self.prompt_tokens, completion, estimated=True))

    @property
    def worst(self) -> Usage:
        usage = Usage(self.prompt_tokens, CEILING, estimated=True)
        if self.price is None:
            return usage
        return replace(usage, usd=self.price.highest_cost_of(usage))

    def usage_of(self, reported: Usage | None) -> Usage:
        if reported is None:
            return self.estimate
        usage = believable_usage(reported, self.estimate, self.request)
        return self._with_price(usage)

    def _with_price(self, usage: Usage) -> Usage:
        if self.price is None:
            return usage
        usd, saved = believable_usd(usage, self.price), None
        if usage.cached_tokens or usage.cache_write_tokens:
            saved = self.price.saved_by_cache(usage)
        return replace(usage, usd=usd, saved_usd=saved)
