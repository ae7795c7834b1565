"""Whatever has the focus and whatever goes on, no key is silent: the screen is another
one, or it says that the key has done nothing.
"""

import re
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import pytest
from msgspec.structs import replace
from textual.binding import Binding, BindingType
from textual.screen import Screen

from cdd_agent.changes.review import Review
from cdd_agent.engine.run_inspection import RunInspection
from cdd_agent.engine.step_details import StepDetails
from cdd_agent.events.question_events import CommandProposed
from cdd_agent.events.step_events import AttemptFailed, StepStarted
from cdd_agent.events.step_summary import StepSummary
from cdd_agent.events.ticket_events import CriterionProof
from cdd_agent.llm.offered_model import OfferedModel
from cdd_agent.tickets.status import StepStatus
from cdd_agent.tui.answering import KeyClock
from cdd_agent.tui.app import Shell
from cdd_agent.tui.inspector.screen import InspectorScreen
from cdd_agent.tui.inspector.source import InspectorTab
from cdd_agent.tui.screens.model_setup import ModelSetup
from cdd_agent.tui.screens.wish import Wish
from cdd_agent.tui.transcript.find_bar import FindInput
from cdd_agent.tui.transcript.widget import Transcript
from cdd_agent.tui.widgets.prompt_area import PromptArea
from cdd_agent.tui.widgets.steps import StepList
from tests.support.projects import SLUG, Sandbox, Step
from tests.support.reviews import review_of
from tests.tui.held_model import HeldModel
from tests.tui.inspector.examples import (
    FakeRun,
    inspection_of,
    inspector,
    timeline_of,
)
from tests.tui.person import Person, person_at
from tests.tui.test_focus import FOCI, Move
from tests.tui.test_snapshots import ATTEMPT, PLAN_STEP


def bound(*bindings: BindingType) -> tuple[str, ...]:
    """The keys that are bound, but for those that leave the shell or its terminal."""
    keys = []
    for binding in bindings:
        assert isinstance(binding, Binding)
        keys += binding.key.split(",")
    return tuple(key for key in keys if key not in ("ctrl+d", "ctrl+q", "ctrl+z"))


def bound_by(screen: Screen[Any]) -> tuple[str, ...]:
    """The keys that the shell's own classes bind on a screen, one for each action."""
    bindings = list[BindingType]()
    for kind in type(screen).__mro__:
        if kind.__module__.startswith("cdd_agent."):
            bindings += vars(kind).get("BINDINGS", ())
    keys = {}
    for binding in bindings:
        assert isinstance(binding, Binding)
        keys[binding.action] = binding.key.partition(",")[0]
    return tuple(keys.values())


EDITING = ("left", "home", "end", "backspace", "delete", "ctrl+k", "ctrl+u", "ctrl+a")
IN_THE_PROMPT = ("enter", "up", "down", "tab", "escape", "ctrl+r", "ctrl+g", "ctrl+j")
UNBOUND = ("f9", "insert", "alt+x", "ctrl+b", "ctrl+underscore")
EVERYWHERE = ("x", "f9", "tab", "shift+tab", "up", "backspace", "escape")
Again = Callable[[], Awaitable[None]]


def looks(person: Person) -> tuple[object, ...]:
    """All that a person can see; of what runs, not how long it has."""
    strips = person.app.screen._compositor.render_strips()
    drawn = [
        [(re.sub(r"[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]|\d+ s\b", "", part.text), part.style) for part in strip]
        for strip in strips
    ]
    return (
        person.app.screen,
        drawn,
        person.prompt.area.selection,
        len(person.app._notifications),
    )


async def settled(person: Person) -> None:
    """Wait until what a key opens is there."""
    opening = (
        "screens",
        "criteria",
        "timeline",
        "step",
        "palette",
        "tickets",
        "settings",
        "look",
        "editor",
    )
    await person.until(
        lambda: not any(worker.group in opening for worker in person.app.workers)
    )


