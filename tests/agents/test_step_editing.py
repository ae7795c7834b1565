"""A person edits a step in plan.md: only its lines change, it is compiled first, and
what they wrote is never lost.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cdd_agent.agents.step_editing import StepEditing
from cdd_agent.commands.registry import handle
from cdd_agent.engine.lock import TicketLock, TicketTaken
from cdd_agent.errors import BadInput
from cdd_agent.events.notices import NoticeKind
from cdd_agent.events.step_events import StepStarted
from cdd_agent.session.session import Session
from cdd_agent.tickets.plan_reader import read_plan
from tests.support.listening import collect, stop_at
from tests.support.projects import SLUG, Sandbox, Step, check, noticed, run_all, says
from tests.support.tables import each_row

THREE = (
    Step("a.txt", check("a.txt")),
    Step("b.txt", check("b.txt"), "Step 1", "Say it of b."),
    Step("c.txt", None, "Step 2"),
)


@pytest.fixture
def three(sandbox: Sandbox) -> Sandbox:
    return sandbox.write(*THREE).replies(says("a.txt", "good"), says("b.txt", "bad"))


@pytest.fixture
def session(three: Sandbox) -> Session:
    return three.session()


def plan_md(sandbox: Sandbox) -> Path:
    return sandbox.ticket / "plan.md"


def edited(session: Session, number: int, change: Callable[[str], str]) -> StepEditing:
    """The step's text, given to the person and changed by them."""
    editing = session.edit_step(number, SLUG)
    editing.begin()
    editing.file.write_text(change(editing.file.read_text()))
    return editing


def test_only_the_lines_of_the_step_are_edited(
    three: Sandbox, session: Session
) -> None:
    text = (
        plan_md(three)
        .read_text()
        .replace("## Implementation Steps", "<!-- mine -->\n\n## Implementation Steps")
    )
    plan_md(three).write_text(text)
    editing = edited(
        session, 2, lambda step: step.replace("Say it of b.", "Say it twice.\n\n- of b")
    )
    assert editing.file.read_text().startswith("### Step 2: Make b.txt\n")
    assert "c.txt" not in editing.file.read_text()
    assert editing.finish() is not None
    assert plan_md(three).read_text() == text.replace(
        "Say it of b.", "Say it twice.\n\n- of b"
    )
    assert not editing.file.exists()
    (kept,) = (three.root / ".cdd" / "runs" / SLUG / "plans").iterdir()
    assert kept.read_text() == text


@each_row("end", ["\r\n", "\n"])
def test_line_ends_stay_as_the_plan_has_them(three: Sandbox, end: str) -> None:
    session = three.session()
    before = plan_md(three).read_text().replace("\n", end).encode()
    plan_md(three).write_bytes(before)
    edited(session, 2, lambda text: text.replace("of b.", "of b\nand c.")).finish()
    assert plan_md(three).read_bytes() == before.replace(
        b"of b.", f"of b{end}and c.".encode()
    )


def test_a_plan_that_is_a_code_block_stays_one(
    three: Sandbox, session: Session
) -> None:
    plan_md(three).write_text(
        f"Here it is:\n\n```markdown\n{plan_md(three).read_text()}```\n"
    )
    edited(
        session,
        2,
        lambda step: step.replace("Say it of b.", "Say:\n\n```text\ngood\n```\n"),
    ).finish()
    text = plan_md(three).read_text()
    assert text.startswith("Here it is:\n\n```")
    steps = read_plan(text).steps
    assert [step.number for step in steps] == [1, 2, 3]
    assert "```text\ngood\n```" in steps[1].description


@each_row(
    ("change", "why"),
    [
        (lambda text: text.replace("Step 2:", "Step 7:"), "must be step 2"),
        (lambda text: f"{text}\n\n### Step 4: One more\n", "must be step 2"),
        (lambda text: "just words\n", "must be step 2"),
        (lambda text: f"{text}\n\n```text\nnever closed\n", "must be step 2"),
        (
            lambda text: f"{text}\n\n## Risks\n\n- all of them\n",
            "change other parts of the plan",
        ),
        (
            lambda text: text.replace(
                "**Dependencies:** Step 1", "**Dependencies:** Step 9"
            ),
            "9",
        ),
        (
            lambda text: text.replace(
                "**Dependencies:** Step 1", "**Dependencies:** Step 3"
            ),
            "cycle",
        ),
        (lambda text: text.replace("`b.txt`", "`../b.txt`"), "`..`"),
        (lambda text: text.replace("python -S -c", "rm -rf"), "is not on the list"),
    ],
)
def test_an_edit_that_does_not_compile_is_refused_and_offered_again(
    three: Sandbox, change: Callable[[str], str], why: str
) -> None:
    session = three.session()
    before = plan_md(three).read_text()
    editing = edited(session, 2, change)
    theirs = editing.file.read_text()
    with pytest.raises(BadInput) as refused:
        editing.finish()
    assert why in f"{refused.value.message} {refused.value.hint}"
    assert plan_md(three).read_text() == before

    again = three.session().edit_step(2, SLUG)  # also after a restart
    assert again.begin()
    assert again.file.read_text() == theirs
    again.file.write_text("")
    assert again.finish() is None
    assert not again.begin()
    assert plan_md(three).read_text() == before


