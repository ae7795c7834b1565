"""A turn that the user stops leaves no trace, and resumes when the user wants it to."""

import os
import signal

import pytest
from textual import events

from cdd_agent.commands.registry import read_line
from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.llm.scripted import ScriptedModel
from tests.support.projects import SLUG, Sandbox, Step, check, notice, says
from tests.support.tables import each_row
from tests.tui.held_model import HeldModel
from tests.tui.person import Person, person_at

LINES = "use a table\nand a chart"

SLOW_CHECK = (
    "python -c \"import pathlib, time; print('begun', flush=True); time.sleep(60 *"
    " pathlib.Path('slow').exists())\""
)
TWO_STEPS = (Step("a.txt", "none"), Step("b.txt", "none"))


def streaming(sandbox: Sandbox) -> Sandbox:
    """Make a project with a file that step 1 changes, and a model that sends one word
    and takes a minute for the next.
    """
    sandbox.write(Step("a.txt", check("a.txt")), Step("b.txt", check("b.txt")))
    (sandbox.root / "a.txt").write_text("before\n")
    sandbox.model = ScriptedModel(
        [says("a.txt", "good", words="One " + "long" * 1000)], pace=40
    )
    return sandbox


def checking(sandbox: Sandbox) -> Sandbox:
    """Make a project whose check takes a minute while there is a file `slow`."""
    sandbox.write(Step("a.txt", SLOW_CHECK), Step("b.txt", check("b.txt")))
    (sandbox.root / "a.txt").write_text("before\n")
    (sandbox.root / "slow").touch()
    return sandbox.replies(says("a.txt", "good"))


async def running(person: Person) -> None:
    """Start the next step, and wait for the first word of its reply."""
    await person.begin("")
    await person.until_told("One ")


async def stop(person: Person, key: str) -> None:
    await person.press(key)
    await person.until(lambda: not person.is_waiting)


def is_as_before(sandbox: Sandbox) -> bool:
    return sandbox.text("a.txt") == "before\n" and sandbox.statuses() == [
        "pending",
        "pending",
    ]


async def test_escape_and_ctrl_c_stop_a_reply_and_continue_asks_for_it_again(
    sandbox: Sandbox,
) -> None:
    async with person_at(streaming(sandbox), f"/exec {SLUG}") as person:
        for key in ("escape", "ctrl+c"):
            await person.say("/clear")
            await running(person)
            assert sandbox.statuses()[0] == "in_progress"
            assert person.steps[1] == "◐ 1. Make a.txt"

            await stop(person, key)

            assert is_as_before(sandbox)
            assert person.steps[1] == "○ 1. Make a.txt"
            assert "`continue`" in person.told
            assert person.activity.startswith("Enter: run step 1, Make a.txt")

        sandbox.model.pace = 0
        sandbox.replies(says("a.txt", "good"))
        await person.say("continue")
        assert sandbox.statuses()[0] == "completed"


@pytest.mark.story
async def test_a_check_that_runs_is_stopped_once_and_the_saved_reply_is_used_again(
    sandbox: Sandbox,
) -> None:
    async with person_at(checking(sandbox), f"/exec {SLUG}") as person:
        await person.begin("")
        await person.until_told("begun")
        assert sandbox.text("a.txt") == "good\n"

        await person.press("escape", "escape", "ctrl+c")
        await person.until(lambda: not person.is_waiting)

        assert is_as_before(sandbox)
        warnings = [
            event
            for event in person.shown
            if isinstance(event, Notice) and event.tone is Tone.WARNING
        ]
        assert len(warnings) == 1

        (sandbox.root / "slow").unlink()
        await person.say("continue")
        assert sandbox.statuses() == ["completed", "pending"]
        assert len(sandbox.model.requests) == 1


async def test_a_turn_that_is_stopped_before_it_begins_does_nothing(
    sandbox: Sandbox,
) -> None:
    async with person_at(streaming(sandbox), f"/exec {SLUG}") as person:
        assert person.app.session is not None
        person.app.take_turn(read_line(person.app.session, ""))
        person.app.action_stop()
        await person.until(lambda: not person.is_waiting)
        assert sandbox.model.requests == []

        await person.say("status")
        assert "step 1" in notice(person.shown[-1:], NoticeKind.WHAT_NEXT)


