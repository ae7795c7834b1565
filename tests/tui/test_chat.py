"""Chat in the shell: what the person sees, and how they answer and stop."""

import json
import re
import sys
import time
from pathlib import Path

import pytest
from textual import events

from cdd_agent.events.dialogue_events import ModelReplaced
from cdd_agent.llm.port import ToolCall
from cdd_agent.llm.scripted import ScriptedModel
from cdd_agent.llm.scripted_reply import ScriptedReply
from cdd_agent.tui.widgets.question import Question
from tests.support.projects import SLUG, Sandbox, Step, check
from tests.tui.held_model import HeldModel
from tests.tui.person import person_at
from tests.tui.test_prompt import completions

MY_PAGE = '@"src/my page.py"'


@pytest.fixture
def project(tmp_path: Path) -> Sandbox:
    (tmp_path / ".cdd").mkdir()
    (tmp_path / "greet.py").write_text('GREETING = "hi"\n')
    return Sandbox(tmp_path)


def calls(name: str, **arguments: object) -> ScriptedReply:
    return ScriptedReply(tool_calls=(ToolCall("1", name, json.dumps(arguments)),))


EDIT = calls("edit_file", file_path="greet.py", find="hi", replace="hello")


async def test_chat_asks_before_a_change_and_then_makes_and_shows_it(
    project: Sandbox,
) -> None:
    project.flags = {"approval": "ask"}
    project.replies(EDIT, "Says **hello** now.")
    async with person_at(project) as person:
        await person.begin("say hello")
        await person.until_asked()
        assert "greet.py" in person.screen
        assert '- GREETING = "hi"' in person.screen
        assert '+ GREETING = "hello"' in person.screen
        assert project.text("greet.py") == 'GREETING = "hi"\n'
        await person.answer("y")
        await person.until(lambda: not person.is_waiting)
        assert project.text("greet.py") == 'GREETING = "hello"\n'
        for text in ("say hello", "edit greet.py", "greet.py", "Says hello now."):
            assert text in person.screen
        assert "chat" in person.title


async def test_the_title_names_the_model_that_is_asked(project: Sandbox) -> None:
    project.replies("Hello.", "Hello again.")
    project.model.name = "first/model"
    async with person_at(project) as person:
        await person.say("hi")
        assert "first/model" in person.screen.splitlines()[-1]
        person.app.show(
            ModelReplaced(None, "second/model", "first/model", "It is down.")
        )
        await person.pilot.pause()
        assert "second/model" in person.screen.splitlines()[-1]
        await person.say("hi again")
        assert "first/model" in person.screen.splitlines()[-1]


async def test_a_command_that_runs_after_a_yes_is_named_and_can_be_stopped(
    project: Sandbox,
) -> None:
    project.flags = {"commands": {"mode": "ask"}}
    project.replies(
        calls("execute_command", command="touch began && sleep 100"), "unused"
    )
    async with person_at(project) as person:
        await person.begin("run it")
        await person.until(lambda: person.app.query(Question))
        assert "Esc stops" not in person.activity
        await person.answer("y")
        await person.until((project.root / "began").exists)
        await person.until(lambda: "$ touch began" in person.activity)
        assert "Esc stops" in person.activity
        await person.press("escape")
        await person.until(lambda: not person.is_waiting)


async def test_escape_stops_an_answer_and_what_was_typed_is_remembered(
    project: Sandbox,
) -> None:
    project.model = model = HeldModel("One reply", "Another")
    async with person_at(project) as person:
        await person.begin("tell me")
        await person.until_told("One ")
        await person.press("escape")
        await person.until(lambda: not person.is_waiting)
        assert "Stopped." in person.told
        assert "continue" not in person.told
        model.release()
        await person.say("shorter")
        assert project.model.requests[-1].messages[-1].content.split() == [
            "tell",
            "me",
            "shorter",
        ]


async def test_a_line_sent_during_a_turn_waits_for_its_end(
    project: Sandbox,
) -> None:
    project.model = model = HeldModel("One reply", "Two.")
    async with person_at(project) as person:
        await person.begin("tell me")
        await person.until_told("One ")
        await person.begin("and this")
        await person.until(lambda: "⋯ and this" in person.screen)
        assert person.prompt.text == ""
        model.release()
        await person.until_told("Two.")
        assert "⋯ and this" not in person.screen
        assert project.model.requests[-1].messages[-1].content == "and this"


