"""The tests before a run began: known, kept, and what each step is compared with."""

import asyncio
import json
import re
import sys
from pathlib import Path
from typing import TypeVar

import pytest
from msgspec.structs import replace

from cdd_agent.errors import BadInput
from cdd_agent.events.dialogue_events import ReplyFinished, ReplyStarted
from cdd_agent.events.notices import Tone
from cdd_agent.events.question_events import ChangesProposed
from cdd_agent.events.run_events import BaselineStarted, BaselineTaken, RunFinished
from cdd_agent.events.step_events import (
    AttemptFailed,
    CommandOutput,
    StepStarted,
    TestsFinished,
)
from cdd_agent.events.step_summary import StepFinished
from cdd_agent.events.stream import Event, to_json
from cdd_agent.files.json_file import Damaged
from cdd_agent.llm.port import QuotaUsedUp
from cdd_agent.tickets.outcome_words import OUTCOME_WORDS
from cdd_agent.tickets.status import StepOutcome, StepStatus, Verification
from cdd_agent.verification.baseline import Baseline
from cdd_agent.verification.check_run import CheckRun
from cdd_agent.verification.checks import parse_command
from cdd_agent.verification.outcomes import (
    Result,
    Selection,
    Statement,
    StatementKind,
    SuiteRun,
)
from cdd_agent.wording.describe import describe
from tests.engine.calculator import (
    ADD,
    BROKEN,
    CALC,
    FIXED,
    SETTINGS,
    SUB,
    TEST_ADD,
    TEST_SUB,
    TESTS,
    begun,
    calculator,
    gives,
)
from tests.engine.together import Together, carried_out, project_in
from tests.support.commandline import process, script, wait_for
from tests.support.fake_programs import Ended, FakePrograms
from tests.support.listening import collect, stop_at, told_to
from tests.support.projects import SLUG, Sandbox, Step, check, run_all, says
from tests.support.tables import each_row
from tests.support.time_of_loops import leap_when


def names(error: str | None) -> list[str]:
    """Return the tests that an error names, in its order, without its hint."""
    return re.findall(r"[\w/.]+::\w+", (error or "").partition("**")[0])


T = TypeVar("T")
FIRST, SECOND = Step("calc.py"), Step("notes.txt")
PASSES = SuiteRun(results={SUB: Result.PASSED})
FAILS = SuiteRun(results={SUB: Result.FAILED})
THRESHOLD = Statement(StatementKind.THRESHOLD, "the coverage is below 80 %")
ASIDE = FIXED + "\n\ndef twice(a):\n    return add(a, a)\n"


def of(kind: type[T], events: list[Event]) -> list[T]:
    return [event for event in events if isinstance(event, kind)]


def verifications(sandbox: Sandbox) -> list[str | None]:
    return [
        step["verification"] for step in sandbox.state()["step_executions"].values()
    ]


def baselines(sandbox: Sandbox) -> list[str]:
    return sorted(
        path.name for path in (sandbox.root / ".cdd/runs" / SLUG).glob("baseline*.json")
    )


# --- Taking it ------------------------------------------------------------------------


async def test_it_is_taken_once_before_anything_is_changed(sandbox: Sandbox) -> None:
    calculator(sandbox, FIRST, SECOND).replies(
        gives(calc_dot_py=FIXED), says("notes.txt", "x")
    )

    events = await run_all(sandbox)

    kinds = [type(event) for event in events]
    assert kinds.count(BaselineTaken) == 1
    told = (
        BaselineStarted,
        BaselineTaken,
        StepStarted,
        ReplyStarted,
        ReplyFinished,
        ChangesProposed,
    )
    assert [kind for kind in kinds if kind in told][: len(told)] == list(told)
    taken = of(BaselineTaken, events)[0]
    assert (taken.step, taken.command, taken.return_code) == (1, "pytest", 1)
    assert (taken.passed, taken.failed, taken.skipped, taken.problem) == (1, 1, 0, "")
    assert to_json(taken)["event"] == "baseline_taken"
    assert verifications(sandbox) == ["passed", "passed"]
    first = sandbox.state()["step_executions"]["1"]["evidence"]
    assert (first["passed"], first["fixed"], first["new"], first["failed"]) == (
        2,
        1,
        0,
        0,
    )
    assert [
        event.evidence.stayed for event in of(StepFinished, events) if event.evidence
    ] == [1, 2]
    record = sandbox.root / ".cdd/runs" / SLUG
    (saved,) = json.loads((record / "baseline.json").read_text())["runs"]
    assert saved["run"]["tests"]["results"] == {ADD: "passed", SUB: "failed"}
    assert "1 failed, 1 passed" in (record / "baseline.txt").read_text()