async def silent(person: Person, keys: Iterable[str], again: Again) -> list[str]:
    """Return the keys after which the screen is unchanged. `again` makes the state in
    which each key is pressed; it runs where a key has led elsewhere.
    """
    silent_keys = []
    start: tuple[object, ...] = ()
    for key in dict.fromkeys(keys):
        without_hints(person)
        await settled(person)
        if looks(person) != start:
            await again()
            await settled(person)
            start = looks(person)
        await person.press(key)
        await settled(person)
        if looks(person) == start:
            silent_keys.append(key)
    return silent_keys


def without_hints(person: Person) -> None:
    person.app.restore_hint()
    person.app.clear_notifications()


async def at_home(person: Person) -> None:
    """Back from wherever the last key has led."""
    app = person.app
    while app.screen is not app.home:
        app.pop_screen()
        await person.pilot.pause()
    if app.home.query(FindInput):
        await person.press("escape")
    without_hints(person)
    app.home.steps.fold(is_folded=False)
    app.home.transcript.follow()
    person.prompt.replace("")
    app.home.set_focus(person.prompt.area)


async def test_on_the_home_screen_no_key_is_silent(sandbox: Sandbox) -> None:
    async with person_at(sandbox) as person:

        async def empty() -> None:
            await at_home(person)

        keys = (
            *("a", "7", "/", "space", "é"),
            *IN_THE_PROMPT,
            *EDITING,
            *bound(*Shell.BINDINGS, *PromptArea.BINDINGS),
            *UNBOUND,
        )
        assert await silent(person, keys, empty) == []

        async def drafting() -> None:
            await at_home(person)
            person.prompt.replace("half a thought")

        assert await silent(person, (*IN_THE_PROMPT, *EDITING, "f9"), drafting) == []


async def on_a_block(person: Person) -> None:
    await person.press("ctrl+up")


async def in_the_plan(person: Person) -> None:
    await person.press("f2")


async def in_a_search(person: Person) -> None:
    await person.press("ctrl+r")


async def in_the_find_bar(person: Person) -> None:
    await person.press("ctrl+f")
    await person.until(lambda: isinstance(person.app.focused, FindInput))


@pytest.mark.long
async def test_wherever_the_focus_is_no_key_is_silent(sandbox: Sandbox) -> None:
    # from these any key brings the focus back to the prompt
    places: dict[Move, tuple[str, ...]] = dict.fromkeys(FOCI[1:], ("y", "f9", "up"))
    places |= {
        on_a_block: (*EVERYWHERE, *bound(*Transcript.BINDINGS), "f2", "ctrl+c"),
        in_the_plan: (*EVERYWHERE, *bound(*StepList.BINDINGS), "f2", "f6", "ctrl+k"),
        in_a_search: (*EVERYWHERE, "down", "ctrl+r", "ctrl+k", "f2", "left"),
        in_the_find_bar: (*EVERYWHERE, "down", "ctrl+f", "ctrl+k", "f2", "left"),
    }
    sandbox.write(Step("a.txt"), Step("b.txt"))
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        for place, keys in places.items():

            async def again(place: Move = place) -> None:
                await at_home(person)
                await place(person)

            assert await silent(person, keys, again) == [], place


