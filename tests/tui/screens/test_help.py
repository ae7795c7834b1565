"""Help opens at its top, which is about what the person is doing."""

import pytest

from cdd_agent.events import CommandProposed
from cdd_agent.tui.app import Shell
from cdd_agent.tui.screens.help import HelpScreen, sections
from cdd_agent.tui.transcript.find_bar import FindBar
from cdd_agent.tui.transcript.widget import Transcript
from cdd_agent.tui.widgets.prompt_area import PromptArea
from tests.support.projects import SLUG, Sandbox, Step
from tests.tui.person import Person, person_at


async def helped(person: Person) -> str:
    await person.press("f1")
    return await shown(person)


async def shown(person: Person) -> str:
    await person.until(lambda: isinstance(person.app.screen, HelpScreen))
    transcript = person.app.screen.query_one(Transcript)
    await person.until(
        lambda: transcript.max_scroll_y > 0 and transcript.scroll_offset.y == 0
    )
    return transcript.plain_text()


@pytest.mark.parametrize(
    ("line", "first"),
    [
        ("", "In chat"),
        (f"/exec {SLUG}", "With the Executor"),
        (f"/plan {SLUG}", "With the Planner"),
        (f"/socrates {SLUG}", "With Socrates"),
    ],
)
async def test_it_begins_with_the_situation(
    sandbox: Sandbox, line: str, first: str
) -> None:
    sandbox.write(Step("a.txt"))
    async with person_at(sandbox, line) as person:
        text = await helped(person)
        assert text.index(first) < text.index("\nKeys\n")
        await person.press("escape")
        await person.until(lambda: person.app.screen is person.app.home)
        assert person.app.focused is person.prompt.area


async def test_with_a_question_open_it_is_about_that_and_the_question_stays(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:
        asked = person.app.run_worker(
            person.app.asking.approve(CommandProposed("ls", "Because"))
        )
        await person.until_asked()
        text = await helped(person)
        assert text.startswith("A question is open")
        await person.press("y", "escape")
        await person.until(lambda: person.app.screen is person.app.home)
        assert not asked.is_finished
        await person.answer("y")
        await asked.wait()


async def test_the_command_opens_it_too_and_of_an_agent_at_what_that_understands(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:
        await person.say("/help planner")
        assert (await shown(person)).startswith("With the Planner")
        await person.press("end")
        transcript = person.app.screen.query_one(Transcript)
        await person.until(lambda: transcript.scroll_offset.y > 0)
        await person.press("home")
        await person.until(lambda: transcript.scroll_offset.y == 0)


async def test_of_the_keys_it_begins_with_them(sandbox: Sandbox) -> None:
    async with person_at(sandbox) as person:
        await person.say("/help keys")
        assert (await shown(person)).startswith("Keys")
        assert person.told.count("Ctrl+F") == 0


async def test_a_question_mark_reaches_the_prompt(sandbox: Sandbox) -> None:
    async with person_at(sandbox) as person:
        await person.press("question_mark")
        assert person.app.screen is person.app.home
        assert person.prompt.text == "?"


@pytest.mark.parametrize(
    "situation", ["chat", "executor", "planner", "socrates", "question", "keys"]
)
def test_nothing_is_missing_and_nothing_there_twice(situation: str) -> None:
    titles = [title for title, _ in sections(situation)]
    assert len(titles) == len(set(titles)) == 14
    text = "\n".join(text for _, text in sections(situation))
    for binding in (
        *Shell.BINDINGS,
        *PromptArea.BINDINGS,
        *Transcript.BINDINGS,
        *FindBar.BINDINGS,
    ):
        assert getattr(binding, "description", "") in text
