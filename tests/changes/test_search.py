"""The ladder on which every edit finds its place."""

from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdd_agent.actions.model import MultipleMatchesFoundError, SearchTextNotFoundError
from cdd_agent.changes.draft import FileDraft, as_lines
from cdd_agent.changes.model import Hint, Replacement
from cdd_agent.changes.search import LineForms
from cdd_agent.files.charsets import NOTHING_DECLARED
from cdd_agent.files.text import decode_file, encode_file, lines_of
from tests.support.tables import each_row

FILE = PurePosixPath("a.txt")


def draft_of(content: bytes | str) -> FileDraft:
    data = content.encode() if isinstance(content, str) else content
    return FileDraft(decode_file(FILE, data, NOTHING_DECLARED))


def edited(content: bytes | str, find: str, new: str, hint: Hint = Hint()) -> bytes:  # noqa: B008
    data = content.encode() if isinstance(content, str) else content
    before = decode_file(FILE, data, NOTHING_DECLARED)
    draft = FileDraft(before)
    draft.replace(Replacement("a", as_lines(find), as_lines(new), hint))
    return encode_file(FILE, draft.text, before, NOTHING_DECLARED)


LONG = """\
def total(items):
    # sums up all of the prices
    result = 0
    for item in items:
        result += item
"""


@each_row(
    ("before", "find", "new", "after"),
    [
        ("a\nb\nc\n", "b", "x", "a\nx\nc\n"),
        ("a\nb\nc\n", "b", "", "a\nc\n"),
        ("a\nb", "b", "x", "a\nx"),
        ("a\nb", "b", "x\ny", "a\nx\ny"),
        ("a", "a", "", ""),
        ("a\nab\n", "a", "x", "x\nab\n"),
        (b"a\r\nb\r\nc\r\n", "b\nc", "x\nc", b"a\r\nx\r\nc\r\n"),
        (b"a\r\nb", "a", "x\ny", b"x\r\ny\r\nb"),
        (b"a\r\nb", "b", "b\ny", b"a\r\nb\r\ny"),
        (b"a\r\nb", "b", "", b"a"),
        (b"\xef\xbb\xbfa\nb\n", "a", "x", b"\xef\xbb\xbfx\nb\n"),
        (b"caf\xe9\nb\n", "b", "x", b"caf\xe9\nx\n"),
        ("größe\nπ = 3\n", "π = 3", "π = 4", "größe\nπ = 4\n"),
        ("a  \nb\t\nc\n", "a\nb", "a\nx", "a  \nx\nc\n"),
        ("a\nb\n", "a   \nb", "x\nb", "x\nb\n"),
        (
            "if x:\n    a\n    b\n",
            "a\nb",
            "a\nif y:\n    c",
            "if x:\n    a\n    if y:\n        c\n",
        ),
        ("a\n  b\n", "    a\n      b", "    a\n      c\n    d", "a\n  c\nd\n"),
        ("\tif x:\n\t\ta\n", "if x:\n    a", "if x:\n    b", "\tif x:\n\t\tb\n"),
        (
            "\tif x:\n\t\ta\n",
            "    if x:\n        a",
            "    if x:\n        b",
            "\tif x:\n\t\tb\n",
        ),
        (
            "    if x:\n        a\n",
            "\tif x:\n\t\ta",
            "\tif x:\n\t\tb",
            "    if x:\n        b\n",
        ),
        (
            "  if x:\n    a\n\n    b\n",
            "if x:\n  a\n\n  b",
            "if x:\n  a\n\n  c",
            "  if x:\n    a\n\n    c\n",
        ),
        (
            LONG,
            LONG.replace("sums up all of", "sums all of"),
            LONG.replace("+= item", "+= item.price").replace(
                "sums up all of", "sums all of"
            ),
            LONG.replace("+= item", "+= item.price"),
        ),
        (LONG, LONG.replace("# sums up all", "# Sums up all"), "x", "x\n"),
    ],
)
def test_a_text_is_found(
    before: bytes | str, find: str, new: str, after: bytes | str
) -> None:
    assert edited(before, find, new) == (
        after.encode() if isinstance(after, str) else after
    )


