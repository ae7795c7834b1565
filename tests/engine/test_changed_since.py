"""`status` and `list` show which files of completed steps, and whether the spec, have
changed since the run.
"""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cdd_agent.commands.ticket_commands import list_tickets, status_events
from cdd_agent.events.ticket_events import PlanOpened, TicketsListed
from tests.git.checkpoints import write
from tests.support.projects import (
    SLUG,
    SPEC,
    Copied,
    Sandbox,
    Step,
    check,
    run_all,
    says,
)
from tests.support.tables import each_row

STEPS = (
    Step("a.txt", check("a.txt")),
    Step("app.txt", check("app.txt")),
    Step("a.txt", check("a.txt"), description="Say more."),
)
MORE = says("a.txt", "good, and more")
Change = Callable[[Path], object]


async def make_done(sandbox: Sandbox) -> None:
    write(sandbox.root, {"app.txt": "before\n"})
    sandbox.write(*STEPS)
    await run_all(sandbox.replies(says("a.txt", "good"), says("app.txt", "good"), MORE))
    assert sandbox.statuses() == ["completed"] * 3


@pytest.fixture
async def done(copied: Copied) -> Sandbox:
    return await copied(make_done)


def status(sandbox: Sandbox) -> PlanOpened:
    events = status_events(sandbox.project, SLUG)
    return next(event for event in events if isinstance(event, PlanOpened))


def changed(shown: PlanOpened) -> dict[str, tuple[str, ...]]:
    return {step.label: step.files for step in shown.changed}


def listed(sandbox: Sandbox) -> int:
    (event,) = list_tickets(sandbox.project)
    assert isinstance(event, TicketsListed)
    return event.tickets[0].changed


def replace_by_older(root: Path) -> None:
    (root / "new").write_text("other\n")
    os.utime(root / "new", (0, 0))
    (root / "new").rename(root / "app.txt")
    os.utime(root / "a.txt", (0, 0))


@each_row(
    "change, expected, count",
    [
        (lambda root: None, {}, 0),
        (
            lambda root: write(root, {"app.txt": "good, and mine"}),
            {"2": ("app.txt",)},
            1,
        ),
        (lambda root: write(root, {"a.txt": "mine"}), {"3": ("a.txt",)}, 1),
        (
            lambda root: write(root, {"a.txt": "mine", "app.txt": "mine"}),
            {"2": ("app.txt",), "3": ("a.txt",)},
            2,
        ),
        (replace_by_older, {"2": ("app.txt",)}, 1),
        (lambda root: os.utime(root / "app.txt"), {}, 0),
        (lambda root: write(root, {"app.txt": "good\n"}), {}, 0),
        (lambda root: write(root, {"app.txt": b"good\r\n"}), {}, 0),
        (lambda root: write(root, {"mine.txt": "x"}), {}, 0),
        # this is work that is missing
        (lambda root: write(root, {"app.txt": "before\n"}), {}, 1),
        (lambda root: write(root, {"app.txt": None}), {}, 1),
        (lambda root: write(root, {"a.txt": "good\n"}), {}, 1),
    ],
    ids=[
        "nothing",
        "an edit",
        "an edit of a file that two steps changed",
        "two edits",
        "another file in its place, with an old time",
        "a new time",
        "written again",
        "other line ends",
        "another file",
        "the content from before the step",
        "a file that is gone",
        "the content from before the last step that changed it",
    ],
)
def test_files_with_another_content_are_named(
    done: Sandbox, change: Change, expected: dict[str, tuple[str, ...]], count: int
) -> None:
    change(done.root)
    shown = status(done)
    assert changed(shown) == expected
    assert len(shown.missing) == count - sum(map(len, expected.values()))
    assert listed(done) == count


async def view(sandbox: Sandbox, change: Change) -> PlanOpened:
    """What `/status` shows of a run that is open, with one more step to come."""
    sandbox.write(*STEPS, Step("last.txt", check("last.txt")))
    session = sandbox.session()
    await session.engage("executor", session.project.tickets.find(SLUG))
    assert session.agent is not None
    change(sandbox.root)
    (shown,) = session.agent.view()
    session.leave()
    assert isinstance(shown, PlanOpened)
    return shown


async def test_the_shell_shows_it_of_the_run_that_is_open(done: Sandbox) -> None:
    shown = await view(done, lambda root: write(root, {"app.txt": "mine"}))
    assert changed(shown) == {"2": ("app.txt",)}
    assert not shown.spec_changed


async def test_files_of_a_failed_step_have_not_changed_since(done: Sandbox) -> None:
    done.write(*STEPS, Step("app.txt", check("app.txt"), description="Say less."))
    await run_all(done.replies(says("app.txt", "bad")))
    assert done.statuses() == [*["completed"] * 3, "failed"]
    assert changed(status(done)) == {}
    assert listed(done) == 0
    write(done.root, {"app.txt": "mine"})
    assert changed(status(done)) == {"2": ("app.txt",)}


async def test_a_spec_that_cannot_be_read_has_changed(done: Sandbox) -> None:
    spec = f"tickets/{SLUG}/spec.yaml"
    shown = await view(done, lambda root: write(root, {spec: "title: ["}))
    assert shown.spec_changed


@each_row(
    "text, is_changed",
    [
        (SPEC, False),
        (SPEC.replace("Keep it short.", "Keep it very short."), True),
        (SPEC.replace("a.txt says good", "a.txt says better"), True),
    ],
    ids=["the same", "a note", "a criterion"],
)
def test_a_changed_spec_is_shown(done: Sandbox, text: str, *, is_changed: bool) -> None:
    (done.ticket / "spec.yaml").write_text(text)
    assert status(done).spec_changed is is_changed


async def test_criteria_count_while_steps_are_open(sandbox: Sandbox) -> None:
    sandbox.write(*STEPS[:2])
    await run_all(sandbox.replies(says("a.txt", "good"), says("app.txt", "bad")))
    assert not status(sandbox).spec_changed
    spec = SPEC.replace("a.txt says good", "a.txt says better")
    (sandbox.ticket / "spec.yaml").write_text(spec)
    assert status(sandbox).spec_changed
