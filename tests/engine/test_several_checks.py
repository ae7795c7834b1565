"""A step with several checks: all run, in order, and all must pass."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from cdd_agent.engine.criteria import criteria_of
from cdd_agent.engine.prompt import LAST_FAILED
from cdd_agent.engine.record import RunRecord
from cdd_agent.engine.retelling import run_retold
from cdd_agent.engine.step_details import step_details
from cdd_agent.errors import BadInput, NotApproved
from cdd_agent.events.dialogue_events import ReplyStarted
from cdd_agent.events.question_events import (
    Choice,
    CommandProposed,
    Proposal,
    TestLossProposed,
)
from cdd_agent.events.step_events import (
    AttemptFailed,
    CommandOutput,
    TestsFinished,
    TestsStarted,
)
from cdd_agent.events.step_summary import StepFinished
from cdd_agent.events.stream import Event, to_json
from cdd_agent.frontend import Nobody
from cdd_agent.process.run import CommandResult
from cdd_agent.text.redaction import Redactor
from cdd_agent.tickets.state_file import read_state
from cdd_agent.tickets.status import Verification
from tests.engine.calculator import (
    ADD,
    BROKEN,
    CALC,
    FIXED,
    SUB,
    TEST_ADD,
    begun,
    calculator,
    gives,
)
from tests.engine.together import Together, carried_out, project_in
from tests.support.commandline import cdd, script
from tests.support.commandline import events as printed_events
from tests.support.fake_programs import FakePrograms
from tests.support.listening import collect, stop_at, told_to
from tests.support.projects import SLUG, Sandbox, Step, check, run_all, says
from tests.support.tables import each_row
from tests.travel.copies import git

T = TypeVar("T")
GOOD, RED, LONG = (check("a.txt", word) for word in ("good", "red", "good and long"))
"""Checks of a.txt: for these words."""
SLOW = 'python -c "import time; time.sleep(600)"'
NO_TESTS = "pytest a.txt"
PASSED, NONE = Verification.PASSED, Verification.NONE
EXIT_CODE = Verification.EXIT_CODE


def of(kind: type[T], events: Sequence[Event]) -> list[T]:
    return [event for event in events if isinstance(event, kind)]


def commands(events: Sequence[Event]) -> list[str]:
    return [event.command for event in of(TestsStarted, events)]


def results(events: Sequence[Event]) -> list[tuple[str, Verification | None]]:
    return [(each.command, each.verification) for each in of(TestsFinished, events)]


# --- One step -------------------------------------------------------------------------


@each_row(
    ("checks", "ended", "not_run"),
    [
        ((GOOD,), [EXIT_CODE], 0),
        ((LONG,), [None], 0),
        ((GOOD, RED), [EXIT_CODE, EXIT_CODE], 0),
        ((GOOD, LONG), [EXIT_CODE, None], 0),
        ((LONG, GOOD), [None], 1),
        ((GOOD, SLOW), [EXIT_CODE, None], 0),
        ((SLOW, GOOD, RED), [None], 2),
        ((GOOD, NO_TESTS, RED), [EXIT_CODE, None], 1),
        ((GOOD, RED, LONG), [EXIT_CODE, EXIT_CODE, None], 0),
        ((GOOD, RED, "python -c 1"), [EXIT_CODE, EXIT_CODE, EXIT_CODE], 0),
        # a check that is there twice runs once
        ((GOOD, GOOD), [EXIT_CODE], 0),
        (("none",), [NONE], 0),
        ((), [NONE], 0),
    ],
)
async def test_all_checks_run_in_order_until_one_fails(
    sandbox: Sandbox,
    checks: tuple[str, ...],
    ended: list[Verification | None],
    not_run: int,
) -> None:
    sandbox.flags = {"test_timeout": 0.05}
    sandbox.write(Step("a.txt", checks=checks))

    events = await run_all(sandbox.replies(says("a.txt", "good, red")))

    has_passed = None not in ended
    unique = list(dict.fromkeys(line for line in checks if line != "none"))
    ran = unique[: len(ended)]
    assert commands(events) == ran
    assert [how for _, how in results(events)] == ended
    (step,) = of(StepFinished, events)
    assert step.verification is (ended[-1] if has_passed else None)
    assert sandbox.statuses() == ["completed" if has_passed else "failed"]
    *others, last = of(TestsFinished, events)
    assert list(last.not_run) == unique[len(ran) :]
    assert len(last.not_run) == not_run
    assert to_json(last)["not_run"] == last.not_run
    # only the last check has the verdict on the step
    assert [each.evidence for each in others] == [None] * len(others)
    assert last.evidence
    if not has_passed:
        assert step.error
        assert step.error.startswith(f"`{ran[-1]}`")
        assert all(f"`{command}`" in step.error for command in last.not_run)
        assert not any(command in step.error for command in ran[:-1])


async def test_the_prompt_lists_each_check(sandbox: Sandbox) -> None:
    sandbox.write(Step("a.txt", checks=(GOOD, RED)))
    await run_all(sandbox.replies(says("a.txt", "good, red")))
    prompt = sandbox.prompt()
    assert 0 < prompt.index(f"- {GOOD}\n") < prompt.index(f"- {RED}")


async def test_the_model_sees_the_output_of_the_failed_check(sandbox: Sandbox) -> None:
    sandbox.write(Step("a.txt", checks=(GOOD, RED, LONG)))
    sandbox.replies(says("a.txt", "good"), says("a.txt", "good and long, red"))

    events = await run_all(sandbox, attempts=2)

    assert sandbox.statuses() == ["completed"]
    assert commands(events) == [GOOD, RED, GOOD, RED, LONG]
    (failed,) = of(AttemptFailed, events)
    told = sandbox.prompt().partition(LAST_FAILED)[2]
    assert failed.error in told
    assert f"`{RED}`" in told
    assert f"`{LONG}`" in told
    assert f"`{GOOD}`" not in told
    assert told.count("it says good") == 1
    # each output is kept, with its command
    folder = sandbox.root / ".cdd/runs" / SLUG / "step-01"
    kept = {
        path.relative_to(folder).as_posix(): path.read_text().partition("\n")[0]
        for path in folder.glob("*/output*.txt")
    }
    assert kept == {
        "attempt-1/output.txt": f"$ {GOOD}",
        "attempt-1/output-2.txt": f"$ {RED}",
        "attempt-2/output.txt": f"$ {GOOD}",
        "attempt-2/output-2.txt": f"$ {RED}",
        "attempt-2/output-3.txt": f"$ {LONG}",
    }


class Recorder(FakePrograms):
    """Keeps the time limit and the report of each command."""

    def __init__(self) -> None:
        super().__init__()
        self.limits: list[float] = []
        self.reports: list[str] = []

    async def __call__(
        self, argv: Sequence[str], *, limit: float, **how: Any
    ) -> CommandResult:
        self.limits.append(limit)
        self.reports += [word for word in argv if word.startswith("--junitxml")]
        return await super().__call__(argv, limit=limit, **how)


async def test_each_check_has_its_own_time_and_its_own_report(
    sandbox: Sandbox, original: Path
) -> None:
    sandbox.run_program = programs = Recorder()
    sandbox.flags = {"test_timeout": 90}
    pair = ("pytest tests/test_calc.py", "pytest tests")
    begun(sandbox, original, Step("calc.py", checks=pair))
    await run_all(sandbox.replies(gives(calc_dot_py=FIXED)))
    assert sandbox.statuses() == ["completed"]
    assert programs.limits == [90, 90]
    assert len({*programs.reports}) == 2


# --- Before anything is written -------------------------------------------------------


async def test_a_plan_with_checks_that_cannot_run_does_not_start(
    sandbox: Sandbox,
) -> None:
    refused = ("rm -rf x", "ls | wc")
    sandbox.write(Step("a.txt", checks=(GOOD, *refused)), Step("b.txt", "rm b"))
    with pytest.raises(BadInput) as caught:
        sandbox.engine()
    lines = caught.value.message.splitlines()
    assert [line[:7] for line in lines] == ["Step 1:", "Step 1:", "Step 2:"]
    assert all(
        f"`{command}`" in line for command, line in zip(refused, lines[:2], strict=True)
    )


class Answers(Nobody):
    """Gives these answers, and keeps the questions."""

    def __init__(self, *choices: Choice) -> None:
        self.choices = list(choices)
        self.asked: list[Proposal] = []

    async def approve(self, proposal: Proposal) -> Choice:
        self.asked.append(proposal)
        return self.choices.pop(0)


@each_row(
    ("choices", "asked", "is_done"),
    [
        ([Choice.YES, Choice.YES], 2, True),
        ([Choice.YES, Choice.NO], 2, False),
        ([Choice.NO], 1, False),
        ([], 2, False),
    ],
)
async def test_each_check_that_needs_it_is_approved_before_the_model_is_asked(
    sandbox: Sandbox, choices: list[Choice], asked: int, is_done: bool
) -> None:
    off_list = ("test -f a.txt", "test -f b.txt")
    sandbox.frontend = frontend = Answers(*choices)
    if not choices:
        sandbox.frontend = Nobody()
        asked = 1
    sandbox.write(Step("a.txt", checks=(GOOD, *off_list), also=("b.txt",)))
    (sandbox.root / ".cdd/config.yaml").write_text("commands: {mode: ask}\n")
    sandbox.replies(says("a.txt", "good") + says("b.txt", "x"))
    engine = sandbox.engine()
    events = await collect(engine.run_all(attempts=1))
    engine.close()

    proposed = of(CommandProposed, events)
    assert [each.command for each in proposed] == list(off_list[:asked])
    assert frontend.asked == (proposed if choices else [])
    assert bool(sandbox.model.requests) is is_done
    assert (sandbox.root / "a.txt").exists() is is_done
    if is_done:
        assert sandbox.statuses() == ["completed"]
        started = of(ReplyStarted, events)[0]
        assert events.index(started) > events.index(proposed[-1])
        return
    assert isinstance(engine.stopped_by, NotApproved)
    assert f"`{off_list[asked - 1]}`" in engine.stopped_by.message


# --- Tests ----------------------------------------------------------------------------

ONE = "from calc import add, sub\n\n\n"
SPLIT = {
    "tests__test_calc_dot_py": f"{ONE}{TEST_ADD}",
    "more__test_more_dot_py": f"{ONE}def test_more():\n    assert sub(5, 1) == 4\n",
}
MORE = "more/test_more.py::test_more"
IN_TWO = ("pytest tests", "pytest more")


async def test_a_suite_in_two_checks_loses_no_test(sandbox: Sandbox) -> None:
    steps = (Step("calc.py", checks=IN_TWO), Step("notes.txt", checks=IN_TWO))
    calculator(sandbox, *steps, **SPLIT)

    events = await run_all(
        sandbox.replies(gives(calc_dot_py=FIXED), says("notes.txt", "x"))
    )

    assert [how for _, how in results(events)] == [PASSED] * 4
    first, second = of(StepFinished, events)
    assert first.evidence
    assert second.evidence
    assert (first.evidence.passed, first.evidence.fixed) == (2, 1)
    assert (second.evidence.passed, second.evidence.stayed) == (2, 2)
    ticket, redactor = sandbox.project.tickets.find(SLUG), Redactor()
    details = step_details(ticket, 1, redactor)
    assert {test.name for test in details.attempts[0].tests} == {ADD, MORE}
    assert all(f"$ {line}" in details.attempts[0].output for line in IN_TWO)
    criteria = criteria_of(ticket.read_spec(), ticket, redactor)
    assert criteria.criteria[0].tests == ()


async def test_what_one_of_two_checks_saw_has_to_pass_later(sandbox: Sandbox) -> None:
    steps = (
        Step("calc.py", checks=IN_TWO),
        Step("notes.txt", "pytest more", also=("calc.py",)),
    )
    calculator(sandbox, *steps, **SPLIT)
    events = await run_all(
        sandbox.replies(gives(calc_dot_py=FIXED), gives(calc_dot_py=CALC))
    )
    assert MORE in (of(StepFinished, events)[-1].error or "")
    assert sandbox.statuses() == ["completed", "failed"]


@each_row(
    ("reply", "verification"),
    [
        ({"notes_dot_txt": "x"}, Verification.BASELINE),
        ({"notes_dot_txt": "x", "calc_dot_py": FIXED}, PASSED),
        ({"notes_dot_txt": "x", "calc_dot_py": BROKEN}, None),
    ],
)
async def test_the_projects_own_check_among_several_excuses_old_failures(
    sandbox: Sandbox,
    original: Path,
    reply: Mapping[str, str],
    verification: Verification | None,
) -> None:
    checks = (check("notes.txt", "x"), "pytest")
    shown = ("calc.py",) if "calc_dot_py" in reply else ()
    begun(sandbox, original, Step("notes.txt", checks=checks, also=shown))
    events = await run_all(sandbox.replies(gives(**reply)))
    assert [how for _, how in results(events)] == [EXIT_CODE, verification]
    (step,) = of(StepFinished, events)
    assert step.verification is verification
    if verification is Verification.BASELINE:
        assert any(SUB in note for note in of(TestsFinished, events)[-1].notes)


async def test_a_lost_test_fails_a_step_whose_checks_have_passed(
    sandbox: Sandbox, original: Path
) -> None:
    checks = ("pytest", check("calc.py", "add"))
    step = Step("calc.py", checks=checks, also=("tests/test_calc.py",))
    begun(sandbox, original, step)
    events = await run_all(
        sandbox.replies(
            gives(calc_dot_py=FIXED, tests__test_calc_dot_py=f"{ONE}{TEST_ADD}")
        )
    )
    assert results(events) == [("pytest", PASSED), (checks[1], None)]
    error = of(StepFinished, events)[0].error or ""
    assert SUB in error
    assert "`pytest`" in error


@each_row(("word", "asked"), [("add", 1), ("nothing like it", 0)])
async def test_leave_to_remove_a_test_is_asked_once_all_checks_have_passed(
    sandbox: Sandbox, original: Path, word: str, asked: int
) -> None:
    sandbox.frontend = user = Answers(Choice.YES)
    checks = ("pytest", check("calc.py", word))
    step = Step("calc.py", checks=checks, also=("tests/test_calc.py",))
    begun(sandbox, original, step)
    await run_all(
        sandbox.replies(
            gives(calc_dot_py=FIXED, tests__test_calc_dot_py=f"{ONE}{TEST_ADD}")
        )
    )
    assert len(of(TestLossProposed, user.asked)) == len(user.asked) == asked
    assert sandbox.statuses() == ["completed" if asked else "failed"]


# --- Runs that go on ------------------------------------------------------------------


async def test_an_interrupted_step_runs_its_checks_again_from_the_first(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt", checks=(GOOD, RED)))
    engine = sandbox.replies(says("a.txt", "good, red")).engine()
    events = await stop_at(
        engine.run_all(),
        lambda event: isinstance(event, TestsStarted) and event.command == RED,
    )
    engine.close()
    assert results(events) == [(GOOD, EXIT_CODE)]
    assert sandbox.statuses() == ["pending"]

    events = await run_all(sandbox)

    assert [event.saved for event in of(ReplyStarted, events)] == [True]
    assert results(events) == [(GOOD, EXIT_CODE), (RED, EXIT_CODE)]
    assert sandbox.statuses() == ["completed"]
    assert len(sandbox.model.requests) == 1


@pytest.mark.usefixtures("in_git")
async def test_a_kill_between_two_checks_costs_no_reply(
    sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """What is on the disk when the second check starts is all that is left."""
    sandbox.write(Step("a.txt", checks=(GOOD, RED)))
    killed = tmp_path_factory.mktemp("killed") / "project"

    def copy(event: Event) -> None:
        if isinstance(event, TestsStarted) and event.command == RED:
            shutil.copytree(sandbox.root, killed, symlinks=True)

    with told_to(copy):
        await run_all(sandbox.replies(says("a.txt", "good, red")))

    again = sandbox.at(killed)
    assert again.statuses() == ["in_progress"]
    events = await run_all(again)
    assert results(events) == [(GOOD, EXIT_CODE), (RED, EXIT_CODE)]
    assert again.statuses() == ["completed"]
    assert not again.model.requests


async def test_a_run_is_told_again_with_the_output_of_each_check(
    sandbox: Sandbox,
) -> None:
    two = "python -S -c \"print('two')\""
    sandbox.write(Step("a.txt", checks=(GOOD, two)))
    engine = sandbox.replies(says("a.txt", "good")).engine()

    def is_second(event: Event) -> bool:
        return isinstance(event, TestsStarted) and event.command == two

    await stop_at(engine.run_all(), is_second)
    engine.close()
    await run_all(sandbox)

    record = RunRecord.of(sandbox.root, SLUG, Redactor())
    state = read_state(sandbox.project.tickets.find(SLUG))
    assert state
    told = [
        event
        for event in run_retold(record, state).events
        if isinstance(event, TestsStarted | CommandOutput)
    ]
    # the first check of the interrupted attempt, and both of its second start
    assert commands(told) == [GOOD, GOOD, two]
    outputs = [event.text for event in of(CommandOutput, told)]
    assert outputs == ["it says good\n\n", "it says good\n\n", "two\n"]


async def test_outputs_of_an_earlier_run_of_the_checks_are_removed(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt", checks=(GOOD, "python -c 1", RED)))
    await run_all(sandbox.replies(says("a.txt", "good")))
    folder = sandbox.root / ".cdd/runs" / SLUG / "step-01/attempt-1"
    assert len([*folder.glob("output*")]) == 3
    record = RunRecord.of(sandbox.root, SLUG, Redactor())
    record.attempt(1, 1).save_outputs(["one"])
    assert [path.name for path in folder.glob("output*")] == ["output.txt"]


async def test_skip_keep_keeps_what_each_check_saw(sandbox: Sandbox) -> None:
    steps = (Step("calc.py", checks=("pytest more", "pytest tests")), Step("notes.txt"))
    calculator(sandbox, *steps, **SPLIT)
    await run_all(sandbox.replies(gives(calc_dot_py=FIXED.replace("a + b", "a * b"))))
    assert sandbox.statuses() == ["failed", "pending"]
    engine = sandbox.replies(says("notes.txt", "x")).engine()
    step = engine.run.next_step
    assert step
    await collect(engine.skip(step, "mine", keep=True))
    events = await collect(engine.run_all())
    engine.close()
    # the second check's failure is known, the first check's test has passed
    assert of(StepFinished, events)[-1].verification is Verification.BASELINE
    (note,) = [note for each in of(TestsFinished, events) for note in each.notes]
    assert ADD in note
    assert MORE not in note


async def test_steps_side_by_side_have_several_checks(tmp_path: Path) -> None:
    sandbox = project_in(tmp_path)
    pairs = [(check(f"{name}.txt"), check(f"{name}.txt", "go")) for name in "ab"]
    sandbox.write(Step("a.txt", checks=pairs[0]), Step("b.txt", checks=pairs[1]))
    model = Together({n: says(f"{name}.txt", "good") for n, name in enumerate("ab", 1)})
    events = await carried_out(sandbox, model)
    assert sandbox.statuses() == ["completed", "completed"]
    passed = {command for command, how in results(events) if how is EXIT_CODE}
    assert passed == {*pairs[0], *pairs[1]}


# --- The whole story ------------------------------------------------------------------

TEST_CALC = """\
import unittest

