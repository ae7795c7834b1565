"""The palette finds commands, tickets and screens, and runs nothing by itself."""

from textual.widgets import OptionList

from cdd_agent.tui.inspector.screen import InspectorScreen
from cdd_agent.tui.screens.chooser import ChooserRow, matching_rows
from cdd_agent.tui.screens.palette import Palette
from tests.support.projects import SLUG, Sandbox, Step
from tests.tui.held_model import HeldModel
from tests.tui.person import Person, person_at
from tests.tui.screens.reading import has_read


async def palette(person: Person) -> Palette:
    await person.press("ctrl+p")
    await person.until(
        lambda: isinstance(person.app.screen, Palette) and has_read(person)
    )
    assert isinstance(person.app.screen, Palette)
    return person.app.screen


async def back(person: Person) -> None:
    await person.until(lambda: person.app.screen is person.app.home)


CHOSEN = {
    "carry out plan": "/exec ",
    "ticket planned": f"/exec {SLUG}",
    "sctes": "/socrates ",
}


async def test_the_chosen_command_or_ticket_is_put_into_the_prompt_and_not_run(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt"))
    async with person_at(sandbox) as person:
        for typed, line in CHOSEN.items():
            person.prompt.replace("a draft")
            screen = await palette(person)
            screen.type(typed)
            await person.press("enter")
            await back(person)
            assert person.prompt.text == line
            assert person.app.focused is person.prompt.area
            assert not person.is_waiting
            assert person.app.session is not None
            assert person.app.session.agent is None
            await person.press("up")
            assert person.prompt.text == "a draft"


async def test_a_ticket_is_offered_to_the_agent_that_does_its_next_step(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt"))
    (sandbox.ticket / "plan.md").unlink()
    async with person_at(sandbox) as person:
        screen = await palette(person)
        await person.press(*SLUG)
        assert screen.highlighted is not None
        assert screen.highlighted.key == f"/plan {SLUG}"
        (sandbox.ticket / "spec.yaml").write_text("title: Only a title\n")
        await person.press("escape")
        screen = await palette(person)
        screen.type(SLUG)
        assert screen.highlighted is not None
        assert screen.highlighted.key == f"/socrates {SLUG}"


async def test_a_chosen_screen_opens_and_no_command_of_textual_is_offered(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt"))
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        screen = await palette(person)
        options = screen.query_one(OptionList).options
        text = " ".join(str(option.prompt) for option in options).lower()
        assert "cost" in text
        assert not [w for w in ("quit the app", "screenshot", "maximize") if w in text]
        screen.type("acceptance")
        await person.press("enter")
        await person.until(lambda: isinstance(person.app.screen, InspectorScreen))


async def test_a_click_chooses_and_escape_changes_nothing(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:
        person.prompt.replace("a draft")
        (await palette(person)).type("cost")
        await person.press("escape")
        await back(person)
        assert person.prompt.text == "a draft"
        screen = await palette(person)
        screen.type("/cost")
        await person.pilot.click("OptionList", offset=(3, 0))
        await back(person)
        assert person.prompt.text == "/cost"
        assert not screen.is_running


async def test_it_opens_during_a_turn_and_does_not_stop_it(sandbox: Sandbox) -> None:
    sandbox.model = HeldModel("One word.")
    async with person_at(sandbox) as person:
        await person.begin("hello")
        await person.until(lambda: person.is_waiting)
        await palette(person)
        await person.press("escape")
        await back(person)
        assert person.is_waiting
        await person.press("escape")
        await person.until(lambda: not person.is_waiting)


ROWS = (
    ChooserRow("/exec", "/exec SLUG", "Carry out a plan"),
    ChooserRow("/plan", "/plan SLUG", "Make one"),
    ChooserRow("k", "Help", "F1"),
)


def test_rows_that_begin_with_the_words_come_first_and_letters_in_order_last() -> None:
    expected = {
        "": ["/exec", "/plan", "k"],
        "plan": ["/plan", "/exec"],
        "slug plan": ["/plan", "/exec"],
        "PLAN slug": ["/plan", "/exec"],
        "f1": ["k"],
        "exc": ["/exec"],
        "zzz": [],
    }
    assert {
        typed: [row.key for row in matching_rows(ROWS, typed)] for typed in expected
    } == expected
