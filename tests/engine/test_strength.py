"""Small faults in the lines of completed steps show how strong their tests are. The
user's files stay, and what was measured is saved.
"""

import asyncio
from pathlib import Path, PurePosixPath

import pytest

from cdd_agent.commands.registry import handle
from cdd_agent.engine.criteria import criteria_of
from cdd_agent.engine.step_faults import read_text_of
from cdd_agent.engine.strength_summary import StrengthSettings
from cdd_agent.errors import BadInput
from cdd_agent.events.stream import Event
from cdd_agent.events.strength_events import (
    FaultTried,
    StepStrength,
    Strength,
    StrengthFinished,
    StrengthStarted,
)
from cdd_agent.files.charsets import Charsets
from cdd_agent.files.text import encode_file
from cdd_agent.llm.port import QuotaUsedUp
from cdd_agent.text.redaction import Redactor
from cdd_agent.verification.strength.faults import faults_in
from tests.engine.calculator import calculator, gives
from tests.support.listening import collect
from tests.support.projects import SLUG, Copied, Sandbox, Step, run_all
from tests.support.tables import each_row

PYTEST = "python -m pytest -q tests"
AGE = "def is_adult(age):\n    return age >= 18\n"
WEAK = "from age import is_adult\n\n\ndef test_it():\n    assert is_adult(30)\n"
STRONG = f"{WEAK}    assert is_adult(18)\n    assert not is_adult(17)\n"
STEPS = (
    Step("age.py", PYTEST, also=("- `tests/test_age.py`",)),
    Step("notes.md", "none"),
)


async def make_weak(sandbox: Sandbox) -> None:
    """Two steps are completed. The test of the first one checks little."""
    calculator(sandbox, *STEPS, calc_dot_py="def add(a, b):\n    return a + b\n")
    (sandbox.root / "tests" / "test_calc.py").unlink()
    sandbox.replies(
        gives(age_dot_py=AGE, tests__test_age_dot_py=WEAK), gives(notes_dot_md="Yes.")
    )
    await run_all(sandbox)
    assert set(sandbox.statuses()) == {"completed"}


@pytest.fixture
async def weak(copied: Copied) -> Sandbox:
    return await copied(make_weak)


async def measure(sandbox: Sandbox) -> tuple[StrengthFinished, list[Event]]:
    events: list[Event] = []
    session = sandbox.session(events.append)
    ticket = session.project.tickets.find(SLUG)
    await session.verify(ticket, strength=True)
    (finished,) = (event for event in events if isinstance(event, StrengthFinished))
    return finished, events


def tries(events: list[Event]) -> list[FaultTried]:
    return [event for event in events if isinstance(event, FaultTried)]


def unnoticed(step: StepStrength) -> list[tuple[str, int, str]]:
    return [(one.path, one.line, one.words) for one in step.unnoticed]


def private_trees(root: Path) -> list[str]:
    folder = root / ".cdd" / "runs" / ".private"
    return [path.name for path in folder.glob("*") if path.name != "lock"]


async def test_faults_that_a_weak_test_does_not_notice(weak: Sandbox) -> None:
    before = {path: path.read_bytes() for path in weak.root.glob("*.py")}
    finished, events = await measure(weak)
    first, second = finished.steps
    assert first.strength == Strength(2, 4)
    assert unnoticed(first) == [
        ("age.py", 2, "`>=` became `>`"),
        ("age.py", 2, "`18` became `19`"),
    ]
    assert {one.source for one in first.unnoticed} == {"return age >= 18"}
    assert (second.strength, second.problem) == (None, "")
    started = next(event for event in events if isinstance(event, StrengthStarted))
    assert (started.faults, started.saved) == (4, 0)
    assert [event.tried for event in tries(events)] == [1, 2, 3, 4]
    assert tries(events)[-1].noticed == 2
    assert {path: path.read_bytes() for path in weak.root.glob("*.py")} == before
    assert private_trees(weak.root) == []


async def test_a_strong_test_notices_all_and_a_new_test_is_measured(
    weak: Sandbox,
) -> None:
    await measure(weak)
    (weak.root / "tests" / "test_age.py").write_text(STRONG)
    finished, events = await measure(weak)
    assert finished.steps[0].strength == Strength(4, 4)
    assert len(tries(events)) == 4


