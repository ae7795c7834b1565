"""Verifying a ticket again shows what of its completed steps no longer holds, and
changes nothing.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from cdd_agent.commands.registry import handle
from cdd_agent.errors import BadInput, NotApproved
from cdd_agent.events.step_events import CommandOutput, TestsFinished, TestsStarted
from cdd_agent.events.stream import Event
from cdd_agent.events.verify_events import (
    StepResult,
    VerifiedStep,
    VerifyFinished,
    VerifyStarted,
)
from tests.engine.calculator import (
    FIXED,
    SUB,
    calculator,
    gives,
)
from tests.git.checkpoints import write
from tests.support.projects import SLUG, Copied, Sandbox, Step, check, run_all
from tests.support.tables import each_row

PYTEST = "python -m pytest -q tests"
NEW = "def test_new():\n    assert True\n"
NEW_TEST = "tests/test_new.py::test_new"
STEPS = (
    Step("calc.py", PYTEST),
    Step("tests/test_new.py", PYTEST),
    Step("notes.txt", check("notes.txt")),
    Step("words.txt", "none"),
)
Change = Callable[[Path], object]


async def make_done(sandbox: Sandbox) -> None:
    """All four steps are completed; the last one has no check."""
    calculator(sandbox, *STEPS)
    sandbox.replies(
        gives(calc_dot_py=FIXED),
        gives(tests__test_new_dot_py=NEW),
        gives(notes_dot_txt="good"),
        gives(words_dot_txt="words"),
    )
    await run_all(sandbox)
    assert set(sandbox.statuses()) == {"completed"}


@pytest.fixture
async def done(copied: Copied) -> Sandbox:
    return await copied(make_done)


async def verify(sandbox: Sandbox) -> tuple[VerifyFinished, list[Event]]:
    events: list[Event] = []
    session = sandbox.session(events.append)
    await session.verify(session.project.tickets.find(SLUG))
    (finished,) = (event for event in events if isinstance(event, VerifyFinished))
    return finished, events


def findings(step: VerifiedStep) -> dict[str, tuple[str, ...]]:
    """What no longer holds of a step, without its checks' words."""
    found = {name: getattr(step, name) for name in ("checks", "failed", "lost")}
    if step.missing:
        found["missing"] = (*step.missing.missing, *step.missing.reverted)
    return {name: value for name, value in found.items() if value}


def broken(finished: VerifyFinished) -> dict[str, dict[str, tuple[str, ...]]]:
    return {step.label: findings(step) for step in finished.broken}


@each_row(
    "change, expected",
    [
        (lambda root: None, {}),
        (lambda root: write(root, {"calc.py": FIXED + "# more\n"}), {}),
        (lambda root: write(root, {"notes.txt": "good, and more"}), {}),
        (
            lambda root: write(root, {"calc.py": FIXED.replace("a - b", "a / b")}),
            {"1": {"failed": (SUB,)}, "2": {"failed": (SUB,)}},
        ),
        (
            lambda root: write(root, {"tests/test_new.py": "import nothing_like_this"}),
            {"2": {"failed": (NEW_TEST,)}},
        ),
        (
            lambda root: write(root, {"tests/test_new.py": "def test_else(): pass\n"}),
            {"2": {"lost": (NEW_TEST,)}},
        ),
        (
            lambda root: write(root, {"tests/test_new.py": None}),
            {"2": {"lost": (NEW_TEST,), "missing": ("tests/test_new.py",)}},
        ),
        (
            lambda root: write(
                root,
                {"tests/test_new.py": f"import pytest\n\n\n@pytest.mark.skip\n{NEW}"},
            ),
            {"2": {"lost": (NEW_TEST,)}},
        ),
        (
            lambda root: write(root, {"notes.txt": "bad"}),
            {"3": {"checks": (check("notes.txt"),)}},
        ),
        (
            lambda root: write(root, {"notes.txt": None}),
            {"3": {"checks": (check("notes.txt"),), "missing": ("notes.txt",)}},
        ),
        (
            lambda root: write(root, {"words.txt": None}),
            {"4": {"missing": ("words.txt",)}},
        ),
        (
            lambda root: write(root, {"tests/test_mine.py": "def test(): assert 0\n"}),
            {},
        ),
    ],
    ids=[
        "nothing has changed",
        "an edit that keeps the tests",
        "an edit that keeps the check",
        "a test fails",
        "a test file that cannot be collected",
        "a test is gone",
        "a test file is gone",
        "a test is skipped",
        "a check without tests fails",
        "the file of a check is gone",
        "the file of a step without a check is gone",
        "a test of the user fails",
    ],
)
async def test_what_no_longer_holds_is_named_by_step(
    done: Sandbox, change: Change, expected: dict[str, dict[str, tuple[str, ...]]]
) -> None:
    change(done.root)
    finished, _ = await verify(done)
    assert broken(finished) == expected


