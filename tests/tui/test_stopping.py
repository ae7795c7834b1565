"""Whatever is stopped, and however, leaves no trace, and goes on when the person wants
it to.
"""

import os
import signal

import pytest
from textual import events

from cdd_agent.events import About
from cdd_agent.llm.scripted import ScriptedModel
from tests.support.listening import collect
from tests.support.projects import SLUG, Sandbox, Step, check, notice, says
from tests.tui.person import Person, person_at

LINES = "use a table\nand a chart"

SLOW_CHECK = (
    "python -c \"import pathlib, time; print('begun', flush=True); time.sleep(60 *"
    " pathlib.Path('slow').exists())\""
)
STOPPED = "Stopped; `continue` goes on"


def streaming(sandbox: Sandbox) -> Sandbox:
    """A project whose model says one word and takes a minute for the next, and a file
    that the step would change.
    """
    sandbox.write(Step("a.txt", check("a.txt")), Step("b.txt", check("b.txt")))
    (sandbox.root / "a.txt").write_text("before\n")
    sandbox.model = ScriptedModel(
        [says("a.txt", "good", words="One " + "long" * 1000)], pace=40
    )
    return sandbox


def checking(sandbox: Sandbox) -> Sandbox:
    """A project whose check takes a minute while there is a file `slow`."""
    sandbox.write(Step("a.txt", SLOW_CHECK), Step("b.txt", check("b.txt")))
    (sandbox.root / "a.txt").write_text("before\n")
    (sandbox.root / "slow").touch()
    return sandbox.replies(says("a.txt", "good"))


async def stop(person: Person, key: str) -> None:
    await person.press(key)
    await person.until(lambda: not person.is_waiting)


def is_as_before(sandbox: Sandbox) -> bool:
    return sandbox.text("a.txt") == "before\n" and sandbox.statuses() == [
        "pending",
        "pending",
    ]


@pytest.mark.parametrize("key", ["escape", "ctrl+c"])
async def test_a_reply_is_stopped_while_it_streams(sandbox: Sandbox, key: str) -> None:
    async with person_at(streaming(sandbox), f"/exec {SLUG}") as person:
        await person.begin("")
        await person.until_told("One ")
        assert sandbox.statuses()[0] == "in_progress"
        assert person.steps[1] == "◐ 1. Make a.txt"
        assert "Esc stops" in person.activity

        await stop(person, key)

        assert is_as_before(sandbox)
        assert person.steps[1] == "○ 1. Make a.txt"
        assert STOPPED in person.told
        assert person.activity.startswith("Enter runs step 1: Make a.txt")

        sandbox.model.pace = 0
        await person.say("continue")
        assert sandbox.text("a.txt") == "good\n"
        assert person.steps[1] == "✓ 1. Make a.txt"


@pytest.mark.parametrize("key", ["escape", "ctrl+c"])
async def test_a_check_is_stopped_while_it_runs(sandbox: Sandbox, key: str) -> None:
    async with person_at(checking(sandbox), f"/exec {SLUG}") as person:
        await person.begin("")
        await person.until_told("begun")
        assert sandbox.text("a.txt") == "good\n"
        assert "Running " in person.activity

        await stop(person, key)

        assert is_as_before(sandbox)
        assert STOPPED in person.told

        (sandbox.root / "slow").unlink()
        await person.say("continue")
        assert sandbox.statuses() == ["completed", "pending"]
        assert len(sandbox.model.requests) == 1  # the saved reply was used


async def test_stopping_twice_does_not_disturb_the_clean_up(sandbox: Sandbox) -> None:
    async with person_at(checking(sandbox), f"/exec {SLUG}") as person:
        await person.begin("")
        await person.until_told("begun")
        await person.press("escape", "escape", "ctrl+c")
        await person.until(lambda: not person.is_waiting)
        assert is_as_before(sandbox)
        assert person.told.count(STOPPED) == 1


async def test_a_turn_that_is_stopped_before_it_begins_does_nothing(
    sandbox: Sandbox,
) -> None:
    async with person_at(streaming(sandbox), f"/exec {SLUG}") as person:
        person.app.take_turn("")
        person.app.action_stop()
        await person.until(lambda: not person.is_waiting)
        assert sandbox.model.requests == []

        await person.say("status")
        assert "step 1" in notice(person.shown[-1:], About.NEXT_STEP)