@each_row("codec", ["cp1252", "utf-16", "utf-8-sig", "gbk"])
async def test_faults_keep_the_encoding_of_the_file(
    sandbox: Sandbox, codec: str
) -> None:
    comment = "# 已经退款给客户\n" if codec == "gbk" else "# Schöne Grüße\n"
    place = sandbox.root / "age.py"
    place.write_bytes(
        f"{comment}def is_adult(age):\n    return age >= 18\n".encode(codec)
    )
    charsets = Charsets(sandbox.root)
    path = PurePosixPath("age.py")
    text = read_text_of(sandbox.root, path, charsets)
    assert text is not None
    (fault, *_) = faults_in("age.py", text.text, frozenset({3}))
    data = encode_file(path, fault.apply(text.text), text, charsets)
    assert data.decode(codec).startswith(comment)
    assert data != place.read_bytes()


async def test_a_second_run_costs_nothing(weak: Sandbox) -> None:
    first, _ = await measure(weak)
    weak.run_program = None  # a check would start a process, which a unit test must not
    second, events = await measure(weak)
    assert second == first
    assert tries(events) == []
    started = next(event for event in events if isinstance(event, StrengthStarted))
    assert (started.faults, started.saved) == (4, 4)


async def test_documents_do_not_outdate_results(weak: Sandbox) -> None:
    await measure(weak)
    (weak.root / "notes.md").write_text("No.")
    _, events = await measure(weak)
    assert tries(events) == []


async def test_the_most_faults_of_a_step(weak: Sandbox) -> None:
    weak.flags["strength_faults"] = 1
    finished, events = await measure(weak)
    assert len(tries(events)) == 1
    assert finished.steps[0].strength is not None
    assert finished.steps[0].strength.faults == 1
    weak.flags["strength_faults"] = 3
    finished, events = await measure(weak)
    assert len(tries(events)) == 2, "the first result is saved"
    assert finished.steps[0].strength.faults == 3


async def test_the_time_for_a_step(weak: Sandbox) -> None:
    weak.flags["strength_seconds"] = 1e-9
    finished, events = await measure(weak)
    assert tries(events) == []
    assert (finished.steps[0].strength, finished.steps[0].untried) == (None, 4)


async def test_a_score_below_the_setting_is_weak(weak: Sandbox) -> None:
    weak.flags["strength"] = 50
    finished, _ = await measure(weak)
    assert finished.threshold == 50
    assert finished.steps[0].strength == Strength(2, 4)
    weak.flags["strength"] = 51
    finished, _ = await measure(weak)
    assert finished.steps[0].strength == Strength(2, 4, is_weak=True)


async def test_a_check_that_fails_without_a_fault(weak: Sandbox) -> None:
    (weak.root / "tests" / "test_age.py").write_text(
        STRONG.replace("is_adult(17)", "is_adult(18)")
    )
    finished, events = await measure(weak)
    assert tries(events) == []
    assert finished.steps[0].strength is None
    problem = f"`{PYTEST}` does not pass without a fault (exit code 1)"
    assert finished.steps[0].problem == problem


async def test_a_check_that_faults_break_for_good(weak: Sandbox) -> None:
    """The results of a check that fails ever after are no results."""
    leaves = "import pathlib\nif not is_adult(18):\n    pathlib.Path('left').touch()\n"
    test = f"{STRONG}\n\n{leaves}\n\ndef test_left():\n    assert not LEFT.exists()\n"
    test = test.replace(
        "\n\ndef test_it",
        "\nLEFT = __import__('pathlib').Path('left')\n\n\ndef test_it",
    )
    (weak.root / "tests" / "test_age.py").write_text(test)
    finished, events = await measure(weak)
    assert len(tries(events)) == 4
    assert finished.steps[0].strength is None
    assert "no longer pass" in finished.steps[0].problem
    _, again = await measure(weak)
    assert len(tries(again)) == 4, "nothing was saved"


async def test_a_line_belongs_to_the_last_step_that_changed_it(
    sandbox: Sandbox,
) -> None:
    later = AGE.replace("18", "21") + "\n\ndef is_child(age):\n    return age < 12\n"
    steps = (STEPS[0], Step("age.py", PYTEST))
    calculator(sandbox, *steps, calc_dot_py="")
    (sandbox.root / "tests" / "test_calc.py").unlink()
    sandbox.replies(
        gives(age_dot_py=AGE, tests__test_age_dot_py=WEAK), gives(age_dot_py=later)
    )
    await run_all(sandbox)
    finished, _ = await measure(sandbox)
    first, second = finished.steps
    assert first.strength is None, "its line was changed again"
    assert second.strength is not None
    assert {line for _, line, _ in unnoticed(second)} == {2, 6}


