"""Words of the Executor while no Executor is open: they run nothing, reach no model,
and are answered with what is possible.
"""

from collections.abc import Awaitable, Callable

import pytest

from cdd_agent.agents.executor import ExecutorAgent
from cdd_agent.agents.meaning import LineKind
from cdd_agent.agents.run_lines import read_run_line
from cdd_agent.events.dialogue_events import ReplyStarted
from cdd_agent.events.notices import NoticeKind
from cdd_agent.events.step_events import StepDiff, StepsRedone, StepStarted, StepsUndone
from cdd_agent.events.step_summary import StepFinished
from cdd_agent.events.stream import Event
from cdd_agent.events.ticket_events import PlanOpened
from cdd_agent.session.session import Session
from tests.agents.asking import COMPLETE, asks
from tests.agents.test_planner import SPEC as FOUR_CRITERIA
from tests.agents.test_planner import plan as planned
from tests.agents.test_words import THREE, say
from tests.git.repositories import git
from tests.support.projects import SLUG, Sandbox, notice, noticed, says
from tests.support.tables import each_row
from tests.support.undo_user import UndoUser

Opened = Callable[[Sandbox], Awaitable[Session]]

GOES_ON = ("continue", "c", "n", "next", "all", "Continue", " ALL ", "next 2", "n 3")
OTHERS = (
    "retry",
    "r",
    "retry because it is slow",
    "skip",
    "s",
    "skip keep",
    "skip 2",
    "skip because it is slow",
    "status",
    "st",
)
DONE = (StepStarted, StepFinished, StepsUndone, StepsRedone, ReplyStarted)


def two_steps(sandbox: Sandbox) -> Sandbox:
    return sandbox.write(*THREE[:2]).replies(
        says("a.txt", "good"), says("b.txt", "good"), "An answer.", "Another."
    )


async def after_the_last_step(sandbox: Sandbox) -> Session:
    session = two_steps(sandbox).session()
    await say(session, f"/exec {SLUG}", "all")
    return session


async def after_skipping_the_last_step(sandbox: Sandbox) -> Session:
    session = two_steps(sandbox).session()
    await say(session, f"/exec {SLUG}", "c", "skip")
    return session


async def after_chat_and_then_the_last_step(sandbox: Sandbox) -> Session:
    session = two_steps(sandbox).session()
    sandbox.replies("Hello.", says("a.txt", "good"), says("b.txt", "good"))
    await say(session, "Hello there", f"/exec {SLUG}", "all")
    return session


async def opened_when_all_was_done(sandbox: Sandbox) -> Session:
    await after_the_last_step(sandbox)
    session = sandbox.session()
    assert NoticeKind.ALL_DONE in noticed(await say(session, f"/exec {SLUG}"))
    return session


async def resumed_when_all_was_done(sandbox: Sandbox) -> Session:
    await after_the_last_step(sandbox)
    session = sandbox.session()
    await say(session, "/resume")
    return session


async def resumed_by_name_when_all_was_done(sandbox: Sandbox) -> Session:
    await after_the_last_step(sandbox)
    session = sandbox.session()
    await say(session, f"/resume {SLUG}")
    return session


async def in_a_later_session(sandbox: Sandbox) -> Session:
    await after_the_last_step(sandbox)
    return sandbox.session()


async def after_redoing_the_last_step(sandbox: Sandbox) -> Session:
    session = await after_the_last_step(sandbox)
    await say(session, f"/undo {SLUG} --yes", f"/redo {SLUG}")
    return session


CLOSED: tuple[Opened, ...] = (
    after_the_last_step,
    after_skipping_the_last_step,
    after_chat_and_then_the_last_step,
    opened_when_all_was_done,
    resumed_when_all_was_done,
    resumed_by_name_when_all_was_done,
    in_a_later_session,
    after_redoing_the_last_step,
)