async def test_a_line_sent_while_a_step_runs_comes_back_when_the_step_is_stopped(
    sandbox: Sandbox,
) -> None:
    async with person_at(streaming(sandbox), f"/exec {SLUG}") as person:
        await person.begin("")
        await person.until_told("One ")
        await person.begin("use a table")
        await person.until(lambda: "⋯ use a table" in person.screen)
        assert person.prompt.text == ""
        assert "use a table" not in person.told

        await person.press("escape")
        assert person.prompt.text == "use a table"
        assert person.is_waiting

        await person.press("enter")
        await stop(person, "ctrl+c")
        assert person.prompt.text == "use a table"

        sandbox.model.pace = 0
        await person.press("enter")
        await person.until(lambda: not person.is_waiting)
        assert "use a table" in sandbox.prompt()


async def test_lines_typed_faster_than_they_are_read_stay_lines(
    sandbox: Sandbox,
) -> None:
    """All keys are waiting before the first line is handled: the second waits, and is
    not run into the first.
    """
    async with person_at(streaming(sandbox), f"/exec {SLUG}") as person:
        for key in ("c", "enter", *"abc", "enter", *"xyz"):
            person.app.post_message(events.Key(key, key if len(key) == 1 else None))
        await person.until_told("One ")
        await person.until(lambda: person.prompt.text == "xyz")
        assert "⋯ abc" in person.screen
        assert "\nc\n" in person.told
        assert "abc" not in person.told


@pytest.mark.parametrize(
    ("during", "keys"),
    [
        ("reply", ["ctrl+d"]),
        ("check", ["ctrl+d"]),
        ("check", ["escape", "ctrl+d", "ctrl+d"]),
        ("check", ["ctrl+q"]),
    ],
)
async def test_leaving_while_a_step_runs_puts_it_back_and_frees_the_lock(
    sandbox: Sandbox, during: str, keys: list[str]
) -> None:
    (streaming if during == "reply" else checking)(sandbox)
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.begin("")
        await person.until_told("One " if during == "reply" else "begun")
        for key in keys:
            person.app.post_message(events.Key(key, None))
        await person.until(lambda: not person.app.is_running)

    assert is_as_before(sandbox)
    engine = sandbox.engine()
    assert await collect(engine.recover()) == []
    engine.close()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signal")
async def test_a_signal_to_end_is_as_good_as_leaving(sandbox: Sandbox) -> None:
    async with person_at(checking(sandbox), f"/exec {SLUG}") as person:
        await person.begin("")
        await person.until_told("begun")
        # which would end the tests
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
        os.kill(os.getpid(), signal.SIGTERM)
        await person.until(lambda: not person.app.is_running)
    assert is_as_before(sandbox)


def notified(person: Person) -> str:
    return "\n".join(note.message for note in person.app._notifications)


