"""The keyboard works wherever the focus is."""

import string
from collections.abc import Awaitable, Callable

import pytest
from textual import events

from cdd_agent.events import Answer, Choice, CommandProposed
from cdd_agent.tui.transcript.blocks import BlockKind
from cdd_agent.tui.transcript.find_bar import FindInput
from cdd_agent.tui.transcript.folds import FoldHeader, Opening
from cdd_agent.tui.transcript.widget import Transcript
from cdd_agent.tui.widgets.bars import TitleBar
from cdd_agent.tui.widgets.question import Question
from cdd_agent.tui.widgets.steps import StepList
from tests.support.projects import SLUG, Sandbox, Step
from tests.tui.person import Person, person_at
from tests.tui.test_blocks import LINES, block
from tests.tui.test_stopping import is_as_before, streaming


async def click(person: Person) -> None:
    await person.pilot.click(Transcript, offset=(3, 3))


async def select(person: Person) -> None:
    await person.pilot.mouse_down(Transcript, offset=(3, 1))
    await person.pilot.hover(Transcript, offset=(9, 3))
    await person.pilot.mouse_up(Transcript, offset=(9, 3))


async def shift_tab(person: Person) -> None:
    person.prompt.area.focus()
    await person.press("shift+tab")
    assert isinstance(person.app.focused, Transcript)


async def nowhere(person: Person) -> None:
    person.app.screen.set_focus(None)


async def blurred(person: Person) -> None:
    """The terminal says that another window has the focus, and never that it came
    back.
    """
    person.app.post_message(events.AppBlur())
    await person.pilot.pause()


async def elsewhere(person: Person) -> None:
    for place in (StepList, TitleBar, Question):
        if person.app.query(place) and person.app.query_one(place).region:
            await person.pilot.click(place, offset=(1, 0))  # where nothing opens


async def at_home(person: Person) -> None:
    person.prompt.area.focus()
    await person.pilot.pause()


Move = Callable[[Person], Awaitable[None]]
FOCI: tuple[Move, ...] = (
    at_home,
    click,
    select,
    shift_tab,
    nowhere,
    blurred,
    elsewhere,
)
everywhere = pytest.mark.parametrize("move", FOCI, ids=lambda move: move.__name__)


async def test_the_line_below_says_what_enter_does_wherever_the_keyboard_is(
    sandbox: Sandbox,
) -> None:
    """And that is what it does."""
    sandbox.write(Step("a.txt"))
    async with person_at(sandbox, f"/exec {SLUG}", size=(120, 30)) as person:
        transcript = person.app.home.transcript
        transcript.clear()
        transcript.add(BlockKind.NOTE, "no fold")
        transcript.add_foldable(block("read a.py", *LINES, sample=2))
        assert (
            "Enter runs step 1" in person.activity or "Enter sends" in person.activity
        )

        await person.press("ctrl+up")
        header = transcript._chosen
        assert isinstance(header, FoldHeader)
        for said, opening in (
            ("opens", Opening.SOME),
            ("opens all of", Opening.ALL),
            ("folds", Opening.HEADER),
        ):
            assert f"Enter {said} the block" in person.activity
            assert "sends" not in person.activity
            await person.press("enter")
            assert header.fold.opening is opening
        await person.press("right")
        assert "Enter opens all of the block" in person.activity
        await person.press("left")
        assert "Enter opens the block" in person.activity

        await person.press("ctrl+up")
        assert person.activity.startswith("Nothing to open in this block")
        told = person.told
        await person.press("enter")
        assert (person.told, person.is_waiting) == (told, False)

        await person.press("ctrl+f")
        await person.until(lambda: isinstance(person.app.focused, FindInput))
        assert "Enter goes to the next" in person.activity
        await person.press("escape")
        await person.until(lambda: not person.app.home.query(FindInput))
        await person.press("f2")
        assert "Enter opens the step" in person.activity
        await person.press("x", "backspace")
        assert person.app.focused is person.prompt.area
        assert "block" not in person.activity
        assert "Enter" in person.activity


async def test_while_something_runs_it_is_said_too_what_enter_does_with_a_block(
    sandbox: Sandbox,
) -> None:
    async with person_at(streaming(sandbox), f"/exec {SLUG}") as person:
        person.app.home.transcript.add_foldable(block("read a.py", *LINES))
        await person.begin("")
        await person.until_told("One ")
        while not isinstance(person.app.home.transcript._chosen, FoldHeader):
            await person.press("ctrl+up")
        assert "Enter opens the block" in person.activity
        await person.press("y", "backspace")
        assert "Esc stops" in person.activity


@everywhere
async def test_all_that_is_typed_is_in_the_prompt(sandbox: Sandbox, move: Move) -> None:
    """Letters, digits, signs; pasted text; and the keys that change the text."""
    async with person_at(sandbox) as person:
        typed = ""
        for character in (
            *string.ascii_letters[::17],
            "y",
            "n",
            *string.digits[::7],
            *string.punctuation[::9],
            " ",
            "é",
        ):
            await move(person)
            await person.press(character)
            typed += character
            assert person.prompt.text == typed
        await move(person)
        person.app.post_message(events.Paste("[pasted]"))
        await person.until(lambda: person.prompt.text == f"{typed}[pasted]")
        await move(person)
        await person.press("backspace")
        assert person.prompt.text == f"{typed}[pasted"
        await move(person)
        await person.press("ctrl+u")
        assert person.prompt.text == ""


@everywhere
async def test_enter_sends_and_escape_stops(sandbox: Sandbox, move: Move) -> None:
    async with person_at(streaming(sandbox), f"/exec {SLUG}") as person:
        await move(person)
        await person.press("enter")
        await person.until_told("One ")
        await move(person)
        await person.press("escape")
        await person.until(lambda: not person.is_waiting)
        assert is_as_before(sandbox)


@everywhere
@pytest.mark.parametrize(("key", "choice"), [("y", Choice.YES), ("escape", Choice.NO)])
async def test_an_open_question_hears_its_answer(
    sandbox: Sandbox, move: Move, key: str, choice: Choice
) -> None:
    async with person_at(sandbox) as person:
        asked = person.app.run_worker(
            person.app.asking.approve(CommandProposed("ls", "Because"))
        )
        await person.until_asked()
        await move(person)
        await person.answer(key)
        assert await asked.wait() is choice


async def test_the_transcript_keeps_the_keys_that_scroll_it(sandbox: Sandbox) -> None:
    async with person_at(sandbox) as person:
        person.app.show(Answer("\n\n".join("paragraph" for _ in range(60))))
        await person.pilot.pause()
        await shift_tab(person)
        transcript = person.app.query_one(Transcript)
        await person.press("home")
        await person.until(lambda: transcript.scroll_offset.y == 0)
        await person.press("down")
        await person.until(lambda: transcript.scroll_offset.y == 1)
        await person.press("tab")
        assert person.app.focused is person.prompt.area