async def test_letters_are_the_prompts_wherever_the_focus_is_but_in_the_find_bar(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt"), Step("b.txt"))
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        for place in (on_a_block, in_the_plan, in_a_search, in_the_find_bar):
            for key, character in (("y", "y"), ("7", "7"), ("space", " ")):
                await at_home(person)
                await place(person)
                await person.press(key)
                text = (
                    person.app.home.query_one(FindInput).value
                    if place is in_the_find_bar
                    else person.prompt.text
                )
                assert text == character, place


async def test_while_something_runs_no_key_is_silent(sandbox: Sandbox) -> None:
    sandbox.model = HeldModel("One word and another")
    async with person_at(sandbox) as person:
        await person.begin("hello")
        await person.until_told("One ")

        async def again() -> None:
            await at_home(person)

        keys = (*EVERYWHERE[:-1], "enter", "down", "pageup", "ctrl+up", "ctrl+k", "f2")
        assert await silent(person, keys, again) == []
        await person.press("escape")
        await person.until(lambda: not person.is_waiting)


PROPOSALS: tuple[Review | CommandProposed, ...] = (
    review_of(1, {"a.txt": (None, "a\n"), "b.txt": ("b\n", "c\n")}),
    CommandProposed(
        "\n".join(f"echo {number}" for number in range(60)), "`rm` is not on the list"
    ),
)


async def test_while_a_question_is_open_no_key_is_silent(sandbox: Sandbox) -> None:
    async with person_at(sandbox) as person:
        for proposal in PROPOSALS:

            async def again(proposal: Review | CommandProposed = proposal) -> None:
                person.app.workers.cancel_group(person.app, "asking")
                await at_home(person)
                asking = person.app.asking
                answer = (
                    asking.review(proposal)
                    if isinstance(proposal, Review)
                    else asking.approve(proposal)
                )
                person.app.run_worker(answer, group="asking", exit_on_error=False)
                await person.until_asked()

            keys = (
                *EVERYWHERE,
                *("down", "pageup", "end", "enter", "y", "ctrl+up", "f2", "f6"),
            )
            assert await silent(person, keys, again) == [], proposal
        person.app.workers.cancel_group(person.app, "asking")


VIEW = StepSummary(3, "Write the report", StepStatus.FAILED, error="it failed")
DETAILS = StepDetails(SLUG, PLAN_STEP, VIEW, (ATTEMPT, ATTEMPT))


CRITERIA = (
    CriterionProof(1, "It is good", (VIEW,)),
    CriterionProof(2, "It is short"),
)
RUN = FakeRun(
    replace(inspection_of([VIEW]), criteria=CRITERIA, undone=(VIEW,)),
    lambda number: DETAILS,
    timeline_of(
        StepStarted(3, VIEW.title, 1), AttemptFailed(3, 1, "no", will_retry=False)
    ),
)


SCREENS: tuple[Callable[[], Screen[Any]], ...] = (
    lambda: inspector(RUN),
    lambda: inspector(FakeRun(RunInspection(SLUG))),
    lambda: inspector(RUN, InspectorTab.CRITERIA),
    lambda: inspector(FakeRun(RunInspection(SLUG)), InspectorTab.CRITERIA),
    lambda: inspector(RUN, InspectorTab.TIMELINE),
    lambda: inspector(RUN, InspectorTab.STRENGTH),
    lambda: ModelSetup(
        (OfferedModel("qwen3", "Ollama", "http://127.0.0.1:11434"),), KeyClock()
    ),
    Wish,
)


@pytest.mark.long
async def test_on_a_screen_over_the_home_screen_no_key_is_silent(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox.write(Step("a.txt")), size=(80, 20)) as person:
        for screen in SCREENS:

            async def again(
                screen: Callable[[], Screen[Any]] = screen,
            ) -> None:
                await at_home(person)
                await person.app.push_screen(screen())

            keys = ("x", "f9", "f3", "backspace", *bound_by(screen()))
            assert await silent(person, keys, again) == [], screen()


async def test_at_the_last_step_the_key_for_the_next_one_says_so(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt"), Step("b.txt"))
    async with person_at(sandbox, f"/exec {SLUG}", size=(120, 30)) as person:
        await person.press("f2", "end", "enter")
        await person.until(lambda: isinstance(person.app.screen, InspectorScreen))
        person.time.pass_by(1)
        await person.press("n")
        await person.until(lambda: "N does nothing here" in person.screen)
        await person.press("p")
        await person.until(lambda: "1. Make a.txt" in person.screen)
        assert "nothing" not in person.screen


async def test_a_screen_opens_at_its_top_however_small_the_window_is(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox.write(Step("a.txt")), size=(24, 14)) as person:
        for place in (0, 2):
            await person.app.push_screen(SCREENS[place]())
            await settled(person)
            texts = person.app.screen.query(Transcript)
            (transcript,) = [text for text in texts if text.region]
            # its text is there, and longer than the window
            await person.until(lambda shown=transcript: shown.max_scroll_y > 0)  # type: ignore[misc]
            await person.until(lambda shown=transcript: shown.scroll_offset.y == 0)  # type: ignore[misc]
            await at_home(person)
