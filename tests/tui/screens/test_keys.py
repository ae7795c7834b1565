"""Whatever is bound has words, and docs/shell.md has the same; on the screens around
the work no key is silent.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.binding import Binding

from cdd_agent.tui.app import Shell
from cdd_agent.tui.key_help import all_of_the_shell
from cdd_agent.tui.keys import shown
from cdd_agent.tui.screens.chooser import Chooser
from cdd_agent.tui.screens.first_run import Wish
from cdd_agent.tui.screens.help import HelpScreen
from cdd_agent.tui.screens.overlay import Overlay
from cdd_agent.tui.screens.palette import Palette
from cdd_agent.tui.screens.settings import SettingsScreen
from cdd_agent.tui.screens.tickets import TicketsScreen
from cdd_agent.tui.transcript.find_bar import FindBar
from cdd_agent.tui.transcript.widget import Transcript
from cdd_agent.tui.widgets.prompt_area import PromptArea
from tests.support.projects import Sandbox, Step
from tests.tui.person import Person, person_at
from tests.tui.screens.reading import has_read
from tests.tui.test_keys import without_hints

DOCS = Path(__file__).parents[3] / "docs" / "shell.md"
SCREENS = {
    "ctrl+p": Palette,
    "f1": HelpScreen,
    "f4": TicketsScreen,
    "f5": SettingsScreen,
}
KEYS = (
    *("a", "x", "7", "?", " ", "é"),
    *(
        "up",
        "down",
        "left",
        "right",
        "home",
        "end",
        "pageup",
        "pagedown",
        "tab",
        "shift+tab",
        "backspace",
        "delete",
    ),
    *(f"f{number}" for number in range(1, 13)),
    *(f"ctrl+{letter}" for letter in "agkopnrtu"),
)
FEW = (
    "a",
    "7",
    "é",
    "up",
    "left",
    "end",
    "pagedown",
    "tab",
    "backspace",
    "f3",
    "f9",
    "ctrl+a",
    "ctrl+u",
)
"""Of each kind some: after these, Escape is pressed too."""


@pytest.mark.parametrize(
    "kind",
    [
        Shell,
        Overlay,
        Chooser,
        HelpScreen,
        Palette,
        TicketsScreen,
        SettingsScreen,
        Wish,
        PromptArea,
        Transcript,
        FindBar,
    ],
)
def test_every_binding_has_words(
    kind: type[Shell | Overlay | PromptArea | Transcript | FindBar],
) -> None:
    for binding in kind.BINDINGS:
        assert isinstance(binding, Binding)
        assert binding.description.strip(), binding


def _documented() -> Iterator[tuple[str, str]]:
    table = (
        DOCS.read_text(encoding="utf-8")
        .partition("\n## Keys\n")[2]
        .partition("\n## ")[0]
    )
    for keys, words in re.findall(r"^\| (.+?) \| (.+?) \|$", table, re.MULTILINE)[1:]:
        yield keys.replace("\\_", "_"), words


def test_the_page_for_users_has_the_same_table() -> None:
    assert list(_documented()) == [(key.names, key.words) for key in all_of_the_shell()]


def test_keys_are_named_as_people_read_them() -> None:
    assert [shown(key) for key in ("ctrl+p", "f1", "pagedown", "shift+tab", "up")] == [
        "Ctrl+P",
        "F1",
        "PgDn",
        "Shift+Tab",
        "↑",
    ]


async def seen(person: Person) -> tuple[object, ...]:
    await person.pilot.pause()
    strips = person.app.screen._compositor.render_strips()
    return (
        person.app.screen,
        [(part.text, part.style) for strip in strips for part in strip],
        person.prompt.text,
    )


@pytest.mark.parametrize("opens", SCREENS)
@pytest.mark.parametrize(
    ("size", "keys"), [((120, 40), KEYS), ((24, 8), FEW)], ids=["large", "small"]
)
async def test_no_key_is_silent_and_escape_always_closes(
    sandbox: Sandbox, opens: str, size: tuple[int, int], keys: tuple[str, ...]
) -> None:
    sandbox.write(Step("a.txt"))
    async with person_at(sandbox, size=size) as person:
        for key in keys:
            if not isinstance(person.app.screen, SCREENS[opens]):
                await person.press(opens)
                await person.until(
                    lambda: (
                        isinstance(person.app.screen, SCREENS[opens])
                        and has_read(person)
                    )
                )
            without_hints(person)
            person.prompt.replace("a draft")
            before = await seen(person)
            await person.press(key)
            await person.until(lambda: has_read(person))
            after = await seen(person)
            assert after != before, f"{key} is silent"
            if key in FEW or not isinstance(person.app.screen, SCREENS[opens]):
                await person.press("escape")
                await person.until(lambda: person.app.screen is person.app.home)
                assert person.prompt.text in ("a draft", "/new "), key
                assert not person.is_waiting


@pytest.mark.parametrize("opens", SCREENS)
async def test_a_key_that_does_nothing_says_so_and_which_ones_do(
    sandbox: Sandbox, opens: str
) -> None:
    async with person_at(sandbox, size=(160, 24)) as person:
        await person.press(opens)
        await person.until(
            lambda: isinstance(person.app.screen, SCREENS[opens]) and has_read(person)
        )
        await person.press("f9")
        await person.until(lambda: "F9 does nothing here" in person.screen)
        assert "Esc closes" in person.screen