async def test_a_line_sent_during_a_step_returns_when_the_step_is_stopped(
    sandbox: Sandbox,
) -> None:
    async with person_at(streaming(sandbox), f"/exec {SLUG}") as person:
        await running(person)
        await person.begin("use a table")
        await person.until(lambda: "⋯ use a table" in person.screen)
        assert person.prompt.text == ""
        assert "use a table" not in person.told

        await person.press("escape")
        assert person.prompt.text == "use a table"
        assert person.is_waiting

        await person.rest()
        await person.press("enter")
        await stop(person, "ctrl+c")
        assert person.prompt.text == "use a table"

        sandbox.model.pace = 0
        await person.rest()
        await person.press("enter")
        await person.until(lambda: not person.is_waiting)
        assert "use a table" in sandbox.prompt()


async def test_lines_typed_faster_than_they_are_handled_stay_lines(
    sandbox: Sandbox,
) -> None:
    """All keys are there before the first line is handled."""
    async with person_at(streaming(sandbox), f"/exec {SLUG}") as person:
        for key in ("c", "enter", *"abc", "enter", *"xyz"):
            person.app.post_message(events.Key(key, key if len(key) == 1 else None))
        await person.until_told("One ")
        await person.until(lambda: person.prompt.text == "xyz")
        assert "⋯ abc" in person.screen
        assert "\nc\n" in person.told
        assert "abc" not in person.told


WAYS_TO_LEAVE: list[list[str]] = [["ctrl+q"], ["ctrl+c", "ctrl+c"]]
if os.name == "posix":
    WAYS_TO_LEAVE.append(["SIGTERM"])


async def test_leaving_restores_the_step_frees_the_ticket_and_keeps_what_was_typed(
    sandbox: Sandbox,
) -> None:
    """The user typed a draft, and sent lines that wait for the end of the step."""
    for way in WAYS_TO_LEAVE:
        async with person_at(streaming(sandbox), f"/exec {SLUG}") as person:
            await running(person)
            for line in ("first", "second"):
                await person.begin(line)
            await person.until(lambda person=person: "⋯ second" in person.screen)
            await person.press(*"draft")
            if way == ["SIGTERM"]:
                # the default would end the tests
                assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
                os.kill(os.getpid(), signal.SIGTERM)
            else:
                if way[0] == "ctrl+c":
                    await stop(person, "ctrl+c")
                await person.press(*way)
            await person.until(lambda person=person: not person.app.is_running)
        assert is_as_before(sandbox), way
        sandbox.engine().close()

        async with person_at(sandbox) as person:
            seen = []
            for _ in range(3):
                await person.press("up")
                seen.append(person.prompt.text)
            assert seen[0] == "draft", way
            assert sorted(seen[1:]) == ["first", "second"], way


async def test_keys_to_leave_that_come_at_once_stop_the_step_only_once(
    sandbox: Sandbox,
) -> None:
    async with person_at(streaming(sandbox), f"/exec {SLUG}") as person:
        await running(person)
        person.at_once("escape", "ctrl+d", "ctrl+d")
        await person.until(lambda: not person.app.is_running)
    assert is_as_before(sandbox)


def notified(person: Person) -> str:
    return "\n".join(note.message for note in person.app._notifications)


