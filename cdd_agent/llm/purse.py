"""The budget that several runs share."""

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
    async def reserve(self, worst: Usage) -> AsyncIterator[Callable[[], Limit]]:
        """Reserve the most that a call can take, for the duration of the call. Waits
        for the end of other calls if it fits without them. The yielded function returns
        the limit for this call and later ones.

        Raises `BudgetExhausted` if the call does not fit.
        """

        def check_room(spent: Cost) -> None:
            total = spent + worst.cost
            if self._is_exceeded_by(total):
                raise BudgetExhausted("The budget has no room for the call")

        async with self.tally.reserve(worst, check_room) as spent_cost:
            yield lambda: self.limit.without(spent_cost())

    @property
    def rest(self) -> Limit:
        """The rest of the budget. Running calls are not counted yet."""
        return self.limit.without(self.tally.spent)

    def _is_exceeded_by(self, cost: Cost) -> bool:
        tokens, usd = self.limit.tokens, self.limit.usd
        if tokens is not None and cost.tokens > tokens:
            return True
        return usd is not None and (cost.usd or 0.0) > usd


class SharedCalls(Struct, frozen=True):
    """What the model calls of a run share with those of other runs."""

    limit: Limit
    """The limit of all runs."""
    account: Callable[[Cost], Account]
    """Opens the run's account, from what the run has spent before."""
    waits: Path
    """The file with the waits that providers ask for."""

    def waits_for(self, provider: str) -> SharedWaits:
        return SharedWaits(self.waits, provider)
