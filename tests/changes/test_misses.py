"""A text that is not in a file is answered with the difference, by its kind."""

from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdd_agent.actions.model import MultipleMatchesFoundError, SearchTextNotFoundError
from cdd_agent.changes.build import change_set, edit
from cdd_agent.changes.draft import FileDraft, as_lines
from cdd_agent.changes.model import BY_CALL, Replacement, ReplyRefused, TextReplacement
from cdd_agent.changes.policy import EditPolicy
from cdd_agent.files.charsets import NOTHING_DECLARED
from cdd_agent.files.text import decode_file
from tests.support.tables import each_row

FILE = """\
import os

def total(items, price):
    result = 0
    for item in items:
        result += item * price
    return result

def other():
    return 1
"""


def difference(content: str, find: str, *earlier: tuple[str, str]) -> str:
    before = decode_file(PurePosixPath("a"), content.encode(), NOTHING_DECLARED)
    draft = FileDraft(before)
    for old, new in earlier:
        draft.replace(Replacement("a", as_lines(old), as_lines(new)))
    with pytest.raises(SearchTextNotFoundError) as caught:
        draft.replace(Replacement("a", as_lines(find), ("something else",)))
    return caught.value.difference


KINDS: dict[str, tuple[str, str, str]] = {
    # the file, the text to find, what is named
    "a no-break space, and a slip in another line": (
        "a = 1\nb\u00a0= 2\nc = 3\nd = 4\n",
        "a = 1\nb = 2\nc = 4",
        "Line 2 TEXT has SPACE (U+0020) where line 2 FILE has NO-BREAK SPACE (U+00A0)",
    ),
    "a character that cannot be seen": (
        "a = 1\nb = \u200b2\nc = 3\n",
        "a = 1\nb = 2\nc = 5",
        "Line 2 TEXT has nothing where line 2 FILE has ZERO WIDTH SPACE (U+200B)",
    ),
    "quotes": (
        "a = 1\nb = “x”\nc = 3\n",
        'a = 1\nb = "x"\nc = 5',
        (
            "Line 2 TEXT has QUOTATION MARK (U+0022) where line 2 FILE has LEFT DOUBLE"
            " QUOTATION MARK (U+201C)"
        ),
    ),
    "an accent of its own": (
        "a = 1\nu\u0308 = 2\nc = 3\n",
        "a = 1\nü = 2\nc = 5",
        (
            "Line 2 TEXT has LATIN SMALL LETTER U WITH DIAERESIS (U+00FC) where line 2"
            " FILE has LATIN SMALL LETTER U (U+0075) and COMBINING DIAERESIS (U+0308)"
        ),
    ),
    "indentation": (
        FILE,
        "    for item in items:\n    result += item * price\n    return result",
        "Line 2 TEXT begins with 4 spaces, line 6 FILE with 8 spaces",
    ),
    "a tab for spaces": (
        "def f():\n\ta = 1\n        b = 2\n",
        "def f():\n\ta = 1\n\tb = 2",
        "Line 3 TEXT begins with 1 tab, line 3 FILE with 8 spaces",
    ),
    "other blanks in a line": (
        FILE,
        "    result =  0\n    for item in items:",
        "Line 1 TEXT has 2 spaces where line 4 FILE has 1 space",
    ),
    "a tab in a line": (
        "a\tb\nc\nd\n",
        "a b\nc",
        "Line 1 TEXT has 1 space where line 1 FILE has 1 tab",
    ),
    "a blank too few": (
        FILE,
        "    result= 0\n    for item in items:",
        "Line 1 TEXT has nothing where line 4 FILE has 1 space",
    ),
    "case": (
        FILE,
        "    Result = 0\n    for item in items:",
        "Line 1 TEXT has `Result` where line 4 FILE has `result`: the case differs",
    ),
    "a slip": (
        FILE,
        "    for item in items:\n        result += item * prcie",
        "Line 2 TEXT has `prcie` where line 6 FILE has `price`",
    ),
    "a slip in the only line": (
        FILE,
        "        result += item * prices",
        "Line 1 TEXT has `prices` where line 6 FILE has `price`",
    ),
    "another number": (
        FILE,
        "    result = 1\n    for item in items:",
        "Line 1 TEXT has `1` where line 4 FILE has `0`",
    ),
    "a missing line": (
        FILE,
        "    result = 0\n        result += item * price\n    return result",
        "After line 1 TEXT, the file has another line: line 5, `for item in items:`",
    ),
    "a missing blank line": (
        FILE,
        "    return result\ndef other():\n    return 1",
        "After line 1 TEXT, the file has another line: line 8, a blank line",
    ),
    "an additional line": (
        FILE,
        "    result = 0\n    log(items)\n    for item in items:",
        "Line 2 TEXT, `log(items)`, is not in the file at line 5",
    ),
    "an additional first line": (
        FILE,
        "@cache\ndef total(items, price):\n    result = 0",
        "Line 1 TEXT is `@cache`, and line 2 FILE is a blank line",
    ),
    "a stale line": (
        FILE,
        "    for item in items:\n        sub -= do_it(7)\n    return result",
        "Line 2 TEXT is `sub -= do_it(7)`, and line 6 FILE is `result += item * price`",
    ),
    "a part of a line": (
        FILE,
        "item * price",
        "Line 1 TEXT, `item * price`, is only a part of line 6 FILE",
    ),
    "a part of a line among lines": (
        FILE,
        "    result = 0\n    for item in",
        "Line 2 TEXT, `for item in`, is only a part of line 5 FILE",
    ),
    "nothing alike": (FILE, "while True:\n    sleep(3)", ""),
    "an empty file": ("", "x", ""),
}


