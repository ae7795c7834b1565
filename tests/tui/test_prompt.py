"""Keys in the prompt: completion, history, several lines."""

import pytest
from textual import events
from textual.widgets import OptionList

from tests.support.projects import SLUG, SPEC, Sandbox, Step
from tests.tui.person import Person, person_at


def completions(person: Person) -> list[str]:
    """The completions on offer; none when the list is closed."""
    return [offer.line for offer in person.prompt.offers]


def highlighted(person: Person) -> str:
    index = person.prompt.query_one(OptionList).highlighted
    assert index is not None
    return completions(person)[index]


@pytest.fixture
def tickets(sandbox: Sandbox) -> Sandbox:
    sandbox.write(Step("a.txt"))
    for slug in ("bug-pay", "feature-pay", "[bold]odd"):
        (sandbox.root / "tickets" / slug).mkdir()
        (sandbox.root / "tickets" / slug / "spec.yaml").write_text(SPEC)
    return sandbox


async def test_a_slash_offers_the_commands_and_more_letters_fewer(
    tickets: Sandbox,
) -> None:
    async with person_at(tickets) as person:
        await person.press("/")
        assert {"/exec", "/help", "/exit"} <= set(completions(person))

        await person.press("e", "x")
        assert completions(person) == ["/exec", "/exit"]

        await person.press("x")
        assert completions(person) == []


async def test_tab_takes_a_completion_and_offers_what_can_follow(
    tickets: Sandbox,
) -> None:
    async with person_at(tickets) as person:
        await person.press(*"/exe", "tab")
        assert person.prompt.text == "/exec "
        assert completions(person) == [
            f"/exec {slug}" for slug in ("[bold]odd", "bug-pay", "feature-pay", SLUG)
        ]
        assert "[bold]odd" in person.screen

        await person.press(*"pay")
        assert completions(person) == [
            f"/exec {slug}" for slug in ("bug-pay", "feature-pay")
        ]

        await person.press("down", "tab")
        assert person.prompt.text.split() == ["/exec", "feature-pay"]
        assert completions(person) == []


async def test_up_and_down_walk_the_completions_and_enter_then_takes_one(
    tickets: Sandbox,
) -> None:
    async with person_at(tickets) as person:
        await person.press(*"/ex", "down")
        assert highlighted(person) == "/exit"
        await person.press("down")
        assert highlighted(person) == "/exec"
        await person.press("up", "up", "enter")
        assert person.prompt.text == "/exec "
        assert "/exec" not in person.told


async def test_enter_sends_what_is_typed_unless_the_person_walked(
    tickets: Sandbox,
) -> None:
    async with person_at(tickets) as person:
        await person.press(*"/exe", "enter")
        await person.until_told("There is no command /exe")
        assert "/exec" in person.told


async def test_escape_closes_the_completions_and_keeps_the_text(
    tickets: Sandbox,
) -> None:
    async with person_at(tickets) as person:
        await person.press(*"/ex", "escape")
        assert completions(person) == []
        assert person.prompt.text == "/ex"

        await person.press("tab")
        assert completions(person) == ["/exec", "/exit"]


async def test_a_click_takes_a_completion(tickets: Sandbox) -> None:
    async with person_at(tickets) as person:
        await person.press(*"/ex")
        await person.pilot.click(OptionList, offset=(2, 1))
        assert person.prompt.text == "/exit"
        assert person.app.focused is person.prompt.area


async def test_plain_text_offers_nothing(tickets: Sandbox) -> None:
    async with person_at(tickets) as person:
        await person.press(*"exec", "tab")
        assert completions(person) == []
        assert person.prompt.text == "exec"


async def test_earlier_lines_come_back_also_in_the_next_session(
    tickets: Sandbox,
) -> None:
    async with person_at(tickets) as person:
        await person.say("first")
        await person.say("second")
        await person.press(*"dra", "up", "up", "up")
        assert person.prompt.text == "first"
        await person.press("down", "down", "down")
        assert person.prompt.text == "dra"
        # who is left keeps no draft, as the one that ends otherwise may
        await person.press("ctrl+u", "ctrl+d")

    async with person_at(tickets) as person:
        await person.press("up")
        assert person.prompt.text == "second"
        await person.press("enter")
        await person.until_told("second")


async def test_a_damaged_history_is_no_reason_not_to_start(tickets: Sandbox) -> None:
    runs = tickets.root / ".cdd" / "runs"
    runs.mkdir()
    (runs / "history.jsonl").write_bytes(b'\xff\xfe{"half\n"whole"\n[[[')
    async with person_at(tickets) as person:
        await person.press("up")
        assert person.prompt.text == "whole"


async def test_a_recalled_command_does_not_open_the_completions(
    tickets: Sandbox,
) -> None:
    async with person_at(tickets) as person:
        await person.say("one")
        await person.say("/list x")
        await person.press("up")
        assert completions(person) == []
        await person.press("up")
        assert person.prompt.text == "one"