def test_an_earlier_error_does_not_block_an_edit(
    three: Sandbox, session: Session
) -> None:
    plan_md(three).write_text(
        plan_md(three).read_text().replace("`c.txt`", "`../c.txt`")
    )
    assert (
        edited(session, 2, lambda text: text.replace("of b", "of it")).finish()
        is not None
    )


def test_a_plan_changed_concurrently_stays_and_the_edit_is_kept(
    three: Sandbox, session: Session
) -> None:
    editing = edited(session, 2, lambda text: text.replace("of b", "of mine"))
    others = plan_md(three).read_text().replace("of b", "of theirs")
    plan_md(three).write_text(others)
    with pytest.raises(BadInput, match="since you began to edit it"):
        editing.finish()
    assert plan_md(three).read_text() == others
    assert editing.begin()
    editing.finish()
    assert "of mine" in plan_md(three).read_text()


def test_a_concurrent_change_of_another_step_stays(
    three: Sandbox, session: Session
) -> None:
    editing = edited(session, 2, lambda text: text.replace("of b", "of mine"))
    plan_md(three).write_text(
        plan_md(three).read_text().replace("Make c.txt", "Make c.txt well")
    )
    editing.finish()
    text = plan_md(three).read_text()
    assert "of mine" in text
    assert "Make c.txt well" in text


async def test_completed_and_running_steps_cannot_be_edited(
    three: Sandbox,
) -> None:
    await run_all(three)
    assert three.statuses() == ["completed", "failed", "pending"]
    session = three.session()
    with pytest.raises(BadInput, match="completed") as refused:
        session.edit_step(1, SLUG).begin()
    assert "undo 1" in refused.value.hint
    session.edit_step(2, SLUG).begin()
    await collect(handle(session, f"/exec {SLUG}"))
    three.replies(says("b.txt", "bad", "long " * 1000))

    def is_refused(event: object) -> bool:
        if isinstance(event, StepStarted):
            with pytest.raises(BadInput, match="is running"):
                session.edit_step(2, SLUG).begin()
            session.edit_step(3, SLUG).begin()
        return isinstance(event, StepStarted)

    await stop_at(handle(session, "retry"), is_refused)
    session.leave()


async def test_a_failed_step_keeps_its_identity_when_edited(
    three: Sandbox,
) -> None:
    await run_all(three)
    session = three.session()
    edited(
        session,
        2,
        lambda text: text.replace("Make b.txt", "Say it").replace(
            "of b.", "of b, well."
        ),
    ).finish()
    three.replies(says("b.txt", "good"), says("c.txt", "good"))
    events = await run_all(three)
    assert {
        NoticeKind.STEP_CHANGED,
        NoticeKind.STEP_CHANGED,
        NoticeKind.RENUMBERED,
    }.isdisjoint(noticed(events))
    assert three.statuses() == ["completed"] * 3
    assert "Say it" in three.prompt(0)
    engine = three.engine()
    await collect(engine.undo(2))
    engine.close()
    assert three.statuses() == ["completed", "pending", "pending"]
    assert not (three.root / "b.txt").exists()


async def test_an_interrupted_step_restarts_with_its_new_text(three: Sandbox) -> None:
    engine = three.engine()
    await stop_at(engine.run_all(), lambda event: isinstance(event, StepStarted))
    engine.close()
    edited(
        three.session(), 1, lambda text: text.replace("Make it.", "Make it so.")
    ).finish()
    three.replies(says("a.txt", "good"), says("b.txt", "good"), says("c.txt", "good"))
    await run_all(three)
    assert "Make it so." in three.prompt(0)
    assert three.statuses() == ["completed"] * 3


def test_a_ticket_locked_by_another_process_cannot_be_edited(
    three: Sandbox, session: Session
) -> None:
    editing = edited(session, 2, lambda text: text.replace("of b", "of it"))
    before = plan_md(three).read_text()
    folder = three.root / ".cdd" / "runs" / SLUG
    other = TicketLock.take(folder, SLUG, datetime.now(UTC).isoformat())
    try:
        with pytest.raises(TicketTaken):
            editing.finish()
        assert editing.is_kept
        with pytest.raises(TicketTaken):
            session.edit_step(3, SLUG).begin()
    finally:
        other.release()
    assert plan_md(three).read_text() == before
    editing.finish()
    assert "of it" in plan_md(three).read_text()


def test_a_step_of_a_plan_with_absolute_paths_can_be_edited(three: Sandbox) -> None:
    text = plan_md(three).read_text().replace("`a.txt`", f"`{three.root}/a.txt`")
    plan_md(three).write_text(text)
    edited(three.session(), 2, lambda step: step.replace("of b.", "twice.")).finish()
    assert plan_md(three).read_text() == text.replace("of b.", "twice.")