@each_row("case", KINDS.values(), ids=list(KINDS))
def test_the_difference_is_named(case: tuple[str, str, str]) -> None:
    content, find, expected = case
    named = expected.replace("TEXT", "of the text to find")
    assert difference(content, find) == named.replace("FILE", "of the file")


def test_an_earlier_edit_of_the_reply_is_named() -> None:
    edits = ("    result = 0", "    result = 1")
    find = "    result = 0\n    for item in items:"
    expected = "An earlier edit of this reply has changed these lines"
    assert difference(FILE, find, edits) == expected


def test_it_is_in_what_the_model_gets(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(FILE)
    find = "    for item in items:\n        result += item * prcie"
    named = "`prcie` where line 6 of the file has `price`"
    with pytest.raises(ReplyRefused) as refused:
        change_set(
            tmp_path,
            [Replacement("a.py", as_lines(find), ("x",))],
            EditPolicy(seen=None),
        )
    assert named in refused.value.message
    assert refused.value.lines == {"a.py": ((1, 17),)}
    with pytest.raises(ReplyRefused) as refused:
        change_set(
            tmp_path,
            [TextReplacement("a.py", find, "x")],
            EditPolicy(seen=None, parts=BY_CALL),
        )
    assert named in refused.value.message
    with pytest.raises(SearchTextNotFoundError) as missed:
        edit(tmp_path, "a.py", find, "x", lambda path: False)
    assert named in missed.value.message


def test_a_file_that_models_do_not_see_is_not_quoted(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("KEY=abcdef\nOTHER=1\n")
    find = "KEY=abcdeg\nOTHER=1"
    with pytest.raises(ReplyRefused) as refused:
        change_set(tmp_path, [TextReplacement(".env", find, "x")], EditPolicy(None))
    assert "abcdef" not in refused.value.message
    with pytest.raises(SearchTextNotFoundError) as missed:
        edit(tmp_path, ".env", find, "x", lambda path: False)
    assert "abcdef" not in missed.value.message


LINES = st.lists(
    st.text(st.sampled_from('ab(1 \t\u00a0“"üu\u0308\r\x0c'), max_size=6), max_size=8
)


@given(LINES, LINES)
def test_any_miss_is_described(lines: list[str], find: list[str]) -> None:
    content = "\n".join(lines)
    before = decode_file(PurePosixPath("a"), content.encode(), NOTHING_DECLARED)
    missed: SearchTextNotFoundError | None = None
    try:
        FileDraft(before).replace(Replacement("a", tuple(find), ("z",)))
    except SearchTextNotFoundError as error:
        missed = error
    except MultipleMatchesFoundError:
        return
    if missed is not None:
        assert "\n" not in missed.difference
        assert missed.difference or not missed.closest
