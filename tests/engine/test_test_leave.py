"""Whether a step may remove tests that its plan does not name: the user is asked."""

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from cdd_agent.changes.review import Review
from cdd_agent.engine.attempt import Attempt
from cdd_agent.engine.test_leave import TestLeave
from cdd_agent.events.question_events import (
    Choice,
    LostTest,
    PersonAnswered,
    Proposal,
    TestLossProposed,
)
from cdd_agent.events.step_events import AttemptFailed, TestsFinished
from cdd_agent.events.step_summary import StepFinished
from cdd_agent.events.stream import Event, ignore_event
from cdd_agent.frontend import Decision, Nobody
from cdd_agent.process.work_clock import WorkClock
from cdd_agent.tickets.plan import PlanStep
from cdd_agent.tickets.status import StepStatus, Verification
from cdd_agent.wiring.root import Wiring
from tests.engine.calculator import (
    BROKEN,
    FIXED,
    SUB,
    TEST_SUB,
    TESTS,
    calculator,
    gives,
)
from tests.support.listening import collect, stop_at
from tests.support.projects import Sandbox, Step, run_all
from tests.support.tables import each_row

STEP = Step("calc.py", also=("`tests/test_calc.py`",))
WITHOUT_SUB = TESTS.replace(TEST_SUB, "")
REMOVES = gives(calc_dot_py=FIXED, tests__test_calc_dot_py=WITHOUT_SUB)
HONEST = gives(calc_dot_py=FIXED)


class User(Nobody):
    """Takes all changes of the run, and gives one answer about tests."""

    def __init__(self, choice: Choice) -> None:
        self.choice = choice
        self.asked: list[Proposal] = []

    async def approve(self, proposal: Proposal) -> Choice:
        await asyncio.sleep(0)
        self.asked.append(proposal)
        return self.choice

    async def review(self, review: Review) -> Decision:
        return Decision(Choice.ALWAYS, review)


class UserWhoStops(User):
    """Answers, and stops the run at once."""

    async def approve(self, proposal: Proposal) -> Choice:
        task = asyncio.current_task()
        assert task
        asyncio.get_running_loop().call_soon(task.cancel)
        self.asked.append(proposal)
        return self.choice


def ending(events: list[Event]) -> StepFinished:
    return [event for event in events if isinstance(event, StepFinished)][-1]


def checked(events: list[Event]) -> TestsFinished:
    return [event for event in events if isinstance(event, TestsFinished)][-1]


@each_row("approval", ["ask", "edits", "auto"])
async def test_a_yes_completes_the_step_whatever_else_is_accepted(
    sandbox: Sandbox, approval: str
) -> None:
    user = User(Choice.YES)
    sandbox.flags["approval"], sandbox.frontend = approval, user

    events = await run_all(calculator(sandbox, STEP).replies(REMOVES))

    assert [type(proposal) for proposal in user.asked] == [TestLossProposed]
    assert [lost.test for lost in user.asked[0].tests] == [SUB]  # type: ignore[union-attr]
    assert ending(events).verification is Verification.PASSED
    assert [SUB in note for note in checked(events).notes] == [True]
    evidence = ending(events).evidence
    assert evidence
    assert "a test " in evidence.reason
    engine = sandbox.engine()
    logged = [entry.event for entry in engine.run.record.log.entries()]
    engine.close()
    answers = [event for event in logged if isinstance(event, PersonAnswered)]
    assert answers[-1].answer == "yes"
    assert SUB in answers[-1].question


async def test_a_no_fails_the_attempt_and_the_model_is_told(sandbox: Sandbox) -> None:
    user = sandbox.frontend = User(Choice.NO)
    calculator(sandbox, STEP).replies(REMOVES, HONEST)

    events = await run_all(sandbox, attempts=2)

    (failed,) = [event for event in events if isinstance(event, AttemptFailed)]
    assert SUB in failed.error
    assert f"\n- {SUB}" in sandbox.prompt()
    assert len(user.asked) == 1
    assert sandbox.statuses() == ["completed"]
    assert sandbox.text("tests/test_calc.py") == TESTS


async def test_where_nobody_is_there_the_step_fails_and_names_the_field(
    sandbox: Sandbox,
) -> None:
    calculator(sandbox, STEP).replies(REMOVES, REMOVES)
    error = ending(await run_all(sandbox, attempts=2)).error or ""
    assert f"`**Removes tests:** {SUB}`" in error
    assert "step 1 in plan.md" in error
    assert "plan.md" not in sandbox.prompt().partition(SUB)[2]


NOT_ASKED = {
    "the check fails": (
        gives(calc_dot_py=BROKEN, tests__test_calc_dot_py=WITHOUT_SUB),
        STEP,
    ),
    "a new test fails": (
        f"{REMOVES}\n{gives(tests__test_new_dot_py='def test_new(): assert 0')}",
        STEP,
    ),
    "no test is lost": (HONEST, STEP),
    "the plan allows it": (
        REMOVES,
        Step("calc.py", also=("`tests/test_calc.py` (moved to x.py)",)),
    ),
}


@each_row(("reply", "step"), NOT_ASKED.values(), ids=NOT_ASKED)
async def test_nobody_is_asked_where_that_decides_nothing(
    sandbox: Sandbox, reply: str, step: Step
) -> None:
    user = sandbox.frontend = User(Choice.YES)
    await run_all(calculator(sandbox, step).replies(reply))
    assert user.asked == []


