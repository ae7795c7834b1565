"""The timeline tab: attempts with their events, and undo and redo from there."""

from cdd_agent.tui.inspector.action_screen import ActionScreen
from cdd_agent.tui.inspector.row_list import RowList
from cdd_agent.tui.inspector.screen import InspectorScreen
from cdd_agent.tui.inspector.source import InspectorTab
from cdd_agent.tui.transcript.widget import Transcript
from tests.support.projects import SLUG, Sandbox, Step, says
from tests.tui.person import Person, person_at

STEPS = (
    Step("a.txt", "none"),
    Step("b.txt", "none"),
    Step("c.txt", "none"),
)
REPLIES = tuple(says(f"{name}.txt", "good") for name in "abc")


async def opened(person: Person) -> RowList:
    """Open the timeline by its key; return its rows."""
    await person.press("f7")
    await person.until(lambda: rows_of(person) is not None)
    person.time.pass_by(1)
    rows = rows_of(person)
    assert rows is not None
    return rows


def rows_of(person: Person) -> RowList | None:
    for rows in person.app.screen.query(RowList):
        if rows.parent is not None and rows.parent.id == "pane-timeline" and rows.texts:
            return rows
    return None


def screen(person: Person) -> InspectorScreen:
    assert isinstance(person.app.screen, InspectorScreen)
    return person.app.screen


async def back(person: Person) -> None:
    """Do not carry out what is offered."""
    await person.press("escape")
    await person.until(lambda: isinstance(person.app.screen, InspectorScreen))


async def effect(person: Person) -> str:
    """Return what the offered action would do, once it is known."""
    await person.until(lambda: isinstance(person.app.screen, ActionScreen))
    shown = person.app.screen
    await person.until(
        lambda: any(part.plain_text() for part in shown.query(Transcript))
    )
    person.time.pass_by(1)
    return shown.query_one(Transcript).plain_text()


async def test_undo_and_redo_from_the_timeline_name_their_effect_and_act(
    sandbox: Sandbox,
) -> None:
    sandbox.write(*STEPS).replies(*REPLIES)
    async with person_at(sandbox, f"/exec {SLUG}", size=(100, 40)) as person:
        await person.say("continue")
        await person.say("continue")
        (sandbox.root / "b.txt").write_text("mine")
        await opened(person)
        await person.press("end", "u")
        assert "edited since, left unchanged: b.txt" in await effect(person)
        await back(person)
        await person.press("up", "u")
        text = await effect(person)
        assert "This undoes steps 1 and 2." in text
        assert "Reverts: a.txt" in text
        await back(person)
        await person.press("end", "u")
        await effect(person)
        assert sandbox.statuses() == ["completed", "completed", "pending"]
        await person.press("enter")
        await person.until(lambda: not person.is_waiting)
        assert sandbox.statuses() == ["completed", "pending", "pending"]
        assert sandbox.text("b.txt") == "mine"

        rows = await opened(person)
        await person.press("end")
        assert "↶ 2. Make b.txt" in rows.texts[-1]
        await person.press("enter")
        assert "step 2" in await effect(person)
        await person.press("enter")
        await person.until(lambda: not person.is_waiting)
        assert sandbox.statuses() == ["completed", "completed", "pending"]


async def test_after_the_run_the_timeline_offers_the_command_of_the_shell(
    sandbox: Sandbox,
) -> None:
    sandbox.write(*STEPS).replies(*REPLIES)
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.say("all")
        await opened(person)
        await person.press("home", "u")
        assert "Reverts: c.txt" in await effect(person)
        await person.press("tab")
        await person.until(lambda: person.app.focused is person.prompt.area)
        assert person.prompt.text == f"/undo {SLUG} 1"
        await person.say("")
        assert not (sandbox.root / "a.txt").exists()


async def test_an_enter_before_the_effect_can_be_read_does_nothing(
    sandbox: Sandbox,
) -> None:
    sandbox.write(*STEPS).replies(*REPLIES)
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.say("all")
        await opened(person)
        await person.press("u")
        await person.until(lambda: isinstance(person.app.screen, ActionScreen))
        shown = person.app.screen
        await person.until(
            lambda: any(part.plain_text() for part in shown.query(Transcript))
        )
        await person.press("enter")
        assert "no time to read" in person.screen
        assert person.app.screen is shown


async def test_a_row_opens_its_step_and_the_step_stays_the_same_in_all_tabs(
    sandbox: Sandbox,
) -> None:
    sandbox.write(*STEPS).replies(*REPLIES)
    async with person_at(sandbox, f"/exec {SLUG}", size=(100, 30)) as person:
        await person.say("continue")
        await person.say("continue")
        rows = await opened(person)
        await person.press("end", "up")
        assert "1. Make a.txt" in rows.texts[rows.cursor]
        await person.press("right")
        assert any("reply" in text for text in rows.texts)
        await person.press("enter")
        assert screen(person).tab is InspectorTab.STEP
        await person.until(lambda: "? 1. Make a.txt" in person.screen)
        await person.press("n", "3")
        assert "2. Make b.txt" in rows.texts[rows.cursor]
        await person.press("ctrl+pagedown", "ctrl+pageup", "shift+tab", "shift+tab")
        await person.until(lambda: "? 2. Make b.txt" in person.screen)


async def test_without_a_step_that_ran_the_timeline_names_the_next_command(
    sandbox: Sandbox,
) -> None:
    sandbox.write(*STEPS)
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.press("f7")
        await person.until(lambda: "No step has run yet." in person.screen)
        person.time.pass_by(1)
        await person.press("enter")
        await person.until(lambda: person.prompt.text == f"/exec {SLUG}")
