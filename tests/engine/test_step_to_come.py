"""`current_step`, the step to come, at each transition; and what the end of a run says
is left to do.
"""

import json
import subprocess
from pathlib import Path

from cdd_agent.events.run_events import RunFinished
from cdd_agent.events.stream import Event
from cdd_agent.tickets.plan import PlanStep
from cdd_agent.wording.describe import describe
from tests.support.listening import collect, told_to
from tests.support.projects import Sandbox, Step, check, run_all, says
from tests.support.tables import each_row

TWO = (Step("a.txt", check("a.txt")), Step("b.txt", check("b.txt"), "Step 1"))
GOOD = (says("a.txt", "good"), says("b.txt", "good"))


def saved(sandbox: Sandbox) -> int:
    """As the ticket's file and its copy both have it."""
    copies = sandbox.root.glob(".cdd/runs/*/state.json")
    numbers = {json.loads(file.read_text())["current_step"] for file in copies} | {
        sandbox.state()["current_step"]
    }
    (number,) = numbers
    assert isinstance(number, int)
    return number


def told(events: list[Event]) -> str:
    return "\n".join(
        text
        for event in events
        if isinstance(event, RunFinished)
        for text, _ in describe(event)
    )


@each_row("lost", [None, "gone", "torn"])
async def test_it_is_the_new_plans_as_soon_as_renumbered_steps_are_known_again(
    sandbox: Sandbox, lost: str | None
) -> None:
    first, second = Step("a.txt", check("a.txt")), Step("b.txt", check("b.txt"))
    await run_all(sandbox.write(first, second).replies(*GOOD))
    assert saved(sandbox) == 3
    file = sandbox.ticket / "execution-state.json"
    if lost == "gone":
        file.unlink()
    elif lost == "torn":
        file.write_text("torn")
    sandbox.write(Step("new.txt", check("new.txt")), first, second)
    sandbox.engine().close()
    assert sandbox.state()["current_step"] == 1
    sandbox.engine().close()
    assert saved(sandbox) == 1


async def test_it_is_the_new_plans_where_that_is_taken_up_in_a_run(
    sandbox: Sandbox,
) -> None:
    first, second = Step("a.txt", check("a.txt")), Step("b.txt", check("b.txt"))
    sandbox.write(first, second).replies(*GOOD)
    engine = sandbox.engine()
    await collect(engine.run_all())
    sandbox.write(Step("new.txt", check("new.txt")), first, second)
    engine.reread()
    engine.close()
    assert saved(sandbox) == 1


async def test_it_is_one_more_when_a_step_is_done_and_stays_when_it_fails(
    sandbox: Sandbox,
) -> None:
    sandbox.write(*TWO).replies(GOOD[0], says("b.txt", "bad"), GOOD[1])
    engine = sandbox.engine()
    seen = []
    for _ in range(3):
        step = engine.run.next_step
        assert step is not None
        begun: list[int | None] = []

        def look(
            event: Event, number: int = step.number, begun: list[int | None] = begun
        ) -> None:
            if (
                sandbox.state()["step_executions"][str(number)]["status"]
                == "in_progress"
            ):
                begun.append(saved(sandbox))

        with told_to(look):
            await engine.run_step(step)
        assert set(begun) == {step.number}
        seen.append(saved(sandbox))
    engine.close()
    assert seen == [2, 2, 3]


async def test_it_goes_back_with_undo_and_on_with_redo_and_skip(
    sandbox: Sandbox,
) -> None:
    await run_all(sandbox.write(*TWO).replies(*GOOD))
    engine = sandbox.engine()
    await collect(engine.undo(1))
    assert saved(sandbox) == 1
    await collect(engine.redo())
    assert saved(sandbox) == 3
    await collect(engine.undo())
    assert saved(sandbox) == 2
    step = engine.run.next_step
    assert isinstance(step, PlanStep)
    await collect(engine.skip(step, "not needed", keep=False))
    assert saved(sandbox) == 3
    engine.close()


async def test_it_follows_the_dependencies_and_not_the_numbers(
    sandbox: Sandbox,
) -> None:
    sandbox.write(
        Step("a.txt", check("a.txt"), "Step 2"),
        Step("b.txt", check("b.txt")),
        Step("c.txt"),
    )
    engine = sandbox.replies(GOOD[1], GOOD[0]).engine()
    for expected in (1, 3):
        step = engine.run.next_step
        assert step is not None
        await collect(engine.run_step(step))
        assert saved(sandbox) == expected
    engine.close()


async def test_the_end_says_to_review_the_changes_and_commit_them(
    sandbox: Sandbox,
) -> None:
    events = await run_all(sandbox.write(*TWO).replies(*GOOD))
    last = events[-1]
    assert isinstance(last, RunFinished)  # as scripts expect it
    assert last.to_commit == (1, 2)

    again = await run_all(sandbox)  # nothing was run, so there is no news
    assert [event.to_commit for event in again if isinstance(event, RunFinished)] == [
        ()
    ]


@each_row(
    "replies", [[says("a.txt", "bad")], [says("a.txt", "good"), says("b.txt", "bad")]]
)
async def test_a_run_that_is_not_at_its_end_does_not_say_so(
    sandbox: Sandbox, replies: list[str]
) -> None:
    assert "commit" not in told(await run_all(sandbox.write(*TWO).replies(*replies)))


async def test_a_run_that_changed_nothing_has_nothing_to_commit(
    sandbox: Sandbox,
) -> None:
    events = await run_all(
        sandbox.write(Step(None, verify="none")).replies("I would use a table.")
    )
    assert sandbox.statuses() == ["completed"]
    assert "commit" not in told(events)


async def test_where_steps_are_committed_it_says_what_was(sandbox: Sandbox) -> None:
    sandbox.flags = {"commit": "step"}
    sandbox.write(*TWO)
    git(sandbox.root, "init", "-q")
    for name, value in (("user.name", "A"), ("user.email", "a@localhost")):
        git(sandbox.root, "config", name, value)
    git(sandbox.root, "add", ".")
    git(sandbox.root, "commit", "-qm", "start")

    events = await run_all(sandbox.replies(*GOOD))

    first, second = git(sandbox.root, "log", "--format=%H", "--reverse", "-2").split()
    assert f"Committed: {first[:10]}, {second[:10]}." in told(events)
    assert "Review" not in told(events)


async def test_what_was_not_committed_is_still_to_be(sandbox: Sandbox) -> None:
    sandbox.write(*TWO)
    git(sandbox.root, "init", "-q")
    for name, value in (("user.name", "A"), ("user.email", "a@localhost")):
        git(sandbox.root, "config", name, value)
    engine = sandbox.replies(GOOD[0]).engine()
    step = engine.run.next_step
    assert step is not None
    await collect(engine.run_step(step))
    engine.close()
    git(sandbox.root, "add", "tickets", ".cdd")
    git(sandbox.root, "commit", "-qm", "start")

    sandbox.flags = {"commit": "step"}
    events = await run_all(sandbox.replies(GOOD[1]))

    last = events[-1]
    assert isinstance(last, RunFinished)
    assert last.commits == (git(sandbox.root, "rev-parse", "HEAD").strip(),)
    assert last.to_commit == (1,)


def git(root: Path, *words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=root, check=True, capture_output=True, text=True
    ).stdout
