"""A budget: what calls took is counted, and no call begins that could pass what is
left.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.cost import NO_COST, Cost
from cdd_agent.errors import BadInput, BudgetExhausted
from cdd_agent.llm.port import (
    Done,
    EmptyReply,
    Hear,
    Model,
    ModelError,
    ModelEvent,
    Price,
    Request,
    TextDelta,
    ThoughtDelta,
    ToolCall,
    Usage,
)
from cdd_agent.llm.token_estimates import estimated_prompt, text_bytes, tokens_of
from cdd_agent.llm.usage_check import believable_usage, believable_usd
from cdd_agent.llm.wrapper import ModelWrapper

CEILING = 8_192
"""Tokens that a reply is taken to have at most, before it comes. What models could
write (often 64,000) would stop a run with most of its budget left; so a reply that
grows past the budget all the same is stopped on the way.
"""


class Tally(Struct):
    """A sum of what calls took so far, for whoever wants to know while they go on."""

    spent: Cost = NO_COST
    under_way: int = 0
    """Calls that run now, and are not counted yet."""
    held: list[Usage] = field(default_factory=list)
    """The most that calls may take which run now."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when such a call is over."""

    def add(self, usage: Usage) -> None:
        self.spent += usage.cost

    @asynccontextmanager
    async def holding(
        self, worst: Usage, expect: Callable[[Cost], None]
    ) -> AsyncIterator[Callable[[], Cost]]:
        expect(self.spent)
        while self.held and not _fits(self._with_held(self.held), expect):
            self.ended.clear()
            await self.ended.wait()
            expect(self.spent)
        self.held.append(worst)
        try:
            yield lambda: self._with_held(
                held for held in self.held if held is not worst
            )
        finally:
            self.held = [held for held in self.held if held is not worst]
            self.ended.set()

    def _with_held(self, held: Iterable[Usage]) -> Cost:
        spent = self.spent
        for usage in held:
            spent += usage.cost
        return spent


def _fits(spent: Cost, expect: Callable[[Cost], None]) -> bool:
    try:
        expect(spent)
    except BudgetExhausted:
        return False
    return True


class Account(Protocol):
    """What counts against a budget."""

    @property
    def spent(self) -> Cost: ...

    def add(self, usage: Usage) -> None: ...

    def holding(
        self, worst: Usage, expect: Callable[[Cost], None]
    ) -> AbstractAsyncContextManager[Callable[[], Cost]]:
        """Around a call that could take this: it begins only where it fits beside those
        that run, at their worst, and waits for their end where it would fit but for
        them. `expect` raises `BudgetExhausted` where it does not fit beside what is
        spent; then it is not made. Within, what is spent can be asked for, with those
        others.
        """
        ...


class ToldWhileItRuns(ModelWrapper):
    """Its calls are known to a tally from their beginning."""

    def __init__(self, model: Model, tally: Tally) -> None:
        super().__init__(model)
        self._tally = tally

    async def reply(self, request: Request, hear: Hear) -> Done:
        self._tally.under_way += 1
        try:
            return await self.inner.reply(request, hear)
        finally:
            self._tally.under_way -= 1


class Limit(Struct, frozen=True):
    """The most that a run may take; None: as much as it likes."""

    tokens: int | None = None
    usd: float | None = None

    def without(self, spent: Cost) -> "Limit":
        """What remains of it."""
        tokens, usd = self.tokens, self.usd
        return Limit(
            None if tokens is None else max(tokens - spent.tokens, 0),
            None if usd is None else max(usd - (spent.usd or 0.0), 0.0),
        )


def _ignore(usage: Usage) -> None:
    del usage