@pytest.mark.skipif(
    sys.platform == "win32", reason="the command is written for a POSIX shell"
)
async def test_ctrl_c_ends_a_command_of_the_user(
    project: Sandbox,
) -> None:
    async with person_at(project) as person:
        await person.begin("!echo begun; sleep 60; echo never")
        await person.until_told("begun")
        assert "echo begun" in person.activity
        await person.press("ctrl+c")
        await person.until(lambda: not person.is_waiting)
        assert "Stopped." in person.told
        await person.say("!ls; exit 3")
        assert "greet.py" in person.told
        assert "Exit code 3" in person.told


async def test_paths_are_completed_after_an_at(project: Sandbox) -> None:
    (project.root / "src").mkdir()
    (project.root / "src" / "app.py").touch()
    (project.root / "src" / "my page.py").touch()
    async with person_at(project) as person:
        person.write("explain @sr")
        await person.until(lambda: completions(person) == ["explain @src/"])
        await person.press("tab")
        assert person.prompt.text == "explain @src/"
        assert completions(person) == ["explain @src/app.py", f"explain {MY_PAGE}"]
        await person.press("down", "down", "enter")
        assert person.prompt.text == f"explain {MY_PAGE}"


async def test_a_question_in_the_executor_streams_its_answer_and_runs_nothing(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt", check("a.txt"))).replies("It makes **a.txt**.")
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.say("What does step 1 do?")
        assert "It makes" in person.screen
        assert "a.txt" in person.screen
        assert person.steps[1] == "○ 1. Make a.txt"


async def test_the_status_line_shows_the_share_of_the_context_window_if_it_is_known(
    project: Sandbox,
) -> None:
    for window, shown in ((100_000, True), (None, False)):
        project.model = ScriptedModel(["Good day."], window=window)
        async with person_at(project) as person:
            await person.say("hello")
            context = person.app.home.bar.context
            assert re.fullmatch(r"\d{1,2}%", context) if shown else not context
            assert f"ctx {context or '–'}" in person.title


def files_with(project: Sandbox, text: str) -> list[Path]:
    """Return the files of cdd that hold a text."""
    files = [file for file in (project.root / ".cdd").rglob("*") if file.is_file()]
    return [file for file in files if text.encode() in file.read_bytes()]


async def test_a_paste_of_300_000_characters_is_stored_once_and_shown_in_part(
    project: Sandbox,
) -> None:
    rows = [f"row {number:>6} of the log" for number in range(12_000)]
    text = "\n".join(rows)
    project.replies("Because.", "Yes.")
    async with person_at(project) as person:
        person.app.post_message(events.Paste(text))
        await person.until(lambda: "pasted" in person.prompt.area.text)
        begun = time.process_time()
        await person.press(*"why?")
        assert time.process_time() - begun < 2
        await person.press("enter")
        await person.until(lambda: "Because." in person.screen)
        assert rows[0] in person.screen
        assert "more lines" in person.screen
        # the prompt's draft is soon empty again
        await person.until(lambda: len(files_with(project, rows[6_000])) == 1)
    (file,) = files_with(project, rows[6_000])
    files = [file for file in (project.root / ".cdd").rglob("*") if file.is_file()]
    assert file.parent.name == "pastes"
    assert sum(file.stat().st_size for file in files) < len(text) + 100_000
    assert rows[0] in project.prompt()
    assert file.name in project.prompt()


async def test_a_line_of_many_rows_is_shown_in_part_and_opens(project: Sandbox) -> None:
    rows = [f"row {number}" for number in range(60)]
    project.replies("Because.")
    async with person_at(project) as person:
        person.app.post_message(events.Paste("\n".join(rows)))
        await person.until(lambda: "pasted" in person.prompt.area.text)
        await person.press("enter")
        await person.until(lambda: "Because." in person.screen)
        assert "60 lines" in person.screen
        assert "row 5" in person.screen
        assert "… 50 more lines" in person.screen
