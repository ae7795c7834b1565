"""States that an earlier tool wrote are taken over: what is done stays done, word for
word, and is unverified.
"""

import json
from typing import Any

import pytest

from cdd_agent.cli.main import main
from cdd_agent.commands.registry import handle
from cdd_agent.engine.engine import Engine
from cdd_agent.engine.undo import ChangesUnknown
from cdd_agent.errors import BadInput
from cdd_agent.events.notices import NoticeKind
from cdd_agent.events.run_events import RunFinished
from cdd_agent.events.step_events import StepStarted, StepsUndone
from cdd_agent.events.stream import Event
from cdd_agent.wording.describe import describe
from tests.support.listening import collect, told_to
from tests.support.projects import SLUG, Sandbox, Step, notice, run_all, says
from tests.support.tables import each_row

FOUR = tuple(Step(f"{name}.txt", tested="good") for name in "abcd")
PROMISED = (
    "step_number",
    "status",
    "started_at",
    "completed_at",
    "error",
    "files_created",
    "files_modified",
)


def done(number: int, **other: Any) -> dict[str, Any]:
    """A step as the earlier tool kept it: local times without a zone."""
    return {
        "step_number": number,
        "status": "completed",
        "started_at": f"2025-12-04T10:0{number}:00.120000",
        "completed_at": f"2025-12-04T10:0{number}:30.500000",
        "error": None,
        "files_created": [f"{'abcd'[number - 1]}.txt"],
        "files_modified": [],
        **other,
    }


def older(
    status: str, current: int, *steps: dict[str, Any], completed_at: str | None = None
) -> dict[str, Any]:
    return {
        "ticket_slug": SLUG,
        "current_step": current,
        "step_executions": {str(step["step_number"]): step for step in steps},
        "started_at": "2025-12-04T10:00:00.250000",
        "completed_at": completed_at,
        "status": status,
    }


SKIPPED = done(2, files_created=[])
PENDING = done(
    3, status="pending", started_at=None, completed_at=None, files_created=[]
)
UNDER_WAY = PENDING | {"status": "in_progress", "started_at": "2025-12-04T10:03:00"}
FAILED = PENDING | {
    "status": "failed",
    "started_at": "2025-12-04T10:03:00",
    "error": "no such file",
}
PAUSED = older("paused", 3, done(1), SKIPPED, PENDING)


def lay(sandbox: Sandbox, state: dict[str, Any], *steps: Step) -> Sandbox:
    sandbox.write(*(steps or FOUR))
    (sandbox.ticket / "execution-state.json").write_text(json.dumps(state, indent=2))
    for step in state["step_executions"].values():
        for path in step["files_created"]:
            (sandbox.root / path).write_text("good\n")
    return sandbox


def promised(step: dict[str, Any]) -> dict[str, Any]:
    return {key: step[key] for key in PROMISED}


@each_row(
    "state",
    [
        PAUSED,
        older("in_progress", 3, done(1), SKIPPED, UNDER_WAY),
        older("failed", 3, done(1), SKIPPED, FAILED),
        older("in_progress", 3, done(1), SKIPPED),
    ],
    ids=["paused", "under way", "failed", "the rest is missing"],
)
async def test_a_run_of_an_earlier_tool_goes_on_and_its_done_steps_stay_as_they_are(
    sandbox: Sandbox, state: dict[str, Any]
) -> None:
    lay(sandbox, state)
    events = await run_all(
        sandbox.replies(says("c.txt", "good"), says("d.txt", "good"))
    )
    assert [event.step for event in events if isinstance(event, StepStarted)] == [3, 4]
    now = sandbox.state()
    assert [promised(now["step_executions"][key]) for key in "12"] == [done(1), SKIPPED]
    assert now["started_at"] == state["started_at"]
    (finished,) = [event for event in events if isinstance(event, RunFinished)]
    assert (finished.completed, finished.unverified) == (4, 2)
    verified = [step["verification"] for step in now["step_executions"].values()]
    assert verified == ["none", "none", "passed", "passed"]


async def test_a_finished_one_that_still_says_in_progress_is_done_and_unverified(
    sandbox: Sandbox,
) -> None:
    state = older("in_progress", 5, *map(done, range(1, 5)))
    events = await run_all(lay(sandbox, state))
    (finished,) = [event for event in events if isinstance(event, RunFinished)]
    assert (finished.status.value, finished.completed, finished.unverified) == (
        "completed",
        4,
        4,
    )
    assert sandbox.model.requests == []