def below(session: Session, line: str) -> str:
    """The line below the prompt."""
    meaning = session.meaning(line)
    assert meaning is not None, line
    return meaning.hint


def runs_nothing(events: list[Event]) -> bool:
    return not any(isinstance(event, DONE) for event in events)


def test_every_word_of_the_executor_that_is_about_a_run_is_known() -> None:
    elsewhere = {"", "close", "ask"}
    unknown = {
        name
        for name in ExecutorAgent.WORDS.keys() - elsewhere
        if read_run_line(name) is None or read_run_line(name.upper()) is None
    }
    assert unknown == set()


@each_row(
    "line",
    ["", "continue please", "all of them", "undo because it broke", "c d", "next?"],
)
def test_other_lines_are_for_chat(line: str) -> None:
    assert read_run_line(line) is None


@each_row("closed", CLOSED, ids=lambda closed: closed.__name__)
async def test_after_all_steps_are_done_that_is_said(
    sandbox: Sandbox, closed: Opened
) -> None:
    session = await closed(sandbox)
    statuses, asked = sandbox.statuses(), len(sandbox.model.requests)
    for line in (*GOES_ON, *OTHERS):
        hint = below(session, line)
        assert "runs" not in hint.replace("no step runs", ""), line
        events = await say(session, line)
        said = notice(events, NoticeKind.ALL_DONE)
        assert "All steps are done" in said, line
        assert f"/undo {SLUG}" in said, line
        assert runs_nothing(events), line
        is_status = line.startswith("st")
        assert any(isinstance(e, PlanOpened) for e in events) == is_status, line
        assert session.agent is None
    assert sandbox.statuses() == statuses
    assert len(sandbox.model.requests) == asked


async def test_after_leaving_a_run_its_words_name_the_command_that_opens_it(
    sandbox: Sandbox,
) -> None:
    session = two_steps(sandbox).session()
    await say(session, f"/exec {SLUG}", "c", "close")
    for line in (*GOES_ON, "retry", "skip"):
        assert "nothing" in below(session, line), line
        events = await say(session, line)
        assert f"/exec {SLUG}" in notice(events, NoticeKind.NOT_DONE), line
        assert runs_nothing(events), line
    assert len(sandbox.model.requests) == 1


async def test_once_something_was_said_in_chat_words_of_a_conversation_are_for_it(
    sandbox: Sandbox,
) -> None:
    session = await after_the_last_step(sandbox)
    await say(session, "What did you do?")
    for line in ("continue", "all", "n"):
        assert session.meaning(line).kind is LineKind.TEXT
    await say(session, "continue")
    assert sandbox.model.requests[-1].messages[-1].content == "continue"
    for line in ("undo 1", "redo 1", "diff 1", "status", "retry", "skip"):
        events = await say(session, line)
        assert SLUG in notice(events, NoticeKind.NOT_DONE)
        assert runs_nothing(events)


async def test_in_a_conversation_that_was_resumed_they_are_for_it(
    sandbox: Sandbox,
) -> None:
    sandbox.write(*THREE).replies("Hello.")
    await say(sandbox.session(), "Hello there")
    session = sandbox.replies("More.").session()
    await say(session, "/resume", "continue")
    assert sandbox.model.requests[-1].messages[-1].content == "continue"


async def test_a_conversation_that_was_resumed_by_name_gets_them_also_after_a_run(
    sandbox: Sandbox,
) -> None:
    sandbox.write(*THREE).replies("Hello.")
    await say(sandbox.session(), "Hello there")
    session = await after_the_last_step(sandbox)
    (key,) = [view.key for view in session.chat.earlier()]
    await say(session, f"/resume {key}", "continue")
    assert sandbox.model.requests[-1].messages[-1].content == "continue"


async def socrates_left(sandbox: Sandbox) -> Session:
    session = sandbox.write(*THREE).replies(asks("Who?", **COMPLETE)).session()
    await say(session, f"/socrates {SLUG}", "", "close")
    return session


