"""Whatever has the focus and whatever goes on, no key is silent: the screen changes, or says that nothing was done."""

from collections.abc import Awaitable, Callable, Iterable

import pytest

from cdd_agent.tui.transcript.find_bar import FindInput
from tests.projects import SLUG, Sandbox, Step
from tests.tui.person import Person, person_at
from tests.tui.test_focus import FOCI, Move

PRINTABLE = ("a", "x", "y", "n", "7", "?", "/", "[", "space", "é")
OTHERS = (
    *("up", "down", "left", "right", "home", "end", "pageup", "pagedown", "tab", "shift+tab", "backspace", "delete"),
    *("enter", "escape", "insert", "shift+left", "ctrl+left", "ctrl+right", "ctrl+up", "ctrl+down"),
    *("ctrl+home", "ctrl+end", "shift+pageup", "alt+x", "shift+enter", "ctrl+underscore", "ctrl+backslash"),
    *(f"f{number}" for number in range(1, 13)),
    *(f"ctrl+{letter}" for letter in "abcefghijklmnoprstuvwxyz"),
)
KEYS = (*PRINTABLE, *OTHERS)


def looks(person: Person) -> tuple[object, ...]:
    """All that a person can see: what is drawn, where the cursor is, what was told."""
    strips = person.app.screen._compositor.render_strips()
    drawn = [[(part.text, part.style) for part in strip] for strip in strips]
    told = len(person.app._notifications)
    return person.app.screen, drawn, person.prompt.area.selection, told


async def settled(person: Person) -> None:
    await person.pilot.pause()
    await person.until(lambda: not any(worker.group not in ("turn", "asking") for worker in person.app.workers))


async def silent(person: Person, keys: Iterable[str], again: Callable[[], Awaitable[None]]) -> list[str]:
    """Those of the keys after which all is as before. `again` makes the state in which each is pressed."""
    found = []
    for key in keys:
        await again()
        await settled(person)
        before = looks(person)
        await person.press(key)
        await settled(person)
        if looks(person) == before:
            found.append(key)
    return found


async def at_home(person: Person) -> None:
    """Back from wherever the last key has led."""
    app = person.app
    while app.screen is not app.home:
        app.pop_screen()
        await person.pilot.pause()
    if app.home.query(FindInput):
        await person.press("escape")
        await person.until(lambda: not app.home.query(FindInput))
    app.home.steps.fold(is_folded=False)
    app.home.transcript.follow()
    app.clear_notifications()
    person.prompt.replace("")
    app.home.set_focus(person.prompt.area)
    await person.press("x", "backspace")  # no hint, and nothing to take back with it


@pytest.mark.parametrize("draft", ["", "half a thought"])
async def test_on_the_home_screen_no_key_is_silent(sandbox: Sandbox, draft: str) -> None:
    async with person_at(sandbox) as person:

        async def again() -> None:
            await at_home(person)
            person.prompt.replace(draft)

        assert await silent(person, KEYS, again) == []


async def on_a_block(person: Person) -> None:
    await person.press("ctrl+up")


async def in_the_plan(person: Person) -> None:
    await person.press("f2")


async def in_a_search(person: Person) -> None:
    await person.press("ctrl+r")


async def in_the_find_bar(person: Person) -> None:
    await person.press("ctrl+f")
    await person.until(lambda: isinstance(person.app.focused, FindInput))


@pytest.mark.parametrize("move", [*FOCI[1:], on_a_block, in_the_plan, in_a_search, in_the_find_bar])
async def test_wherever_the_focus_is_no_key_is_silent(sandbox: Sandbox, move: Move) -> None:
    sandbox.write(Step("a.txt"), Step("b.txt"))
    async with person_at(sandbox, f"/exec {SLUG}") as person:

        async def again() -> None:
            await at_home(person)
            await move(person)

        keys = [key for key in KEYS if key not in ("enter", "ctrl+d", "ctrl+q")]
        assert await silent(person, keys, again) == []
