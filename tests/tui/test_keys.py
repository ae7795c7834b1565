"""Whatever has the focus and whatever goes on, no key is silent: the screen is another
one, or it says that the key has done nothing.
"""

import re
from collections.abc import Awaitable, Callable, Iterable

import pytest
from msgspec.structs import replace
from textual.screen import Screen

from cdd_agent.edits.review import Review
from cdd_agent.engine.step_details import StepDetails
from cdd_agent.engine.timeline import Timeline
from cdd_agent.events import (
    CommandProposed,
    CriteriaShown,
    CriterionProof,
    StepView,
    UndoPreview,
)
from cdd_agent.llm.offered_model import OfferedModel
from cdd_agent.tickets.status import StepStatus
from cdd_agent.tui.criteria_screen import CriteriaScreen
from cdd_agent.tui.screens.first_run import FirstRun, Wish
from cdd_agent.tui.step_screen import StepScreen
from cdd_agent.tui.timeline_screen import TimelineScreen
from cdd_agent.tui.transcript.find_bar import FindInput
from cdd_agent.tui.transcript.widget import Transcript
from tests.support.projects import SLUG, Sandbox, Step
from tests.support.reviews import review_of
from tests.tui.person import Person, person_at
from tests.tui.test_focus import FOCI, Move
from tests.tui.test_snapshots import ATTEMPT, PLAN_STEP
from tests.tui.test_words import slowly

LEAVING = ("ctrl+d", "ctrl+q")
PRINTABLE = ("a", "y", "7", "/", "[", "space", "é")
MOVING = (
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
)
SOME = (
    *(
        "x",
        *MOVING,
        "backspace",
        "delete",
        "escape",
        "ctrl+up",
        "ctrl+k",
        "ctrl+v",
        "ctrl+t",
        "ctrl+g",
    ),
    *("f1", "f2", "f6", "f9", "ctrl+c"),
)
FEW = ("x", *MOVING, "backspace", "escape", "ctrl+k", "ctrl+v", "f2", "f9")
FIRST = ("x", "up", "down", "pageup", "tab", "backspace", "escape", "f9")
"""For where any key brings the focus back."""
ALL = dict.fromkeys(
    (
        *PRINTABLE,
        *SOME,
        "insert",
        *(
            "enter",
            "shift+left",
            "ctrl+left",
            "ctrl+right",
            "ctrl+down",
            "ctrl+home",
            "ctrl+end",
            "shift+pageup",
            "alt+x",
        ),
        *(
            "shift+enter",
            "ctrl+underscore",
            "ctrl+backslash",
            *(f"f{number}" for number in range(1, 13)),
        ),
        *(f"ctrl+{letter}" for letter in "abcefghijklmnoprstuvwxyz"),
    )
)
"""All that a keyboard has, but for what leaves."""
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
    await person.pilot.pause()
    shown = (
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
        lambda: not any(worker.group in shown for worker in person.app.workers)
    )


async def silent(person: Person, keys: Iterable[str], again: Again) -> list[str]:
    """Those of the keys after which all is as before. `again` makes the state in which
    each is pressed.
    """
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


def without_hints(person: Person) -> None:
    if person.app._take_hint_back is not None:
        person.app._take_hint_back()
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


@pytest.mark.parametrize(
    ("draft", "keys"),
    [("", ALL), ("half a thought", (*SOME, "ctrl+a", "ctrl+x", "enter"))],
)
async def test_on_the_home_screen_no_key_is_silent(
    sandbox: Sandbox, draft: str, keys: Iterable[str]
) -> None:
    async with person_at(sandbox) as person:

        async def again() -> None:
            await at_home(person)
            person.prompt.replace(draft)

        assert await silent(person, keys, again) == []


async def on_a_block(person: Person) -> None:
    await person.press("ctrl+up")


async def in_the_plan(person: Person) -> None:
    await person.press("f2")


async def in_a_search(person: Person) -> None:
    await person.press("ctrl+r")


async def in_the_find_bar(person: Person) -> None:
    await person.press("ctrl+f")
    await person.until(lambda: isinstance(person.app.focused, FindInput))


@pytest.mark.parametrize(
    "move", [*FOCI[1:], on_a_block, in_the_plan, in_a_search, in_the_find_bar]
)
async def test_wherever_the_focus_is_no_key_is_silent_and_letters_are_the_prompts(
    sandbox: Sandbox, move: Move
) -> None:
    sandbox.write(Step("a.txt"), Step("b.txt"))
    async with person_at(sandbox, f"/exec {SLUG}") as person:

        async def again() -> None:
            await at_home(person)
            await move(person)

        assert await silent(person, FIRST if move in FOCI else SOME, again) == []
        for key, character in (("y", "y"), ("7", "7"), ("[", "["), ("space", " ")):
            await again()
            await person.press(key)
            where = (
                person.app.home.query_one(FindInput).value
                if move is in_the_find_bar
                else person.prompt.text
            )
            assert where == character