@each_row(
    ("before", "find"),
    [
        ("a\nb\n", "c"),
        ("abc\n", "b"),
        ("a\n  b\n", "  a\n  b"),  # no uniform shift
        ("", "a"),
        ("a\n", "a\nb"),
        (LONG, LONG.replace("result += item", "result -= item")),
        (LONG, LONG.replace("result = 0", "result = 1")),
        (LONG, LONG.replace("for item in items", "while True")),
        ("x = 10\ny = 20\n", "x = 10\ny = 21"),
    ],
)
def test_a_text_is_not_found(before: str, find: str) -> None:
    with pytest.raises(SearchTextNotFoundError):
        edited(before, find, "new")


def test_the_closest_lines_are_told_with_their_numbers() -> None:
    with pytest.raises(SearchTextNotFoundError) as caught:
        edited(LONG, "    result = 0\n    for thing in things:", "x")
    assert "    3  " in caught.value.closest
    assert "    4  " in caught.value.closest


@each_row(
    ("before", "find"),
    [
        ("a\nb\na\n", "a"),
        ("  a\n    a\n", "a"),
        ("a \na  \n", "a"),
        (LONG + LONG, LONG.replace("up all", "all")),
    ],
)
def test_two_places_are_never_decided_between(before: str, find: str) -> None:
    with pytest.raises(MultipleMatchesFoundError):
        edited(before, find, "x")


SUMS_ALL = LONG.replace("sums up all of", "sums all of")
"""Close to `LONG`, and found there."""
ALIKE = LONG.replace("result = 0", "result = 1")
"""As close to it, and yet no match: a number differs in a line that may be changed."""
UNLIKE = """\
def total(items):
    # nothing of this is about prices, or about what they come to
    return functools.reduce(operator.add, [item.price for item in items], 0)
    for item in items:
        result += item
"""
"""Only its first and its last lines are those of `LONG`."""


@each_row("before", [LONG + ALIKE, ALIKE + LONG, ALIKE + LONG + UNLIKE])
def test_a_place_that_is_nearly_as_close_stops_a_close_match(before: str) -> None:
    with pytest.raises(SearchTextNotFoundError):
        edited(before, SUMS_ALL, "x")


@each_row("before", [LONG + UNLIKE, UNLIKE + LONG])
def test_a_place_that_only_begins_alike_does_not(before: str) -> None:
    assert edited(before, SUMS_ALL, "x") == before.replace(LONG, "x\n").encode()


TWO = "total = sum_of_all_the_prices(items)\nreturn total\n"


def test_a_close_match_needs_three_lines() -> None:
    find = TWO.replace("all_the_prices", "all_prices")
    with pytest.raises(SearchTextNotFoundError):
        edited(TWO, find, "x")
    assert edited(f"import os\n{TWO}", f"import os\n{find}", "x") == b"x\n"


@each_row(("quoted", "is_found"), [("collect_rests()", True), ("write_it_down", False)])
def test_a_line_that_is_only_quoted_has_to_be_like_the_files(
    quoted: str, is_found: bool
) -> None:
    long = "".join(
        f"value_number_{number} = compute_the_value_of({number})\n"
        for number in range(10)
    )
    before, find = (
        f"{long}collect_rest()\n{long}last = 1\n",
        f"{long}{quoted}\n{long}last = 1\n",
    )
    new = find.replace("last = 1", "last = 2")
    if is_found:
        assert (
            edited(before, find, new) == before.replace("last = 1", "last = 2").encode()
        )
    else:
        with pytest.raises(SearchTextNotFoundError):
            edited(before, find, new)


def test_a_hint_is_of_the_lines_as_they_were_before_the_edits() -> None:
    draft = draft_of("x\na\nb\na\n")
    draft.replace(Replacement("a", ("x",), ("y", "z")))
    draft.replace(Replacement("a", ("a",), ("c",), Hint(line=4)))
    assert draft.text == "y\nz\na\nb\nc\n"