async def test_ctrl_c_empties_the_prompt_and_up_restores_its_text(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:
        await person.press(*"half", "ctrl+c")
        assert person.prompt.text == ""
        assert "Ctrl+C" in notified(person)
        await person.press("up")
        assert person.prompt.text == "half"
        # another key came in between, so this is a first Ctrl+C again
        await person.press("ctrl+c")
        assert person.prompt.text == ""
        # and so is one after a long time
        for _ in range(2):
            await person.rest(60)
            await person.press("ctrl+c")
        assert person.app.is_running


async def test_ctrl_c_twice_leaves_and_keeps_the_draft(sandbox: Sandbox) -> None:
    (sandbox.root / ".cdd").mkdir()
    async with person_at(sandbox) as person:
        await person.press(*"half a line", "ctrl+c", "ctrl+c")
        await person.until(lambda: not person.app.is_running)
    assert person.app.return_code == 0
    async with person_at(sandbox) as person:
        await person.press("up")
        assert person.prompt.text == "half a line"


async def test_leaving_takes_a_second_ctrl_d_where_the_draft_would_be_lost(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:  # no project
        await person.press(*"draft", "ctrl+d")
        assert notified(person)
        assert person.prompt.text == "draft"
        await person.press("ctrl+d")
        await person.until(lambda: not person.app.is_running)


async def test_ctrl_c_copies_what_is_selected_in_the_prompt(sandbox: Sandbox) -> None:
    async with person_at(sandbox) as person:
        await person.press(*"copy me", "shift+home", "ctrl+c")
        assert person.app.clipboard == "copy me"
        assert person.prompt.text == "copy me"


async def test_a_waiting_line_is_sent_after_a_success_and_returns_after_a_failure(
    sandbox: Sandbox,
) -> None:
    sandbox.write(*TWO_STEPS)
    sandbox.model = model = HeldModel(says("a.txt", "good", "One word"), "No file.")
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await running(person)
        # Enter alone does not start a step that the user has not seen yet
        for line in ("", "continue", "all"):
            await person.begin(line)
        await person.until(
            lambda: "⋯ continue" in person.screen and "⋯ all" in person.screen
        )
        model.release()
        await person.until(lambda: person.prompt.text == "all")

        assert sandbox.statuses() == ["completed", "failed"]
        assert "⋯" not in person.screen
        assert not person.is_waiting


async def test_lines_that_return_after_a_stop_stay_lines_and_are_not_sent(
    sandbox: Sandbox,
) -> None:
    async with person_at(streaming(sandbox), f"/exec {SLUG}") as person:
        await running(person)
        lines = ["status", "skip because it can wait", LINES]
        for line in lines:
            await person.begin(line)
        await person.until(lambda: f"⋯ {' '.join(LINES.split())}" in person.screen)
        person.write("draft")
        await stop(person, "ctrl+c")

        assert person.prompt.text == "draft"
        assert f"↩ {' '.join(LINES.split())}" in person.screen
        seen = []
        for _ in lines:
            await person.press("up")
            while person.prompt.area.cursor_location[0]:
                await person.press("up")
            seen.append(person.prompt.text)
        assert seen == lines
        assert sandbox.statuses() == ["pending", "pending"]
        assert len(sandbox.model.requests) == 1


async def test_taking_back_a_line_leaves_the_draft_unchanged(
    sandbox: Sandbox,
) -> None:
    async with person_at(streaming(sandbox), f"/exec {SLUG}") as person:
        await running(person)
        await person.begin("use a table")
        await person.until(lambda: "⋯ use a table" in person.screen)
        await person.press(*"dra", "escape")
        assert person.prompt.text == "dra"
        assert "↩ use a table" in person.screen
        await person.press("up")
        assert person.prompt.text == "use a table"
        await person.press("down")
        assert person.prompt.text == "dra"
        await stop(person, "ctrl+c")


async def test_a_line_does_not_return_to_the_prompt_while_the_user_types(
    sandbox: Sandbox,
) -> None:
    async with person_at(streaming(sandbox), f"/exec {SLUG}") as person:
        await running(person)
        await person.type("status\n")
        await person.until(lambda: "⋯ status" in person.screen)
        await stop(person, "ctrl+c")
        await person.type("retry")
        assert person.prompt.text == "retry"
        assert "↩ status" in person.screen


@each_row("line", ["exit", "/exit", ":q"])
async def test_exit_sent_during_a_step_stops_it_and_leaves(
    sandbox: Sandbox, line: str
) -> None:
    sandbox.write(*TWO_STEPS)
    sandbox.model = HeldModel(says("a.txt", "good", "One word."))
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await running(person)
        await person.begin("never sent")
        await person.begin(line)
        await person.until(lambda: not person.app.is_running)
    assert sandbox.statuses() == ["pending", "pending"]
    assert person.app.return_code == 0
