"""A plan that is renumbered while it is carried out: done steps are known by their
words, with all that is kept.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from cdd_agent.engine.prompt import LAST_FAILED
from cdd_agent.engine.run import Run
from cdd_agent.errors import BadInput
from cdd_agent.events.notices import NoticeKind
from cdd_agent.events.step_events import (
    StepsRedone,
    StepStarted,
    StepsUndone,
    TestsFinished,
)
from cdd_agent.events.stream import Emit, Event
from cdd_agent.tickets.state import ExecutionState
from cdd_agent.tickets.state_file import save_state
from tests.engine.test_undo import again, back, diff
from tests.support.listening import collect, told_to
from tests.support.projects import (
    SLUG,
    Copied,
    Sandbox,
    Step,
    check,
    notice,
    noticed,
    run_all,
    says,
)
from tests.support.tables import each_row


def moves(events: Sequence[Event]) -> list[tuple[str, str]]:
    """The steps that were recognised under another number: what it was, and what it
    is.
    """
    return re.findall(r"(\d+) is (\d+)", notice(events, NoticeKind.RENUMBERED))


A, B, C, NEW = (
    Step(f"{name}.txt", check(f"{name}.txt")) for name in ("a", "b", "c", "new")
)

SAID = [
    says(f"{name}.txt", words)
    for name, words in (
        ("a", "good"),
        ("b", "bad"),
        ("b", "good"),
        ("c", "no"),
        ("c", "no"),
    )
]


def started(events: Sequence[Event]) -> list[int]:
    return [event.step for event in events if isinstance(event, StepStarted)]


async def opened(sandbox: Sandbox) -> list[Event]:
    engine = sandbox.engine()
    try:
        return await collect(engine.recover())
    finally:
        engine.close()


async def two_done(sandbox: Sandbox) -> None:
    await run_all(sandbox.write(A, B, C).replies(*SAID), attempts=2)
    assert sandbox.statuses() == ["completed", "completed", "failed"]


@pytest.fixture
async def done(copied: Copied) -> Sandbox:
    """Three steps, of which two are done; the second after a failed attempt."""
    return await copied(two_done)


async def test_a_step_inserted_before_done_ones_is_carried_out_and_they_stay_done(
    done: Sandbox,
) -> None:
    done.write(A, NEW, B, C)
    events = await run_all(done.replies(says("new.txt", "good"), says("c.txt", "good")))
    assert moves(events) == [("2", "3"), ("3", "4")]
    assert started(events) == [2, 4]
    assert done.statuses() == ["completed"] * 4
    assert LAST_FAILED not in done.prompt(0)  # that was another step's
    assert "says no" in done.prompt(1)
    assert NoticeKind.RENUMBERED not in noticed(await opened(done))
    assert done.text("b.txt") == "good\n"


async def test_undo_diff_and_redo_know_them_by_their_new_numbers(done: Sandbox) -> None:
    shown = await diff(done, 2)
    done.write(A, NEW, B, C)
    await run_all(done.replies(says("new.txt", "good"), says("c.txt", "good")))
    assert await diff(done, 3) == shown
    assert "new.txt" in await diff(done, 2)
    undone = await back(done, 3)
    assert (undone.steps, undone.restored) == ((3, 2, 4), ("b.txt", "c.txt", "new.txt"))
    assert [
        event.steps for event in await again(done) if isinstance(event, StepsRedone)
    ] == [(3, 2, 4)]
    assert (done.text("b.txt"), done.text("new.txt")) == ("good\n", "good\n")


async def test_what_was_undone_before_the_renumbering_is_done_again_after_it(
    done: Sandbox,
) -> None:
    await back(done, 2)
    done.write(A, NEW, B, C)
    assert [
        event.steps for event in await again(done) if isinstance(event, StepsRedone)
    ] == [(3, 4)]
    assert done.statuses() == ["completed", "pending", "completed", "failed"]
    assert done.text("b.txt") == "good\n"


async def test_in_another_order_and_with_one_removed_they_are_what_they_were(
    done: Sandbox,
) -> None:
    done.write(B, A)
    events = await run_all(done)
    assert moves(events) == [("1", "2"), ("2", "1")]
    assert "Step 3" in notice(events, NoticeKind.STEP_CHANGED)
    assert done.statuses() == ["completed", "completed"]
    assert "b.txt" in await diff(done, 1)


async def test_a_done_step_that_was_removed_gets_a_number_of_its_own_and_can_be_undone(
    done: Sandbox,
) -> None:
    await run_all(done.replies(says("c.txt", "good")))
    done.write(A, C)
    assert moves(await opened(done)) == [("2", "4"), ("3", "2")]
    undone = await back(done, 4)
    assert (undone.steps, undone.restored) == ((4, 2), ("b.txt", "c.txt"))


async def test_the_report_tells_of_each_step_what_it_took_before_and_after(
    sandbox: Sandbox,
) -> None:
    for steps, replies in (
        ((A, B, C), SAID),
        ((A, NEW, B, C), [says("new.txt", "good"), says("c.txt", "good")]),
    ):
        engine = sandbox.write(*steps).replies(*replies).engine()
        run, emit = engine.run, engine.run.emit

        def emit_with_title(event: Event, run: Run = run, emit: Emit = emit) -> None:
            title = {step.number: step.title for step in run.plan.steps}
            emit(
                replace(event, notes=(title[event.step],))
                if isinstance(event, TestsFinished)
                else event
            )

        engine.runner = replace(engine.runner, emit=emit_with_title)
        engine.run.emit(engine.run.opened())
        with engine.recording():
            await engine.run_all(attempts=2)
        engine.close()
    report = json.loads((sandbox.root / ".cdd/runs" / SLUG / "report.json").read_text())
    assert [step["status"] for step in report["steps"]] == ["completed"] * 4
    assert [step["model_calls"] for step in report["steps"]] == [1, 1, 2, 3]
    assert [step["attempts"] for step in report["steps"]] == [1, 1, 2, 3]
    assert [step["notes"] for step in report["steps"]] == [
        [step["title"]] for step in report["steps"]
    ]


async def test_each_keeps_its_folder_and_a_new_one_gets_one_of_its_own(
    done: Sandbox,
) -> None:
    folder = done.root / ".cdd/runs" / SLUG
    before = {path: path.read_bytes() for path in folder.glob("step-*/attempt-*/*")}
    done.write(A, NEW, B, C)
    await run_all(done.replies(says("new.txt", "good"), says("c.txt", "good")))
    later = {path: path.read_bytes() for path in before if path.name != "changes.json"}
    assert [path for path in later if later[path] != before[path]] == []
    assert (folder / "step-05/attempt-1/reply.md").read_text() == says(
        "new.txt", "good"
    )


@each_row("file", ["execution-state.json", "state.json"])
async def test_a_kill_while_new_numbers_are_taken_over_leaves_them_to_the_next_start(
    done: Sandbox, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    def killed_before(state: ExecutionState, *paths: Path) -> None:
        for path in paths:
            if path.name == file:
                raise KeyboardInterrupt
            save_state(state, path)

    done.write(A, NEW, B, C)
    with monkeypatch.context() as patched:
        patched.setattr("cdd_agent.engine.load_state.save_state", killed_before)
        with pytest.raises(KeyboardInterrupt):
            done.engine()
    for is_lost in (False, True):
        if is_lost:
            (done.ticket / "execution-state.json").unlink()
        await opened(done)
        assert done.statuses() == ["completed", "pending", "completed", "failed"]
        assert "b.txt" in await diff(done, 3)


async def test_an_undo_that_was_killed_is_brought_to_its_end_under_the_new_numbers(
    done: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(Run, "save", _killed)
        with pytest.raises(KeyboardInterrupt):
            await back(done, 2)
    done.write(A, NEW, B, C)
    engine = done.engine()
    (undone,) = [
        event
        for event in await collect(engine.recover())
        if isinstance(event, StepsUndone)
    ]
    engine.close()
    assert undone.steps == (3, 4)
    assert done.statuses() == ["completed", "pending", "pending", "pending"]
    assert not (done.root / "b.txt").exists()


async def test_a_step_that_was_killed_goes_on_under_its_new_number(
    done: Sandbox,
) -> None:
    file = done.ticket / "execution-state.json"
    state = json.loads(file.read_text())
    state["step_executions"]["3"] |= {
        "status": "in_progress",
        "completed_at": None,
        "error": None,
    }
    file.write_text(json.dumps(state))
    done.write(A, NEW, B, C)
    events = await run_all(done.replies(says("new.txt", "good"), says("c.txt", "good")))
    assert "Step 4" in notice(events, NoticeKind.RESUMED)
    assert started(events) == [2, 4]


@each_row("is_reread", [False, True])
async def test_a_step_that_was_skipped_before_it_was_begun_is_known_by_its_words(
    sandbox: Sandbox, is_reread: bool
) -> None:
    engine = sandbox.write(A, B, C).engine()
    await collect(engine.skip(engine.run.plan.steps[0], "not now", keep=False))
    sandbox.write(NEW, A, B, C)
    if is_reread:
        engine.reread()
    engine.close()
    await opened(sandbox)
    assert sandbox.statuses() == ["pending", "skipped", "pending", "pending"]


async def test_a_step_that_is_skipped_is_what_the_plan_says_then(done: Sandbox) -> None:
    changed = Step("c.txt", check("c.txt"), description="Make it otherwise.")
    engine = done.write(A, B, changed).engine()
    await collect(engine.skip(engine.run.plan.steps[2], "not now", keep=False))
    engine.close()
    assert NoticeKind.STEP_CHANGED not in noticed(await opened(done))
    done.write(NEW, A, B, changed)
    await opened(done)
    assert done.statuses() == ["pending", "completed", "completed", "skipped"]


async def test_a_plan_that_is_renumbered_while_it_runs_is_taken_up_with_its_new_numbers(
    sandbox: Sandbox,
) -> None:
    sandbox.write(A, B, C)
    engine = sandbox.replies(
        *(says(f"{name}.txt", "good") for name in ("a", "new", "b", "c"))
    ).engine()
    seen: list[Event] = []

    def edit(event: Event) -> None:
        seen.append(event)
        if isinstance(event, StepStarted) and len(started(seen)) == 1:
            sandbox.write(NEW, A, B, C)

    with told_to(edit):
        events = await collect(engine.run_all())
    engine.close()
    assert started(events) == [1, 1, 3, 4]
    assert moves(events)[0] == ("1", "2")
    assert sandbox.statuses() == ["completed"] * 4
    assert (await back(sandbox, 2)).steps == (2, 1, 3, 4)


async def test_what_cannot_be_told_is_refused_with_the_steps_and_nothing_is_changed(
    done: Sandbox,
) -> None:
    before = done.state()
    others = [
        Step("b.txt", check("b.txt"), description=text)
        for text in ("Make it otherwise.", "Make it again.")
    ]
    done.write(A, NEW, *others, C)
    with pytest.raises(
        BadInput,
        match=(r"step 2 .'Make b.txt'. is done, and could now be step 3 or step 4"),
    ):
        done.engine()
    assert done.state() == before


def _killed(*_: object) -> None:
    raise KeyboardInterrupt