async def test_pasted_lines_are_one_message(tickets: Sandbox) -> None:
    tickets.replies("Three lines.")
    async with person_at(tickets) as person:
        person.app.post_message(events.Paste("first\r\nsecond\rthird"))
        await person.until(lambda: person.prompt.text)
        assert person.prompt.area.document.lines == ["first", "second", "third"]
        assert person.told == "Welcome."

        await person.press("enter")
        await person.until_told("Three lines.")
        assert tickets.model.requests[0].messages[-1].content.splitlines() == [
            "first",
            "second",
            "third",
        ]
        assert person.prompt.text == ""


@pytest.mark.parametrize("key", ["ctrl+j", "shift+enter", "alt+enter"])
async def test_a_line_break_can_be_typed_and_up_moves_within_the_text(
    tickets: Sandbox, key: str
) -> None:
    async with person_at(tickets) as person:
        await person.say("earlier")
        await person.press("a", key, "b", "up")
        assert person.prompt.text == "a\nb"
        assert person.prompt.area.cursor_location[0] == 0
        await person.press("up")
        assert person.prompt.text == "earlier"


async def test_up_moves_within_a_line_that_is_wrapped(tickets: Sandbox) -> None:
    async with person_at(tickets, size=(30, 20)) as person:
        await person.say("earlier")
        person.prompt.area.insert("words " * 10)
        await person.pilot.pause()
        await person.press("up")
        assert person.prompt.text == "words " * 10
        await person.press("up", "up", "up")
        assert person.prompt.text == "earlier"


async def test_the_prompt_grows_with_its_text_up_to_six_rows(tickets: Sandbox) -> None:
    async with person_at(tickets) as person:
        for rows, text in ((1, "x"), (3, "\ny\nz"), (6, "\n" * 20)):
            person.prompt.area.insert(text)
            await person.pilot.pause()
            assert person.prompt.size.height == rows


async def test_tab_types_what_all_completions_have_in_common(tickets: Sandbox) -> None:
    async with person_at(tickets) as person:
        await person.press(*"/exec fea", "tab")
        assert person.prompt.text == "/exec feature-"
        assert person.prompt.has_class("-completing")
        await person.press("w", "tab")
        assert person.prompt.text.split() == ["/exec", SLUG]


async def test_tab_completes_also_when_it_comes_at_once(tickets: Sandbox) -> None:
    async with person_at(tickets) as person:
        person.prompt.replace("/exec feature-w")  # no completions are shown for it
        await person.press("tab")
        assert person.prompt.text.split() == ["/exec", SLUG]


async def test_a_file_anywhere_is_offered_without_a_further_key_when_it_is_found(
    tickets: Sandbox,
) -> None:
    deep = tickets.root / "src" / "deep"
    deep.mkdir(parents=True)
    (deep / "wanted.py").write_text("x = 1\n")
    async with person_at(tickets) as person:
        await person.press(*"see @wntd")
        await person.until(lambda: completions(person) == ["see @src/deep/wanted.py"])
        assert "@src/deep/wanted.py  6 bytes" in person.screen
        await person.press("tab")
        assert person.prompt.text == "see @src/deep/wanted.py"


async def test_what_a_row_is_stands_beside_it(tickets: Sandbox) -> None:
    async with person_at(tickets) as person:
        await person.press(*"/ex")
        rows = [
            row.split("  ", 1)
            for row in person.screen.split("\n")
            if row.strip().startswith("/ex")
        ]
        assert [(name.strip(), help_.strip()) for name, help_ in rows] == [
            (
                "/exec SLUG [--start-over] [--worktree]",
                "Carry out a ticket's plan, step by st…",
            ),
            ("/exit", "Leave the active agent; where none is active, the shell."),
        ]
        await person.press("down")
        assert person.activity == "Enter takes /exit · Esc back"
        await person.press("escape")
        assert person.activity.startswith("Enter does nothing. There is no command /ex")


@pytest.mark.parametrize(
    ("key", "left"), [("ctrl+u", "first\n/status"), ("ctrl+k", "first\nplease /status")]
)
async def test_a_line_over_several_rows_is_emptied_as_a_whole(
    sandbox: Sandbox, key: str, left: str
) -> None:
    async with person_at(sandbox, size=(20, 12)) as person:
        person.prompt.replace("first\nplease keep it short and simple and so on")
        if key == "ctrl+k":
            person.prompt.area.move_cursor((1, len("please ")))
        await person.press(key)
        await person.type("/status")
        assert person.prompt.text == left


@pytest.mark.parametrize(
    ("keys", "left"),
    [
        (("a", "b", "c", "backspace", "backspace", "x"), "ax"),
        (("a", "b", "left", "x"), "axb"),
        (("a", "b", "ctrl+u", "x"), "x"),
        (("a", "home", "x", "end", "y"), "xay"),
    ],
)
async def test_keys_that_come_at_once_have_their_effect_in_the_order_of_typing(
    sandbox: Sandbox, keys: tuple[str, ...], left: str
) -> None:
    """As they do where the screen was busy for a moment, or the line is slow."""
    async with person_at(sandbox) as person:
        person.at_once(*keys)
        await person.until(lambda: person.prompt.text == left)
