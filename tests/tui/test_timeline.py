"""The run as a timeline: one walks along it, sees what would become of files, and goes
back and forth from there.
"""

import asyncio

from cdd_agent.events import UndoPreview
from cdd_agent.tui.timeline_screen import TimelineScreen
from cdd_agent.tui.transcript.widget import Transcript
from tests.support.projects import SLUG, Sandbox, Step, check, says
from tests.tui.person import Person, person_at

STEPS = (
    Step("a.txt", check("a.txt")),
    Step("b.txt", check("b.txt")),
    Step("c.txt", check("c.txt")),
)
REPLIES = tuple(says(f"{name}.txt", "good") for name in "abc")


async def opened(person: Person) -> None:
    await person.press("f7")
    await person.until(lambda: isinstance(person.app.screen, TimelineScreen))


def shown(person: Person) -> str:
    return person.app.screen.query_one(Transcript).plain_text()


async def test_one_walks_back_and_forth_and_the_words_stand_in_the_prompt(
    sandbox: Sandbox,
) -> None:
    sandbox.write(*STEPS).replies(*REPLIES)
    async with person_at(sandbox, f"/exec {SLUG}", size=(100, 40)) as person:
        await person.say("continue")
        await person.say("continue")
        (sandbox.root / "b.txt").write_text("mine")
        await opened(person)
        await person.until(lambda: "After step 2" in shown(person))
        assert "✓2 now" in person.screen
        await person.press("enter")  # it is there already
        assert isinstance(person.app.screen, TimelineScreen)

        await person.press("left")
        await person.until(lambda: "After step 1" in shown(person))
        assert "stays as you have edited it since: b.txt" in shown(person)
        await person.press("home")
        await person.until(lambda: "as before: a.txt" in shown(person))
        await person.press("right", "enter")
        await person.until(lambda: person.app.focused is person.prompt.area)
        assert person.prompt.text == "undo 2"
        assert sandbox.statuses() == ["completed", "completed", "pending"]

        await person.say("")
        assert sandbox.statuses() == ["completed", "pending", "pending"]
        assert sandbox.text("b.txt") == "mine"
        await opened(person)
        await person.press("end")
        await person.until(lambda: "Undone." in shown(person))
        await person.press("enter")
        await person.until(lambda: person.app.focused is person.prompt.area)
        assert person.prompt.text == "redo"


async def test_when_the_run_is_over_the_commands_of_the_shell_do_it(
    sandbox: Sandbox,
) -> None:
    sandbox.write(*STEPS).replies(*REPLIES)
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.say("all")
        await opened(person)
        await person.press("home")
        await person.until(lambda: "as before: c.txt" in shown(person))
        await person.press("enter")
        await person.until(lambda: person.app.focused is person.prompt.area)
        assert person.prompt.text == f"/undo {SLUG} 1"
        await person.say("")
        assert not (sandbox.root / "a.txt").exists()


async def test_where_nothing_was_done_it_says_so_and_escape_does_nothing(
    sandbox: Sandbox,
) -> None:
    sandbox.write(*STEPS).replies(*REPLIES)
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.press("f7")
        await person.until(lambda: person.app._notifications)
        assert person.app.screen is person.app.home
        await person.say("continue")
        await opened(person)
        await person.press("left", "escape")
        await person.until(lambda: person.app.screen is person.app.home)
        assert person.prompt.text == ""


async def test_it_is_closed_while_it_still_finds_out_what_would_be(
    sandbox: Sandbox,
) -> None:
    sandbox.write(*STEPS).replies(*REPLIES)
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.say("continue")
        await opened(person)
        screen, known = person.app.screen, asyncio.Event()
        assert isinstance(screen, TimelineScreen)
        preview = screen._preview

        async def late(number: int) -> UndoPreview:
            await known.wait()
            return await preview(number)

        screen._preview = late
        await person.press("left")
        await screen.query_one(Transcript).remove()  # the first of it to go
        known.set()
        await person.until(
            lambda: all(
                worker.is_finished
                for worker in person.app.workers
                if worker.node is screen
            )
        )
        await person.press("escape")
        await person.until(lambda: person.app.screen is person.app.home)
