"""A step that was stopped: how it goes on is said, and how to ask for a new reply."""

import shutil
from pathlib import Path

import pytest

from cdd_agent.commands.registry import handle
from cdd_agent.events.dialogue_events import ReplyStarted
from cdd_agent.events.notices import Notice, NoticeKind
from cdd_agent.events.step_events import ChangesApplied
from cdd_agent.events.stream import Event
from cdd_agent.llm.port import ConnectionFailed
from cdd_agent.llm.scripted import ScriptedModel
from cdd_agent.llm.scripted_reply import ScriptedReply
from cdd_agent.session.session import Session
from tests.engine.tool_steps import calls, create, replace
from tests.support.listening import collect, stop_at, told_to
from tests.support.projects import SLUG, Sandbox, Step, check, noticed, run_all, says
from tests.support.tables import each_row

STEPS = (Step("a.txt", check("a.txt")), Step("b.txt", check("b.txt"), "Step 1"))
REPLY = says("a.txt", "good", "The first reply.")
NEW = says("a.txt", "good", "A new reply.")


def is_written(event: Event) -> bool:
    return isinstance(event, ChangesApplied)


async def stopped(sandbox: Sandbox, session: Session) -> list[Event]:
    """Escape while the check of step 1 runs; the model has nothing more to say."""
    sandbox.write(*STEPS)
    await collect(handle(session, f"/exec {SLUG}"))
    return await stop_at(handle(session, "continue"), is_written)


def new_session(sandbox: Sandbox, *script: str | ScriptedReply) -> Session:
    return sandbox.write(*STEPS).replies(*script).session()


def hint(session: Session, line: str) -> str:
    meaning = session.meaning(line)
    assert meaning is not None
    return meaning.hint


def notices(events: list[Event], kind: NoticeKind) -> list[str]:
    return [e.text for e in events if isinstance(e, Notice) and e.kind is kind]


async def test_escape_status_and_the_hint_say_that_the_saved_reply_is_checked(
    sandbox: Sandbox,
) -> None:
    session = new_session(sandbox, REPLY)
    events = await stopped(sandbox, session)
    (text,) = notices(events, NoticeKind.SAVED_WORK)
    for said in (
        text,
        hint(session, ""),
        hint(session, "continue"),
        notices(await collect(handle(session, "status")), NoticeKind.WHAT_NEXT)[-1],
    ):
        assert "saved reply" in said
        assert "retry" in said
    assert "new reply" in hint(session, "retry")
    session.leave()

    # and the next session
    session = sandbox.session()
    (text,) = notices(
        await collect(handle(session, f"/exec {SLUG}")), NoticeKind.WHAT_NEXT
    )
    assert "saved reply" in text
    assert "saved reply" in hint(session, "")
    session.leave()


@each_row(
    ("line", "asked", "attempts", "is_saved_used"),
    [
        ("continue", 0, 1, True),
        ("", 0, 1, True),
        ("retry", 1, 2, False),
        ("r 1", 1, 2, False),
        ("retry because it was too long", 1, 2, False),
        ("leave the header out please", 1, 2, False),
    ],
)
async def test_the_saved_reply_is_used_or_a_new_one_is_asked_for(
    sandbox: Sandbox, line: str, asked: int, attempts: int, is_saved_used: bool
) -> None:
    session = new_session(sandbox, REPLY, NEW)
    await stopped(sandbox, session)
    before = len(sandbox.model.requests)
    events = await collect(handle(session, line))
    session.leave()
    assert len(sandbox.model.requests) == before + asked
    assert (NoticeKind.SAVED_WORK in noticed(events)) is is_saved_used
    step = sandbox.state()["step_executions"]["1"]
    assert (step["status"], step["attempts"]) == ("completed", attempts)


async def test_exec_says_it_and_pays_nothing(sandbox: Sandbox) -> None:
    session = new_session(sandbox, REPLY)
    await stopped(sandbox, session)
    session.leave()
    events = await run_all(sandbox.replies(says("b.txt", "good")))
    (text,) = notices(events, NoticeKind.SAVED_WORK)
    assert "`retry` in the shell" in text
    assert len(sandbox.model.requests) == 1  # for step 2
    assert sandbox.statuses() == ["completed", "completed"]


async def test_after_a_kill_too(
    sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory
) -> None:
    copy = tmp_path_factory.mktemp("killed") / "project"
    sandbox.write(STEPS[0]).replies(REPLY)

    def kill(event: Event) -> None:
        if isinstance(event, ChangesApplied):
            shutil.copytree(sandbox.root, copy, symlinks=True)

    with told_to(kill):
        await run_all(sandbox)
    killed = sandbox.at(Path(copy))
    events = await run_all(killed)
    assert NoticeKind.RESUMED in noticed(events)
    assert len(notices(events, NoticeKind.SAVED_WORK)) == 1
    assert killed.model.requests == []
    assert killed.statuses() == ["completed"]


async def test_rounds_of_tools_are_resumed_or_begun_again(sandbox: Sandbox) -> None:
    for line, asked in (("continue", 1), ("retry", 2)):
        copy = sandbox.at(sandbox.root.with_name(f"{sandbox.root.name}-{line}"))
        shutil.copytree(sandbox.root, copy.root)
        round_ = calls(create("a.txt", "go\n"))
        session = new_session(copy, round_, "never heard")
        await collect(handle(session, f"/exec {SLUG}"))
        started: list[Event] = []

        def is_second(event: Event, started: list[Event] = started) -> bool:
            if isinstance(event, ReplyStarted):
                started.append(event)
            return len(started) == 2

        events = await stop_at(handle(session, "continue"), is_second)
        assert len(notices(events, NoticeKind.SAVED_WORK)) == 1
        assert "resume step" in hint(session, "")
        session.leave()

        rest = calls(replace("a.txt", "go", "good"))
        new = calls(create("a.txt", "good\n"))
        copy.replies(rest if line == "continue" else new, "Done.")
        session = copy.session()
        await collect(handle(session, f"/exec {SLUG}"))
        await collect(handle(session, line))
        session.leave()
        assert copy.statuses()[0] == "completed", line
        assert copy.state()["step_executions"]["1"]["attempts"] == asked


async def test_nothing_is_said_where_nothing_was_saved(sandbox: Sandbox) -> None:
    session = new_session(sandbox, REPLY)
    await collect(handle(session, f"/exec {SLUG}"))
    events = await stop_at(
        handle(session, "c"), lambda event: isinstance(event, ReplyStarted)
    )
    events += await collect(handle(session, "status"))
    assert NoticeKind.SAVED_WORK not in noticed(events)
    assert "saved" not in hint(session, "")
    assert NoticeKind.SAVED_WORK not in noticed(await collect(handle(session, "c")))
    session.leave()


class Unreachable(ScriptedModel):
    async def check(self, *, connect: bool) -> None:
        if connect:
            raise ConnectionFailed("The server could not be reached.")


async def test_a_retry_without_a_server_does_not_give_the_saved_reply_up(
    sandbox: Sandbox,
) -> None:
    session = new_session(sandbox, REPLY)
    await stopped(sandbox, session)
    session.leave()
    sandbox.model = Unreachable([])
    session = sandbox.session()
    await collect(handle(session, f"/exec {SLUG}"))
    assert NoticeKind.MODEL_FAILED in noticed(await collect(handle(session, "retry")))
    assert NoticeKind.SAVED_WORK in noticed(await collect(handle(session, "continue")))
    session.leave()
    assert sandbox.statuses() == ["completed", "pending"]
