"""Characters without a shape of their own are typed wherever text can be typed."""

from textual.widgets import Input

from cdd_agent.tui.screens.chooser import Chooser
from tests.support.projects import Sandbox
from tests.tui.person import Person, person_at
from tests.tui.terminal_input.reading import read

TEXT = (
    "a\u3000\u00a0b\u200b\u200c\u200d\u200e\u200f\u00ad\u2066c\ue000e\u0301👩\u200d💻"
)


async def type_text(person: Person, text: str) -> None:
    for event in read([text.encode()]):
        person.app.post_message(event)
    await person.pilot.pause()


async def test_in_the_prompt(sandbox: Sandbox) -> None:
    async with person_at(sandbox) as person:
        await type_text(person, TEXT)
        assert person.prompt.text == TEXT
        person.prompt.replace("")
        await type_text(person, f"\x1b[200~{TEXT}\x1b[201~")
        assert person.prompt.text == TEXT


async def test_in_the_search(sandbox: Sandbox) -> None:
    async with person_at(sandbox) as person:
        await person.press("ctrl+f")
        await type_text(person, TEXT)
        assert person.app.screen.query_one(Input).value == TEXT


async def test_in_the_filter_of_a_dialog(sandbox: Sandbox) -> None:
    async with person_at(sandbox) as person:
        await person.press("ctrl+p")
        await person.until(lambda: isinstance(person.app.screen, Chooser))
        before = person.app.screen
        await type_text(person, "\x1b[200~\x1b[A1\r2\r\x1b[201~")
        assert person.app.screen is before
        assert "1 2" in person.screen
        await type_text(person, "\u3000")
        assert "\u3000" in person.screen
