"""Below the prompt it says what Enter will do, and a line that was typed for a running
step starts no other.
"""

import pytest

from tests.support.projects import SLUG, Sandbox, Step, check, says
from tests.tui.person import Person, person_at
from tests.tui.test_stopping import streaming

GUIDANCE = "use bcrypt instead of md5"
QUESTION = "explain this change to me"
ANSWER = "It says good."

THREE = (
    Step("a.txt", check("a.txt")),
    Step("b.txt", check("b.txt"), "Step 1"),
    Step("c.txt", check("c.txt")),
)
GOOD = tuple(says(path, "good") for path in ("a.txt", "b.txt", "c.txt"))


async def types(person: Person, line: str) -> str:
    """Type a line, without Enter, and read what is said below it."""
    person.prompt.replace("")
    person.prompt.area.insert(line)
    await person.pilot.pause()
    return person.activity


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_what_enter_does_is_below_the_prompt_before_it_is_pressed(
    sandbox: Sandbox, size: tuple[int, int]
) -> None:
    sandbox.write(*THREE).replies(*GOOD)
    async with person_at(sandbox, f"/exec {SLUG}", size=size) as person:
        assert person.activity.startswith("Enter runs step 1: Make a.txt")
        for line, told in (
            (GUIDANCE, "Enter: guidance for step 1, and the step runs"),
            (
                "bcrypt",
                (
                    "Enter does nothing. Too little for guidance; `help` lists the"
                    " commands."
                ),
            ),
            ("staus", "Enter does nothing. Did you mean `status`?"),
            ("status", "Enter shows where the run is"),
            ("why?", "Enter asks the model; no step runs"),
            ("c", "Enter runs step 1: Make a.txt"),
            ("skip 30", "Enter does nothing. Step 30 is not the next one, step 1 is."),
            (
                "/exit",
                "Enter: leave the active agent; where none is active, the shell.",
            ),
            (
                "/hepl",
                "Enter does nothing. There is no command /hepl. Did you mean /help?",
            ),
            (
                "/exec",
                "Enter does nothing. Usage: /exec SLUG [--start-over] [--worktree]",
            ),
            ("!ls", "Enter runs that as a command of your own"),
            ("", "Enter runs step 1: Make a.txt"),
        ):
            below = await types(person, line)
            assert below.startswith(told), line
            assert below in person.screen
            assert len(below) <= size[0]
        assert sandbox.model.requests == []

        await types(person, GUIDANCE)
        await person.press("enter")
        await person.until(lambda: not person.is_waiting)
        assert GUIDANCE in sandbox.prompt()
        assert sandbox.statuses() == ["completed", "pending", "pending"]
        assert "step 2" in await types(person, "use a table")


async def test_while_something_runs_it_is_said_what_becomes_of_a_line(
    sandbox: Sandbox,
) -> None:
    async with person_at(streaming(sandbox), f"/exec {SLUG}") as person:
        await person.begin("")
        await person.until_told("One ")
        assert "wait" in person.prompt.area.placeholder
        assert "Receiving the reply" in person.activity
        for line, told in (
            ("/status", "Enter: show how far a ticket is"),
            ("/clear", "Enter: it waits"),
            ("!ls", "Enter: it waits"),
            (GUIDANCE, "Enter: for the step that runs, or it waits"),
            ("/staus", "Enter: it waits"),
        ):
            assert (await types(person, line)).startswith(told), line
        await person.press("enter")
        assert "waits for the end of this" in person.screen
        assert "Receiving the reply" in person.activity
        await person.press("escape")
        await types(person, "")
        await person.press("escape")
        await person.until(lambda: not person.is_waiting)
        assert (
            person.prompt.area.placeholder
            == "Enter runs the next step; status, skip, exit ..."
        )
        assert person.activity.startswith("Enter runs step 1")


async def test_at_a_question_in_a_turn_no_line_is_said_to_wait(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox.replies("Sure.")) as person:
        person.app.home.begin()
        asked = person.app.run_worker(person.app.asking.ask("Which port?"))
        await person.until_asked()
        assert person.prompt.area.placeholder == "your answer ..."
        await person.rest()
        await person.type("8080")
        assert "waits" not in person.activity
        await person.rest()
        await person.press("enter")
        await person.until(lambda: asked.is_finished)
        assert "wait" in person.prompt.area.placeholder


async def test_in_chat_nothing_is_said(sandbox: Sandbox) -> None:
    sandbox.write(*THREE)
    async with person_at(sandbox) as person:
        assert (await types(person, "use a table")).startswith("Enter sends")


async def test_a_line_that_is_asked_about_runs_nothing(sandbox: Sandbox) -> None:
    sandbox.write(*THREE).replies(*GOOD)
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        for line in (
            "staus",
            "git status",
            "skip 30",
            "maybe you should",
            "y",
            "clear",
        ):
            await person.say(line)
        assert "`status`" in person.told
        assert sandbox.model.requests == []
        await person.say("help")
        assert "`continue`, `c`" in person.told
        await person.say("quit")
        assert "chat" in person.title
        assert person.app.is_running


UNTIL_GONE = (
    'python -c "import pathlib, time; [time.sleep(0.05) for _ in'
    " iter(pathlib.Path('slow').exists, False)]\""
)


