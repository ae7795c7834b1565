"""A budget: what calls took is counted, and no call begins that could pass what is left."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace

from cdd_agent.errors import BadInput, BudgetExhausted
from cdd_agent.llm.around import Around
from cdd_agent.llm.port import Done, EmptyReply, Model, ModelError, ModelEvent, Request, TextDelta, ToolCall, Usage
from cdd_agent.llm.prices import Price

CEILING = 8_192
"""Tokens that a reply is taken to have at most, before it comes. What models could write (often 64,000) would stop a
run with most of its budget left; so a reply that grows past the budget all the same is stopped on the way."""


@dataclass(frozen=True)
class Spent:
    """What calls took together. `usd` is that of the calls whose price is known."""

    tokens: int = 0
    usd: float = 0.0
    estimated: bool = False

    def __add__(self, usage: Usage) -> "Spent":
        return Spent(
            self.tokens + usage.prompt_tokens + usage.completion_tokens,
            self.usd + (usage.usd or 0.0),
            self.estimated or usage.estimated,
        )

    def in_words(self) -> str:
        """With a `~` where some of it is estimated; the money only where a price is known."""
        about = "~" if self.estimated else ""
        return f"{about}{self.tokens:,} tokens" + (f", {about}${self.usd:.4f}" if self.usd else "")


@dataclass
class Tally:
    """What calls took so far, for whoever wants to know while they go on."""

    spent: Spent = Spent()

    def add(self, usage: Usage) -> None:
        self.spent += usage


@dataclass(frozen=True)
class Limit:
    """What a run may take; None: as much as it likes."""

    tokens: int | None = None
    usd: float | None = None


def _ignore(usage: Usage) -> None:
    del usage


class Budgeted(Around):
    """Counts what each call takes, also one that came to nothing; `BudgetExhausted` before the limit is passed.

    Where the provider does not count, tokens are estimated, rather too many than too few, and marked so. `spend` is
    told of every call, `lost` of those whose reply did not come whole; a call that was refused took nothing.
    """

    def __init__(
        self,
        model: Model,
        limit: Limit,
        *,
        spent: Spent | None = None,
        price: Callable[[], Price | None] = lambda: None,
        spend: Callable[[Usage], None] = _ignore,
        lost: Callable[[Usage], None] = _ignore,
    ) -> None:
        """`spent` is what was taken before. Raises `BadInput` for a limit in dollars where no price is known."""
        super().__init__(model)
        self.limit = limit
        self.spent = spent or Spent()
        self._price, self._spend, self._lost = price, spend, lost
        if limit.usd is not None and price() is None:
            raise BadInput(
                f"`budget.usd` cannot be kept to: the price of {model.name} is not known",
                hint="Set `budget.tokens` instead.",
            )

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        price = await asyncio.to_thread(self._price)
        so_far = Usage(estimated_prompt(request), 0, estimated=True)
        self._expect_within(_priced(replace(so_far, completion_tokens=CEILING), price))
        written, is_owed = 0, True
        try:
            async with aclosing(self.inner.stream(request)) as events:
                async for event in events:
                    match event:
                        case TextDelta(text=text):
                            written += _weight(text)
                        case ToolCall(name=name, arguments=arguments):
                            written += _weight(name) + _weight(arguments)
                        case Done(usage=counted):
                            whole = _priced(counted or replace(so_far, completion_tokens=_tokens(written)), price)
                            is_owed = False
                            self._count(whole)
                            yield replace(event, usage=whole)
                            continue
                        case _:
                            pass
                    so_far = replace(so_far, completion_tokens=_tokens(written))
                    if so_far.completion_tokens > CEILING:
                        self._expect_within(_priced(so_far, price))
                    yield event
        except ModelError as error:
            is_owed = written > 0
            if isinstance(error, EmptyReply):
                is_owed, so_far = True, error.usage or so_far
            raise
        finally:
            if is_owed:
                self._count(_priced(so_far, price))
                self._lost(_priced(so_far, price))

    def _count(self, usage: Usage) -> None:
        self.spent += usage
        self._spend(usage)

    def _expect_within(self, call: Usage) -> None:
        """Raises `BudgetExhausted` where a call like this one could pass the limit."""
        then, about = self.spent + call, "~" if self.spent.estimated else ""
        if self.limit.tokens is not None and then.tokens > self.limit.tokens:
            used = f"{about}{self.spent.tokens:,} of {self.limit.tokens:,} tokens"
            raise _exhausted("tokens", used, f"~{then.tokens - self.spent.tokens:,} tokens")
        if self.limit.usd is not None and then.usd > self.limit.usd:
            used = f"{about}${self.spent.usd:.4f} of ${self.limit.usd:.2f}"
            raise _exhausted("usd", used, f"~${then.usd - self.spent.usd:.4f}")


def estimated_prompt(request: Request) -> int:
    """How many tokens a request has at most, as a rule."""
    texts = [message.content for message in request.messages]
    texts += [call.name + call.arguments for message in request.messages for call in message.tool_calls]
    texts += [tool.name + tool.description + json.dumps(dict(tool.parameters)) for tool in request.tools]
    return _tokens(sum(map(_weight, texts))) + 4 * len(request.messages)


def _weight(text: str) -> int:
    return len(text.encode(errors="replace"))


def _tokens(weight: int) -> int:
    """A token is hardly ever less than three bytes: of English and code about four, of Chinese one character."""
    return -(-weight // 3)


def _priced(usage: Usage, price: Price | None) -> Usage:
    return replace(usage, usd=price.of(usage)) if price is not None else usage


def _exhausted(key: str, used: str, next_call: str) -> BudgetExhausted:
    return BudgetExhausted(
        f"The run has used {used} of its budget, and the next call could take {next_call}; it was not made",
        hint=f"What was done is saved. Raise `budget.{key}` in .cdd/config.yaml to go on.",
    )
