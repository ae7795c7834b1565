"""One budget and one provider for several processes: they meet in files."""

import asyncio
from pathlib import Path

import pytest

from cdd_agent.errors import BudgetExhausted
from cdd_agent.llm.budget import CEILING, Budgeted, Limit, Spent
from cdd_agent.llm.port import (
    Done,
    Hear,
    Message,
    Model,
    RateLimited,
    Request,
    Usage,
    Waiting,
)
from cdd_agent.llm.retrying import Retrying
from cdd_agent.llm.scripted import ScriptedModel
from cdd_agent.llm.shared import Shared
from cdd_agent.llm.wrapper import ModelWrapper
from cdd_agent.threads import in_thread
from tests.support.projects import FakeTime
from tests.support.replies import all_of
from tests.support.tables import each_row

REQUEST = Request((Message("user", "Say hello."),))


class Counting(ModelWrapper):
    """Takes 100 tokens for each reply, when it is let go on."""

    def __init__(self) -> None:
        super().__init__(ScriptedModel(["x"] * 20))
        self.go_on = asyncio.Event()
        self.go_on.set()
        self.asked = 0

    async def reply(self, request: Request, hear: Hear) -> Done:
        self.asked += 1
        await self.go_on.wait()
        return Done(usage=Usage(90, 10))


def run(folder: Path, name: str, model: Model, spent: Spent | None = None) -> Budgeted:
    shared = Shared(folder, name)
    return Budgeted(model, shared.limit, account=shared.account(spent or Spent()))


async def test_a_budget_used_by_one_process_is_missing_for_the_others(
    tmp_path: Path,
) -> None:
    Shared.begin(tmp_path, Limit(tokens=CEILING + 300), {"a": Spent(100)})
    a, b = run(tmp_path, "a", Counting(), Spent(100)), run(tmp_path, "b", Counting())
    await all_of(b, REQUEST)
    await all_of(a, REQUEST)
    with pytest.raises(BudgetExhausted, match="300 of"):
        await all_of(b, REQUEST)
    assert a.spent == b.spent == Spent(300)
    assert [Shared(tmp_path, name).settle() for name in ("a", "b", "b")] == [
        False,
        True,
        False,
    ]


async def test_a_call_that_fits_only_alone_waits_for_the_other_calls(
    tmp_path: Path,
) -> None:
    Shared.begin(tmp_path, Limit(tokens=CEILING + 1_000), {})
    first, second = Counting(), Counting()
    first.go_on.clear()
    a, b = run(tmp_path, "a", first), run(tmp_path, "b", second)
    calls = [asyncio.ensure_future(all_of(model, REQUEST)) for model in (a, b)]
    while not first.asked:
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert second.asked == 0
    first.go_on.set()
    await asyncio.gather(*calls)
    assert a.spent == Spent(200)


async def test_the_budget_of_a_killed_process_is_released(
    tmp_path: Path,
) -> None:
    Shared.begin(tmp_path, Limit(tokens=CEILING + 1_000), {})
    first, second = Counting(), Counting()
    first.go_on.clear()
    a, b = run(tmp_path, "a", first), run(tmp_path, "b", second)
    killed = asyncio.ensure_future(all_of(a, REQUEST))
    while not first.asked:
        await asyncio.sleep(0)
    Shared(tmp_path, "a").settle()
    await all_of(b, REQUEST)
    assert second.asked == 1
    killed.cancel()


def patient(folder: Path, provider: str, model: Model, time: FakeTime) -> Retrying:
    return Retrying(model, time.clock, Shared(folder, "any").waits(provider))


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
    shared = Shared(tmp_path, "any").waits("openai")
    shared.extend(time.clock.now().timestamp() + 600, "Slow down.")
    shared.extend(time.clock.now().timestamp() + 5, "An older word.")
    with pytest.raises(RateLimited, match=r"Slow down\."):
        await all_of(Retrying(script, time.clock, shared), REQUEST)
    assert script.requests == []


@each_row("name", ["budget", "waits"])
async def test_a_run_may_have_the_name_of_a_shared_file(
    name: str, tmp_path: Path
) -> None:
    Shared.begin(tmp_path, Limit(tokens=CEILING + 300), {})
    shared = Shared(tmp_path, name)
    shared.hold()
    async with asyncio.timeout(60):
        await in_thread(lambda: shared.account(Spent(100)), name="account")
        await in_thread(lambda: shared.waits("openai").extend(0.0, ""), name="waits")
    assert shared.its_account.spent == Spent(100)
