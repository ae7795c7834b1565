"""The keyboard works wherever the focus is."""

from collections.abc import Awaitable, Callable

from textual import events

from cdd_agent.events.notices import Answer
from cdd_agent.events.question_events import Choice, CommandProposed
from cdd_agent.tui.transcript.blocks import BlockKind
from cdd_agent.tui.transcript.find_bar import FindInput
from cdd_agent.tui.transcript.folds import FoldHeader, Opening
from cdd_agent.tui.transcript.widget import Transcript
from cdd_agent.tui.widgets.question import Question
from cdd_agent.tui.widgets.status_line import StatusLine
from cdd_agent.tui.widgets.steps import StepList
from tests.support.projects import SLUG, Sandbox, Step
from tests.tui.held_model import HeldModel
from tests.tui.person import Person, person_at
from tests.tui.test_blocks import LINES, block


async def click(person: Person) -> None:
    await person.pilot.click(Transcript, offset=(3, 3))


async def select(person: Person) -> None:
    await person.pilot.mouse_down(Transcript, offset=(3, 1))
    await person.pilot.hover(Transcript, offset=(9, 3))
    await person.pilot.mouse_up(Transcript, offset=(9, 3))


async def in_the_transcript(person: Person) -> None:
    person.app.query_one(Transcript).focus()
    await person.pilot.pause()


async def nowhere(person: Person) -> None:
    person.app.screen.set_focus(None)


async def blurred(person: Person) -> None:
    """The terminal says that another window has the focus, and never that it came
    back.
    """
    person.app.post_message(events.AppBlur())
    await person.pilot.pause()


async def elsewhere(person: Person) -> None:
    for place in (StepList, StatusLine, Question):
        if person.app.query(place) and person.app.query_one(place).region:
            await person.pilot.click(place, offset=(1, 0))  # where nothing opens


async def in_the_prompt(person: Person) -> None:
    person.prompt.area.focus()
    await person.pilot.pause()


Move = Callable[[Person], Awaitable[None]]
FOCI: tuple[Move, ...] = (
    in_the_prompt,
    click,
    select,
    in_the_transcript,
    nowhere,
    blurred,
    elsewhere,
)


async def test_the_last_line_says_what_enter_does_wherever_the_focus_is(
    sandbox: Sandbox,
) -> None:
    """And that is what it does."""
    sandbox.write(Step("a.txt"))
    async with person_at(sandbox, f"/exec {SLUG}", size=(120, 30)) as person:
        transcript = person.app.home.transcript
        transcript.clear()
        transcript.add(BlockKind.NOTE, "no fold")
        transcript.add_foldable(block("read a.py", *LINES, sample=2))
        assert "Enter: run step 1" in person.activity or "@: files" in person.activity

        await person.press("ctrl+up")
        header = transcript._choice.line
        assert isinstance(header, FoldHeader)
        for said, opening in (
            ("open", Opening.SOME),
            ("open all of", Opening.ALL),
            ("fold", Opening.HEADER),
        ):
            assert f"Enter: {said} the block" in person.activity
            assert "sends" not in person.activity
            await person.press("enter")
            assert header.fold.opening is opening
        await person.press("right")
        assert "Enter: open all of the block" in person.activity
        await person.press("left")
        assert "Enter: open the block" in person.activity

        await person.press("ctrl+up")
        assert person.activity.startswith("Nothing to open in this block")
        told = person.told
        await person.press("enter")
        assert (person.told, person.is_waiting) == (told, False)

        await person.press("ctrl+f")
        await person.until(lambda: isinstance(person.app.focused, FindInput))
        assert "Enter: next match" in person.activity
        await person.press("escape")
        await person.until(lambda: not person.app.home.query(FindInput))
        await person.press("f2")
        assert "Enter: open the step" in person.activity
        await person.press("x", "backspace")
        assert person.app.focused is person.prompt.area
        assert "block" not in person.activity
        assert "Enter" in person.activity


async def test_all_that_is_typed_is_in_the_prompt_wherever_the_focus_is(
    sandbox: Sandbox,
) -> None:
    """Letters, digits, signs; pasted text; and the keys that change the text."""
    async with person_at(sandbox) as person:
        for move in FOCI:
            typed = ""
            for character in ("y", "7", "[", " ", "é"):
                await move(person)
                await person.press(character)
                typed += character
                assert person.prompt.text == typed, move
            await move(person)
            person.app.post_message(events.Paste("[pasted]"))
            await person.until(
                lambda typed=typed: person.prompt.text == f"{typed}[pasted]"  # type: ignore[misc]
            )
            await move(person)
            await person.press("backspace")
            assert person.prompt.text == f"{typed}[pasted", move
            await move(person)
            await person.press("ctrl+u")
            assert person.prompt.text == "", move


async def test_enter_sends_and_escape_stops_wherever_the_focus_is(
    sandbox: Sandbox,
) -> None:
    sandbox.model = HeldModel(*["Reply: more"] * len(FOCI), beginning="Reply: ")
    async with person_at(sandbox) as person:
        transcript = person.app.home.transcript
        transcript.add_foldable(block("read a.py", *LINES))
        for number, move in enumerate(FOCI, 1):
            person.write("hello")
            await move(person)
            await person.press("enter")
            await person.until(
                lambda number=number: person.told.count("Reply: ") == number  # type: ignore[misc]
            )
            if number == 1:
                while not isinstance(transcript._choice.line, FoldHeader):
                    await person.press("ctrl+up")
                assert "Enter: open the block" in person.activity
                await person.press("y", "backspace")
                assert "Esc stops" in person.activity
            await move(person)
            await person.press("escape")
            await person.until(lambda: not person.is_waiting)
            assert person.told.count("Stopped.") == number, move


async def test_an_open_question_is_answered_wherever_the_focus_is(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:
        for number, move in enumerate(FOCI):
            # each answer is tried from about half of the places
            key, choice = (("y", Choice.YES), ("escape", Choice.NO))[number % 2]
            asked = person.app.run_worker(
                person.app.asking.approve(CommandProposed("ls", "Because"))
            )
            await person.until_asked()
            await move(person)
            await person.answer(key)
            assert await asked.wait() is choice, move


async def test_the_transcript_keeps_the_keys_that_scroll_it(sandbox: Sandbox) -> None:
    async with person_at(sandbox) as person:
        person.app.show(Answer("\n\n".join("paragraph" for _ in range(60))))
        await person.pilot.pause()
        await in_the_transcript(person)
        transcript = person.app.query_one(Transcript)
        await person.press("home")
        await person.until(lambda: transcript.scroll_offset.y == 0)
        await person.press("down")
        await person.until(lambda: transcript.scroll_offset.y == 1)
        await person.press("tab")
        assert person.app.focused is person.prompt.area