from calc import add


class TestAdd(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(1, 2), 3)
"""
BOTH = ("python -m unittest -q", "python lint.py")


@pytest.mark.story
@pytest.mark.parametrize("lint_code", [0, 1])
def test_a_second_check_decides_in_a_real_project(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str], lint_code: int
) -> None:
    """`cdd exec --require verified` with tests that pass, and a linter."""
    sandbox.write(Step("calc.py"))
    plan_file = sandbox.ticket / "plan.md"
    items = "\n".join(f"- `{command}`" for command in BOTH)
    plan_file.write_text(f"{plan_file.read_text()}\n**Verify:**\n{items}\n")
    files = {
        "calc.py": "def add(a, b):\n    return a - b\n",
        "test_calc.py": TEST_CALC,
        "lint.py": f"import sys; print('linted'); sys.exit({lint_code})\n",
    }
    for name, text in files.items():
        (sandbox.root / name).write_text(text)
    for words in (("init", "--quiet"), ("add", "--all"), ("commit", "--quiet", "-mC")):
        git(sandbox.root, *words)
    reply = script(sandbox, says("calc.py", "def add(a, b):\n    return a + b"))
    run = ("exec", SLUG, "--max-attempts", "1", "--require", "verified")

    code = cdd(sandbox, *run, "--model", reply, "--json")

    told = printed_events(capsys)
    ended = [event for event in told if event["event"] == "tests_finished"]
    assert [event["command"] for event in ended] == list(BOTH)
    (step,) = [event for event in told if event["event"] == "step_finished"]
    assert (code, step["status"]) == ((1, "failed") if lint_code else (0, "completed"))
    if lint_code:
        assert "`python lint.py`" in step["error"]
        assert ended[1]["verification"] is None
        assert (
            "linted"
            in (
                sandbox.root / ".cdd/runs" / SLUG / "step-01/attempt-1/output-2.txt"
            ).read_text()
        )
        return
    assert step["verification"] == "passed"
    assert (step["evidence"]["passed"], step["evidence"]["fixed"]) == (1, 1)
    assert sandbox.state()["status"] == "completed"