async def test_a_run_that_goes_on_keeps_it(sandbox: Sandbox) -> None:
    calculator(sandbox)
    await run_all(sandbox.replies(gives(calc_dot_py=BROKEN)))
    events = await run_all(sandbox.replies(gives(calc_dot_py=FIXED)))
    assert of(BaselineTaken, events) == []
    assert verifications(sandbox) == ["passed"]


async def test_a_stop_in_the_middle_changes_nothing_and_it_is_taken_again(
    sandbox: Sandbox,
) -> None:
    hangs = "import time\ntime.sleep(600)\n"
    calculator(sandbox, tests__test_calc_dot_py=hangs)
    engine = sandbox.replies(gives(calc_dot_py=FIXED)).engine()
    await stop_at(engine.run_all(), lambda event: isinstance(event, BaselineStarted))
    engine.close()
    assert baselines(sandbox) == []
    assert not list((sandbox.root / ".cdd/runs" / SLUG).glob("check-*"))
    assert not (sandbox.ticket / "execution-state.json").exists()
    assert sandbox.text("calc.py") == CALC
    # the model is asked afterwards
    assert sandbox.model.requests == []

    (sandbox.root / "tests/test_calc.py").write_text(TESTS)
    assert len(of(BaselineTaken, await run_all(sandbox))) == 1
    assert baselines(sandbox) == ["baseline.json"]


async def test_it_is_kept_if_the_model_gives_no_reply(sandbox: Sandbox) -> None:
    calculator(sandbox)
    events = await run_all(sandbox.replies(QuotaUsedUp("Nothing left")))
    assert len(of(BaselineTaken, events)) == 1
    assert sandbox.statuses() == ["pending"]
    events = await run_all(sandbox.replies(gives(calc_dot_py=FIXED)))
    assert of(BaselineStarted, events) == []
    assert verifications(sandbox) == ["passed"]


async def test_what_it_leaves_behind_is_no_doing_of_the_step(sandbox: Sandbox) -> None:
    leaves = "for name in ('left.txt', 'a.txt'): open(name, 'a').write('by the check')"
    once = f"import os\nif not os.path.exists('left.txt'):\n    {leaves}\n"
    (sandbox.root / "check.py").write_text(once)
    (sandbox.root / "a.txt").write_text("first, and ")
    sandbox.flags = {"test_command": "python check.py"}
    sandbox.write(Step("a.txt"))
    await run_all(sandbox.replies(says("a.txt", "good")))
    assert sandbox.statuses() == ["completed"]
    assert "first, and by the check" in sandbox.prompt()

    engine = sandbox.engine()
    await collect(engine.undo())
    engine.close()
    assert sandbox.text("a.txt") == "first, and by the check"
    assert sandbox.text("left.txt") == "by the check"


async def test_a_disk_that_does_not_keep_it_changes_nothing(sandbox: Sandbox) -> None:
    calculator(sandbox).replies(gives(calc_dot_py=FIXED))

    def stand_in_the_way(event: Event) -> None:
        if isinstance(event, BaselineStarted):
            (sandbox.root / ".cdd/runs" / SLUG / "baseline.json").mkdir()

    with told_to(stand_in_the_way), pytest.raises(BadInput, match=r"baseline\.json"):
        await run_all(sandbox)
    assert sandbox.model.requests == []
    assert sandbox.text("calc.py") == CALC


async def test_it_is_over_before_steps_run_side_by_side(tmp_path: Path) -> None:
    sandbox = project_in(tmp_path)
    sandbox.flags |= {"test_command": "python -c pass"}
    sandbox.write(Step("a.txt"), Step("b.txt"))
    model = Together({1: says("a.txt", "1"), 2: says("b.txt", "2")}, at_once=2)
    kinds = [type(event) for event in await carried_out(sandbox, model)]
    assert sandbox.statuses() == ["completed", "completed"]
    assert kinds.count(BaselineTaken) == 1
    assert kinds.index(BaselineTaken) < kinds.index(StepStarted)


