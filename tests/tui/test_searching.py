"""Ctrl+R searches the earlier lines."""

import pytest

from cdd_agent.events.question_events import CommandProposed
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


async def test_lines_are_found_latest_first_and_enter_takes_one_without_sending_it(
    earlier: Sandbox,
) -> None:
    async with person_at(earlier) as person:
        await begun(person)
        assert found(person) == [
            "/list",
            "explain the login",
            "fix the login\nand its test",
            "explain @src/app.py",
        ]
        assert "fix the login  (+1 line)" in person.screen
        searching = person.activity
        await person.press(*"LOGIN", "ctrl+r", "tab")
        assert person.prompt.text == "fix the login\nand its test"

        person.prompt.replace("")
        await person.press("ctrl+r", *"LOGIN ex")
        assert found(person) == ["explain the login"]
        await person.press("enter")
        assert person.prompt.text == "explain the login"
        assert found(person) == []
        assert person.activity != searching
        assert person.told == "Welcome."


async def test_escape_restores_what_was_typed_before_the_search(
    earlier: Sandbox,
) -> None:
    async with person_at(earlier) as person:
        await person.press(*"expl")
        await begun(person)
        assert found(person) == ["explain the login", "explain @src/app.py"]
        await person.press(*"ain th", "escape")
        assert person.prompt.text == "expl"
        await person.press("up")
        assert person.prompt.text == "/list"


async def test_enter_sends_nothing_where_nothing_is_found(earlier: Sandbox) -> None:
    async with person_at(earlier) as person:
        await begun(person)
        await person.press(*"zzz")
        assert found(person) == []
        await person.press("enter")
        assert person.prompt.text == "zzz"
        assert person.told == "Welcome."
        await person.press("enter")
        await person.until(lambda: not person.is_waiting)
        assert "zzz" in person.told


async def test_leaving_during_a_search_keeps_the_draft_and_the_lines(
    earlier: Sandbox,
) -> None:
    async with person_at(earlier) as person:
        await person.press(*"half", "ctrl+r", *"zz", "ctrl+c", "up")
        assert person.prompt.text == "half"
        await begun(person)
        await person.press("ctrl+d")
    async with person_at(earlier) as person:
        await person.press("up")
        assert person.prompt.text == "half"
        person.prompt.replace("")
        await person.press("ctrl+r", *"src", "enter")
        assert person.prompt.text == "explain @src/app.py"


async def test_a_letter_of_a_search_answers_no_question(
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