async def test_ctrl_c_empties_the_prompt_and_up_brings_back_what_was_there(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:
        await person.press(*"half", "ctrl+c")
        assert person.prompt.text == ""
        assert "Ctrl+C again" in notified(person)
        await person.press("up")
        assert person.prompt.text == "half"
        # another key came in between: this is the first one again
        await person.press("ctrl+c")
        assert person.prompt.text == ""
        assert person.app.is_running


@pytest.mark.parametrize("typed", ["", "half a line"])
async def test_ctrl_c_twice_leaves(sandbox: Sandbox, typed: str) -> None:
    (sandbox.root / ".cdd").mkdir()
    async with person_at(sandbox) as person:
        await person.press(*typed, "ctrl+c", "ctrl+c")
        await person.until(lambda: not person.app.is_running)
    assert person.app.return_code == 0
    async with person_at(sandbox) as person:
        await person.press("up")
        assert person.prompt.text == typed


async def test_two_ctrl_c_with_a_long_time_between_do_not_leave(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:
        for _ in range(3):
            await person.press("ctrl+c")
            await person.rest(60)
        assert person.app.is_running


async def test_ctrl_c_while_a_step_runs_stops_it_and_two_more_leave(
    sandbox: Sandbox,
) -> None:
    async with person_at(streaming(sandbox), f"/exec {SLUG}") as person:
        await person.begin("")
        await person.until_told("One ")
        await stop(person, "ctrl+c")
        assert person.app.is_running
        await person.press("ctrl+c", "ctrl+c")
        await person.until(lambda: not person.app.is_running)
    assert is_as_before(sandbox)


@pytest.mark.parametrize(
    "how", [["ctrl+d"], ["ctrl+q"], ["ctrl+c", "ctrl+c"], ["SIGTERM"]], ids=" ".join
)
async def test_whatever_was_typed_outlives_leaving(
    sandbox: Sandbox, how: list[str]
) -> None:
    """The draft in the prompt, and the lines that wait for the end of a step: each by
    itself, the draft first.
    """
    async with person_at(streaming(sandbox), f"/exec {SLUG}") as person:
        await person.begin("")
        await person.until_told("One ")
        for line in ("first", "second"):
            await person.begin(line)
        await person.until(lambda: "⋯ second" in person.screen)
        await person.press(*"draft")
        if how == ["SIGTERM"]:
            os.kill(os.getpid(), signal.SIGTERM)
        else:
            if how[0] == "ctrl+c":
                await stop(person, "ctrl+c")
            await person.press(*how)
        await person.until(lambda: not person.app.is_running)

    async with person_at(sandbox) as person:
        seen = []
        for _ in range(3):
            await person.press("up")
            seen.append(person.prompt.text)
        assert seen[0] == "draft"
        assert sorted(seen[1:]) == ["first", "second"]


async def test_where_a_draft_cannot_be_kept_leaving_takes_a_second_ctrl_d(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:  # no project
        await person.press(*"draft", "ctrl+d")
        assert "project" in notified(person)
        assert person.prompt.text == "draft"
        await person.press("ctrl+d")
        await person.until(lambda: not person.app.is_running)


async def test_ctrl_c_copies_what_is_selected_in_the_prompt(sandbox: Sandbox) -> None:
    async with person_at(sandbox) as person:
        await person.press(*"copy me", "shift+home", "ctrl+c")
        assert person.app.clipboard == "copy me"
        assert person.prompt.text == "copy me"


async def test_queued_line_is_sent_after_success_and_returns_after_failure(
    sandbox: Sandbox,
) -> None:
    until_gone = (
        "import pathlib, time; [time.sleep(0.05) for _ in"
        " iter(pathlib.Path('slow').exists, False)]"
    )
    sandbox.write(
        Step("a.txt", f'python -c "{until_gone}"'), Step("b.txt", check("b.txt"))
    )
    (sandbox.root / "slow").touch()
    sandbox.replies(says("a.txt", "good"), *[says("b.txt", "bad")] * 3)
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.begin("")
        await person.until_told("Here it is.")
        # Enter alone is no wish for a step that is not seen yet
        for line in ("", "continue", "all"):
            await person.begin(line)
        await person.until(
            lambda: "⋯ continue" in person.screen and "⋯ all" in person.screen
        )
        (sandbox.root / "slow").unlink()
        await person.until(lambda: person.prompt.text == "all")

        assert sandbox.statuses() == ["completed", "failed"]
        assert "⋯" not in person.screen
        assert not person.is_waiting


@pytest.mark.parametrize("draft", ["", "draft"])
async def test_lines_that_come_back_stay_lines_and_none_is_sent_by_itself(
    sandbox: Sandbox, draft: str
) -> None:
    async with person_at(streaming(sandbox), f"/exec {SLUG}") as person:
        await person.begin("")
        await person.until_told("One ")
        lines = ["status", "skip because it can wait", LINES]
        for line in lines:
            await person.begin(line)
        await person.until(lambda: f"⋯ {' '.join(LINES.split())}" in person.screen)
        person.prompt.area.insert(draft)
        await stop(person, "ctrl+c")

        first, *others = [*filter(None, [draft]), *lines]
        assert person.prompt.text == first
        assert f"↩ {' '.join(LINES.split())}" in person.screen
        seen = [first]
        for _ in others:
            await person.press("up")
            while person.prompt.area.cursor_location[0]:
                await person.press("up")
            seen.append(person.prompt.text)
        assert seen == [first, *others]
        assert sandbox.statuses() == ["pending", "pending"]
        assert len(sandbox.model.requests) == 1


async def test_a_line_that_is_taken_back_leaves_the_draft_alone(
    sandbox: Sandbox,
) -> None:
    async with person_at(streaming(sandbox), f"/exec {SLUG}") as person:
        await person.begin("")
        await person.until_told("One ")
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


async def test_a_line_does_not_come_back_under_the_fingers_of_somebody_who_types(
    sandbox: Sandbox,
) -> None:
    async with person_at(streaming(sandbox), f"/exec {SLUG}") as person:
        await person.begin("")
        await person.until_told("One ")
        await person.type("status\n")
        await person.until(lambda: "⋯ status" in person.screen)
        await stop(person, "ctrl+c")
        await person.type("retry")
        assert person.prompt.text == "retry"
        assert "↩ status" in person.screen


async def test_who_sends_exit_meanwhile_leaves_when_the_step_is_done(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt", check("a.txt")), Step("b.txt", check("b.txt")))
    sandbox.model = ScriptedModel(
        [says("a.txt", "good", words="One " + "long " * 1000)], pace=40
    )
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.begin("")
        await person.until_told("One ")
        for line in ("exit", "/exit", "never sent"):
            await person.begin(line)
        sandbox.model.pace = 0
        await person.until(lambda: not person.app.is_running)
    assert sandbox.statuses() == ["completed", "pending"]
    assert person.app.return_code == 0