async def test_a_line_that_came_back_belongs_to_the_step_that_brought_it(
    sandbox: Sandbox,
) -> None:
    steps = (STEPS[0], Step("age.py", PYTEST), Step("age.py", PYTEST))
    calculator(sandbox, *steps, calc_dot_py="")
    (sandbox.root / "tests" / "test_calc.py").unlink()
    sandbox.replies(
        gives(age_dot_py=AGE, tests__test_age_dot_py=WEAK),
        gives(age_dot_py="def is_adult(age):\n    return True\n"),
        gives(age_dot_py=AGE),
    )
    await run_all(sandbox)
    finished, _ = await measure(sandbox)
    strengths = [step.strength for step in finished.steps]
    assert strengths == [None, None, Strength(2, 4)]


async def test_an_edit_of_the_user_belongs_to_no_step(weak: Sandbox) -> None:
    edited = AGE.replace("18", "21") + "\n\ndef more(a):\n    return a > 1\n"
    (weak.root / "age.py").write_text(edited)
    finished, events = await measure(weak)
    assert tries(events) == []
    assert finished.steps[0].strength is None


async def test_no_completed_step(sandbox: Sandbox) -> None:
    calculator(sandbox, *STEPS)
    with pytest.raises(BadInput, match="no completed step"):
        await measure(sandbox)


async def test_stopped_half_way(weak: Sandbox) -> None:
    events: list[Event] = []

    def hear(event: Event) -> None:
        events.append(event)
        if len(tries(events)) == 2:
            work.cancel()

    session = weak.session(hear)
    ticket = session.project.tickets.find(SLUG)
    work = asyncio.ensure_future(session.verify(ticket, strength=True))
    with pytest.raises(asyncio.CancelledError):
        await work
    finished = events[-1]
    assert isinstance(finished, StrengthFinished)
    assert finished.was_stopped
    assert finished.steps[0].strength is not None
    assert (finished.steps[0].strength.faults, finished.steps[0].untried) == (2, 2)
    assert private_trees(weak.root) == []
    _, again = await measure(weak)
    assert len(tries(again)) == 2


async def test_a_torn_line_does_not_count(weak: Sandbox) -> None:
    await measure(weak)
    saved = weak.root / ".cdd" / "runs" / SLUG / "strength.jsonl"
    saved.write_bytes(saved.read_bytes()[:-20])
    finished, events = await measure(weak)
    assert len(tries(events)) == 1
    assert finished.steps[0].strength == Strength(2, 4)


def criterion_strengths(sandbox: Sandbox) -> list[Strength | None]:
    project = sandbox.project
    ticket = project.tickets.find(SLUG)
    settings = StrengthSettings.from_config(project.config)
    shown = criteria_of(ticket.read_spec(), ticket, Redactor(), settings)
    return [criterion.strength for criterion in shown.criteria]


def serve_first_criterion(sandbox: Sandbox) -> None:
    plan = sandbox.ticket / "plan.md"
    text = plan.read_text().replace("**Verify:**", "**Serves:** 1\n**Verify:**", 1)
    plan.write_text(text)


@each_row(("setting", "is_shown"), [(50, False), (51, True)])
async def test_the_planner_sees_what_weak_tests_did_not_notice(
    weak: Sandbox, setting: int, is_shown: bool
) -> None:
    serve_first_criterion(weak)
    await measure(weak)
    weak.flags["strength"] = setting
    weak.replies(QuotaUsedUp("Nothing is left"))
    session = weak.session()
    await collect(handle(session, f"/plan {SLUG}"))
    with pytest.raises(QuotaUsedUp):
        await collect(handle(session, "more tests"))
    prompt = weak.prompt()
    assert ("\n# Weak tests\n" in prompt) is is_shown
    fault = "- age.py:2, `>=` became `>`: `return age >= 18`"
    assert (fault in prompt) is is_shown


async def test_criteria_show_the_score_of_the_current_files(weak: Sandbox) -> None:
    serve_first_criterion(weak)
    assert set(criterion_strengths(weak)) == {None}
    finished, _ = await measure(weak)
    assert criterion_strengths(weak)[0] == Strength(2, 4)
    assert [one.strength for one in finished.criteria] == [Strength(2, 4)]
    with (weak.root / "age.py").open("a") as file:
        file.write("\nx = 1\n")
    assert set(criterion_strengths(weak)) == {None}
