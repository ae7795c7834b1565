"""Ctrl+R: looking for an earlier line."""

import pytest

from cdd_agent.events import CommandProposed
from tests.support.projects import Sandbox
from tests.tui.person import Person, person_at


@pytest.fixture
def earlier(sandbox: Sandbox) -> Sandbox:
    sandbox.write()
    return sandbox


async def begun(person: Person) -> None:
    """Some lines, the first one the oldest, and the search."""
    for line in (
        "explain @src/app.py",
        "fix the login\nand its test",
        "/list",
        "explain the login",
        "/list",
    ):
        person.prompt.accepted(line)
    await person.press("ctrl+r")


def found(person: Person) -> list[str]:
    return [offer.line for offer in person.prompt.offers]


async def test_the_latest_lines_are_there_at_once_each_once(earlier: Sandbox) -> None:
    async with person_at(earlier) as person:
        await begun(person)
        assert found(person) == [
            "/list",
            "explain the login",
            "fix the login\nand its test",
            "explain @src/app.py",
        ]
        assert "fix the login  (+1 line)" in person.screen
        assert person.activity.startswith("Searching earlier lines: Enter takes one")


async def test_words_narrow_it_and_enter_takes_a_line_without_sending_it(
    earlier: Sandbox,
) -> None:
    async with person_at(earlier) as person:
        await begun(person)
        await person.press(*"LOGIN ex")
        assert found(person) == ["explain the login"]
        await person.press("enter")
        assert person.prompt.text == "explain the login"
        assert found(person) == []
        assert person.activity.startswith("Enter sends")
        assert person.told == "Welcome."


async def test_ctrl_r_goes_to_the_next_older_line(earlier: Sandbox) -> None:
    async with person_at(earlier) as person:
        await begun(person)
        await person.press(*"login", "ctrl+r", "tab")
        assert person.prompt.text == "fix the login\nand its test"


async def test_escape_brings_back_what_was_typed(earlier: Sandbox) -> None:
    async with person_at(earlier) as person:
        await person.press(*"expl")
        await begun(person)
        assert found(person) == ["explain the login", "explain @src/app.py"]
        await person.press(*"ain th", "escape")
        assert person.prompt.text == "expl"
        assert person.activity.startswith("Enter sends")
        await person.press("up")
        assert person.prompt.text == "/list"


async def test_where_nothing_is_found_enter_sends_nothing(earlier: Sandbox) -> None:
    async with person_at(earlier) as person:
        await begun(person)
        await person.press(*"zzz")
        assert found(person) == []
        assert person.activity.startswith("No earlier line has that")
        await person.press("enter")
        assert person.prompt.text == "zzz"
        assert person.told == "Welcome."
        await person.press("enter")
        await person.until(lambda: not person.is_waiting)
        assert "zzz" in person.told


async def test_a_draft_that_was_there_before_a_search_is_not_lost_by_leaving(
    earlier: Sandbox,
) -> None:
    async with person_at(earlier) as person:
        await person.press(*"half a thought", "ctrl+r", *"li", "ctrl+d")
    async with person_at(earlier) as person:
        await person.press("up")
        assert person.prompt.text == "half a thought"


async def test_ctrl_c_in_a_search_puts_away_the_draft_not_what_is_looked_for(
    earlier: Sandbox,
) -> None:
    async with person_at(earlier) as person:
        await person.press(*"half", "ctrl+r", *"zz", "ctrl+c", "up")
        assert person.prompt.text == "half"


async def test_a_letter_that_is_looked_for_answers_no_question(
    earlier: Sandbox,
) -> None:
    async with person_at(earlier) as person:
        await begun(person)
        proposal = person.app.run_worker(
            person.app.asking.approve(
                CommandProposed("rm x", "`rm` is not on the list")
            )
        )
        await person.until_asked()
        await person.rest()
        await person.press("y")
        await person.rest()
        await person.rest()
        assert not proposal.is_finished
        assert person.prompt.text == "y"
        await person.press("escape")
        await person.answer("y")
        await person.until(lambda: proposal.is_finished)


async def test_lines_of_earlier_sessions_are_found(earlier: Sandbox) -> None:
    async with person_at(earlier) as person:
        await begun(person)
    async with person_at(earlier) as person:
        await person.press("ctrl+r", *"src", "enter")
        assert person.prompt.text == "explain @src/app.py"
