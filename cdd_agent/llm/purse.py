"""The budget that several runs share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import Struct, field

from cdd_agent.cost import Cost
from cdd_agent.errors import BudgetExhausted
from cdd_agent.llm.budget import Account, Limit, Tally
from cdd_agent.llm.port import Usage
from cdd_agent.llm.shared_waits import SharedWaits


class Purse(Struct, frozen=True):
    """The one budget of several runs, in the process that coordinates them."""

    limit: Limit = Limit()
    tally: Tally = field(default_factory=Tally)

    @asynccontextmanager
    async def holding(self, worst: Usage) -> AsyncIterator[Callable[[], Limit]]:
        """Around a call that could take this. It begins only if it fits next to the
        calls under way, at their worst, and waits for their end if it would fit without
        them. Within, ask for what the call and later ones may take.

        Raises `BudgetExhausted` if it will not fit.
        """

        def expect_room(spent: Cost) -> None:
            if not self._has_room(spent + worst.cost):
                raise BudgetExhausted("The budget has no room for the call")

        async with self.tally.holding(worst, expect_room) as spent_by_now:
            yield lambda: self.limit.without(spent_by_now())

    @property
    def left(self) -> Limit:
        """What remains of the budget. Calls under way are not counted yet."""
        return self.limit.without(self.tally.spent)

    def _has_room(self, spent: Cost) -> bool:
        limit = self.limit
        if limit.tokens is not None and spent.tokens > limit.tokens:
            return False
        return limit.usd is None or (spent.usd or 0.0) <= limit.usd


class SharedCalls(Struct, frozen=True):
    """What the model calls of a run have in common with those of other runs."""

    limit: Limit
    """Of all runs."""
    account: Callable[[Cost], Account]
    """Opens the run's account, from what the run has spent before."""
    waits: Path
    """The file with the waits that providers ask for."""

    def waits_of(self, provider: str) -> SharedWaits:
        return SharedWaits(self.waits, provider)