async def test_failures_of_no_step_are_named_apart(done: Sandbox) -> None:
    write(done.root, {"tests/test_mine.py": "def test_mine():\n    assert 0\n"})
    finished, _ = await verify(done)
    assert finished.other_failures == ("tests/test_mine.py::test_mine",)
    assert finished.checks[0].has_failed


async def test_steps_without_proof_are_named_as_such(sandbox: Sandbox) -> None:
    steps = (*STEPS[2:], Step("more.txt", check("more.txt")), Step("last.txt", "none"))
    calculator(sandbox.in_process(), *steps)
    sandbox.replies(
        gives(notes_dot_txt="good"),
        gives(words_dot_txt="words"),
        gives(more_dot_txt="bad"),
    )
    await run_all(sandbox)
    engine = sandbox.engine()
    await engine.skip(engine.run.plan.steps[2], "not now", keep=False)
    engine.close()
    finished, _ = await verify(sandbox)
    assert [step.result for step in finished.steps] == [
        StepResult.HOLDS,
        StepResult.UNVERIFIED,
        StepResult.SKIPPED,
        StepResult.OPEN,
    ]


async def test_each_distinct_check_runs_once(done: Sandbox) -> None:
    finished, events = await verify(done)
    started = [event.command for event in events if isinstance(event, TestsStarted)]
    assert started == [PYTEST, check("notes.txt")]
    assert [one.steps for one in finished.checks] == [("1", "2"), ("3",)]
    assert [
        type(event) for event in events if not isinstance(event, CommandOutput)
    ] == [
        VerifyStarted,
        *[TestsStarted, TestsFinished] * 2,
        VerifyFinished,
    ]
    assert any(isinstance(event, CommandOutput) for event in events)


async def test_old_failures_still_hold(sandbox: Sandbox) -> None:
    calculator(sandbox.in_process(), Step("notes.txt", description="Write notes."))
    await run_all(sandbox.replies(gives(notes_dot_txt="good")))
    assert sandbox.state()["step_executions"]["1"]["verification"] == "baseline"
    finished, _ = await verify(sandbox)
    assert [step.result for step in finished.steps] == [StepResult.HOLDS]


async def test_a_step_whose_check_is_gone_does_not_hold(sandbox: Sandbox) -> None:
    """Its tests were found by the project's files."""
    calculator(sandbox.in_process(), Step("calc.py"))
    await run_all(sandbox.replies(gives(calc_dot_py=FIXED)))
    write(sandbox.root, {"tests": None, "pyproject.toml": None})
    finished, _ = await verify(sandbox)
    assert finished.checks == ()
    assert [step.has_lost_check for step in finished.broken] == [True]


async def test_a_step_whose_check_runs_no_tests_any_more_does_not_hold(
    done: Sandbox,
) -> None:
    plan = done.ticket / "plan.md"
    text = plan.read_text().replace(PYTEST, 'python -c "print(1)"')
    plan.write_text(text)
    finished, _ = await verify(done)
    assert [step.step for step in finished.broken if step.has_lost_check] == [1, 2]
    assert finished.steps[2].result is StepResult.HOLDS


@each_row(
    "command, result",
    [
        ('python -c "import time; time.sleep(99)"', StepResult.BROKEN),
        ("no-such-program-at-all", StepResult.BROKEN),
    ],
    ids=["a check that hangs", "a program that is missing"],
)
async def test_a_check_that_gives_no_result_does_not_hold(
    done: Sandbox, command: str, result: StepResult
) -> None:
    plan = done.ticket / "plan.md"
    plan.write_text(plan.read_text().replace(check("notes.txt"), command))
    done.flags = {"commands": {"allow": ["no-such-program-at-all"]}, "test_timeout": 1}
    finished, _ = await verify(done)
    assert finished.steps[2].result is result


async def test_nothing_changes(done: Sandbox) -> None:
    """Also where a check writes into the project."""
    writes = "python -c \"open('calc.py', 'w').write('x'); open('new.txt', 'w')\""
    plan = done.ticket / "plan.md"
    plan.write_text(plan.read_text().replace(check("notes.txt"), writes))
    before = everything(done.root)
    await verify(done)
    assert everything(done.root) == before


def everything(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and ".private" not in path.parts
    }


async def test_a_ticket_without_a_completed_step_is_refused(sandbox: Sandbox) -> None:
    calculator(sandbox.in_process(), *STEPS)
    with pytest.raises(BadInput):
        await verify(sandbox)


async def test_a_check_that_must_be_approved_is_asked_about(done: Sandbox) -> None:
    plan = done.ticket / "plan.md"
    plan.write_text(plan.read_text().replace(check("notes.txt"), "some-program"))
    done.flags = {"commands": {"mode": "ask"}}
    with pytest.raises(NotApproved):
        await verify(done)


async def test_the_shell_verifies_the_ticket_that_a_line_names(done: Sandbox) -> None:
    events: list[Event] = []
    session = done.session(events.append)
    with pytest.raises(BadInput):
        await handle(session, "/verify")
    await handle(session, f"/verify {SLUG}")
    assert any(isinstance(event, VerifyFinished) for event in events)
