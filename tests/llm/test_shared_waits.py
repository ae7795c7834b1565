"""The waits that providers ask for hold for all processes: they meet in a file."""

import asyncio
from functools import partial
from pathlib import Path

import pytest

from cdd_agent.llm.budget import Budgeted, Limit, Tally
from cdd_agent.llm.port import Message, Model, RateLimited, Request, Waiting
from cdd_agent.llm.retrying import Retrying, wait_for_provider
from cdd_agent.llm.scripted import ScriptedModel
from cdd_agent.llm.shared_waits import SharedWaits
from tests.support.projects import FakeTime
from tests.support.replies import all_of

REQUEST = Request((Message("user", "Say hello."),))


def patient(folder: Path, provider: str, model: Model, time: FakeTime) -> Retrying:
    waits = SharedWaits(folder / "waits.json", provider)
    wait = partial(wait_for_provider, waits, time.clock)
    return Retrying(Budgeted(model, Limit(), wait=wait), time.clock, waits)


async def test_a_wait_that_a_provider_demands_holds_for_all_processes(
    tmp_path: Path,
) -> None:
    time = FakeTime()
    a = patient(
        tmp_path,
        "openai",
        ScriptedModel([RateLimited("Slow down.", retry_after=30.0), "hello"]),
        time,
    )
    b = patient(tmp_path, "openai", ScriptedModel(["hello"]), time)
    other = patient(tmp_path, "anthropic", ScriptedModel(["hello"]), time)

    def hear_of_the_wait(event: object) -> None:
        if isinstance(event, Waiting) and not calls:
            calls.extend(
                asyncio.ensure_future(all_of(model, REQUEST)) for model in (b, other)
            )

    calls: list[asyncio.Future[list[object]]] = []
    await a.reply(REQUEST, hear_of_the_wait)
    told, untold = await asyncio.gather(*calls)
    assert any(
        isinstance(event, Waiting) and event.reason == "Slow down." for event in told
    )
    assert not any(isinstance(event, Waiting) for event in untold)
    assert time.waited >= 30.0


async def test_a_wait_that_is_too_long_is_an_error_without_a_call(
    tmp_path: Path,
) -> None:
    time, script = FakeTime(), ScriptedModel(["hello"])
    waits = SharedWaits(tmp_path / "waits.json", "openai")
    waits.extend(time.clock.now().timestamp() + 600, "Slow down.")
    waits.extend(time.clock.now().timestamp() + 5, "An older word.")
    wait = partial(wait_for_provider, waits, time.clock)
    with pytest.raises(RateLimited, match=r"Slow down\."):
        await all_of(Budgeted(script, Limit(), wait=wait), REQUEST)
    assert script.requests == []


async def test_a_wait_that_is_cancelled_costs_nothing(tmp_path: Path) -> None:
    time, script, tally = FakeTime(), ScriptedModel(["hello"]), Tally()
    waits = SharedWaits(tmp_path / "waits.json", "openai")
    waits.extend(time.clock.now().timestamp() + 30, "Slow down.")
    wait, lost = partial(wait_for_provider, waits, time.clock), list[object]()
    model = Budgeted(
        script, Limit(tokens=100_000), account=tally, lost=lost.append, wait=wait
    )

    def cancel(event: object) -> None:
        if isinstance(event, Waiting):
            call.cancel()

    call = asyncio.ensure_future(model.reply(REQUEST, cancel))
    with pytest.raises(asyncio.CancelledError):
        await call
    assert tally.spent.tokens == 0
    assert lost == []