@each_row("content", [b"ab ab\n", b"ab\nab\n", b"abab", b"x\r\nab ab"])
def test_a_part_of_a_line_with_two_places_is_never_decided_between(
    content: bytes,
) -> None:
    with pytest.raises(MultipleMatchesFoundError):
        draft_of(content).replace_text("ab", "x")


def test_a_better_rung_decides_before_a_worse_one_is_looked_at() -> None:
    assert edited("  a\na\n", "a", "x") == b"  a\nx\n"
    assert edited("a \n  a\n", "a", "x") == b"x\n  a\n"


@each_row(
    ("hint", "after"),
    [
        (Hint(line=1), "x\nb\na\n"),
        (Hint(line=3), "a\nb\nx\n"),
        (Hint(after=("b",)), "a\nb\nx\n"),
    ],
)
def test_a_hint_decides_between_places(hint: Hint, after: str) -> None:
    assert edited("a\nb\na\n", "a", "x", hint) == after.encode()


@each_row("hint", [Hint(line=2), Hint(after=("c",)), Hint(after=("a",))])
def test_a_wrong_hint_decides_nothing(hint: Hint) -> None:
    with pytest.raises(MultipleMatchesFoundError):
        edited("a\nb\na\n", "a", "x", hint)


@each_row(
    ("before", "find", "new"),
    [
        ("x = 2\n", "x = 1", "x = 2"),
        ("import os\nimport sys\n", "import os", "import os\nimport sys"),
        ("import os\nimport sys\n", "import sys", "import os\nimport sys"),
    ],
)
def test_what_is_done_already_is_not_done_again(
    before: str, find: str, new: str
) -> None:
    draft = draft_of(before)
    assert draft.replace(Replacement("a", as_lines(find), as_lines(new))) is False
    assert draft.replace_text(find, new) is False
    assert draft.text == before


@each_row(
    ("before", "find", "new", "after"),
    [
        (
            "for x in y:\n    f(x)\ng(x)\n",
            "    f(x)",
            "    f(x)\n    g(x)",
            "for x in y:\n    f(x)\n    g(x)\ng(x)\n",
        ),
        ("a:\n  b: 1\n", "a:", "a:\nb: 1", "a:\nb: 1\n  b: 1\n"),
        # the new lines are shifted as the lines to find are
        ("  f()\ng()\n", "f()", "f()\ng()", "  f()\n  g()\ng()\n"),
    ],
)
def test_what_is_there_with_another_indentation_is_not_done(
    before: str, find: str, new: str, after: str
) -> None:
    assert edited(before, find, new) == after.encode()


@each_row(("before", "new"), [("}\n", "}"), ("y\n", ""), ("x = 2\nx = 2\n", "x = 2")])
def test_what_says_nothing_is_no_sign_that_it_was_done(before: str, new: str) -> None:
    with pytest.raises(SearchTextNotFoundError):
        edited(before, "x = 1\n}", new)


texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=200)


@given(st.binary(max_size=300))
def test_a_file_that_is_not_edited_stays_byte_for_byte(content: bytes) -> None:
    assert draft_of(content).text == decode_file(FILE, content, NOTHING_DECLARED).text


@given(texts, texts, texts)
def test_an_edit_is_done_or_told_and_never_a_bug(
    content: str, find: str, new: str
) -> None:
    draft = draft_of(content)
    before = draft.text
    try:
        changed = draft.replace(Replacement("a", as_lines(find), as_lines(new)))
    except (SearchTextNotFoundError, MultipleMatchesFoundError):
        changed = False
    assert changed or draft.text == before
    assert draft.text == "".join(lines_of(draft.text))
    forms = LineForms(draft.lines)
    assert (draft._file.forms.bare, draft._file.forms.ended) == (
        forms.bare,
        forms.ended,
    )
