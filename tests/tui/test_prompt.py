"""Keys in the prompt: completion, history, several lines."""

from pathlib import Path

from textual.widgets import OptionList

from tests.support.projects import SLUG, SPEC, Sandbox, Step
from tests.support.typed_lines import command_hint
from tests.tui.person import Person, person_at
from tests.tui.prompts import Typist, prompting


def completions(person: Person) -> list[str]:
    """The completions on offer; none when the list is closed."""
    return [offer.line for offer in person.prompt.offers]


def highlighted(typist: Typist) -> str:
    index = typist.prompt.query_one(OptionList).highlighted
    assert index is not None
    return typist.offers[index]


async def test_more_letters_offer_fewer_completions_and_other_text_none(
    tmp_path: Path,
) -> None:
    async with prompting(tmp_path) as typist:
        await typist.press("/")
        assert typist.offers == ["/exec", "/exit", "/help"]
        await typist.press("e", "x")
        assert typist.offers == ["/exec", "/exit"]
        await typist.press("x")
        assert typist.offers == []
        typist.prompt.replace("")
        await typist.press(*"exec", "tab")
        assert typist.offers == []
        assert typist.prompt.text == "exec"


async def test_tab_takes_a_completion_and_offers_what_can_follow(
    tmp_path: Path,
) -> None:
    async with prompting(tmp_path) as typist:
        await typist.press(*"/exe", "tab")
        assert typist.prompt.text == "/exec "
        assert typist.offers == [
            f"/exec {slug}" for slug in ("[bold]odd", "bug-pay", "feature-pay", SLUG)
        ]
        assert "[bold]odd" in typist.screen

        await typist.press("down", "down", "tab")
        assert typist.prompt.text.split() == ["/exec", "bug-pay"]
        assert typist.offers == []


async def test_tab_types_what_all_completions_have_in_common(tmp_path: Path) -> None:
    async with prompting(tmp_path) as typist:
        await typist.press(*"/exec fea", "tab")
        assert typist.prompt.text == "/exec feature-"
        assert typist.prompt.has_class("-completing")
        await typist.press("w", "tab")
        assert typist.prompt.text.split() == ["/exec", SLUG]

        # no completions are shown for this text
        typist.prompt.replace("/exec feature-w")
        await typist.press("tab")
        assert typist.prompt.text.split() == ["/exec", SLUG]


async def test_up_and_down_walk_the_completions_and_enter_then_takes_one(
    tmp_path: Path,
) -> None:
    async with prompting(tmp_path) as typist:
        await typist.press(*"/ex", "down")
        assert highlighted(typist) == "/exit"
        assert typist.prompt.line_to_send == "/exit"
        await typist.press("down")
        assert highlighted(typist) == "/exec"
        await typist.press("up", "up", "enter")
        assert typist.prompt.text == "/exec "
        assert typist.sent == []


async def test_escape_closes_the_completions_and_keeps_the_text(tmp_path: Path) -> None:
    async with prompting(tmp_path) as typist:
        await typist.press(*"/ex", "escape")
        assert typist.offers == []
        assert typist.prompt.text == "/ex"
        await typist.press("tab")
        assert typist.offers == ["/exec", "/exit"]


async def test_a_click_takes_a_completion(tmp_path: Path) -> None:
    async with prompting(tmp_path) as typist:
        await typist.press(*"/ex")
        await typist.pilot.click(OptionList, offset=(2, 1))
        assert typist.prompt.text == "/exit"
        assert typist.app.focused is typist.prompt.area


async def test_each_completion_is_explained_in_its_row(tmp_path: Path) -> None:
    async with prompting(tmp_path, names={"": ("/exec", "/ex")}) as typist:
        await typist.press("/")
        rows = [row.strip() for row in typist.screen.split("\n")]
        assert "/exec  What /exec does." in rows
        assert "/ex    What /ex does." in rows


async def test_earlier_lines_come_back_also_in_the_next_session(tmp_path: Path) -> None:
    async with prompting(tmp_path) as typist:
        for line in ("first", "second", "/stat"):
            await typist.send(line)
        await typist.press(*"dra", "up", "up", "up")
        assert typist.prompt.text == "first"
        await typist.press("down", "down")
        # a command that comes back is offered nothing
        assert (typist.prompt.text, typist.offers) == ("/stat", [])
        await typist.press("down", "down")
        assert typist.prompt.text == "dra"

    async with prompting(tmp_path) as typist:
        await typist.press("up", "up")
        assert typist.prompt.text == "second"
        await typist.press("enter")
        assert typist.sent == ["second"]