async def test_while_a_step_runs_no_key_is_silent(sandbox: Sandbox) -> None:
    async with person_at(slowly(sandbox, Step("b.txt")), f"/exec {SLUG}") as person:
        await person.begin("")
        await person.until(lambda: "Running " in person.activity)

        async def again() -> None:
            await at_home(person)

        keys = [
            key for key in (*SOME, "enter") if key not in ("escape", "ctrl+c", "f1")
        ]
        assert await silent(person, keys, again) == []
        (sandbox.root / "slow").unlink()
        await person.until(lambda: not person.is_waiting)


@pytest.mark.parametrize(
    "proposal",
    [
        review_of(1, {"a.txt": (None, "a\n"), "b.txt": ("b\n", "c\n")}),
        CommandProposed(
            "\n".join(f"echo {number}" for number in range(60)),
            "`rm` is not on the list",
        ),
    ],
    ids=["changes", "long"],
)
async def test_while_a_question_is_open_no_key_is_silent(
    sandbox: Sandbox, proposal: Review | CommandProposed
) -> None:
    async with person_at(sandbox) as person:

        async def again() -> None:
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

        assert (
            await silent(
                person,
                [key for key in (*SOME, "enter", "y") if key not in LEAVING],
                again,
            )
            == []
        )
        person.app.workers.cancel_group(person.app, "asking")


VIEW = StepView(3, "Write the report", StepStatus.FAILED, error="it failed")
DETAILS = StepDetails(SLUG, PLAN_STEP, VIEW, (ATTEMPT, ATTEMPT))


async def preview(number: int) -> UndoPreview:
    return UndoPreview((number,), ("a.txt",), ("b.txt",), ())


SCREENS: tuple[Callable[[], Screen[str] | Screen[None]], ...] = (
    lambda: StepScreen(DETAILS, lambda by: None),
    lambda: StepScreen(replace(DETAILS, attempts=()), lambda by: None),
    lambda: CriteriaScreen(
        CriteriaShown(
            SLUG,
            "Say words",
            (
                CriterionProof(1, "It is good", (VIEW,)),
                CriterionProof(2, "It is short"),
            ),
        ),
        lambda number: DETAILS,
    ),
    lambda: CriteriaScreen(
        CriteriaShown(SLUG, "Say words", ()), lambda number: DETAILS
    ),
    lambda: TimelineScreen(
        Timeline(SLUG, (VIEW, VIEW), (VIEW,)), lambda number: DETAILS, preview
    ),
    lambda: FirstRun(
        (OfferedModel("qwen3", "Ollama", "http://127.0.0.1:11434"),), lambda: 0.0
    ),
    Wish,
)


@pytest.mark.parametrize(
    "screen",
    SCREENS,
    ids=["step", "new step", "criteria", "none", "timeline", "first run", "wish"],
)
async def test_on_a_screen_over_it_no_key_is_silent(
    sandbox: Sandbox, screen: Callable[[], Screen[str] | Screen[None]]
) -> None:
    async with person_at(sandbox.write(Step("a.txt")), size=(120, 30)) as person:
        over = screen()
        await person.app.push_screen(over)

        async def again() -> None:
            nonlocal over
            if person.app.screen is not over:
                await at_home(person)
                over = screen()
                await person.app.push_screen(over)
            without_hints(person)

        assert (
            await silent(
                person, [*FEW, "n", "p", "]", "[", "enter", "f1", "f3", "insert"], again
            )
            == []
        )


async def test_at_the_last_step_the_key_for_the_next_one_says_so(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt"), Step("b.txt"))
    async with person_at(sandbox, f"/exec {SLUG}", size=(120, 30)) as person:
        await person.press("f2", "end", "enter")
        await person.until(lambda: isinstance(person.app.screen, StepScreen))
        person.time.pass_by(1)
        await person.press("n")
        await person.until(lambda: "N does nothing here" in person.screen)
        await person.press("p")
        await person.until(lambda: "1. Make a.txt" in person.screen)
        assert "nothing" not in person.screen


@pytest.mark.parametrize("place", [0, 2, 4], ids=["step", "criteria", "timeline"])
async def test_a_screen_opens_at_its_top_however_small_the_window_is(
    sandbox: Sandbox, place: int
) -> None:
    async with person_at(sandbox.write(Step("a.txt")), size=(24, 14)) as person:
        await person.app.push_screen(SCREENS[place]())
        await settled(person)
        transcript = person.app.screen.query_one(Transcript)
        # its text is there, and longer than the window
        await person.until(lambda: transcript.max_scroll_y > 0)
        await person.until(lambda: transcript.scroll_offset.y == 0)