async def test_without_a_check_the_user_is_asked_too(sandbox: Sandbox) -> None:
    user = sandbox.frontend = User(Choice.YES)
    step = Step("calc.py", "none", also=("`tests/test_calc.py`",))
    await run_all(calculator(sandbox, step).replies(REMOVES))
    assert len(user.asked) == 1
    assert sandbox.statuses() == ["completed"]


async def test_a_question_that_was_interrupted_is_asked_again_and_costs_no_reply(
    sandbox: Sandbox,
) -> None:
    user = sandbox.frontend = User(Choice.YES)
    calculator(sandbox, STEP).replies(REMOVES)
    engine = sandbox.engine()
    await stop_at(engine.run_all(), lambda event: isinstance(event, TestLossProposed))
    engine.close()
    assert (user.asked, sandbox.statuses()) == ([], ["pending"])
    assert sandbox.text("tests/test_calc.py") == TESTS

    events = await run_all(sandbox.replies())

    assert len(user.asked) == 1
    assert ending(events).verification is Verification.PASSED


async def test_an_answer_from_before_an_interruption_holds(sandbox: Sandbox) -> None:
    user = sandbox.frontend = UserWhoStops(Choice.YES)
    calculator(sandbox, STEP).replies(REMOVES)
    with pytest.raises(asyncio.CancelledError):
        await run_all(sandbox)
    assert sandbox.statuses() == ["pending"]

    events = await run_all(sandbox.replies())

    assert len(user.asked) == 1
    assert ending(events).status is StepStatus.COMPLETED


@each_row("choice", [Choice.YES, Choice.NO])
async def test_an_answer_is_asked_for_once_an_attempt_and_for_the_same_tests(
    tmp_path: Path, choice: Choice
) -> None:
    user = User(choice)
    attempt = Attempt(tmp_path, tmp_path / "step-01/attempt-1")
    leave = TestLeave(PlanStep(1), attempt, user, WorkClock(), ignore_event)
    one, two = LostTest("a.py::test_a", "is removed"), LostTest("b.py", "is removed")

    answers = [bool(await leave.allow(lost)) for lost in ([one], [one], [one, two])]

    assert answers == [choice is Choice.YES] * 3
    assert len(user.asked) == 2
    later = replace(leave, attempt=Attempt(tmp_path, tmp_path / "step-01/attempt-2"))
    await later.allow([two])
    assert len(user.asked) == (2 if choice is Choice.YES else 3)
    await replace(later, step=PlanStep(1, "Another")).allow([two, one])
    assert len(user.asked) == (3 if choice is Choice.YES else 4)


@each_row(
    ("tests", "value"),
    [
        (["a.py::test_1"], "a.py::test_1"),
        (["a.py::test_1", "b.py::test_2"], "a.py::test_1, b.py::test_2"),
        ([f"a.py::test_{n}" for n in range(4)], "a.py"),
        ([f"tests/unit/{n}.py::test_{n}" for n in range(4)], "tests/unit/"),
        (["a.test.js::adds one, two", "b.test.js::adds"], "a.test.js, b.test.js"),
    ],
)
async def test_the_hint_names_ids_or_files_or_folders_whichever_are_few(
    tmp_path: Path, tests: list[str], value: str
) -> None:
    attempt = Attempt(tmp_path, tmp_path / "step-01/attempt-1")
    leave = TestLeave(PlanStep(1), attempt, Nobody(), WorkClock(), ignore_event)
    assert await leave.allow([LostTest(test, "is removed") for test in tests]) == set()
    assert f"`**Removes tests:** {value}`" in leave.hint


async def test_a_yes_holds_for_later_attempts_at_the_step_and_for_its_tests_alone(
    sandbox: Sandbox,
) -> None:
    user = sandbox.frontend = User(Choice.YES)
    calculator(sandbox, STEP, STEP).replies(REMOVES, gives(calc_dot_py=FIXED + "\n"))
    await run_all(sandbox)
    engine = sandbox.engine()
    await collect(engine.undo(1))
    engine.close()
    nothing = gives(tests__test_calc_dot_py="# nothing")

    first = await run_all(sandbox.replies(REMOVES, HONEST))
    assert len(user.asked) == 1
    assert ending(first).status is StepStatus.COMPLETED

    engine = sandbox.engine()
    await collect(engine.undo(1))
    engine.close()
    await run_all(sandbox.replies(nothing))
    assert len(user.asked) == 2


async def test_steps_side_by_side_ask_one_at_a_time(sandbox: Sandbox) -> None:
    user = sandbox.frontend = User(Choice.YES)
    other = Step("notes.txt")
    calculator(sandbox, STEP, other).replies(REMOVES, gives(notes_dot_txt="x"))
    sandbox.flags["jobs"] = 2
    await run_all(sandbox)
    assert len(user.asked) == 1
    assert sandbox.statuses() == ["completed", "completed"]


@each_row(
    ("approval", "watched", "is_asked"),
    [("auto", True, True), ("auto", False, False), ("edits", False, True)],
)
def test_a_run_that_approves_everything_without_a_shell_asks_nobody(
    sandbox: Sandbox, approval: str, watched: bool, is_asked: bool
) -> None:
    sandbox.flags["approval"] = approval
    sandbox.write(STEP)
    wiring = replace(sandbox.wiring(), watched=watched)
    assert isinstance(wiring, Wiring)
    engine = wiring.engine(sandbox.project.tickets.find("feature-words"))
    engine.close()
    assert isinstance(engine.runner.user, Nobody) is not is_asked