def slowly(sandbox: Sandbox, *steps: Step) -> Sandbox:
    """A project whose first check takes as long as there is a file `slow`, so that
    somebody can type meanwhile.
    """
    sandbox.write(Step("a.txt", UNTIL_GONE), *steps).replies(*GOOD)
    (sandbox.root / "slow").touch()
    return sandbox


async def meanwhile(person: Person, sandbox: Sandbox, *lines: str) -> None:
    """Send lines while the first step runs, and wait until it is done and they are,
    too.
    """
    await person.begin("")
    await person.until(lambda: "Running " in person.activity)
    for line in lines:
        await person.begin(line)
        await person.until(lambda line=line: f"⋯ {line}" in person.screen)  # type: ignore[misc]
    (sandbox.root / "slow").unlink()
    await person.until(lambda: not person.is_waiting)


@pytest.mark.parametrize(
    "line", ["use a table", "skip", "skip because it is slow", "retry", "> x", "s"]
)
async def test_what_is_about_the_running_step_comes_back_and_touches_no_other(
    sandbox: Sandbox, line: str
) -> None:
    async with person_at(slowly(sandbox, *THREE[1:]), f"/exec {SLUG}") as person:
        await meanwhile(person, sandbox, line)
        assert person.prompt.text == line
        assert sandbox.statuses() == ["completed", "pending", "pending"]
        assert len(sandbox.model.requests) == 1
        # it is said what it would do now
        assert "step 2" in person.activity or line == "retry"

        await person.press("enter")  # and then it does, as somebody means it
        await person.until(lambda: not person.is_waiting)
        assert sandbox.statuses()[1] == (
            "skipped"
            if line[0] == "s"
            else "pending"
            if line == "retry"
            else "completed"
        )


async def test_commands_that_are_about_no_step_are_sent_when_the_step_is_done(
    sandbox: Sandbox,
) -> None:
    async with person_at(slowly(sandbox, *THREE[1:]), f"/exec {SLUG}") as person:
        await meanwhile(person, sandbox, "status", "continue", "status")
        assert sandbox.statuses() == ["completed", "completed", "pending"]
        assert person.prompt.text == ""


async def test_what_was_typed_for_the_last_step_does_not_go_to_chat(
    sandbox: Sandbox,
) -> None:
    async with person_at(slowly(sandbox), f"/exec {SLUG}") as person:
        await meanwhile(person, sandbox, QUESTION)
        assert "chat" in person.title
        assert person.prompt.text == QUESTION
        assert len(sandbox.model.requests) == 1


@pytest.mark.parametrize("line", ["use a table", "s"])
async def test_a_line_typed_before_the_end_and_sent_after_it_needs_a_second_enter(
    sandbox: Sandbox, line: str
) -> None:
    async with person_at(slowly(sandbox, *THREE[1:]), f"/exec {SLUG}") as person:
        await person.begin("")
        await person.until(lambda: "Running " in person.activity)
        await types(person, line)
        (sandbox.root / "slow").unlink()
        await person.until(lambda: not person.is_waiting)
        await person.press("enter")
        await person.pilot.pause()
        assert person.prompt.text == line
        assert sandbox.statuses() == ["completed", "pending", "pending"]

        await person.press("enter")
        await person.until(lambda: sandbox.statuses()[1] in ("completed", "skipped"))


async def test_a_look_at_a_finished_ticket_leaves_chat_as_it_is(
    sandbox: Sandbox,
) -> None:
    sandbox.write(*THREE).replies(*GOOD, ANSWER)
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.say("all")
        for line in (
            f"/diff {SLUG} 3",
            f"/diff {SLUG} 99",
            f"/status {SLUG}",
            f"/cost {SLUG}",
        ):
            await person.say(line)
            assert "chat" in person.title
        await person.say("explain this change to me")
        assert ANSWER in person.told

        assert person.steps[0].startswith("Plan 3/3")
        await person.say(f"/undo {SLUG}")
        assert "chat" in person.title
        assert person.steps == []  # what was done is not done any more
        await person.say("status")
        assert "`/status" in person.told
        assert sandbox.statuses() == ["completed", "completed", "pending"]


async def test_an_undo_by_slug_shows_in_the_list_of_the_run_that_is_active(
    sandbox: Sandbox,
) -> None:
    sandbox.write(*THREE).replies(*GOOD)
    async with person_at(sandbox, f"/exec {SLUG}", size=(120, 40)) as person:
        await person.say("")
        await person.say(f"/undo {SLUG}")
        assert person.steps[1] == "○ 1. Make a.txt"
        assert f"executor · {SLUG}" in person.title
        assert "Make a.txt" in await types(person, "c")


async def test_after_a_no_a_line_that_waited_does_not_start_the_step_again(
    sandbox: Sandbox,
) -> None:
    sandbox.flags = {"approval": "ask"}
    slowly(sandbox, *THREE[1:])
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.begin("all")
        await person.until_asked()
        await person.answer("y")
        await person.until(lambda: "Running " in person.activity)
        await person.begin("continue")
        await person.until(lambda: "⋯ continue" in person.screen)
        (sandbox.root / "slow").unlink()
        await person.until_asked()
        await person.answer("n")
        await person.until(lambda: not person.is_waiting)

        assert person.prompt.text == "continue"
        assert not person.app.query("Question")
