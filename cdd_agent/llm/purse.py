"""The budget that several runs share."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import Struct, field

from cdd_agent.cost import Cost
from cdd_agent.llm.budget import Account, Limit, Tally
from cdd_agent.llm.port import Usage
from cdd_agent.llm.shared_waits import SharedWaits


class Purse(Struct, frozen=True):
    """The shared budget of several runs, in the process that coordinates them."""

    limit: Limit = Limit()
    tally: Tally = field(default_factory=Tally)

    @asynccontextmanager
    async def reserve(self, worst: Usage) -> AsyncIterator[Callable[[], Limit]]:
        """Reserve a call's maximum while it runs. Waits for other calls if it fits
        without them. Raises `BudgetExhausted` if the call does not fit.

        Yields a function that returns the limit for this call and later ones.
        """

        def check_room(spent: Cost) -> None:
            self.limit.check(spent, worst.cost, "the next call could take {}")

        async with self.tally.reserve(worst, check_room) as spent_cost:
            yield lambda: self.limit.without(spent_cost())

    @property
    def rest(self) -> Limit:
        """The remaining budget. Running calls do not count yet."""
        return self.limit.without(self.tally.spent)


class SharedCalls(Struct, frozen=True):
    """The limits that the model calls of several runs share."""

    limit: Limit
    account: Callable[[Cost], Account]
    """Opens an account for a run with an earlier cost."""
    waits: Path
    """The file with the waits that providers ask for."""

    def waits_for(self, provider: str) -> SharedWaits:
        return SharedWaits(self.waits, provider)
