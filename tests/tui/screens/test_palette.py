"""The palette: found by words, put into the prompt, nothing run."""

import pytest

from cdd_agent.tui.criteria_screen import CriteriaScreen
from cdd_agent.tui.screens.chooser import Row, found
from cdd_agent.tui.screens.help import HelpScreen
from cdd_agent.tui.screens.palette import Palette
from tests.support.projects import SLUG, Sandbox, Step
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


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        ("cost", "/cost"),
        ("carry out plan", "/exec "),
        ("ticket planned", f"/exec {SLUG}"),
        (f"{SLUG}", f"/exec {SLUG}"),
        ("sctes", "/socrates "),
    ],
)
async def test_a_command_or_a_ticket_is_put_into_the_prompt_and_not_run(
    sandbox: Sandbox, typed: str, line: str
) -> None:
    sandbox.write(Step("a.txt"))
    async with person_at(sandbox) as person:
        person.prompt.replace("a draft")
        await palette(person)
        await person.press(
            *("space" if letter == " " else letter for letter in typed), "enter"
        )
        await back(person)
        assert person.prompt.text == line
        assert person.app.focused is person.prompt.area
        assert not person.is_waiting
        assert person.app.session is not None
        assert person.app.session.agent is None
        await person.press("up")
        assert person.prompt.text == "a draft"


async def test_without_a_complete_spec_a_ticket_goes_to_socrates_else_to_the_planner(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt"))
    (sandbox.ticket / "plan.md").unlink()
    async with person_at(sandbox) as person:
        screen = await palette(person)
        await person.press(*SLUG)
        assert screen.highlighted == Row(
            f"/plan {SLUG}", f"/plan {SLUG}", "ticket · spec"
        )
        (sandbox.ticket / "spec.yaml").write_text("title: Only a title\n")
        await person.press("escape")
        screen = await palette(person)
        await person.press(*SLUG)
        assert screen.highlighted is not None
        assert screen.highlighted.key == f"/socrates {SLUG}"


async def test_a_screen_is_shown_at_once_and_nothing_of_textuals_own_is_there(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt"))
    async with person_at(sandbox) as person:
        screen = await palette(person)
        texts = [row.text.lower() for row in screen._rows]
        assert not [
            text
            for text in texts
            if any(word in text for word in ("quit", "screenshot", "maximize"))
        ]
        await person.press(*"help", "down", "enter")
        await person.until(lambda: isinstance(person.app.screen, HelpScreen))
        await person.press("escape")
        await back(person)
        await person.say(f"/exec {SLUG}")
        await palette(person)
        await person.press(*"acceptance", "enter")
        await person.until(lambda: isinstance(person.app.screen, CriteriaScreen))


async def test_a_click_chooses_and_escape_leaves_everything_as_it_was(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:
        person.prompt.replace("a draft")
        await palette(person)
        await person.press(*"cost", "escape")
        await back(person)
        assert person.prompt.text == "a draft"
        screen = await palette(person)
        await person.press(*"/cost")
        await person.pilot.click("OptionList", offset=(3, 0))
        await back(person)
        assert person.prompt.text == "/cost"
        assert not screen.is_running


async def test_it_opens_while_a_turn_runs_and_stops_nothing(sandbox: Sandbox) -> None:
    async with person_at(sandbox) as person:
        await person.begin("!sleep 30")
        await person.until(lambda: person.is_waiting)
        await palette(person)
        await person.press("escape")
        await back(person)
        assert person.is_waiting
        await person.press("escape")
        await person.until(lambda: not person.is_waiting)


ROWS = (
    Row("/exec", "/exec SLUG", "Carry out a plan"),
    Row("/plan", "/plan SLUG", "Make one"),
    Row("k", "Help", "F1"),
)


@pytest.mark.parametrize(
    ("typed", "keys"),
    [
        ("", ["/exec", "/plan", "k"]),
        ("plan", ["/plan", "/exec"]),
        ("slug plan", ["/plan", "/exec"]),
        ("PLAN slug", ["/plan", "/exec"]),
        ("f1", ["k"]),
        ("exc", ["/exec"]),
        ("zzz", []),
    ],
)
def test_what_begins_with_the_words_comes_first_and_letters_in_order_last(
    typed: str, keys: list[str]
) -> None:
    assert [row.key for row in found(ROWS, typed)] == keys
