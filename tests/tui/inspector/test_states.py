"""Each state of a run in each tab at each size: what is shown, and why nothing is."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from cdd_agent.tui.inspector.row_list import fit_row
from cdd_agent.tui.inspector.screen import InspectorScreen
from cdd_agent.tui.inspector.source import InspectorTab
from tests.support.examples import IS_THOROUGH, long_rows
from tests.support.projects import SLUG, Sandbox, Step, check, run_all, says
from tests.support.tables import each_row
from tests.tui.person import Person, person_at

SIZES = [(20, 12), (80, 24), (200, 50), *long_rows((60, 20), (120, 36))]
GOOD = says("a.txt", "good")


def planned(sandbox: Sandbox) -> Sandbox:
    return sandbox.write(Step("a.txt", check("a.txt")), Step("b.txt", "none"))


async def without_plan(sandbox: Sandbox) -> None:
    planned(sandbox)
    (sandbox.ticket / "plan.md").unlink()


async def without_run(sandbox: Sandbox) -> None:
    planned(sandbox)


async def done(sandbox: Sandbox) -> None:
    await run_all(planned(sandbox).replies(GOOD, says("b.txt", "x")))


async def failed(sandbox: Sandbox) -> None:
    await run_all(planned(sandbox).replies(says("a.txt", "bad")))


async def with_damaged_plan(sandbox: Sandbox) -> None:
    await done(sandbox)
    (sandbox.ticket / "plan.md").write_text("# nothing\n")


async def with_damaged_state(sandbox: Sandbox) -> None:
    await done(sandbox)
    (sandbox.ticket / "execution-state.json").write_text("{")


async def with_damaged_spec(sandbox: Sandbox) -> None:
    await done(sandbox)
    (sandbox.ticket / "spec.yaml").write_text("title: [")


async def with_damaged_log(sandbox: Sandbox) -> None:
    await done(sandbox)
    record(sandbox, "events.jsonl").write_text("{\nnothing\n")


async def with_damaged_attempt(sandbox: Sandbox) -> None:
    await failed(sandbox)
    record(sandbox, "step-01/attempt-1/failure.json").write_text("{")


async def without_log(sandbox: Sandbox) -> None:
    await done(sandbox)
    record(sandbox, "events.jsonl").unlink()


def record(sandbox: Sandbox, name: str) -> Path:
    return sandbox.root / ".cdd" / "runs" / SLUG / name


NO_PLAN = f"no plan yet. Next: `/plan {SLUG}`"
NO_HEADINGS = "no steps: a plan needs at least one heading"
UNREADABLE = "is not a readable execution state"
NO_STEP = f"No step has run yet. Next: `/exec {SLUG}`"
NOT_MEASURED = f"not measured. Next: `/verify {SLUG} --strength`"
Make = Callable[[Sandbox], Awaitable[None]]
# the texts of step, criteria, timeline and strength
STATES: list[tuple[Make, tuple[str, str, str, str]]] = [
    (without_plan, (NO_PLAN.replace("`", ""), "a.txt says good", NO_PLAN, NO_PLAN)),
    (
        without_run,
        (
            "Nothing yet: no attempt has been made.",
            "not covered",
            NO_STEP,
            f"no step is completed yet. Next: `/exec {SLUG}`",
        ),
    ),
    (done, ("Evidence:", "not covered", "~ 1. Make a.txt", NOT_MEASURED)),
    (failed, ("failed (exit code 1)", "not covered", "✗ 1. Make a.txt", "no step is")),
    (with_damaged_plan, (NO_HEADINGS, NO_HEADINGS, "1. Make a.txt", NO_HEADINGS)),
    (
        with_damaged_state,
        (UNREADABLE, UNREADABLE, "1. Make a.txt", UNREADABLE),
    ),
    (with_damaged_spec, ("Evidence:", "spec.yaml", "1. Make a.txt", NOT_MEASURED)),
    (
        with_damaged_log,
        ("Evidence:", "not covered", "cannot be read: 2 lines damaged", NOT_MEASURED),
    ),
    (
        with_damaged_attempt,
        ("truncated", "not covered", "1. Make a.txt", "no step is completed"),
    ),
    (without_log, ("Evidence:", "not covered", "timeline is not known", NOT_MEASURED)),
]


def words_on(person: Person) -> str:
    """Return the text on the screen without the breaks of its rows."""
    return " ".join(person.screen.replace("│", " ").split())


@each_row(("make", "texts"), STATES)
async def test_each_tab_shows_the_state_or_the_reason(
    sandbox: Sandbox, make: Make, texts: tuple[str, ...]
) -> None:
    await make(sandbox)
    async with person_at(sandbox, size=(120, 36)) as person:
        person.app.inspect("step", SLUG)
        await person.until(lambda: isinstance(person.app.screen, InspectorScreen))
        person.time.pass_by(1)
        for place, text in enumerate(texts, 1):
            await person.press(str(place))
            await person.until(lambda text=text: text in words_on(person))  # type: ignore[misc]


@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_each_tab_fits_at_each_size(
    sandbox: Sandbox, size: tuple[int, int]
) -> None:
    """No row is wider than the window, and each tab shows the heading of its own."""
    await failed(sandbox)
    async with person_at(sandbox, size=size) as person:
        person.app.inspect("step", SLUG)
        await person.until(lambda: "1. Make a.txt" in words_on(person))
        person.time.pass_by(1)
        seen = set[str]()
        for place in range(1, len(InspectorTab) + 1):
            await person.press(str(place))
            await person.pilot.pause()
            strips = person.app.screen._compositor.render_strips()
            assert {strip.cell_length for strip in strips} == {size[0]}
            seen.add(person.screen)
        assert len(seen) == len(InspectorTab)


@given(st.text(), st.text(max_size=20), st.integers(1, 60))
def test_a_row_fits_and_is_cut_with_a_sign(text: str, facts: str, room: int) -> None:
    text, facts = " ".join(text.split()), " ".join(facts.split())
    row = fit_row(text, facts, room)
    assert cell_len(row) <= room
    assert text in row or "…" in row or room == 1


KEYS = ("escape", "q", "1", "2", "3", "4", "tab", "shift+tab", "ctrl+pagedown")
STEP_KEYS = ("n", "p", "e", "r", "s", "u", "left_square_bracket", "up", "down")
LIST_KEYS = ("up", "down", "home", "end", "pageup", "pagedown", "left", "right")


@pytest.mark.parametrize("tab", list(InspectorTab), ids=str)
async def test_each_key_works_in_each_tab(sandbox: Sandbox, tab: InspectorTab) -> None:
    """No key raises, and only the keys that close it close the inspector."""
    await done(sandbox)
    async with person_at(sandbox) as person:
        keys = (*STEP_KEYS, *LIST_KEYS, "m", "enter", *KEYS)
        if not IS_THOROUGH:  # each key in one tab
            tabs = list(InspectorTab)
            keys = keys[tabs.index(tab) :: len(tabs)]
        for key in keys:
            person.app.inspect(tab, SLUG)
            await person.until(lambda: isinstance(person.app.screen, InspectorScreen))
            await asyncio.sleep(0)
            await person.until(
                lambda: (
                    not [
                        worker
                        for worker in person.app.workers
                        if "read" in worker.group
                    ]
                )
            )
            person.time.pass_by(1)
            await person.press(key)
            await person.pilot.pause()
            is_closed = person.app.screen is person.app.home
            assert not is_closed or key in ("escape", "q"), key
            while person.app.screen is not person.app.home:
                await person.press("escape")
                await person.pilot.pause()


async def test_it_closes_while_it_reads(sandbox: Sandbox) -> None:
    """Whatever part of the run arrives after the screen was closed is not shown."""
    await done(sandbox)
    async with person_at(sandbox) as person:
        for turns in range(0, 60, 1 if IS_THOROUGH else 11):
            person.app.inspect(InspectorTab.STEP, SLUG)
            await person.until(lambda: isinstance(person.app.screen, InspectorScreen))
            for _ in range(turns):
                await asyncio.sleep(0)
            screen = person.app.screen
            assert isinstance(screen, InspectorScreen)
            screen.action_close()
            screen.show_run()
            await person.until(lambda: person.app.screen is person.app.home)
