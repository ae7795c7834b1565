"""A run meets every fault of a provider once: it ends as it should, nothing is skipped,
and nothing is done twice.
"""

import json
from collections import Counter
from typing import Any

import pytest

from cdd_agent.commands.registry import handle
from cdd_agent.engine.engine import Engine
from cdd_agent.errors import BudgetExhausted, CddError, ExitCode
from cdd_agent.events.dialogue_events import ModelReplaced, ReplyDelayed, ReplyRestarted
from cdd_agent.events.step_summary import StepFinished
from cdd_agent.events.stream import Event
from cdd_agent.llm.litellm_adapter import LitellmModel
from cdd_agent.llm.port import (
    AuthenticationFailed,
    BadAnswer,
    ConnectionFailed,
    ContextTooLong,
    ModelError,
    QuotaUsedUp,
    RateLimited,
    StopReason,
)
from cdd_agent.llm.scripted_reply import ScriptedReply
from cdd_agent.tickets.status import StepStatus
from cdd_agent.wiring.runs import prepare_model
from tests.engine.tool_steps import calls, read
from tests.llm.server import Answer, LoopbackServer, directly, failure
from tests.support.listening import collect, stop_at
from tests.support.projects import SLUG, Sandbox, Step, check, says
from tests.support.tables import each_row

WHY = "No money is left."

STEPS = 10
REPLIES = [says(f"{number}.txt", f"this is {number}") for number in range(1, STEPS + 1)]
Fault = str | ModelError | ScriptedReply


@pytest.fixture
def ten(sandbox: Sandbox) -> Sandbox:
    return sandbox.write(
        *(Step(f"{number}.txt", "none") for number in range(1, STEPS + 1))
    )


async def run(
    sandbox: Sandbox, attempts: int = 1
) -> tuple[list[Event], CddError | None]:
    """As a process would: what is told, and what ended it."""
    engine = sandbox.engine()
    with engine.recording():
        told = await collect(engine.run_all(attempts=attempts))
    engine.close()
    return told, engine.stopped_by


def expect_all_done_once(sandbox: Sandbox, told: list[Event]) -> None:
    assert sandbox.statuses() == ["completed"] * STEPS
    for number in range(1, STEPS + 1):
        assert sandbox.text(f"{number}.txt") == f"this is {number}\n"
    done = [
        event.step
        for event in told
        if isinstance(event, StepFinished) and event.status is StepStatus.COMPLETED
    ]
    assert done == list(range(1, STEPS + 1))


def report(sandbox: Sandbox) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        (sandbox.root / ".cdd/runs" / SLUG / "report.json").read_text()
    )
    return found


FAULTS: dict[int, Fault] = {
    1: RateLimited("429", retry_after=20),
    2: RateLimited("429"),
    3: RateLimited("503"),
    4: ScriptedReply(REPLIES[3], cut=25),
    5: "",
    6: ConnectionFailed("refused"),
    7: BadAnswer("500"),
    8: ScriptedReply(REPLIES[7], slow=0.05),
    9: ScriptedReply(REPLIES[8], stop=StopReason.LENGTH),
}
"""Before which step's good reply which fault comes; the slow reply is itself a good
one.
"""


async def test_one_run_meets_every_fault_that_mends(ten: Sandbox) -> None:
    script: list[Fault] = []
    for number, good in enumerate(REPLIES, 1):
        script += [FAULTS[number]] if number in FAULTS else []
        script += [good] if number != 8 else []
    told, stopped_by = await run(ten.replies(*script), attempts=2)

    assert stopped_by is None
    expect_all_done_once(ten, told)
    # one wasted call for each, none for being slow
    assert len(ten.model.requests) == STEPS + len(FAULTS) - 1
    assert 20 < ten.time.waited < 35
    assert [event.step for event in told if isinstance(event, ReplyRestarted)] == [4]
    assert {event.step for event in told if isinstance(event, ReplyDelayed)} == {
        1,
        2,
        3,
        4,
        5,
        6,
        7,
    }
    assert [step["attempts"] for step in report(ten)["steps"]] == [1] * 8 + [2, 1]
    # Ten replies, one more that was too long, and what was lost: the cut one, and the
    # empty one.
    assert (report(ten)["model_calls"], report(ten)["calls_estimated"]) == (
        STEPS + 3,
        1,
    )


async def test_the_same_over_a_real_connection(ten: Sandbox) -> None:
    faults = {
        1: failure(429, "Slow down", headers={"retry-after": "1"}),
        2: failure(503, "Overloaded"),
        3: Answer(REPLIES[2], cut_after=2),
        4: Answer(""),
        5: failure(500, "Oops"),
    }
    script = [
        entry
        for number, good in enumerate(REPLIES, 1)
        for entry in (faults.get(number), good)
        if entry
    ]
    with LoopbackServer(script) as server:
        ten.real_model = directly(server.url)
        told, stopped_by = await run(ten)
        calls = Counter(
            recorded.request.messages[-1].content for recorded in server.requests
        )

    assert stopped_by is None
    expect_all_done_once(ten, told)
    assert sorted(calls.values()) == [1] * 5 + [2] * 5


# --- Faults that end a run ------------------------------------------------------------


async def carried_out(sandbox: Sandbox, attempts: int = 3) -> Engine:
    """The engine after the plan was carried out as by `cdd exec`."""
    engine = sandbox.engine()
    prepare_model(engine)
    try:
        with engine.recording():
            await engine.carry_out(attempts=attempts)
    finally:
        engine.close()
    return engine