async def plan_approved(sandbox: Sandbox) -> Session:
    session = sandbox.write(spec=FOUR_CRITERIA).replies(planned()).session()
    (sandbox.ticket / "plan.md").unlink()
    await say(session, f"/plan {SLUG}", "approve")
    return session


async def nothing_before(sandbox: Sandbox) -> Session:
    return sandbox.write(*THREE).session()


async def chat_in_an_earlier_session(sandbox: Sandbox) -> Session:
    await say(sandbox.write(*THREE).replies("Hello.").session(), "Hello there")
    return sandbox.session()


@each_row(
    "opened",
    [socrates_left, plan_approved, nothing_before, chat_in_an_earlier_session],
    ids=lambda opened: opened.__name__,
)
async def test_without_a_run_they_name_the_command_that_opens_one(
    sandbox: Sandbox, opened: Opened
) -> None:
    session = await opened(sandbox)
    asked = len(sandbox.model.requests)
    for line in (*GOES_ON, *OTHERS, "undo 2", "redo 2", "diff 2"):
        assert "nothing" in below(session, line), line
        events = await say(session, line)
        assert "`/" in notice(events, NoticeKind.NOT_DONE), line
        assert runs_nothing(events), line
    assert len(sandbox.model.requests) == asked


async def test_undo_redo_and_diff_work_after_the_last_step(sandbox: Sandbox) -> None:
    session = await after_the_last_step(sandbox)
    user = session.frontend = UndoUser()
    assert "ask" in below(session, "undo")
    await say(session, "undo")
    assert [proposal.title for proposal in user.asked] == [
        f"step 2 of {SLUG}, Make b.txt"
    ]
    assert sandbox.statuses() == ["completed", "pending"]
    assert f"/exec {SLUG}" in notice(
        await say(session, "continue"), NoticeKind.NOT_DONE
    )
    await say(session, "redo")
    assert sandbox.statuses() == ["completed", "completed"]
    events = await say(session, "diff")
    assert "b.txt" in str([e for e in events if isinstance(e, StepDiff)])
    events = await say(session, "diff 1")
    assert "a.txt" in str([e for e in events if isinstance(e, StepDiff)])
    await say(session, "undo step 1")
    assert sandbox.statuses() == ["pending", "pending"]
    assert session.agent is None


async def test_undo_of_an_earlier_session_names_the_command(sandbox: Sandbox) -> None:
    session = await in_a_later_session(sandbox)
    events = await say(session, "undo")
    assert f"/undo {SLUG}" in notice(events, NoticeKind.NOT_DONE)
    assert sandbox.statuses() == ["completed", "completed"]


async def test_a_run_whose_ticket_was_removed_is_no_run(sandbox: Sandbox) -> None:
    session = await after_the_last_step(sandbox)
    for path in sandbox.ticket.iterdir():
        path.unlink()
    sandbox.ticket.rmdir()
    events = await say(session, "continue")
    assert noticed(events) == [NoticeKind.NOT_DONE]


@pytest.mark.story
async def test_a_run_in_its_own_tree_is_named_with_its_flag_and_brought_over(
    sandbox: Sandbox,
) -> None:
    two_steps(sandbox)
    git(sandbox.root, "init", "--quiet")
    git(sandbox.root, "config", "user.name", "Ann")
    git(sandbox.root, "config", "user.email", "ann@example.org")
    git(sandbox.root, "add", "--all")
    git(sandbox.root, "commit", "--quiet", "--message", "A project")
    session = sandbox.session()
    await say(session, f"/exec {SLUG} --worktree", "c", "close")
    opens = notice(await say(session, "continue"), NoticeKind.NOT_DONE)
    assert f"/exec {SLUG} --worktree" in opens
    await say(session, f"/exec {SLUG} --worktree", "all")
    assert f"/land {SLUG}" in notice(
        await say(session, "continue"), NoticeKind.ALL_DONE
    )