def opening(sandbox: Sandbox) -> list[Event]:
    """The events that tell how a run was opened."""
    engine, events = sandbox.engine(), list[Event]()
    with told_to(events.append):
        engine.run.report_opening()
    engine.close()
    return events


async def test_it_is_taken_over_once_with_a_copy_and_that_is_told(
    sandbox: Sandbox,
) -> None:
    def opened() -> list[Event]:
        return opening(sandbox)

    lay(sandbox, PAUSED)
    assert "2 of 4" in notice(opened(), NoticeKind.STATE_RECOVERED)
    assert opened() == []
    assert sandbox.statuses()[:2] == ["completed", "completed"]
    (sandbox.ticket / "execution-state.json").unlink()
    assert "2 of 4" in notice(opened(), NoticeKind.STATE_RECOVERED)


async def test_a_state_of_this_version_is_never_said_to_be_of_an_earlier_one(
    sandbox: Sandbox,
) -> None:
    engine = sandbox.write(*FOUR).engine()
    await collect(engine.skip(engine.run.plan.steps[0], "not now", keep=False))
    engine.close()
    file = sandbox.ticket / "execution-state.json"
    # one that did not keep the words of what was skipped, too
    for words in ({}, {"title": None, "fingerprint": None}):
        state = sandbox.state()
        state["step_executions"]["1"] |= words
        file.write_text(json.dumps(state))
        assert opening(sandbox) == []
        assert sandbox.state()["step_executions"]["1"]["title"] == "Make a.txt"


async def test_from_then_on_its_steps_are_known_by_their_words(
    sandbox: Sandbox,
) -> None:
    lay(sandbox, PAUSED).engine().close()
    sandbox.write(Step("x.txt"), Step("y.txt"), *FOUR[2:])
    with pytest.raises(BadInput, match="another plan"):
        sandbox.engine()


async def test_what_it_changed_is_unknown_here_and_only_no_change_can_be_undone(
    sandbox: Sandbox,
) -> None:
    async def undone(engine: Engine) -> list[tuple[int, ...]]:
        try:
            return [
                event.steps
                for event in await collect(engine.undo())
                if isinstance(event, StepsUndone)
            ]
        finally:
            engine.close()

    lay(sandbox, PAUSED)
    assert await undone(sandbox.engine()) == [(2,)]
    with pytest.raises(ChangesUnknown, match="Step 1"):
        await undone(sandbox.engine())
    assert sandbox.text("a.txt") == "good\n"


def cdd(sandbox: Sandbox, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert main([*words, "-C", str(sandbox.root)]) == 0
    printed = capsys.readouterr()
    return printed.out + printed.err


@each_row("is_opened", [False, True])
async def test_no_face_shows_its_steps_as_verified(
    sandbox: Sandbox, is_opened: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    lay(sandbox, PAUSED)
    if is_opened:
        engine = sandbox.engine()
        (line,) = [
            text for text, _ in describe(engine.run.opened()) if "1. Make a.txt" in text
        ]
        assert "unverified" in line
        engine.close()
    assert cdd(sandbox, capsys, "status", SLUG).count("(unverified)") == 2
    (opened,) = [
        json.loads(line)
        for line in cdd(sandbox, capsys, "status", SLUG, "--json").splitlines()
    ]
    assert [step["verification"] for step in opened["steps"]] == [
        "none",
        "none",
        None,
        None,
    ]


async def test_the_report_shows_them_as_unverified(sandbox: Sandbox) -> None:
    lay(sandbox, older("paused", 2, done(1)), *FOUR[:2])
    session = sandbox.replies(says("b.txt", "good")).session()
    await collect(session.engage("executor", sandbox.project.tickets.find(SLUG)))
    await collect(handle(session, "all"))
    session.leave()
    report = json.loads((sandbox.root / ".cdd/runs" / SLUG / "report.json").read_text())
    assert [step["verification"] for step in report["steps"]] == ["none", "passed"]
    assert (
        "completed, unverified"
        in (sandbox.root / ".cdd/runs" / SLUG / "report.md").read_text()
    )
