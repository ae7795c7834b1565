"""Coming back: the list of earlier sessions, and what was on the screen, folded, below
what is there now.
"""

import re

import pytest

from cdd_agent.events.stream import SessionRestored
from cdd_agent.tui.screens.sessions import SessionsScreen
from cdd_agent.tui.transcript.widget import Transcript
from tests.support.projects import SLUG, Copied, Sandbox, Step, check, says
from tests.tui.person import Person, person_at

TWO = Step("a.txt"), Step("b.txt", check("b.txt"), "Step 1")


async def some_work(sandbox: Sandbox) -> None:
    sandbox.write(*TWO).replies(
        "**Hello** to you.",
        says("a.txt", "good", "One reply."),
        says("b.txt", "bad", "Another."),
        "Because.",
    )
    async with person_at(sandbox) as person:
        for line in ("hi there", f"/exec {SLUG}", "all", "why?"):
            await person.say(line)


@pytest.fixture
async def worked(copied: Copied) -> Sandbox:
    """A conversation, then a run, in a session that is over."""
    return await copied(some_work)


def chooser(person: Person) -> SessionsScreen:
    assert isinstance(person.app.screen, SessionsScreen)
    return person.app.screen


async def test_resuming_shows_the_earlier_screen_and_does_nothing_again(
    worked: Sandbox,
) -> None:
    before = worked.state()
    async with person_at(worked, size=(100, 40)) as person:
        requests = len(worked.model.requests)
        await person.say("/resume")
        assert len(worked.model.requests) == requests
        assert worked.state() == before
        assert (person.step_list.tally.over, person.step_list.tally.total) == (1, 2)
        told = person.told
        for words in (
            f"Earlier in {SLUG}",
            "\nall\n",
            "One reply.",
            "a.txt",
            "why?",
            "Because.",
            "Step 2",
            "failed",
        ):
            assert words in told, words
        rows = [row.strip() for row in person.screen.split("\n")]
        assert person.step_list.display
        assert person.app.home.agent is not None
        transcript = person.app.query_one(Transcript)
        assert any(row.startswith("▸ Reply · 1 file · ") for row in rows)
        while not transcript.chosen_text.startswith("Another."):
            await person.press("ctrl+up")
        await person.press("enter")
        await person.until(lambda: "▾ Reply · 1 file · " in person.screen)
        assert "Another." in person.screen
        assert re.search(r"b\.txt.*\n.*bad", person.screen)


async def test_an_earlier_session_is_chosen_from_the_list_and_continues(
    worked: Sandbox,
) -> None:
    worked.replies("Fine, and you?")
    async with person_at(worked, size=(100, 30)) as person:
        await person.say("/resume list")
        await person.until(lambda: isinstance(person.app.screen, SessionsScreen))
        assert SLUG in person.screen
        assert "1/2 failed" in person.screen
        assert "Hello" in person.screen
        await person.press(*"hello", "enter")
        await person.until(
            lambda: person.app.screen is person.app.home and not person.is_waiting
        )
        assert "❯ hi there" in person.screen
        assert "Hello to you." in person.screen
        assert person.app.home.agent is None
        await person.say("how are you?")
        assert [message.content for message in worked.model.requests[-1].messages[1:]][
            :2
        ] == [
            "hi there",
            "**Hello** to you.",
        ]


async def test_the_list_can_be_read_in_small_windows_and_escape_changes_nothing(
    worked: Sandbox,
) -> None:
    async with person_at(worked) as person:
        before = worked.state()
        for size in ((20, 12), (40, 10), (80, 24)):
            await person.pilot.resize_terminal(*size)
            await person.say("/resume list")
            await person.until(lambda: isinstance(person.app.screen, SessionsScreen))
            assert "feature-w" in person.screen
            assert "chat" in person.screen
            await person.press("escape")
            await person.until(lambda: person.app.screen is person.app.home)
        assert not any(isinstance(event, SessionRestored) for event in person.shown)
        assert person.app.home.agent is None
        assert worked.state() == before


async def test_the_shell_says_if_there_is_no_earlier_session(sandbox: Sandbox) -> None:
    (sandbox.root / ".cdd").mkdir()
    async with person_at(sandbox) as person:
        await person.say("/resume list")
        assert "There are no earlier sessions" in person.told
        assert person.app.screen is person.app.home


async def test_the_names_of_sessions_are_completed_with_what_they_are(
    worked: Sandbox,
) -> None:
    async with person_at(worked, size=(120, 30)) as person:
        person.write("/resume ")
        await person.until(lambda: "a run has begun" in person.screen)
        assert "the earlier sessions" in person.screen
