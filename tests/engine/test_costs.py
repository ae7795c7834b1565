"""Money and tokens of each step, in the state: of all attempts, whatever came of them
or stopped them.
"""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from cdd_agent.commands.registry import handle
from cdd_agent.commands.ticket_commands import status
from cdd_agent.cost import Cost
from cdd_agent.engine.logged_run import LoggedRun
from cdd_agent.events.dialogue_events import ReplyDelta, ReplyStarted
from cdd_agent.events.step_summary import StepFinished
from cdd_agent.events.stream import beside_the_turn
from cdd_agent.events.ticket_events import PlanOpened
from cdd_agent.llm.port import ConnectionFailed, Done, OnEvent, Price, Request
from cdd_agent.llm.scripted import ScriptedModel
from cdd_agent.llm.scripted_reply import ScriptedReply
from tests.support.listening import collect, stop_at
from tests.support.projects import SLUG, Sandbox, Step, check, run_all, says
from tests.support.tables import each_row

TWO = Step("a.txt", check("a.txt")), Step("b.txt", check("b.txt"), "Step 1")
GOOD = says("a.txt", "good"), says("b.txt", "good")
PRICE = Price(0.001, 0.002)


class Priced(ScriptedModel):
    @property
    def price(self) -> Price:
        return PRICE


@pytest.fixture
def two(sandbox: Sandbox) -> Sandbox:
    """Steps whose model has a price."""
    sandbox.write(*TWO)
    sandbox.model = Priced(GOOD)
    return sandbox


def spent(sandbox: Sandbox) -> list[Cost]:
    """By the state, in the order of the steps."""
    return [
        Cost(**step["spent"]) for step in sandbox.state()["step_executions"].values()
    ]


def by_the_log(sandbox: Sandbox) -> list[Cost]:
    engine = sandbox.engine()
    efforts = LoggedRun.read(engine.run.record.log).efforts
    engine.close()
    return [efforts[number].cost if number in efforts else Cost() for number in (1, 2)]


async def test_each_step_has_the_money_of_all_its_attempts(two: Sandbox) -> None:
    two.model = Priced([says("a.txt", "bad"), *GOOD])
    events = await run_all(two, attempts=2)
    first, second = spent(two)
    assert first.tokens > second.tokens > 0
    assert first.usd is not None
    assert second.usd is not None
    assert first.usd > second.usd > 0
    assert [event.cost for event in events if isinstance(event, StepFinished)] == [
        first,
        second,
    ]
    assert spent(two) == pytest.approx(by_the_log(two))


async def test_a_model_without_a_price_leaves_tokens(sandbox: Sandbox) -> None:
    sandbox.write(*TWO).replies(*GOOD)
    await run_all(sandbox)
    assert [bool(cost.tokens) and not cost.usd for cost in spent(sandbox)] == [
        True,
        True,
    ]


async def test_a_call_that_brought_no_whole_reply_was_paid_too(two: Sandbox) -> None:
    two.model = Priced([ScriptedReply(GOOD[0], cut=20), *GOOD])
    await run_all(two)
    assert spent(two)[0].estimated
    assert spent(two) == by_the_log(two)


async def test_a_stopped_call_counts_and_what_was_undone_stays_paid(
    two: Sandbox,
) -> None:
    two.model = Priced([ScriptedReply(GOOD[0] * 20), *GOOD])
    engine = two.engine()
    await stop_at(engine.run_all(), lambda event: isinstance(event, ReplyDelta))
    stopped = spent(two)[0]
    assert stopped.tokens
    await collect(engine.run_all())
    whole = spent(two)
    assert whole[0].tokens > stopped.tokens
    await collect(engine.undo(1))
    assert spent(two) == whole
    await collect(engine.redo())
    assert spent(two) == whole
    engine.close()


@each_row(
    "change",
    [
        lambda state: [step.pop("spent") for step in state["step_executions"].values()],
        lambda state: state["step_executions"]["2"].update(
            status="in_progress", spent={"tokens": 1}
        ),
    ],
    ids=["an older file", "a killed process"],
)
async def test_a_state_that_does_not_say_it_is_completed_by_the_log(
    two: Sandbox, change: Callable[[Any], Any]
) -> None:
    await run_all(two)
    before, state = spent(two), two.state()
    change(state)
    (two.ticket / "execution-state.json").write_text(json.dumps(state))
    engine = two.engine()
    assert [step.cost for step in engine.run.opened().steps] == before
    await collect(engine.recover())
    engine.close()


async def test_a_look_while_the_model_is_asked_counts_no_call_twice(
    two: Sandbox,
) -> None:
    asked, may_answer = asyncio.Event(), asyncio.Event()

    class Waits(Priced):
        async def reply(self, request: Request, on_event: OnEvent) -> Done:
            asked.set()
            await may_answer.wait()
            return await super().reply(request, on_event)

    two.model = Waits(GOOD)
    session = two.session()
    await handle(session, f"/exec {SLUG}")
    turn = asyncio.ensure_future(handle(session, "continue"))
    await asked.wait()
    with beside_the_turn():
        await handle(session, "/status")
    may_answer.set()
    await turn
    session.leave()
    assert spent(two) == by_the_log(two)


async def test_a_question_is_paid_for_the_step_that_it_is_asked_at(
    two: Sandbox,
) -> None:
    two.model = Priced([GOOD[0], "Because.", GOOD[1]])
    session = two.session()
    await collect(handle(session, f"/exec {SLUG}"))
    await collect(handle(session, "continue"))
    assert spent(two)[1] == Cost()
    await collect(handle(session, "why?"))
    assert spent(two)[1].tokens
    session.leave()


async def test_a_step_that_is_no_longer_in_the_plan_is_in_the_total(
    two: Sandbox,
) -> None:
    await run_all(two)
    whole = sum(spent(two), Cost())
    two.write(TWO[0])
    (event,) = await collect(status(two.session(), SLUG))
    assert isinstance(event, PlanOpened)
    assert event.former_cost.tokens
    assert event.cost == whole


async def test_a_model_that_refuses_costs_nothing(two: Sandbox) -> None:
    two.model = Priced([ConnectionFailed("no")] * 9)
    events = await run_all(two)
    assert any(isinstance(event, ReplyStarted) for event in events)
    assert spent(two) == [Cost(), Cost()]
