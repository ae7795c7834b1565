"""A long paste is one mark in the prompt, and goes whole."""

from pathlib import Path

from tests.tui.prompts import prompting

LONG = "\n".join(f"line {number}" for number in range(1, 43))
MARK = "[pasted 42 lines]"


def history(root: Path) -> str:
    return (root / ".cdd" / "runs" / "history.jsonl").read_text()


async def test_a_long_paste_is_shown_as_a_mark_and_sent_whole(tmp_path: Path) -> None:
    async with prompting(tmp_path) as typist:
        await typist.press(*"why ")
        await typist.paste(LONG.replace("\n", "\r\n") + "\n")
        await typist.press(*" ?")
        assert typist.prompt.area.text == f"why {MARK} ?"
        assert MARK in typist.screen
        assert typist.prompt.area.size.height == 1
        assert typist.prompt.about_text.startswith("Enter: send all of it · Ctrl+O")
        await typist.press("enter")
        assert typist.sent == [f"why {LONG}\n ?"]
        assert "pasted" not in history(tmp_path)

    # another session shows it open
    async with prompting(tmp_path) as typist:
        await typist.press("up")
        assert typist.prompt.area.text == f"why {LONG}\n ?"


async def test_ten_lines_are_shown_and_a_single_long_one_is_not(tmp_path: Path) -> None:
    async with prompting(tmp_path) as typist:
        await typist.paste("\n".join("0123456789"))
        assert typist.prompt.area.text == "\n".join("0123456789")
        # there is nothing to open
        await typist.press("ctrl+o")
        assert len(typist.app._notifications) == 1
        typist.prompt.replace("")
        await typist.paste("x" * 5_000)
        assert typist.prompt.area.text == "[pasted 5,000 characters]"
        assert typist.prompt.text == "x" * 5_000


async def test_a_mark_opens_and_undo_closes_it(tmp_path: Path) -> None:
    async with prompting(tmp_path) as typist:
        await typist.paste(LONG)
        await typist.press("ctrl+o")
        assert typist.prompt.area.text == LONG
        await typist.press("ctrl+underscore")
        assert typist.prompt.area.text == MARK
        assert typist.prompt.text == LONG
        await typist.press("ctrl+y")
        assert typist.prompt.area.text == LONG


async def test_backspace_deletes_a_mark_as_a_whole_and_undo_restores_it(
    tmp_path: Path,
) -> None:
    async with prompting(tmp_path) as typist:
        await typist.paste(LONG)
        await typist.press("backspace")
        assert typist.prompt.text == ""
        await typist.press("ctrl+underscore")
        assert typist.prompt.text == LONG


async def test_two_pastes_of_one_size_are_two_marks(tmp_path: Path) -> None:
    other = LONG.replace("line", "row")
    async with prompting(tmp_path) as typist:
        for text in (LONG, other, LONG):
            await typist.paste(text)
        assert typist.prompt.area.text == f"{MARK}[pasted 42 lines, 2]{MARK}"
        assert typist.prompt.text == LONG + other + LONG


async def test_a_paste_stays_folded_when_the_line_comes_back(tmp_path: Path) -> None:
    async with prompting(tmp_path) as typist:
        await typist.paste(LONG)
        await typist.press("x")
        typist.prompt.put_away()
        assert typist.prompt.text == ""
        await typist.press("up")
        assert typist.prompt.area.text == f"{MARK}x"
        assert typist.prompt.text == f"{LONG}x"


async def test_a_mark_that_was_typed_and_one_within_a_paste_stay_unchanged(
    tmp_path: Path,
) -> None:
    async with prompting(tmp_path) as typist:
        await typist.press(*MARK)
        assert typist.prompt.text == MARK
        typist.prompt.replace("")
        await typist.paste(LONG)
        quoting = f"{MARK}\n" * 11
        await typist.paste(quoting)
        assert typist.prompt.text == LONG + quoting