class Budgeted(ModelWrapper):
    """Counts what each call takes, also one that came to nothing; `BudgetExhausted`
    before the limit is passed.

    Where the provider does not count, tokens are estimated, rather too many than too
    few, and marked so. `spend` is told of every call, `lost` of those whose reply did
    not come whole; a call that was refused took nothing.
    """

    def __init__(
        self,
        model: Model,
        limit: Limit,
        *,
        account: Account | None = None,
        price: Callable[[], Price | None] = lambda: None,
        spend: Callable[[Usage], None] = _ignore,
        lost: Callable[[Usage], None] = _ignore,
    ) -> None:
        """`account` has what was taken before, and may be shared with other models.

        Raises `BadInput` for a limit in dollars where no price is known.
        """
        super().__init__(model)
        self.limit = limit
        self._account = account or Tally()
        self._price, self._spend, self._lost = price, spend, lost
        if limit.usd is not None and price() is None:
            raise BadInput(
                f"`budget.usd` cannot be kept to: the price of {model.name} is not"
                " known",
                hint="Set `budget.tokens` instead.",
            )

    @property
    def spent(self) -> Cost:
        return self._account.spent

    async def reply(self, request: Request, hear: Hear) -> Done:
        call = _Call(request, await asyncio.to_thread(self._price))
        why = "the next call could take {}; it was not made"
        expect = partial(self._expect_room_for, call=call.at_worst, why=why)
        async with self._account.holding(call.at_worst, expect) as spent_by_now:
            return await self._reply(call, request, hear, spent_by_now)

    async def _reply(
        self,
        call: "_Call",
        request: Request,
        hear: Hear,
        spent_by_now: Callable[[], Cost],
    ) -> Done:
        def measure(event: ModelEvent) -> None:
            call.hear(event)
            if call.usage.completion_tokens > CEILING:
                self._expect_room_for(
                    spent_by_now(),
                    call.usage,
                    "a reply has grown to {}; it was stopped",
                )
            hear(event)

        is_owed = True
        try:
            done = await self.inner.reply(request, measure)
            is_owed = False
        except EmptyReply as error:
            call.told = error.usage
            raise
        except ModelError:
            is_owed = call.written > 0
            raise
        finally:
            if is_owed:
                usage = call.counted(call.told)
                self._count(usage)
                self._lost(usage)
        usage = call.counted(done.usage)
        self._count(usage)
        return replace(done, usage=usage)

    def _count(self, usage: Usage) -> None:
        self._account.add(usage)
        self._spend(usage)

    def _expect_room_for(self, spent: Cost, call: Usage, why: str) -> None:
        """Raises `BudgetExhausted` where a call like this one, beside what is spent,
        passes the limit.
        """
        then, about = spent + call.cost, spent.about
        usd, usd_then = spent.usd or 0.0, then.usd or 0.0
        if self.limit.tokens is not None and then.tokens > self.limit.tokens:
            used = f"{about}{spent.tokens:,} of {self.limit.tokens:,} tokens"
            raise _exhausted(
                "tokens", used, why.format(f"~{then.tokens - spent.tokens:,} tokens")
            )
        if self.limit.usd is not None and usd_then > self.limit.usd:
            used = f"{about}${usd:.4f} of ${self.limit.usd:.2f}"
            raise _exhausted("usd", used, why.format(f"~${usd_then - usd:.4f}"))


class _Call(Struct):
    """One call, and what it has taken so far, by an estimate."""

    request: Request
    price: Price | None
    prompt: int = 0
    """Estimated tokens of the request."""
    written: int = 0
    """Bytes of the reply."""
    told: Usage | None = None
    """The provider's count for a call that came to nothing."""

    def __post_init__(self) -> None:
        self.prompt = estimated_prompt(self.request)

    def hear(self, event: ModelEvent) -> None:
        match event:
            case TextDelta(text=text) | ThoughtDelta(text=text):
                self.written += text_bytes(text)
            case ToolCall(name=name, arguments=arguments):
                self.written += text_bytes(name) + text_bytes(arguments)
            case _:
                pass

    @property
    def usage(self) -> Usage:
        return self._priced(Usage(self.prompt, tokens_of(self.written), estimated=True))

    @property
    def at_worst(self) -> Usage:
        usage = Usage(self.prompt, CEILING, estimated=True)
        return (
            usage
            if self.price is None
            else replace(usage, usd=self.price.at_most(usage))
        )

    def counted(self, usage: Usage | None) -> Usage:
        """The provider's count where it can be true, else the estimate."""
        if usage is None:
            return self.usage
        return self._priced(believable_usage(usage, self.usage, self.request))

    def _priced(self, usage: Usage) -> Usage:
        if self.price is None:
            return usage
        usd = believable_usd(usage, self.price)
        is_cached = usage.cached_tokens or usage.cache_write_tokens
        return replace(
            usage, usd=usd, saved_usd=self.price.saved(usage) if is_cached else None
        )


def _exhausted(key: str, used: str, why: str) -> BudgetExhausted:
    return BudgetExhausted(
        f"{used} of the budget are used, and {why}",
        hint=(
            f"What was done is saved. Raise `budget.{key}` in .cdd/config.yaml to"
            " go on."
        ),
    )
