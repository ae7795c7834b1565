"""Notifications cover nothing but the transcript."""

from contextlib import suppress

import pytest
from textual.errors import NoWidget
from textual.geometry import Region

from cdd_agent.tui.transcript.widget import Transcript
from cdd_agent.tui.widgets.bars import ActivityBar
from cdd_agent.tui.widgets.prompt import Prompt
from cdd_agent.tui.widgets.status_line import StatusLine
from cdd_agent.tui.widgets.steps import StepList
from tests.agents.test_planner import SPEC, plan
from tests.support.examples import long_rows
from tests.support.projects import SLUG, Sandbox, Step, check, says
from tests.tui.person import Person, person_at

SIZES = [(60, 20), (80, 24), (100, 30), (120, 36), (200, 50)]
EACH_SIZE = [*SIZES[::2], *long_rows(*SIZES[1::2])]
SHORT = "Copied."
LONG = "The file that you asked for cannot be opened, because it is gone. " * 5


async def visible_notifications(person: Person) -> list[Region]:
    """Return the visible parts of two notifications, a short one and a long one."""
    for text in (SHORT, LONG):
        person.app.notify(text)
    await person.pilot.pause(0.1)
    await person.pilot.pause(0.1)
    screen = person.app.screen
    toasts = []
    for toast in screen.query("Toast"):
        with suppress(NoWidget):  # none of it is in sight
            toasts.append(screen.find_widget(toast).visible_region)
    return [toast for toast in toasts if toast.area]


def covered(person: Person, toasts: list[Region]) -> set[str]:
    """Return the parts of the home screen that a notification covers."""
    home = person.app.home
    parts = {
        "plan": [home.query_one(StepList), home.proposal, home.spec],
        "question": [home.query_one("#questions")],
        "prompt": [home.query_one(Prompt)],
        "activity": [home.query_one(ActivityBar)],
        "status": [home.query_one(StatusLine)],
    }
    found = set()
    for name, widgets in parts.items():
        for widget in widgets:
            region = widget.region
            if widget.display and any(toast.overlaps(region) for toast in toasts):
                found.add(name)
    return found


@pytest.mark.parametrize("size", EACH_SIZE)
async def test_nothing_but_the_transcript_is_covered(
    sandbox: Sandbox, size: tuple[int, int]
) -> None:
    sandbox.write(spec=SPEC)
    (sandbox.ticket / "plan.md").unlink()
    sandbox.replies(plan())
    async with person_at(sandbox, size=size, notifications=True) as person:
        await person.say(f"/plan {SLUG}")
        toasts = await visible_notifications(person)
        assert toasts
        assert covered(person, toasts) == set()
        reading = person.app.query_one(Transcript).region
        for toast in toasts:
            assert reading.contains_region(toast)


@pytest.mark.parametrize("size", EACH_SIZE)
async def test_an_open_question_stays_readable(
    sandbox: Sandbox, size: tuple[int, int]
) -> None:
    sandbox.flags = {"approval": "ask"}
    text = "\n".join(f"line {number}" for number in range(60))
    sandbox.write(Step("a.txt", check("a.txt"))).replies(says("a.txt", text))
    async with person_at(sandbox, size=size, notifications=True) as person:
        await person.say(f"/exec {SLUG}")
        await person.begin("continue")
        await person.until_asked()
        toasts = await visible_notifications(person)
        assert covered(person, toasts) == set()
        # without room in the transcript, the line below the prompt has it
        assert toasts or LONG[:30] in person.activity
        await person.press("escape")


async def test_notifications_follow_the_layout(sandbox: Sandbox) -> None:
    sandbox.write(Step("a.txt"))
    async with person_at(
        sandbox, f"/exec {SLUG}", (120, 36), notifications=True
    ) as person:
        for size in [*SIZES, *reversed(SIZES)]:
            await person.pilot.resize_terminal(*size)
            await person.pilot.pause()
            toasts = await visible_notifications(person)
            assert toasts, size
            assert covered(person, toasts) == set(), size
