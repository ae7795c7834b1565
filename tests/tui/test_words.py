"""Below the prompt is what Enter does, and a line for one step starts no other."""

from cdd_agent.commands.registry import read_line
from cdd_agent.llm.scripted_reply import ScriptedReply
from cdd_agent.tui.hints import fit_hint
from tests.support.projects import SLUG, Sandbox, Step, says
from tests.support.typed_lines import command_hint
from tests.tui.held_model import HeldModel
from tests.tui.person import Person, person_at

GUIDANCE = "use bcrypt instead of md5"
QUESTION = "explain this change to me"
ANSWER = "It says good."

THREE = (
    Step("a.txt", "none"),
    Step("b.txt", "none", "Step 1"),
    Step("c.txt", "none"),
)
GOOD = tuple(says(path, "good") for path in ("a.txt", "b.txt", "c.txt"))
LINES = (
    GUIDANCE,
    "bcrypt",
    "staus",
    "status",
    "why?",
    "c",
    "skip 30",
    "/exit",
    "/hepl",
    "/exec ",
    "!ls",
    "",
)


async def types(person: Person, line: str) -> str:
    """Type a line without Enter, and return the text below the prompt."""
    person.prompt.replace("")
    person.write(line)
    await person.pilot.pause()
    return person.activity


async def test_the_effect_of_enter_is_shown_below_the_prompt(sandbox: Sandbox) -> None:
    sandbox.write(*THREE).replies(*GOOD)
    async with person_at(sandbox) as person:
        assert await types(person, "use a table") in person.screen
        await types(person, "")
        await person.say(f"/exec {SLUG}")
        assert person.activity.startswith("Enter: run step 1, Make a.txt")
        for line in LINES:
            below = await types(person, line)
            assert person.app.session is not None
            hint = read_line(person.app.session, line).hint
            assert below.startswith(fit_hint(hint, 60)[:-2]), line
            assert below in person.screen
            assert len(below) <= 80
        assert sandbox.model.requests == []

        await types(person, GUIDANCE)
        await person.press("enter")
        await person.until(lambda: not person.is_waiting)
        assert GUIDANCE in sandbox.prompt()
        assert sandbox.statuses() == ["completed", "pending", "pending"]
        assert "step 2" in await types(person, "use a table")


async def test_during_a_step_the_effect_of_enter_on_each_kind_of_line_is_shown(
    sandbox: Sandbox,
) -> None:
    sandbox.write(*THREE)
    sandbox.model = model = HeldModel(GOOD[0])
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await running(person)
        assert "queued" in person.prompt.area.placeholder
        below = {
            line: await types(person, line)
            for line in ("/status", "/clear", "!ls", GUIDANCE, "/staus")
        }
        assert below["/status"].startswith(fit_hint(command_hint("/status"), 60)[:-2])
        assert below["/clear"] == below["!ls"] == below["/staus"] != below[GUIDANCE]
        await person.press("enter")
        assert "Receiving the reply" in person.activity
        await person.press("escape")
        await types(person, "")
        model.release()
        await person.until(lambda: not person.is_waiting)
        assert person.prompt.area.placeholder.startswith("status, skip")
        assert person.activity.startswith("Enter: run step 2")


async def test_at_a_question_in_a_turn_no_line_is_said_to_wait(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox.replies("Sure.")) as person:
        person.app.home.begin()
        asked = person.app.run_worker(person.app.asking.ask("Which port?"))
        await person.until_asked()
        assert person.prompt.area.placeholder == "Type your answer …"
        await person.rest()
        await person.type("8080")
        assert "waits" not in person.activity
        await person.rest()
        await person.press("enter")
        await person.until(lambda: asked.is_finished)
        assert "queued" in person.prompt.area.placeholder


async def test_a_line_that_may_be_a_slip_runs_nothing(sandbox: Sandbox) -> None:
    sandbox.write(*THREE).replies(*GOOD)
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        for line in ("staus", "git status", "skip 30", "maybe you should", "y"):
            await person.say(line)
        assert "`status`" in person.told
        assert sandbox.model.requests == []
        await person.say("help")
        assert "`continue`, `c`" in person.told
        await person.say("close")
        assert "chat" in person.title
        assert person.app.is_running


async def running(person: Person) -> None:
    """Start the next step, and wait for its reply."""
    await person.begin("")
    await person.until(lambda: "Receiving" in person.activity)


