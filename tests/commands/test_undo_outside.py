"""`/undo`, `/redo` and `/diff` without a ticket's name: the active ticket, or the newer
one of the last ticket and the changes outside of tickets.
"""

import json

import pytest

from cdd_agent.commands.registry import handle
from cdd_agent.errors import BadInput
from cdd_agent.events.outside_events import (
    OutsideDiff,
    OutsideListed,
    OutsideRedone,
    OutsideUndone,
)
from cdd_agent.events.step_events import StepDiff, StepsRedone, StepsUndone
from cdd_agent.events.stream import Event
from cdd_agent.llm.port import ToolCall
from cdd_agent.llm.scripted_reply import ScriptedReply
from cdd_agent.session import Session
from tests.support.listening import collect
from tests.support.projects import SLUG, Sandbox, Step, run_all, says

TEXT = "one\ntwo\nthree\nfour\nfive\n"


def edits(path: str, find: str, replace: str) -> ScriptedReply:
    arguments = {"file_path": path, "find": find, "replace": replace}
    call = ToolCall(f"edit-{replace}", "edit_file", json.dumps(arguments))
    return ScriptedReply(tool_calls=(call,))


@pytest.fixture
def project(sandbox: Sandbox) -> Sandbox:
    (sandbox.root / "notes.txt").write_text(TEXT)
    return sandbox.write(Step("a.txt", "none"), Step("b.txt", "none"))


async def say(session: Session, line: str) -> list[Event]:
    return await collect(handle(session, line))


def kinds(events: list[Event]) -> set[type[Event]]:
    return {type(event) for event in events}


async def test_a_change_of_chat_without_a_ticket(project: Sandbox) -> None:
    edit = edits("notes.txt", "two", "TWO")
    session = project.replies(edit, "Done.").session()
    with pytest.raises(BadInput):
        await say(session, "/undo")
    await say(session, "write it large, please")
    assert OutsideDiff in kinds(await say(session, "/diff"))
    assert OutsideUndone in kinds(await say(session, "/undo"))
    assert project.text("notes.txt") == TEXT
    assert OutsideRedone in kinds(await say(session, "/redo"))
    assert project.text("notes.txt") == TEXT.replace("two", "TWO")
    (listed,) = await say(session, "/undo --list")
    assert isinstance(listed, OutsideListed)
    assert [(one.what, one.files) for one in listed.changes] == [
        ("chat: write it large, please", ("notes.txt",))
    ]
    with pytest.raises(BadInput):  # a step's number needs a ticket
        await say(session, "/undo 1")


async def test_the_active_ticket_comes_first(project: Sandbox) -> None:
    edit = edits("notes.txt", "two", "TWO")
    session = project.replies(edit, "Done.", says("a.txt", "x")).session()
    await say(session, "write it large")
    await say(session, f"/exec {SLUG}")
    await say(session, "c")
    assert StepDiff in kinds(await say(session, "/diff"))
    assert StepsUndone in kinds(await say(session, "/undo"))
    assert StepsRedone in kinds(await say(session, "/redo"))
    assert project.text("notes.txt") == TEXT.replace("two", "TWO")


async def test_without_an_active_ticket_the_newer_one_is_meant(
    project: Sandbox,
) -> None:
    script = (
        *(says("a.txt", "x"), says("b.txt", "x")),
        *(edits("notes.txt", "two", "TWO"), "Done."),
    )
    session = project.replies(*script).session()
    await say(session, f"/exec {SLUG}")
    await say(session, "all")
    assert session.agent is None
    assert StepDiff in kinds(await say(session, "/diff"))
    await say(session, "write it large")
    assert OutsideDiff in kinds(await say(session, "/diff"))
    assert OutsideUndone in kinds(await say(session, "/undo"))
    assert OutsideRedone in kinds(await say(session, "/redo"))
    assert StepsUndone in kinds(await say(session, f"/undo {SLUG}"))
    assert StepsRedone in kinds(await say(session, "/redo"))
    assert project.text("notes.txt") == TEXT.replace("two", "TWO")


async def test_a_step_and_chat_change_the_same_file(project: Sandbox) -> None:
    project.write(Step("notes.txt", "none"))
    await run_all(
        project.replies(says("notes.txt", TEXT.replace("one", "ONE").strip()))
    )
    edit = edits("notes.txt", "five", "FIVE")
    session = project.replies(edit, "Done.").session()
    await say(session, "write it large")
    (undone,) = [
        event
        for event in await say(session, f"/undo {SLUG}")
        if isinstance(event, StepsUndone)
    ]
    assert undone.merged == ("notes.txt",)
    assert project.text("notes.txt") == TEXT.replace("five", "FIVE")
    (back,) = [
        event
        for event in await say(project.session(), "/undo")
        if isinstance(event, OutsideUndone)
    ]
    assert back.merged == ("notes.txt",)
    assert project.text("notes.txt") == TEXT
