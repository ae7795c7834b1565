"""Earlier sessions: which there are, in which order, and going on with one of them."""

import asyncio
import os
from pathlib import Path

import pytest

from cdd_agent.commands.registry import handle
from cdd_agent.errors import BadInput
from cdd_agent.events.dialogue_events import ReplyDelta, ToolFinished
from cdd_agent.events.notices import Answer, NoticeKind
from cdd_agent.events.shell_events import (
    AgentChanged,
    PersonSaid,
    SessionsListed,
    SessionView,
)
from cdd_agent.events.stream import Event, SessionRestored
from cdd_agent.session.session import Session
from cdd_agent.wording.describe import describe
from tests.agents.asking import TEMPLATE, asks
from tests.engine.tool_steps import calls, read
from tests.support.listening import collect
from tests.support.projects import SLUG, Copied, Sandbox, Step, check, noticed, says
from tests.support.tables import each_row

TWO = Step("a.txt", check("a.txt")), Step("b.txt", check("b.txt"), "Step 1")


async def say(session: Session, *lines: str) -> list[Event]:
    return [event for line in lines for event in await collect(handle(session, line))]


async def listed(sandbox: Sandbox) -> tuple[SessionView, ...]:
    (event,) = await say(sandbox.session(), "/resume list")
    assert isinstance(event, SessionsListed)
    return event.sessions


def restored(events: list[Event]) -> list[SessionRestored]:
    return [event for event in events if isinstance(event, SessionRestored)]


def make_older(path: Path, seconds: int) -> None:
    then = path.stat().st_mtime - seconds
    os.utime(path, (then, then))


async def some_work(sandbox: Sandbox) -> None:
    sandbox.write(*TWO).replies(
        "Hello to you.", says("a.txt", "good"), says("b.txt", "bad")
    )
    session = sandbox.session()
    await say(session, "hi", f"/exec {SLUG}", "all")
    session.leave()
    (conversation,) = (sandbox.root / ".cdd" / "conversations").glob("*.jsonl")
    make_older(conversation, 100)


@pytest.fixture
async def worked(copied: Copied) -> Sandbox:
    """A conversation; after it a run whose first step is done, and its second has
    failed.
    """
    return await copied(some_work)


async def test_conversations_and_runs_are_listed_latest_first(
    worked: Sandbox,
) -> None:
    run, chat = await listed(worked)
    assert (run.key, run.agent, run.progress) == (SLUG, "executor", "1/2 failed")
    assert "step 2 failed" in run.last
    assert (chat.agent, chat.progress, chat.last) == (
        "chat",
        "1 message",
        "Hello to you.",
    )
    lines = [text for text, _ in describe(SessionsListed((run, chat)))]
    assert SLUG in lines[0]
    assert chat.key in lines[1]


async def test_an_empty_list_is_reported(sandbox: Sandbox) -> None:
    (sandbox.root / ".cdd").mkdir()
    assert await listed(sandbox) == ()
    assert describe(SessionsListed(()))


async def test_resume_without_a_choice_continues_the_last_session(
    worked: Sandbox,
) -> None:
    session = worked.replies(says("b.txt", "good")).session()
    events = await say(session, "/resume")
    assert AgentChanged("executor", SLUG) in events
    (run,) = restored(events)
    assert events.index(run) < events.index(AgentChanged("executor", SLUG))
    assert [
        event.text.split("\n")[0]
        for event in run.events
        if isinstance(event, ReplyDelta)
    ] == ["Here it is."] * 2
    assert Answer("Hello to you.") in events  # the conversation is there, too
    await say(session, "retry")
    assert worked.statuses() == ["completed", "completed"]
    session.leave()


async def test_a_conversation_is_chosen_by_its_name(
    worked: Sandbox,
) -> None:
    chat = (await listed(worked))[1]
    session = worked.replies("And to you.").session()
    await say(session, f"/exec {SLUG}")
    events = await say(session, f"/resume {chat.key}")
    assert AgentChanged(None) in events
    assert NoticeKind.RESUMED in noticed(events)
    (told,) = restored(events)
    assert told.events == (PersonSaid("hi"),)
    assert Answer("Hello to you.") in events
    await say(session, "again")
    assert [message.content for message in worked.model.requests[-1].messages[1:]] == [
        "hi",
        "Hello to you.",
        "again",
    ]
    # What was gone on with is one session, not two.
    assert [view.agent for view in await listed(worked)].count("chat") == 1


async def test_a_run_is_chosen_by_its_ticket(worked: Sandbox) -> None:
    session = worked.session()
    events = await say(session, f"/resume {SLUG[:10]}")
    assert AgentChanged("executor", SLUG) in events
    assert len(restored(events)) == 1
    session.leave()
    # what is on the screen already is not told again
    events = await say(session, f"/resume {SLUG}")
    assert not restored(events)
    session.leave()


@each_row("name", ["chat-1999", "no-such-ticket", SLUG])
async def test_an_unknown_session_is_an_error(sandbox: Sandbox, name: str) -> None:
    sandbox.write(*TWO)
    with pytest.raises(BadInput):
        await handle(sandbox.session(), f"/resume {name}")


async def test_tool_calls_of_a_conversation_are_shown_as_their_actions(
    sandbox: Sandbox,
) -> None:
    (sandbox.root / ".cdd").mkdir()
    (sandbox.root / "notes.md").write_text("look here")
    sandbox.replies(calls(read("notes.md")), "I have read it.")
    await say(sandbox.session(), "read @notes.md")
    (told,) = restored(await say(sandbox.session(), "/resume"))
    said, call = told.events
    assert said == PersonSaid("read @notes.md")
    assert isinstance(call, ToolFinished)
    assert (call.tool, call.target) == ("read_file", "notes.md")
    assert "look here" in call.output


async def test_a_dialogue_with_socrates_resumes_at_its_questions(
    sandbox: Sandbox,
) -> None:
    session = (
        sandbox.write(spec=TEMPLATE)
        .replies(asks("Who needs it?"), asks("And when?"))
        .session()
    )
    await say(session, f"/socrates {SLUG}", "the accountants")
    session.leave()
    (view,) = await listed(sandbox)
    assert (view.key, view.agent) == (SLUG, "socrates")
    again = sandbox.session()
    events = await say(again, f"/resume {SLUG}")
    (told,) = restored(events)
    assert PersonSaid("the accountants") in told.events
    assert any(
        isinstance(event, Answer) and "Who needs it?" in event.text
        for event in told.events
    )
    assert any(
        isinstance(event, Answer) and "And when?" in event.text for event in events
    )
    again.leave()


async def test_a_damaged_ticket_does_not_block_the_others(worked: Sandbox) -> None:
    (worked.root / ".cdd" / "runs" / SLUG / "events.jsonl").write_bytes(b"\xff{torn\n")
    (worked.ticket / "plan.md").write_bytes(b"\xff")
    (conversation,) = (worked.root / ".cdd" / "conversations").glob("*.jsonl")
    conversation.write_bytes(b"{torn\n" + conversation.read_bytes())
    views = await asyncio.wait_for(listed(worked), 60)
    assert {view.agent for view in views} == {"executor", "chat"}
    assert (
        next(view for view in views if view.agent == "executor").progress
        == "unreadable"
    )