async def sent_meanwhile(person: Person, model: HeldModel, *lines: str) -> None:
    """Run the next step, and send lines before it ends."""
    model.hold()
    await running(person)
    for line in lines:
        await person.begin(line)
        await person.until(lambda line=line: f"⋯ {line}" in person.screen)  # type: ignore[misc]
    model.release()
    await person.until(lambda: not person.is_waiting)


AFTER_ENTER = {
    "use a table": "completed",
    "skip because it is slow": "skipped",
}
"""Lines for a step, and what they make of the next one."""


async def test_a_line_for_the_running_step_returns_and_enter_uses_it_for_the_next_step(
    sandbox: Sandbox,
) -> None:
    paths = [f"{number}.txt" for number in range(3 * len(AFTER_ENTER))]
    sandbox.write(*(Step(path, "none") for path in paths))
    sandbox.model = model = HeldModel(
        *(
            ScriptedReply(says(path, "good"), when=f"# Step {number} of {len(paths)}:")
            for number, path in enumerate(paths, 1)
        )
    )
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        for number, (line, status) in enumerate(AFTER_ENTER.items()):
            at = 2 * number
            await sent_meanwhile(person, model, line)
            assert person.prompt.text == line
            assert sandbox.statuses()[at : at + 2] == ["completed", "pending"], line
            assert f"step {at + 2}" in person.activity, line

            await person.press("enter")
            assert "Too soon" in person.activity
            await person.rest()
            await person.press("enter")
            await person.until(lambda: not person.is_waiting)
            assert sandbox.statuses()[at + 1] == status, line

        # a line that was typed before the end means something else after it
        model.hold()
        await running(person)
        await types(person, "use a table")
        model.release()
        await person.until(lambda: not person.is_waiting)
        done = sandbox.statuses().count("completed")
        await person.press("enter")
        await person.pilot.pause()
        assert person.prompt.text == "use a table"
        assert sandbox.statuses().count("completed") == done
        await person.rest()
        await person.press("enter")
        await person.until(lambda: sandbox.statuses().count("completed") == done + 1)


async def test_commands_that_wait_are_sent_when_the_step_is_done(
    sandbox: Sandbox,
) -> None:
    sandbox.write(*THREE)
    sandbox.model = model = HeldModel(*GOOD)
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await sent_meanwhile(person, model, "status", "continue", "status")
        assert sandbox.statuses() == ["completed", "completed", "pending"]
        assert person.prompt.text == ""

        # a line for the last step does not go to the chat
        await sent_meanwhile(person, model, QUESTION)
        assert "chat" in person.title
        assert person.prompt.text == QUESTION
        assert len(sandbox.model.requests) == 3


async def test_read_only_commands_for_a_finished_ticket_leave_the_chat_active(
    sandbox: Sandbox,
) -> None:
    sandbox.write(*THREE).replies(*GOOD, ANSWER)
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.say("all")
        for line in (f"/diff {SLUG} 3", f"/diff {SLUG} 99", f"/cost {SLUG}"):
            await person.say(line)
            assert "chat" in person.title
        await person.say(QUESTION)
        assert ANSWER in person.told

        assert person.steps[0].startswith("Plan 3/3")
        await person.say(f"/undo {SLUG} --yes")
        assert "chat" in person.title
        # the list was about a run that is finished no longer
        assert person.steps == []
        assert sandbox.statuses() == ["completed", "completed", "pending"]


async def test_an_undo_by_slug_shows_in_the_list_of_the_active_run(
    sandbox: Sandbox,
) -> None:
    sandbox.write(*THREE).replies(*GOOD)
    async with person_at(sandbox, f"/exec {SLUG}", size=(120, 40)) as person:
        await person.say("")
        await person.say(f"/undo {SLUG} --yes")
        assert person.steps[1] == "○ 1. Make a.txt"
        assert f"executor · {SLUG}" in person.title
        assert "Make a.txt" in await types(person, "c")


async def test_a_waiting_line_does_not_start_the_step_again_after_a_no(
    sandbox: Sandbox,
) -> None:
    sandbox.flags = {"approval": "ask"}
    sandbox.write(*THREE)
    sandbox.model = model = HeldModel(*GOOD)
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await running(person)
        await person.begin("continue")
        await person.until(lambda: "⋯ continue" in person.screen)
        model.release()
        await person.until_asked()
        await person.answer("n")
        await person.until(lambda: not person.is_waiting)

        assert person.prompt.text == "continue"
        assert not person.app.query("Question")