async def test_pasted_lines_are_one_message(tmp_path: Path) -> None:
    async with prompting(tmp_path) as typist:
        await typist.paste("first\r\nsecond\rthird")
        assert typist.prompt.area.document.lines == ["first", "second", "third"]
        assert typist.sent == []
        await typist.press("enter")
        assert typist.sent == ["first\nsecond\nthird"]
        assert typist.prompt.text == ""


async def test_a_line_break_can_be_typed_and_up_moves_within_the_text(
    tmp_path: Path,
) -> None:
    async with prompting(tmp_path) as typist:
        await typist.send("earlier")
        for key in ("ctrl+j", "shift+enter", "alt+enter"):
            typist.prompt.replace("")
            await typist.press("a", key, "b", "up")
            assert typist.prompt.text == "a\nb"
            assert typist.prompt.area.cursor_location[0] == 0
        await typist.press("up")
        assert typist.prompt.text == "earlier"


async def test_up_moves_within_a_line_that_is_wrapped(tmp_path: Path) -> None:
    async with prompting(tmp_path, size=(30, 20)) as typist:
        await typist.send("earlier")
        typist.write("words " * 10)
        await typist.pilot.pause()
        await typist.press("up")
        assert typist.prompt.text == "words " * 10
        await typist.press("up", "up", "up")
        assert typist.prompt.text == "earlier"


async def test_the_prompt_grows_with_its_text_up_to_six_rows(tmp_path: Path) -> None:
    async with prompting(tmp_path) as typist:
        for rows, text in ((1, "x"), (3, "\ny\nz"), (6, "\n" * 20)):
            typist.write(text)
            await typist.pilot.pause()
            assert typist.prompt.area.size.height == rows


async def test_a_line_over_several_rows_is_emptied_as_a_whole(tmp_path: Path) -> None:
    async with prompting(tmp_path, size=(20, 12)) as typist:
        for key, column, left in (
            ("ctrl+u", None, "first\n/status"),
            ("ctrl+k", len("please "), "first\nplease /status"),
        ):
            typist.prompt.replace("first\nplease keep it short and simple and so on")
            if column is not None:
                typist.prompt.area.move_cursor((1, column))
            await typist.press(key, *"/status")
            assert typist.prompt.text == left


async def test_keys_that_come_at_once_have_their_effect_in_the_order_of_typing(
    tmp_path: Path,
) -> None:
    """As they do where the screen was busy for a moment, or the line is slow."""
    async with prompting(tmp_path) as typist:
        for keys, left in (
            (("a", "b", "c", "backspace", "backspace", "x"), "ax"),
            (("a", "b", "left", "x"), "axb"),
            (("a", "b", "ctrl+u", "x"), "x"),
            (("a", "home", "x", "end", "y"), "xay"),
        ):
            typist.prompt.replace("")
            typist.at_once(*keys)
            await typist.until(lambda left=left: typist.prompt.text == left)  # type: ignore[misc]


async def test_the_shell_completes_commands_tickets_and_files(sandbox: Sandbox) -> None:
    sandbox.write(Step("a.txt"))
    for slug in ("bug-pay", "feature-pay"):
        (sandbox.root / "tickets" / slug).mkdir()
        (sandbox.root / "tickets" / slug / "spec.yaml").write_text(SPEC)
    deep = sandbox.root / "src" / "deep"
    deep.mkdir(parents=True)
    (deep / "wanted.py").write_text("x = 1\n")
    async with person_at(sandbox) as person:
        await person.press(*"/ex")
        assert completions(person) == ["/exec", "/exit"]
        await person.press("down")
        assert person.activity.startswith(command_hint("/exit"))
        await person.press("escape")
        assert person.activity.startswith("Enter does nothing · There is no command")

        await person.press("e", "tab", *"pay")
        assert completions(person) == ["/exec bug-pay", "/exec feature-pay"]

        # a file anywhere is offered without a further key when it is found
        person.prompt.replace("")
        await person.press(*"see @wntd")
        await person.until(lambda: completions(person) == ["see @src/deep/wanted.py"])
        assert "@src/deep/wanted.py  6 bytes" in person.screen
        await person.press("tab")
        assert person.prompt.text == "see @src/deep/wanted.py"
