"""Undo and redo in the shell: named before they act, in one order over chat and
steps.
"""

import json

import pytest

from cdd_agent.events.notices import NoticeKind
from cdd_agent.llm.port import ToolCall
from cdd_agent.llm.scripted_reply import ScriptedReply
from tests.support.projects import SLUG, Sandbox, Step, noticed, says
from tests.tui.held_model import HeldModel
from tests.tui.person import Person, person_at

EDIT = ScriptedReply(
    tool_calls=(
        ToolCall(
            "1",
            "edit_file",
            json.dumps({"file_path": "greet.py", "find": "hi", "replace": "hello"}),
        ),
    )
)
OLD, NEW = 'GREETING = "hi"\n', 'GREETING = "hello"\n'


@pytest.fixture
def project(sandbox: Sandbox) -> Sandbox:
    (sandbox.root / "greet.py").write_text(OLD)
    return sandbox.write(Step("a.txt", "none"), Step("b.txt", "none"))


async def asked(person: Person, line: str, key: str) -> str:
    """Send a line, answer its question, and return the question."""
    await person.begin(line)
    await person.until_asked()
    screen = person.screen
    await person.answer(key)
    await person.until(lambda: not person.is_waiting)
    return screen


async def test_a_turn_of_chat_is_named_undone_and_redone(project: Sandbox) -> None:
    project.replies(EDIT, "Done.")
    async with person_at(project) as person:
        await person.say("say hello")
        question = await asked(person, "/undo", "n")
        assert 'Undo the chat turn "say hello"? (1 file: greet.py)' in question
        assert project.text("greet.py") == NEW
        await asked(person, "/undo", "y")
        assert project.text("greet.py") == OLD
        await person.say("/redo")
        assert project.text("greet.py") == NEW


async def test_a_step_and_a_turn_of_chat_are_undone_in_their_order(
    project: Sandbox,
) -> None:
    project.replies(EDIT, "Done.", says("a.txt", "x"))
    async with person_at(project, size=(100, 30)) as person:
        await person.say("say hello")
        await person.say(f"/exec {SLUG}")
        await person.say("c")
        assert f"Undo step 1 of {SLUG}, Make a.txt?" in await asked(
            person, "/undo", "y"
        )
        assert project.statuses() == ["pending", "pending"]
        assert person.steps[1].startswith("○ 1.")
        assert 'the chat turn "say hello"' in await asked(person, "/undo", "y")
        assert project.text("greet.py") == OLD
        await person.say("/redo")
        assert project.text("greet.py") == NEW
        await person.say("/redo")
        assert project.statuses() == ["completed", "pending"]


async def test_while_something_runs_an_undo_is_refused(project: Sandbox) -> None:
    project.model = model = HeldModel(EDIT, "Done.", "An answer.")
    model.release()
    async with person_at(project) as person:
        await person.say("say hello")
        model.hold()
        await person.begin("and now?")
        await person.begin("/undo")
        assert NoticeKind.NOT_DONE in noticed(person.shown)
        assert person.prompt.text == "/undo"
        person.prompt.replace("")
        await person.press("escape")
        await person.until(lambda: not person.is_waiting)
        assert project.text("greet.py") == NEW
        await asked(person, "/undo", "y")
        assert project.text("greet.py") == OLD
