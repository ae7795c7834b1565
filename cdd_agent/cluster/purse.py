"""The worker's part of a budget that all runs of a cluster have together: the client is
asked before each call.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from msgspec import Struct, field

from cdd_agent.cluster.cache import cache_folder
from cdd_agent.cluster.words import Ask, ClientGone
from cdd_agent.cost import Cost
from cdd_agent.errors import BudgetExhausted
from cdd_agent.llm.budget import Account, Limit, Tally
from cdd_agent.llm.port import Usage
from cdd_agent.llm.purse import SharedCalls

_LOOK = 1.0
"""Seconds between two requests for room for a call."""


class ClientsAccount(Struct):
    """The share of this run in a budget that the client keeps."""

    attempt: int
    ask: Ask
    spent: Cost = field(default_factory=Cost)
    """By all runs, when the client was asked last."""
    refused: bool = False
    """True if the last call was not made because the budget is used up."""
    _took: Usage | None = None

    def add(self, usage: Usage) -> None:
        self.spent += usage.cost
        self._took = usage

    @asynccontextmanager
    async def reserve(
        self, worst: Usage, expect: Callable[[Cost], None]
    ) -> AsyncIterator[Callable[[], Cost]]:
        """Reserve as an account on this machine does. The client receives the cost
        after the call.
        """
        question = {
            "kind": "hold",
            "attempt": self.attempt,
            "tokens": worst.prompt_tokens + worst.completion_tokens,
            "usd": worst.usd or 0.0,
        }
        # the worker cannot know when there is room
        while (answer := await self.ask(question))["verdict"] == "wait":  # noqa: ASYNC110
            await asyncio.sleep(_LOOK)
        self.spent = Cost(
            int(answer["tokens"]), float(answer["usd"]), bool(answer["estimated"])
        )
        self.refused = answer["verdict"] == "no"
        if self.refused:
            expect(self.spent)
            raise BudgetExhausted(
                "The budget of all runs is too small for the next call, so it was not"
                " made"
            )
        self._took = None
        try:
            yield lambda: self.spent
        finally:
            took = self._took or Usage(0, 0)
            with suppress(ClientGone):  # the work ends for that, and the reply is lost
                await self.ask(
                    {
                        "kind": "took",
                        "attempt": self.attempt,
                        "tokens": took.prompt_tokens + took.completion_tokens,
                        "usd": took.usd or 0.0,
                        "estimated": took.estimated,
                    }
                )


def calls_shared_by_client(limit: Limit, account: ClientsAccount) -> SharedCalls:
    """Return what the calls of a run share with the client's other runs, and with
    those on this machine. Raises `BadInput` when the disk refuses.
    """
    folder = cache_folder() / "shared"
    folder.mkdir(parents=True, exist_ok=True)

    def open_account(spent: Cost) -> Account:
        # the client knows what was spent; without a budget it is not asked
        return Tally(spent) if limit == Limit() else account

    return SharedCalls(limit, open_account, folder / "waits.json")
