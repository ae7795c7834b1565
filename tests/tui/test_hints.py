"""The line below the prompt offers only what works, and fits its row."""

import re
from collections.abc import Awaitable, Callable
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from cdd_agent.tui.hints import BETWEEN, fit_hint
from tests.support.examples import IS_THOROUGH
from tests.support.projects import SLUG, Sandbox, Step, says
from tests.tui.held_model import HeldModel
from tests.tui.person import Person, person_at

KEYS = {
    "Enter": "enter",
    "Esc": "escape",
    "Tab": "tab",
    "↓": "down",
    "↑": "up",
    "F1": "f1",
    "F2": "f2",
    "Ctrl+J": "ctrl+j",
    "Ctrl+O": "ctrl+o",
    "Ctrl+R": "ctrl+r",
    "/": "/",
    "@": "@",
}
"""How keys are written in hints. Those that leave the screen to a program are not
pressed.
"""
NUMBERS = count()
Reach = Callable[[Person], Awaitable[object]]


async def chat(person: Person) -> None:
    await person.rest()


async def typed(person: Person) -> None:
    await person.type("hello")


async def lines(person: Person) -> None:
    await person.type("one")
    await person.press("ctrl+j", "x")


async def command(person: Person) -> None:
    await person.type("/sta")


async def opening(person: Person) -> None:
    await person.type("/exe")


async def slash(person: Person) -> None:
    await person.type("/")


async def tickets(person: Person) -> None:
    await person.type("/exec f")


async def ticket(person: Person) -> None:
    await person.type("/exec f")
    await person.press("down")


async def nothing_done(person: Person) -> None:
    await person.press("enter")


async def searching(person: Person) -> None:
    await person.say("/list")
    await person.press("ctrl+r")


async def nothing_found(person: Person) -> None:
    await person.press("ctrl+r", *"zzz")


async def suggestion(person: Person) -> None:
    await person.say(f"/new feature pay-{next(NUMBERS)}")
    await person.until(lambda: person.prompt.is_suggesting)
    await person.rest()


async def run(person: Person) -> None:
    await person.say(f"/exec {SLUG}")
    await person.rest()


async def too_soon(person: Person) -> None:
    await person.say(f"/exec {SLUG}")
    await person.press("enter")
    assert "Too soon" in person.activity
    await person.rest()


async def plan(person: Person) -> None:
    await person.say(f"/exec {SLUG}")
    await person.press("f2")


async def running(person: Person) -> None:
    await person.say(f"/exec {SLUG}")
    await person.begin("")
    await person.until_told("One ")


async def ahead(person: Person) -> None:
    await running(person)
    await person.type("use a table")


async def looking(person: Person) -> None:
    await running(person)
    await person.type("/stat")


STATES: tuple[Reach, ...] = (
    *(chat, typed, lines, slash, command, opening, tickets, ticket, nothing_done),
    *(searching, nothing_found, suggestion, run, too_soon, plan),
    *(running, ahead, looking),
)


def offered(hint: str) -> list[str]:
    """The keys that a hint names."""
    found = []
    for part in hint.split(BETWEEN):
        # at an end of a list only one of both arrows moves
        for named in re.split(
            ", ", part.replace("↑↓", "↓").rpartition(": ")[0] or part
        ):
            word = named.strip()
            if word in KEYS:
                found.append(KEYS[word])
            elif word.startswith("Esc"):
                found.append("escape")
    return found


@pytest.mark.long
async def test_each_key_that_the_last_line_offers_changes_something(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt", "none"), Step("b.txt", "none"))
    silent, hints = [], {}
    for reach in STATES:
        keys = [""]
        pressed = set[str]()
        while keys:
            sandbox.model = HeldModel(says("a.txt", "good", "One two."))
            async with person_at(sandbox) as person:
                await reach(person)
                hint = hints[reach.__name__] = person.activity
                keys = [key for key in offered(hint) if key not in pressed]
                if keys:
                    pressed.add(keys[0])
                    if "Enter does nothing" in hint and keys[0] == "enter":
                        continue
                    await person.press(keys[0])
                    if "does nothing here" in person.activity:
                        silent.append((reach.__name__, hint, keys[0]))
                    await person.press("escape", "escape", "escape")
                    await person.until(lambda: not person.is_waiting)
        assert pressed, (reach.__name__, hints)
    assert silent == []


WORDS = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=9)
PARTS = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)


@given(
    st.lists(PARTS, min_size=1, max_size=6).map(BETWEEN.join),
    st.integers(20, 120),
)
def test_a_hint_loses_whole_parts_and_then_whole_words(hint: str, width: int) -> None:
    shown = fit_hint(hint, width)
    assert cell_len(shown) <= max(width, 22)
    if shown == hint:
        return
    kept = shown.removesuffix(" …")
    words = hint.split(" ")
    assert words[: len(kept.split(" "))][:-1] == kept.split(" ")[:-1]
    if not shown.endswith("…"):
        assert hint.startswith(shown + BETWEEN)


async def test_no_hint_is_cut_in_a_narrow_window(sandbox: Sandbox) -> None:
    sandbox.write(Step("a.txt", "none"), Step("b.txt", "none"))
    for width in (40, 60) if IS_THOROUGH else (40,):
        for reach in (chat, lines, slash, command, ticket, suggestion, run, running):
            sandbox.model = HeldModel(says("a.txt", "good", "One two."))
            async with person_at(sandbox, size=(width, 20)) as person:
                await reach(person)
                hint = person.activity
                assert cell_len(hint) <= width - 2, (reach.__name__, hint)
                assert hint.strip() in person.screen
                await person.press("escape")
                await person.until(lambda: not person.is_waiting)
