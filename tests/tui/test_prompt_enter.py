"""Enter in the prompt: it takes the highlighted completion, or sends the line as it is
typed.
"""

from pathlib import Path

from textual.widgets import OptionList

from tests.tui.prompts import prompting

NAMES = {
    "": ("/exec", "/exit", "/help", "/list", "/overplan", "/plan"),
    "/exec ": ("bug-pay", "feature-pay", "feature-words"),
    "/plan ": ("bug-pay",),
    "/list ": ("bug", "feature"),
    "see ": ("@src/", "@notes.md"),
    "/model ": ("openai/a", "openai/b"),
}

ROWS = [
    # typed, keys before Enter, highlighted then, sent, left in the prompt
    # the name of a command
    ("/li", (), "/list", ["/list"], ""),
    ("/LI", (), None, ["/LI"], ""),
    ("/list", (), "/list", ["/list"], ""),
    ("/exi", (), "/exit", ["/exit"], ""),
    ("/ex", (), "/exec", [], "/exec "),
    ("/ex", ("down",), "/exit", ["/exit"], ""),
    ("/ex", ("up",), "/exit", ["/exit"], ""),
    ("/ex", ("down", "up"), "/exec", [], "/exec "),
    ("/exec", (), "/exec", [], "/exec "),
    ("/plan", (), "/plan", [], "/plan "),
    ("/ex", ("escape",), None, ["/ex"], ""),
    ("/exec", ("escape",), None, ["/exec"], ""),
    ("/li", ("tab",), None, ["/list "], ""),
    ("/list", ("tab", "down"), "bug", [], "/list bug"),
    # nothing is typed, or it is in the middle of a name
    ("/", (), None, ["/"], ""),
    ("/", ("down",), "/exec", [], "/exec "),
    ("/xit", (), None, ["/xit"], ""),
    ("/xit", ("down",), "/exit", ["/exit"], ""),
    ("/none", (), None, ["/none"], ""),
    # an argument, a file, a model, a setting
    ("/exec ", (), None, ["/exec "], ""),
    ("/exec ", ("down",), "bug-pay", [], "/exec bug-pay"),
    ("/exec ", ("up",), "feature-words", [], "/exec feature-words"),
    ("/exec fea", (), None, ["/exec fea"], ""),
    ("/exec fea", ("down",), "feature-pay", [], "/exec feature-pay"),
    ("/exec fea", ("tab", "down", "down"), "feature-words", [], "/exec feature-words"),
    ("/exec fea", ("down", "escape"), None, ["/exec fea"], ""),
    ("/exec bug-pay", (), None, ["/exec bug-pay"], ""),
    ("/list b", (), None, ["/list b"], ""),
    ("/list b", ("down",), "bug", [], "/list bug"),
    ("see @n", (), None, ["see @n"], ""),
    ("see @n", ("down",), "@notes.md", [], "see @notes.md"),
    ("/model o", ("down", "down"), "openai/b", [], "/model openai/b"),
    # a line without completions
    ("hello", (), None, ["hello"], ""),
]


async def test_enter_takes_what_is_highlighted_and_else_sends_the_line(
    tmp_path: Path,
) -> None:
    wrong = []
    async with prompting(tmp_path, names=NAMES) as typist:
        completions = typist.prompt.query_one(OptionList)
        for typed, keys, highlighted, sent, left in ROWS:
            typist.sent.clear()
            typist.prompt.replace("")
            await typist.press(*typed, *keys)
            offers, index = typist.prompt.offers, completions.highlighted
            chosen = offers[index].shown if offers and index is not None else None
            hint, line = typist.prompt.doing, typist.prompt.line_to_send
            await typist.press("enter")
            found = (chosen, typist.sent, typist.prompt.text)
            is_said = hint.startswith("Enter: insert") if left else [line] == sent
            if found != (highlighted, sent, left) or not is_said:
                wrong.append((typed, keys, found, hint))
    assert wrong == []


async def test_letters_that_come_at_once_with_enter_are_completed_first(
    tmp_path: Path,
) -> None:
    async with prompting(tmp_path, names=NAMES) as typist:
        typist.at_once(*"/exi", "enter")
        await typist.until(lambda: typist.sent == ["/exit"])
        typist.at_once(*"/ex", *"ec bug-pay", "enter")
        await typist.until(lambda: typist.sent == ["/exit", "/exec bug-pay"])


async def test_an_enter_that_comes_too_soon_changes_nothing(tmp_path: Path) -> None:
    async with prompting(tmp_path, names=NAMES) as typist:
        typist.app.is_too_soon = True
        await typist.press(*"/list", "enter")
        assert (typist.sent, typist.prompt.text) == ([], "/list")
        # what is only inserted does no harm
        typist.prompt.replace("")
        await typist.press(*"/ex", "enter")
        assert typist.prompt.text == "/exec "


SUGGESTED = "/plan feature-pay"
EDITS = [
    # keys, left in the prompt, still a suggestion
    ((), SUGGESTED, True),
    (("x",), "x", False),
    (("/", "h"), "/h", False),
    (("escape",), "", False),
    (("right", "x"), f"{SUGGESTED}x", False),
    (("end", "x"), f"{SUGGESTED}x", False),
    (("backspace",), SUGGESTED[:-1], False),
    (("home", "x"), f"x{SUGGESTED}", False),
    (("up",), "earlier", False),
    (("up", "down"), "", False),
    (("ctrl+r", "escape"), "", False),
]


async def test_a_suggested_line_is_replaced_removed_edited_or_sent(
    tmp_path: Path,
) -> None:
    wrong = []
    async with prompting(tmp_path) as typist:
        await typist.send("earlier")
        for keys, left, is_suggesting in EDITS:
            typist.prompt.suggest(SUGGESTED)
            await typist.press(*keys)
            found = (typist.prompt.text, typist.prompt.is_suggesting)
            if found != (left, is_suggesting):
                wrong.append((keys, found))
            typist.prompt.replace("")
        assert wrong == []
        typist.prompt.suggest(SUGGESTED)
        await typist.press("enter")
        assert typist.sent == ["earlier", SUGGESTED]


async def test_a_suggestion_is_no_draft_and_makes_room_for_one(tmp_path: Path) -> None:
    async with prompting(tmp_path) as typist:
        typist.prompt.suggest(SUGGESTED)
        assert not typist.prompt.is_typed
        typist.prompt.put_away()
        await typist.press("up")
        assert typist.prompt.text == ""

        typist.prompt.suggest(SUGGESTED)
        typist.prompt.bring_back(["not sent"])
        assert typist.prompt.text == "not sent"
        typist.prompt.suggest(SUGGESTED)
        typist.prompt.keep_drafts()
    async with prompting(tmp_path) as typist:
        await typist.press("up")
        assert typist.prompt.text == ""
