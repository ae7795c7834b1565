"""A long paste is one mark in the prompt, and goes whole."""

from pathlib import Path

from textual import events

from tests.support.projects import Sandbox
from tests.tui.person import Person, person_at

LONG = "\n".join(f"line {number}" for number in range(1, 43))
MARK = "[pasted 42 lines]"


async def paste(person: Person, text: str) -> None:
    before = person.prompt.area.text
    person.app.post_message(events.Paste(text))
    await person.until(lambda: person.prompt.area.text != before)


def history(sandbox: Sandbox) -> str:
    return (sandbox.root / ".cdd" / "runs" / "history.jsonl").read_text()


async def test_it_is_shown_as_a_mark_and_sent_whole(sandbox: Sandbox) -> None:
    sandbox.write().replies("I see.")
    async with person_at(sandbox) as person:
        await person.press(*"why ")
        await paste(person, LONG.replace("\n", "\r\n") + "\n")
        await person.press(*" ?")
        assert person.prompt.area.text == f"why {MARK} ?"
        assert MARK in person.screen
        assert person.prompt.area.size.height == 1
        assert person.activity == "Enter sends all of it · Ctrl+O shows what was pasted"

        await person.press("enter")
        await person.until_told("I see.")
        assert sandbox.model.requests[0].messages[-1].content == f"why {LONG}\n ?"
        assert "line 42" in person.told
        assert "pasted" not in history(sandbox)


async def test_ten_lines_are_shown_and_a_single_long_one_is_not(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:
        await paste(person, "\n".join("0123456789"))
        assert person.prompt.area.text == "\n".join("0123456789")
        person.prompt.replace("")
        await paste(person, "x" * 5_000)
        assert person.prompt.area.text == "[pasted 5,000 characters]"
        assert person.prompt.text == "x" * 5_000


async def test_it_can_be_opened_and_closed_again_by_undoing_that(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:
        await paste(person, LONG)
        await person.press("ctrl+o")
        assert person.prompt.area.text == LONG
        await person.press("ctrl+underscore")
        assert person.prompt.area.text == MARK
        assert person.prompt.text == LONG
        await person.press("ctrl+y")
        assert person.prompt.area.text == LONG


async def test_where_nothing_is_folded_that_is_told(sandbox: Sandbox) -> None:
    async with person_at(sandbox) as person:
        await person.press(*"abc", "ctrl+o")
        assert [note.message for note in person.app._notifications] == [
            "Nothing that was pasted is folded."
        ]


async def test_two_pastes_of_one_size_are_two_marks(sandbox: Sandbox) -> None:
    other = LONG.replace("line", "row")
    async with person_at(sandbox) as person:
        for text in (LONG, other, LONG):
            await paste(person, text)
        assert person.prompt.area.text == f"{MARK}[pasted 42 lines, 2]{MARK}"
        assert person.prompt.text == LONG + other + LONG


async def test_backspace_takes_a_mark_as_a_whole_and_undo_brings_it_back(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:
        await paste(person, LONG)
        await person.press("backspace")
        assert person.prompt.text == ""
        await person.press("ctrl+underscore")
        assert person.prompt.text == LONG


async def test_it_stays_folded_when_the_line_comes_back(sandbox: Sandbox) -> None:
    async with person_at(sandbox) as person:
        await paste(person, LONG)
        await person.press("x", "ctrl+c")
        assert person.prompt.text == ""
        await person.press("up")
        assert person.prompt.area.text == f"{MARK}x"
        assert person.prompt.text == f"{LONG}x"


async def test_a_mark_that_was_typed_and_one_within_a_paste_stay_what_they_are(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:
        await person.press(*MARK)
        assert person.prompt.text == MARK
        person.prompt.replace("")
        await paste(person, LONG)
        quoting = f"{MARK}\n" * 11
        await paste(person, quoting)
        assert person.prompt.text == LONG + quoting


async def test_another_session_shows_it_open(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.write().replies("I see.")
    async with person_at(sandbox) as person:
        await paste(person, LONG)
        await person.press("enter")
        await person.until_told("I see.")
    async with person_at(sandbox) as person:
        await person.press("up")
        assert person.prompt.area.text == LONG
