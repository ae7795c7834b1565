"""One budget for several runs, in the process that coordinates them."""

import asyncio

import pytest

from cdd_agent.cost import Cost
from cdd_agent.errors import BudgetExhausted
from cdd_agent.llm.budget import Limit, Tally
from cdd_agent.llm.port import Usage
from cdd_agent.llm.purse import Purse
from tests.support.tables import each_row

CALL = Usage(90, 10, usd=1.0)


async def test_a_call_that_fits_only_alone_waits_for_the_others() -> None:
    purse = Purse(Limit(tokens=150))
    order = list[str]()

    async def call(name: str) -> None:
        async with purse.reserve(CALL):
            order.append(f"{name} begins")
            await asyncio.sleep(0)
            purse.tally.add(Usage(20, 0))
            order.append(f"{name} ends")

    await asyncio.gather(call("a"), call("b"))
    assert order == ["a begins", "a ends", "b begins", "b ends"]
    assert purse.rest == Limit(tokens=110)


async def test_a_call_whose_run_is_gone_holds_nothing() -> None:
    purse = Purse(Limit(tokens=150))

    async def call() -> None:
        async with purse.reserve(CALL):
            await asyncio.Event().wait()

    gone = asyncio.ensure_future(call())
    await asyncio.sleep(0)
    waiting = asyncio.ensure_future(call())
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone
    await asyncio.sleep(0)
    async with asyncio.timeout(60):
        while len(purse.tally.reserved) != 1:
            await asyncio.sleep(0)
    waiting.cancel()


@each_row(
    ("limit", "fits"),
    [
        (Limit(), True),
        (Limit(tokens=150), True),
        (Limit(tokens=149), False),
        (Limit(usd=1.5), True),
        (Limit(usd=1.4), False),
        (Limit(tokens=1_000, usd=1.4), False),
    ],
)
async def test_a_call_that_passes_the_limit_is_refused(
    limit: Limit, fits: bool
) -> None:
    purse = Purse(limit, Tally(Cost(50, 0.5)))
    try:
        async with purse.reserve(CALL) as left:
            assert left() == limit.without(Cost(50, 0.5))
        assert fits
    except BudgetExhausted:
        assert not fits
