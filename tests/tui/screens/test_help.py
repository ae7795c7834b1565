"""Help begins with what the user is doing."""

from cdd_agent.commands.registry import commands
from cdd_agent.events.question_events import CommandProposed
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


async def test_it_begins_with_the_active_agent(sandbox: Sandbox) -> None:
    sandbox.write(Step("a.txt"))
    async with person_at(sandbox) as person:
        for line, first in {
            "": "In chat",
            f"/exec {SLUG}": "With the Executor",
            f"/socrates {SLUG}": "With Socrates",
        }.items():
            if line:
                await person.say(line)
            text = await helped(person)
            assert text.index(first) < text.index("\nKeys\n")
            await person.press("escape")
            await person.until(lambda: person.app.screen is person.app.home)
            assert person.app.focused is person.prompt.area


async def test_it_begins_with_an_open_question_which_stays_open(
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


async def test_the_command_opens_it_at_a_topic(sandbox: Sandbox) -> None:
    async with person_at(sandbox) as person:
        await person.say("/help keys")
        assert (await shown(person)).startswith("Keys")
        await person.press("escape")
        await person.until(lambda: person.app.screen is person.app.home)
        await person.say("/help planner")
        assert (await shown(person)).startswith("With the Planner")
        await person.press("end")
        transcript = person.app.screen.query_one(Transcript)
        await person.until(lambda: transcript.scroll_offset.y > 0)
        await person.press("home")
        await person.until(lambda: transcript.scroll_offset.y == 0)


async def test_a_question_mark_reaches_the_prompt(sandbox: Sandbox) -> None:
    async with person_at(sandbox) as person:
        await person.press("question_mark")
        assert person.app.screen is person.app.home
        assert person.prompt.text == "?"


def test_each_topic_has_each_section_once_and_each_key() -> None:
    for topic in ("chat", "executor", "planner", "socrates", "question", "keys"):
        titles = [title for title, _ in sections(topic)]
        assert len(titles) == len(set(titles)) == 16 + (topic in commands()), topic
        text = "\n".join(text for _, text in sections(topic))
        for binding in (
            *Shell.BINDINGS,
            *PromptArea.BINDINGS,
            *Transcript.BINDINGS,
            *FindBar.BINDINGS,
        ):
            assert getattr(binding, "description", "") in text, topic