HELD = """\
import os, sys, time

open(sys.argv[2], "w").close()
until = time.monotonic() + 60
while not os.path.exists(sys.argv[1]) and time.monotonic() < until:
    time.sleep(0.01)
"""


@pytest.mark.fork
def test_after_a_kill_in_it_the_run_goes_on_and_it_is_taken_again(
    sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("held")
    (folder / "held.py").write_text(HELD)
    held = f"{sys.executable} {folder / 'held.py'} {folder / 'gate'} {folder / 'begun'}"
    sandbox.write(Step("a.txt"))
    (sandbox.root / ".cdd/config.yaml").write_text(
        f"approval: auto\ntest_timeout: 90\ntest_command: {held}\n"
    )
    model = script(sandbox, says("a.txt", "good"))
    running = process(sandbox, "exec", SLUG, "--model", model)
    wait_for((folder / "begun").exists)
    running.kill()
    running.communicate()
    assert baselines(sandbox) == []
    assert not (sandbox.root / "a.txt").exists()

    (folder / "gate").touch()
    _, err = process(sandbox, "exec", SLUG, "--model", model, "--json").communicate()
    assert sandbox.statuses() == ["completed"], err
    assert baselines(sandbox) == ["baseline.json"]


async def test_one_of_a_run_whose_state_is_gone_is_set_aside(sandbox: Sandbox) -> None:
    calculator(sandbox)
    await run_all(sandbox.replies(gives(calc_dot_py=FIXED)))
    (sandbox.ticket / "execution-state.json").unlink()
    (sandbox.root / ".cdd/runs/feature-words/state.json").unlink()

    events = await run_all(sandbox.replies(gives(calc_dot_py=BROKEN)))

    assert [(taken.passed, taken.failed) for taken in of(BaselineTaken, events)] == [
        (2, 0)
    ]
    assert len(baselines(sandbox)) == 2
    assert sandbox.statuses() == ["failed"]


async def test_one_that_was_removed_is_taken_again_and_starts_from_what_is_there(
    sandbox: Sandbox,
) -> None:
    calculator(sandbox, FIRST, SECOND)
    await run_all(sandbox.replies(gives(calc_dot_py=FIXED), "```text:notes.txt\ncut"))
    assert sandbox.statuses() == ["completed", "failed"]
    # by hand
    (sandbox.root / "tests/test_calc.py").write_text(TESTS.replace(TEST_SUB, ""))

    events = await run_all(sandbox.replies(says("notes.txt", "x")))
    error = of(StepFinished, events)[0].error or ""
    assert names(error) == [SUB]
    assert "exit code" not in error  # it passed, and a test is gone

    (sandbox.root / ".cdd/runs" / SLUG / "baseline.json").unlink()
    events = await run_all(sandbox.replies(says("notes.txt", "x")))
    assert [(taken.step, taken.passed) for taken in of(BaselineTaken, events)] == [
        (2, 1)
    ]
    assert verifications(sandbox) == ["passed", "passed"]


async def test_a_damaged_one_is_told_and_not_replaced(
    sandbox: Sandbox, original: Path
) -> None:
    begun(sandbox, original, FIRST)
    (sandbox.root / ".cdd/runs" / SLUG / "baseline.json").write_text("{")
    with pytest.raises(Damaged, match=r"baseline\.json"):
        await run_all(sandbox)


HAS_DEF = check("calc.py", "def")
NARROW, ALL_TESTS = "pytest tests/test_calc.py", "pytest -q"
LISTS = 'python -c "import os; print(os.listdir())"'
"""Reports on no test."""
NEW_TEST = Step("tests/test_new.py", "pytest tests/test_new.py", also=("calc.py",))


@each_row(
    ("test_command", "steps", "taken"),
    [
        (None, [Step("calc.py")], [(1, "pytest")]),
        # the project's checks have the results of a narrower one
        (None, [Step("calc.py", "none"), Step("calc.py", NARROW)], [(1, "pytest")]),
        (None, [Step("calc.py", ALL_TESTS)], [(1, "pytest")]),
        # no step is compared with the project's checks
        (None, [Step("calc.py", HAS_DEF), Step("calc.py", "none")], []),
        (None, [Step("calc.py", "none")], []),
        # they report on no test
        (LISTS, [Step("calc.py")], [(1, LISTS)]),
        (LISTS, [Step("calc.py", NARROW)], [(1, NARROW)]),
        # once for several steps
        (LISTS, [Step("calc.py", NARROW), Step("calc.py", NARROW)], [(1, NARROW)]),
        # the step before has its result
        (LISTS, [NEW_TEST, NEW_TEST], []),
        # not a wider one's
        (
            LISTS,
            [Step("calc.py", NARROW), Step("calc.py", ALL_TESTS)],
            [(1, NARROW), (2, ALL_TESTS)],
        ),
        # a step's own check without tests: it might change the user's files
        (None, [Step("calc.py"), Step("calc.py", HAS_DEF)], [(1, "pytest")]),
        # a file that the check names is not there yet
        (LISTS, [NEW_TEST], []),
        # the user must approve it
        (LISTS, [Step("calc.py", "npx jest")], []),
    ],
)
async def test_a_check_whose_result_is_not_known_runs_before_the_step(
    sandbox: Sandbox,
    test_command: str | None,
    steps: list[Step],
    taken: list[tuple[int, str]],
) -> None:
    calculator(sandbox, *steps).replies(
        *[
            gives(
                calc_dot_py=FIXED + "#" * n,
                tests__test_new_dot_py="def test_new(): pass\n",
            )
            for n in range(len(steps))
        ]
    )
    sandbox.flags |= {"commands": {"mode": "ask"}}
    if test_command:
        sandbox.flags |= {"test_command": test_command}
    events = await run_all(sandbox)
    assert [(each.step, each.command) for each in of(BaselineTaken, events)] == taken
    assert set(sandbox.statuses()) <= {"completed", "pending"}


async def test_a_step_that_came_into_the_plan_gets_the_baseline_that_it_needs(
    sandbox: Sandbox,
) -> None:
    first = Step("calc.py", NARROW)
    sandbox.flags |= {"test_command": LISTS}
    calculator(sandbox, first).replies(gives(calc_dot_py=FIXED))
    events = await run_all(sandbox)
    sandbox.flags |= {"test_command": "pytest -q"}
    sandbox.write(first, SECOND).replies(says("notes.txt", "x"))
    events += await run_all(sandbox)
    taken = [(each.step, each.command) for each in of(BaselineTaken, events)]
    assert taken == [(1, NARROW), (2, "pytest -q")]


@each_row(
    ("run", "check", "is_known"),
    [
        (CheckRun("pytest", 0, tests=PASSES), "pytest tests/test_calc.py", True),
        (CheckRun("pytest", 1, tests=FAILS), "pytest tests/test_calc.py", True),
        # its tests do not explain how it ended
        (CheckRun("pytest", 1, tests=PASSES), "pytest tests/test_calc.py", False),
        (
            CheckRun("pytest", 1, tests=FAILS, statements=(THRESHOLD,)),
            "pytest tests/test_calc.py",
            False,
        ),
        (
            CheckRun("pytest", 2, tests=FAILS, problem="was ended"),
            "pytest tests/test_calc.py",
            False,
        ),
        (CheckRun("pytest", 0), "pytest tests/test_calc.py", False),
        (CheckRun("pytest", 0, tests=PASSES), "pytest -k add", False),
        (CheckRun("pytest", 0, tests=PASSES), "python lint.py", False),
        (CheckRun("pytest", 0, tests=PASSES), "cargo test", False),
        (CheckRun("cargo test", 0, tests=PASSES), "cargo test", True),
        (
            CheckRun("pytest tests/a", 0, tests=SuiteRun(Selection(("tests/a",)))),
            "pytest tests/test_calc.py",
            False,
        ),
    ],
)
def test_a_wider_run_knows_a_check_if_its_tests_are_all_of_it(
    tmp_path: Path, run: CheckRun, check: str, is_known: bool
) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_calc.py").write_text(TESTS)
    if run.tests is not None:
        runner = "cargo test" if run.command == "cargo test" else "pytest"
        selection = replace(run.tests.selection, runner=runner)
        run = replace(run, tests=replace(run.tests, selection=selection))
    baseline = Baseline(step=1).add(1, run, ())
    assert baseline.knows(parse_command(check, tmp_path)) is is_known


async def test_where_there_is_nothing_to_run_there_is_none_and_the_first_tests_count(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("test_x.py"), Step("test_y.py"))
    sandbox.replies(
        says("test_x.py", "def test_x(): pass"), says("test_y.py", "def test_y(): pass")
    )
    events = await run_all(sandbox)
    assert of(BaselineStarted, events) == []
    assert verifications(sandbox) == ["passed", "passed"]


@pytest.mark.story
async def test_a_project_without_tests_may_begin_with_settings_the_plan_does_not_name(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("test_x.py"), Step("notes.txt"))
    first = gives(test_x_dot_py="def test_x(): pass", pyproject_dot_toml=SETTINGS)
    events = await run_all(
        sandbox.replies(first, gives(pytest_dot_ini="[pytest]\naddopts = -k nothing\n"))
    )
    assert verifications(sandbox) == ["passed", None]
    assert of(TestsFinished, events)[0].notes[0].endswith(": pyproject.toml")
    assert names(of(StepFinished, events)[1].error) == ["test_x.py::test_x"]


async def test_settings_that_a_step_wrote_and_nobody_can_read_are_its_failure(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("pyproject.toml")).replies(
        says("pyproject.toml", "["), says("pyproject.toml", "")
    )
    events = await run_all(sandbox, attempts=2)
    assert "pyproject.toml" in of(AttemptFailed, events)[0].error
    assert verifications(sandbox) == ["none"]


async def test_one_that_takes_too_long_is_told_and_ends_nothing(
    sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory
) -> None:
    waits = tmp_path_factory.mktemp("signs") / "waits"
    slow = (
        "import os, time\n"
        "if not os.path.exists('quick.txt'):\n"
        f"    open({str(waits)!r}, 'w').close()\n"
    )
    calculator(
        sandbox,
        Step("quick.txt"),
        tests__test_calc_dot_py=f"{slow}    time.sleep(600)\n\n\n{TESTS}",
    )
    sandbox.flags = {"test_timeout": 300}

    events, _ = await asyncio.gather(
        run_all(sandbox.replies(says("quick.txt", "x"))), leap_when(waits.exists, 300)
    )

    taken = of(BaselineTaken, events)[0]
    assert (taken.return_code, taken.passed) == (None, None)
    assert " 300 s" in taken.problem
    assert describe(taken)[0][1] is Tone.WARNING
    # nothing is known: it is new
    assert names(of(StepFinished, events)[0].error) == [SUB]


@each_row("code", [None, 3])
async def test_a_baseline_that_did_not_come_to_its_end_excuses_nothing(
    sandbox: Sandbox, code: int | None
) -> None:
    """It reported each test, and then hung, or ended with another exit code."""
    calculator(sandbox, Step("quick.txt"))
    sandbox.flags = {"test_timeout": 0.01}
    programs = FakePrograms()

    def spoil(ended: Ended) -> None:
        if not (sandbox.root / "quick.txt").exists():
            ended.hangs, ended.code = code is None, code or 0

    programs.at_end = spoil
    sandbox.run_program = programs
    events = await run_all(sandbox.replies(says("quick.txt", "x")))
    assert_no_excuse(sandbox, events)


ENDED_IN_A_TEST = """\
import os, pytest

def pytest_runtest_logreport(report):
    is_sub = report.nodeid.endswith("test_sub") and report.when == "call"
    if is_sub and not os.path.exists("quick.txt"):
        pytest.exit("enough", returncode=2)
"""
DIED_IN_A_TEST = """\
import os

def pytest_runtest_logreport(report):
    is_sub = report.nodeid.endswith("test_sub") and report.when == "teardown"
    if is_sub and not os.path.exists("quick.txt"):
        os._exit(1)
"""
"""With the exit code of tests that fail."""


@pytest.mark.story
@pytest.mark.parametrize("conftest", [ENDED_IN_A_TEST, DIED_IN_A_TEST])
async def test_a_baseline_that_ended_in_a_test_excuses_nothing(
    sandbox: Sandbox, conftest: str
) -> None:
    calculator(sandbox, Step("quick.txt"), conftest_dot_py=conftest)
    events = await run_all(sandbox.replies(says("quick.txt", "x")))
    assert_no_excuse(sandbox, events)


def assert_no_excuse(sandbox: Sandbox, events: list[Event]) -> None:
    taken = of(BaselineTaken, events)[0]
    assert taken.problem
    assert (taken.passed, taken.failed, taken.skipped) == (None, None, None)
    assert sandbox.statuses() == ["failed"]
    assert SUB in (of(StepFinished, events)[0].error or "")


@pytest.mark.story
async def test_nor_by_one_that_a_test_has_ended_with_the_exit_code_of_success(
    sandbox: Sandbox,
) -> None:
    """Only that its report has no end tells of it."""
    tests = (
        "import os, unittest\n"
        "from calc import add, sub\n\n\n"
        "class TestCalc(unittest.TestCase):\n"
        "    def test_add(self):\n"
        "        self.assertEqual(sub(3, 1), 2)\n\n"
        "    def test_sub(self):\n"
        "        os.path.exists('quick.txt') or os._exit(0)\n"
    )
    calculator(sandbox, Step("quick.txt"), test_calc_dot_py=tests)
    sandbox.flags = {"test_command": "python -m unittest test_calc"}

    events = await run_all(sandbox.replies(says("quick.txt", "x")))

    taken = of(BaselineTaken, events)[0]
    assert taken.problem
    assert (taken.return_code, taken.passed, taken.failed) == (0, None, None)
    assert sandbox.statuses() == ["failed"]
    assert names(of(StepFinished, events)[0].error) == ["test_calc.py::TestCalc"]


def test_one_of_no_use_that_an_earlier_version_saved_with_tests_tells_nothing(
    tmp_path: Path,
) -> None:
    saved = {
        "step": 1,
        "command": "pytest",
        "problem": "it was ended",
        "tests": {"results": {SUB: "failed"}},
    }
    (tmp_path / "baseline.json").write_text(json.dumps(saved))
    loaded = Baseline.load(tmp_path / "baseline.json")
    assert loaded
    (earlier,) = loaded.runs
    assert earlier.run == CheckRun("pytest", problem="it was ended")
    assert loaded.tests == ()


def test_one_that_an_earlier_version_saved_is_known(tmp_path: Path) -> None:
    saved = {
        "step": 2,
        "command": "pytest",
        "return_code": 1,
        "tests": {"results": {SUB: "failed"}},
        "already": [[1, 1]],
    }
    (tmp_path / "baseline.json").write_text(json.dumps(saved))
    loaded = Baseline.load(tmp_path / "baseline.json")
    assert loaded
    assert loaded.tests == (SuiteRun(results={SUB: Result.FAILED}),)
    (earlier,) = loaded.runs
    assert (earlier.step, earlier.run.return_code, earlier.already) == (2, 1, ((1, 1),))


@each_row(
    ("test_command", "problem"),
    [
        ("pytest --no-such-option", "wrote no test report (exit code 4)"),
        ("no-such-tester", "Command not found"),
    ],
)
async def test_one_that_cannot_be_run_is_told_and_ends_nothing(
    sandbox: Sandbox, test_command: str, problem: str
) -> None:
    calculator(sandbox, Step("calc.py"), Step("calc.py", "pytest"))
    sandbox.flags = {"test_command": test_command}
    events = await run_all(sandbox.replies(gives(calc_dot_py=FIXED)))
    assert problem in of(BaselineTaken, events)[0].problem
    assert len(sandbox.model.requests) == 1


async def test_a_file_that_cannot_be_collected_does_not_hide_the_other_tests(
    sandbox: Sandbox,
) -> None:
    calculator(sandbox, tests__test_far_dot_py="import not_yet_there\n")
    events = await run_all(sandbox.replies(gives(calc_dot_py=BROKEN)))
    assert [(taken.passed, taken.failed) for taken in of(BaselineTaken, events)] == [
        (1, 2)
    ]
    error = of(StepFinished, events)[0].error or ""
    assert names(error) == [ADD, SUB, SUB]  # the last one failed before, too


# --- Being compared with it -----------------------------------------------------------


async def test_only_old_failures_are_no_pass_and_no_failure(
    sandbox: Sandbox, original: Path
) -> None:
    begun(sandbox, original, SECOND).replies(says("notes.txt", "x"))
    events = await run_all(sandbox)
    assert verifications(sandbox) == ["baseline"]
    finished = of(TestsFinished, events)[0]
    assert finished.reason.endswith(" step 1")
    assert [names(note) for note in finished.notes] == [[SUB]]
    assert of(RunFinished, events)[0].with_old_failures == 1
    (told,) = [
        text for event in of(StepFinished, events) for text, _ in describe(event)
    ]
    assert OUTCOME_WORDS[StepOutcome.OLD_FAILURES].remark in told


async def test_new_failures_are_told_before_old_ones(sandbox: Sandbox) -> None:
    calculator(
        sandbox,
        tests__test_old_dot_py="".join(
            f"\ndef test_{n}(): assert {n} < 0\n" for n in range(40)
        ),
    )
    sandbox.replies(gives(calc_dot_py=BROKEN), gives(calc_dot_py=FIXED))

    events = await run_all(sandbox, attempts=2)

    (failed,) = of(AttemptFailed, events)
    assert names(failed.error.splitlines()[0]) == [ADD, SUB, SUB]
    told = sandbox.prompt()
    assert f"\n- {ADD}\n- {SUB} (" in told
    assert "(40)" in told
    assert "assert add(1, 2) == 3" in told.partition("FAILURES")[0]
    assert verifications(sandbox) == ["baseline"]


async def test_what_a_step_made_pass_has_to_pass_in_the_next(
    sandbox: Sandbox, original: Path
) -> None:
    begun(sandbox, original, FIRST, FIRST).replies(
        gives(calc_dot_py=FIXED), gives(calc_dot_py=CALC + "# simpler\n")
    )
    events = await run_all(sandbox)
    assert sandbox.statuses() == ["completed", "failed"]
    assert SUB in (of(StepFinished, events)[1].error or "")


async def test_it_is_known_also_when_the_run_goes_on_in_another_process(
    sandbox: Sandbox, original: Path
) -> None:
    begun(sandbox, original, FIRST, FIRST)
    engine = sandbox.replies(gives(calc_dot_py=FIXED)).engine()
    step = engine.run.next_step
    assert step
    assert await collect(engine.run_step(step))
    engine.close()

    await run_all(sandbox.replies(gives(calc_dot_py=CALC + "# simpler\n")))

    assert sandbox.statuses() == ["completed", "failed"]


async def test_a_new_test_has_to_pass_and_to_stay(
    sandbox: Sandbox, original: Path
) -> None:
    new = "from calc import twice\n\n\ndef test_twice():\n    assert twice(2) == 4\n"
    two = Step("calc.py", also=("`tests/test_twice.py`",))
    begun(sandbox, original, two, two)
    sandbox.replies(
        gives(calc_dot_py=CALC, tests__test_twice_dot_py=new),
        gives(calc_dot_py=ASIDE, tests__test_twice_dot_py=new),
        gives(calc_dot_py=FIXED, tests__test_twice_dot_py="# not needed"),
    )
    events = await run_all(sandbox, attempts=2)
    errors = [failed.error for failed in of(AttemptFailed, events)]
    assert errors[0].split()[-1] == "tests/test_twice.py"
    assert names(errors[1]) == ["tests/test_twice.py::test_twice"]


async def test_what_went_with_leave_is_not_missed_by_later_steps(
    sandbox: Sandbox, original: Path
) -> None:
    removing = Step("calc.py", also=("`tests/test_calc.py` (moved to tests/unit)",))
    begun(sandbox, original, removing, SECOND)
    sandbox.replies(
        gives(tests__test_calc_dot_py=TESTS.replace(TEST_SUB, "")),
        says("notes.txt", "x"),
    )
    await run_all(sandbox)
    assert verifications(sandbox) == ["passed", "passed"]


async def test_guidance_that_names_a_test_gives_no_leave(
    sandbox: Sandbox, original: Path
) -> None:
    begun(sandbox, original, Step("tests/test_calc.py")).replies(
        gives(tests__test_calc_dot_py=TESTS.replace(TEST_SUB, ""))
    )
    engine = sandbox.engine()
    step = engine.run.next_step
    assert step
    events = await collect(
        engine.run_step(step, guidance="Delete test_sub, it is wrong.")
    )
    engine.close()
    assert of(StepFinished, events)[0].status is StepStatus.FAILED


async def test_what_was_kept_of_a_skipped_step_is_accepted(
    sandbox: Sandbox, original: Path
) -> None:
    begun(sandbox, original, FIRST, SECOND).replies(
        gives(calc_dot_py=BROKEN), says("notes.txt", "x")
    )
    await run_all(sandbox)
    engine = sandbox.engine()
    step = engine.run.next_step
    assert step
    assert await collect(engine.skip(step, "I know", keep=True))
    events = await collect(engine.run_all())
    engine.close()
    assert of(StepFinished, events)[0].verification is Verification.BASELINE


async def test_a_check_that_names_tests_has_to_pass_whatever_was_before(
    sandbox: Sandbox, original: Path
) -> None:
    """The step is for them. A check that runs everything is for nothing in
    particular.
    """
    begun(sandbox, original, Step("notes.txt", "pytest tests/test_calc.py"))
    events = await run_all(sandbox.replies(says("notes.txt", "x")))
    assert SUB in (of(StepFinished, events)[0].error or "")
    assert of(TestsFinished, events)[0].notes == ()

    sandbox.write(Step("notes.txt", "pytest -q"), Step("more.txt", "pytest tests"))
    await run_all(sandbox.replies(says("notes.txt", "x"), says("more.txt", "x")))
    assert verifications(sandbox) == ["baseline", "baseline"]


async def test_a_narrower_check_misses_only_what_it_would_run(sandbox: Sandbox) -> None:
    other = "def test_other(): pass\n"
    narrow = Step(
        "calc.py", "pytest tests/test_calc.py", also=("`tests/test_calc.py`",)
    )
    calculator(sandbox, narrow, narrow, tests__test_other_dot_py=other)
    gone = TESTS.replace(TEST_ADD, "")
    sandbox.replies(
        gives(calc_dot_py=FIXED), gives(calc_dot_py=ASIDE, tests__test_calc_dot_py=gone)
    )
    events = await run_all(sandbox)
    assert sandbox.statuses() == ["completed", "failed"]
    assert names(of(StepFinished, events)[1].error) == [ADD]


async def test_another_program_that_failed_before_cannot_pass_and_that_is_said(
    sandbox: Sandbox,
) -> None:
    sandbox.flags = {
        "test_command": f'{sys.executable} -c "import calc; assert calc.sub(3, 1) == 2"'
    }
    calculator(sandbox).replies(
        gives(calc_dot_py=CALC + "# better\n"), gives(calc_dot_py=FIXED)
    )
    events = await run_all(sandbox, attempts=2)
    taken = of(BaselineTaken, events)[0]
    assert (taken.return_code, taken.passed) == (1, None)
    assert "exit code 1" in describe(taken)[0][0]
    assert of(AttemptFailed, events)[0].error.endswith(" step 1")
    assert verifications(sandbox) == ["exit_code"]


async def test_the_output_is_kept_whole_and_without_our_own_line(
    sandbox: Sandbox, original: Path
) -> None:
    begun(sandbox, original, FIRST).replies(gives(calc_dot_py=FIXED))
    events = await run_all(sandbox)
    output = (
        sandbox.root / ".cdd/runs" / SLUG / "step-01/attempt-1/output.txt"
    ).read_text()
    assert "2 passed" in output
    assert "xml" not in output + "".join(
        event.text for event in of(CommandOutput, events)
    )


# --- Words ----------------------------------------------------------------------------


@each_row(
    ("code", "counts", "problem", "words", "tone"),
    [
        (0, (12, 0, 0), "", "Before step 1, `t`: 12 passed (1.0 s)", Tone.PLAIN),
        (
            1,
            (12, 3, 1),
            "",
            (
                "`t`: 12 passed, 3 failed, 1 skipped. These existing failures"
                " won't count against unrelated steps"
            ),
            Tone.PLAIN,
        ),
        (5, (0, 0, 0), "", "Before step 1, `t`: found no tests (1.0 s)", Tone.PLAIN),
        (0, (None, None, None), "", "Before step 1, `t`: passed (1.0 s)", Tone.PLAIN),
        (2, (None, None, None), "", "`t` already fails (exit code 2)", Tone.WARNING),
        (
            None,
            (None, None, None),
            "it was ended.",
            "`t` gave no usable result: it was ended. Every failure",
            Tone.WARNING,
        ),
    ],
)
def test_what_is_said_of_it(
    code: int | None,
    counts: tuple[int | None, int | None, int | None],
    problem: str,
    words: str,
    tone: Tone,
) -> None:
    passed, failed, skipped = counts
    ((text, said),) = describe(
        BaselineTaken(1, "t", code, passed, failed, skipped, 1.0, problem)
    )
    assert words in text
    assert said is tone
