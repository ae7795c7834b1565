"""The timeline shows what undoing each step would do, and offers to undo or redo."""

import asyncio

from cdd_agent.engine.step_details import StepDetails
from cdd_agent.engine.timeline import Timeline
from cdd_agent.events.step_events import UndoPreview
from cdd_agent.events.step_summary import StepSummary
from cdd_agent.tickets.plan import PlanStep
from cdd_agent.tickets.status import StepStatus
from cdd_agent.tui.timeline_screen import TimelineScreen
from cdd_agent.tui.transcript.widget import Transcript
from tests.support.projects import SLUG, Sandbox, Step, says
from tests.tui.person import Person, person_at

STEPS = (
    Step("a.txt", "none"),
    Step("b.txt", "none"),
    Step("c.txt", "none"),
)
REPLIES = tuple(says(f"{name}.txt", "good") for name in "abc")


async def opened(person: Person) -> None:
    await person.press("f7")
    await person.until(lambda: isinstance(person.app.screen, TimelineScreen))


def shown(person: Person) -> str:
    return person.app.screen.query_one(Transcript).plain_text()


async def test_undo_and_redo_from_the_timeline_are_put_into_the_prompt(
    sandbox: Sandbox,
) -> None:
    sandbox.write(*STEPS).replies(*REPLIES)
    async with person_at(sandbox, f"/exec {SLUG}", size=(100, 40)) as person:
        await person.say("continue")
        await person.say("continue")
        (sandbox.root / "b.txt").write_text("mine")
        await opened(person)
        await person.until(lambda: "After step 2" in shown(person))
        assert "?2 now" in person.screen
        await person.press("enter")  # it is there already
        assert isinstance(person.app.screen, TimelineScreen)

        await person.press("left")
        await person.until(lambda: "After step 1" in shown(person))
        assert "edited since, left unchanged: b.txt" in shown(person)
        await person.press("home")
        await person.until(lambda: "Reverted: a.txt" in shown(person))
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


async def test_after_the_run_the_timeline_offers_the_command_of_the_shell(
    sandbox: Sandbox,
) -> None:
    sandbox.write(*STEPS).replies(*REPLIES)
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.say("all")
        await opened(person)
        await person.press("home")
        await person.until(lambda: "Reverted: c.txt" in shown(person))
        await person.press("enter")
        await person.until(lambda: person.app.focused is person.prompt.area)
        assert person.prompt.text == f"/undo {SLUG} 1"
        await person.say("")
        assert not (sandbox.root / "a.txt").exists()


async def test_without_a_completed_step_there_is_no_timeline(
    sandbox: Sandbox,
) -> None:
    sandbox.write(*STEPS)
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.press("f7")
        await person.until(lambda: person.app._notifications)
        assert person.app.screen is person.app.home


async def test_the_timeline_can_be_closed_before_its_preview_is_there(
    sandbox: Sandbox,
) -> None:
    is_known = asyncio.Event()
    view = StepSummary(1, "Make a.txt", StepStatus.COMPLETED)
    details = StepDetails(SLUG, PlanStep(1, "Make a.txt", "Make it."), view, ())

    async def preview(number: int) -> UndoPreview:
        await is_known.wait()
        return UndoPreview((number,), ("a.txt",), (), ())

    async with person_at(sandbox) as person:
        timeline = Timeline(SLUG, (view,), ())
        screen = TimelineScreen(timeline, lambda number: details, preview)
        person.app.push_screen(screen)
        await person.until(lambda: person.app.screen is screen)
        await person.press("left")
        # the first part of the screen to go
        await screen.query_one(Transcript).remove()
        is_known.set()
        await person.until(
            lambda: all(
                worker.is_finished
                for worker in person.app.workers
                if worker.node is screen
            )
        )
        await person.press("escape")
        await person.until(lambda: person.app.screen is person.app.home)