@each_row(
    ("fault", "code", "status"),
    [
        (
            RateLimited("Quota used up.", retry_after=3600),
            ExitCode.COME_BACK_LATER,
            "pending",
        ),
        (AuthenticationFailed("The key was refused."), ExitCode.BAD_INPUT, "pending"),
        (ContextTooLong("Too long."), ExitCode.FAILED, "pending"),
        (ScriptedReply("I cannot", stop=StopReason.REFUSED), ExitCode.FAILED, "failed"),
        (ScriptedReply(REPLIES[4], stop=StopReason.LENGTH), ExitCode.FAILED, "failed"),
    ],
    ids=["a long 429", "401", "context too long", "content refused", "length"],
)
async def test_a_fault_that_ends_a_run_costs_one_call_and_the_next_run_goes_on(
    ten: Sandbox, fault: ModelError | ScriptedReply, code: ExitCode, status: str
) -> None:
    ten.replies(*REPLIES[:4], fault)

    assert (await carried_out(ten, attempts=1)).exit_code is code
    assert ten.statuses() == ["completed"] * 4 + [status] + ["pending"] * 5
    assert len(ten.model.requests) == 5
    assert not (ten.root / "5.txt").exists()

    ten.replies(*REPLIES[4:])
    assert (await carried_out(ten)).exit_code is ExitCode.DONE
    assert ten.statuses() == ["completed"] * STEPS
    assert len(ten.model.requests) == 6
    assert ten.text("10.txt") == "this is 10\n"


async def test_a_budget_ends_a_run_before_the_call_and_no_later_run_passes_it(
    ten: Sandbox,
) -> None:
    limit = 10_000
    ten.flags = {"budget": {"tokens": limit}}
    ten.replies(*REPLIES)

    stopped = (await carried_out(ten)).stopped_by
    assert isinstance(stopped, BudgetExhausted)
    calls = len(ten.model.requests)
    assert 0 < calls < STEPS
    assert ten.statuses() == ["completed"] * calls + ["pending"] * (STEPS - calls)
    assert f"{limit:,} tokens" in stopped.message
    assert "`budget.tokens`" in stopped.hint

    ten.replies(*REPLIES[calls:])
    assert (await carried_out(ten)).exit_code is ExitCode.NOT_APPROVED
    assert ten.model.requests == []
    assert report(ten)["prompt_tokens"] + report(ten)["completion_tokens"] <= limit

    ten.flags = {}
    assert (await carried_out(ten)).exit_code is ExitCode.DONE
    assert len(ten.model.requests) == STEPS - calls
    assert ten.statuses() == ["completed"] * STEPS


async def test_a_budget_in_dollars_is_refused_where_no_price_is_known(
    ten: Sandbox,
) -> None:
    ten.flags = {"budget": {"usd": 1.0}}
    ten.real_model = LitellmModel("openai/test-model", "http://127.0.0.1:9/v1")
    with pytest.raises(CddError, match=r"`budget.usd`"):
        await carried_out(ten)
    assert not (ten.ticket / "execution-state.json").exists()


async def test_a_server_that_is_not_there_ends_the_run_and_once_it_is_the_run_goes_on(
    ten: Sandbox,
) -> None:
    with LoopbackServer(REPLIES) as server:
        url = server.url
    ten.real_model = directly(url)
    _, stopped_by = await run(ten)
    assert isinstance(stopped_by, ConnectionFailed)
    assert ten.time.waited == 1 + 2
    assert ten.statuses() == ["pending"] * STEPS

    ten.real_model = None
    told, _ = await run(ten.replies(*REPLIES))
    expect_all_done_once(ten, told)


async def test_a_person_who_leaves_while_it_waits_ends_it_at_once(ten: Sandbox) -> None:
    engine = ten.replies(RateLimited("429", retry_after=100), *REPLIES).engine()
    await stop_at(engine.run_all(), lambda event: isinstance(event, ReplyDelayed))
    engine.close()
    assert ten.time.waited < 2
    assert len(ten.model.requests) == 1
    assert ten.statuses() == ["pending"] * STEPS


async def test_where_another_model_goes_on_with_a_step_the_log_and_the_report_say_so(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt", check("a.txt")))
    (sandbox.root / "other.yaml").write_text(
        f"replies: [{json.dumps({'reply': says('a.txt', 'good')})}]"
    )
    sandbox.replies(calls(read("missing.txt"), text="I look."), QuotaUsedUp(WHY))
    sandbox.model.name = "first"
    sandbox.flags = {"fallbacks": ["script:other.yaml"]}
    session = sandbox.session()
    await collect(session.engage("executor", sandbox.project.tickets.find(SLUG)))
    events = await collect(handle(session, "c"))
    session.leave()

    (told,) = [event for event in events if isinstance(event, ModelReplaced)]
    assert told == ModelReplaced(1, "scripted", "first", WHY)
    assert sandbox.statuses() == ["completed"]
    (log,) = sandbox.root.rglob("events.jsonl")
    assert [json.loads(line)["event"] for line in log.read_text().splitlines()].count(
        "model_replaced"
    ) == 1
    (report,) = sandbox.root.rglob("report.json")
    assert json.loads(report.read_text())["steps"][0]["models"] == ["first", "scripted"]
