"""Runs that travel, and runs in a tree of their own, as a session of the shell carries
them out.
"""

import asyncio

import pytest

from cdd_agent.commands.overview import overviews
from cdd_agent.commands.registry import handle
from cdd_agent.engine.whereabouts import RunElsewhere
from cdd_agent.events.dialogue_events import ReplyStarted
from cdd_agent.events.notices import NoticeKind
from cdd_agent.events.step_events import StepDiff, StepStarted
from cdd_agent.events.stream import Event
from cdd_agent.events.ticket_events import PlanOpened, TicketsListed
from cdd_agent.llm.scripted_reply import ScriptedReply
from cdd_agent.session.session import Session
from cdd_agent.tickets.status import StepStatus
from cdd_agent.travel.pull import pull as pull_run
from cdd_agent.wiring.runs import open_travel
from tests.support.listening import collect, stop_at, tell, told_to
from tests.support.projects import SLUG, Sandbox, noticed
from tests.support.time_of_loops import leap
from tests.travel.copies import GOOD, Copies, files, many_processes


@pytest.fixture(autouse=True)
def ann(monkeypatch: pytest.MonkeyPatch) -> None:
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "Ann")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "ann@example.org")


async def say(session: Session, *lines: str) -> list[Event]:
    return [event for line in lines for event in await collect(handle(session, line))]


async def pull(sandbox: Sandbox, *, force: bool = False) -> None:
    ticket = sandbox.project.tickets.find(SLUG)
    run = open_travel(sandbox.project, ticket, tell)
    await pull_run(run, None, force=force)


@many_processes
async def test_a_step_in_the_shell_ends_when_somebody_else_takes_the_run(
    pushed: Copies,
) -> None:
    first, second = pushed.first, pushed.second
    await pull(second)
    session = second.replies(ScriptedReply(GOOD[1], slow=600)).session()
    await say(session, f"/exec {SLUG}")
    begun = asyncio.Event()
    with told_to(
        lambda event: begun.set() if isinstance(event, ReplyStarted) else None
    ):
        step = asyncio.create_task(handle(session, "retry"))
        await begun.wait()
        await pull(first, force=True)
        leap(60)
        with pytest.raises(RunElsewhere):
            await step
    assert second.statuses() == ["completed", "pending"]
    with pytest.raises(RunElsewhere):
        await say(session, "undo")
    assert second.text("a.txt") == "good\n"
    session.leave()
    session = first.replies(GOOD[1]).session()
    told = await say(session, f"/exec {SLUG}", "retry", "close")
    assert NoticeKind.LEASE in noticed(told)


@many_processes
async def test_a_run_in_its_own_tree_from_its_beginning_to_its_landing(
    copies: Copies,
) -> None:
    mine = copies.first
    before = files(mine.root)
    session = mine.replies(*GOOD).session()
    told = await say(session, f"/exec {SLUG} --worktree", "c")
    assert [event.step for event in told if isinstance(event, StepStarted)] == [1]
    assert NoticeKind.OWN_TREE in noticed(told)

    shown = (StepStatus.COMPLETED, StepStatus.PENDING)
    other = mine.session()  # another shell, or `cdd list` in a terminal
    (opened, *_) = await say(other, f"/status {SLUG}")
    assert isinstance(opened, PlanOpened)
    assert tuple(step.status for step in opened.steps) == shown
    (listed,) = await say(other, "/list")
    assert isinstance(listed, TicketsListed)
    assert [(ticket.state, ticket.done) for ticket in listed.tickets] == [
        ("in progress", 1)
    ]
    (overview,) = overviews(mine.project)
    assert overview.next_line == f"/exec {SLUG} --worktree"
    reader = session.run_reader()
    assert reader.read_step(1).step.title == "Make a.txt"
    assert len(reader.read_timeline().parts) == 1

    session.leave()
    with pytest.raises(RunElsewhere):
        await say(session, f"/exec {SLUG}")
    assert session.agent is None
    told = await say(session, f"/diff {SLUG} 1", f"/undo {SLUG} 1")
    assert any("a.txt" in event.diff for event in told if isinstance(event, StepDiff))
    assert files(mine.root) == before
    told = await say(mine.replies(*GOOD).session(), f"/exec {SLUG} --worktree", "all")
    assert NoticeKind.AGENT_LEFT in noticed(told)
    (overview,) = overviews(mine.project)
    assert overview.next_line == f"/land {SLUG}"
    assert files(mine.root) == before
    told = await say(session, f"/land {SLUG}")
    assert NoticeKind.LANDED in noticed(told)
    assert [mine.text(name) for name in ("a.txt", "b.txt")] == ["good\n"] * 2
    assert mine.statuses() == ["completed"] * 2


@many_processes
async def test_going_on_with_what_was_left_goes_on_in_its_own_tree(
    copies: Copies,
) -> None:
    mine = copies.first
    session = mine.replies(ScriptedReply(slow=600)).session()
    await say(session, f"/exec {SLUG} --worktree")
    await stop_at(handle(session, "c"), lambda event: isinstance(event, ReplyStarted))
    session.leave()
    session = mine.replies(GOOD[0]).session()
    await say(session, "/resume", "c", "close")
    assert not (mine.root / "a.txt").exists()
    (overview,) = overviews(mine.project)
    assert overview.view.done == 1
