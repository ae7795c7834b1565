"""A file that was shown in part: only what was shown of it is ever changed."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdd_agent.changes.build import change_set
from cdd_agent.changes.change_set import ChangeSet
from cdd_agent.changes.excerpts import find_changed_range, find_seen_after
from cdd_agent.changes.model import (
    BY_CALL,
    Deletion,
    Edit,
    Renaming,
    Replacement,
    ReplyRefused,
    TextReplacement,
    WholeFile,
)
from cdd_agent.changes.parse import parse_reply
from cdd_agent.changes.policy import EditPolicy
from cdd_agent.files.atomic import digest
from cdd_agent.files.line_ranges import Ranges, describe_ranges, join_ranges
from tests.support.examples import count_examples
from tests.support.tables import each_row

TEN = "".join(f"line {number}\n" for number in range(1, 11))
SHOWN: Ranges = ((1, 2), (5, 7))


def done(
    root: Path, *edits: Edit, shown: Ranges = SHOWN, before: str = TEN
) -> ChangeSet:
    (root / "a.txt").write_text(before)
    terms = EditPolicy(
        {"a.txt": digest(before.encode())},
        {"a.txt": shown},
        may_shrink=lambda path: True,
    )
    return change_set(root, edits, terms)


def after(changes: ChangeSet) -> str:
    (change,) = changes.changes
    return (change.after or b"").decode()


@each_row(
    ("find", "new"),
    [
        ("line 5", "five"),
        ("line 5\nline 6\nline 7", ""),
        ("line 1\nline 2", "one\nline 2"),
        ("line 2", "line 2\nand more"),
        ("line 6\nline 7\nline 8", "six\nline 7\nline 8"),
    ],
)
def test_what_was_shown_can_be_changed(tmp_path: Path, find: str, new: str) -> None:
    changes = done(
        tmp_path,
        Replacement(
            "a.txt", tuple(find.split("\n")), tuple(new.split("\n") if new else ())
        ),
    )
    assert after(changes) == TEN.replace(find + "\n", new + "\n" if new else "")
    assert after(done(tmp_path, TextReplacement("a.txt", find, new))) == TEN.replace(
        find, new
    )


@each_row(
    ("find", "new", "lines"),
    [
        ("line 3", "three", ((3, 3),)),
        ("line 4", "four", ((4, 4),)),
        ("line 7\nline 8", "seven", ((7, 8),)),
        ("line 2\nline 3\nline 4\nline 5", "none", ((2, 5),)),
        ("line 9", "line 9\nand more", ((9, 10),)),
        ("line 10", "", ((10, 10),)),
    ],
)
def test_nothing_else_can_and_what_the_model_would_have_to_see_is_known(
    tmp_path: Path, find: str, new: str, lines: Ranges
) -> None:
    for edit in (
        Replacement(
            "a.txt", tuple(find.split("\n")), tuple(new.split("\n") if new else ())
        ),
        TextReplacement("a.txt", find + "\n", new + "\n" if new else ""),
    ):
        with pytest.raises(ReplyRefused) as refused:
            done(tmp_path, edit)
        assert refused.value.unseen == {"a.txt"}
        assert refused.value.lines == {"a.txt": lines}
        assert "lines 1 to 2, 5 to 7" in refused.value.message


def test_it_is_not_replaced_whole_nor_deleted_and_keeps_the_rule_under_another_name(
    tmp_path: Path,
) -> None:
    for edit in (WholeFile("a.txt", TEN.replace("line 5", "five")), Deletion("a.txt")):
        with pytest.raises(ReplyRefused) as refused:
            done(tmp_path, edit)
        assert refused.value.unseen == {"a.txt"}
        assert "in part" in refused.value.message or isinstance(edit, Deletion)
    assert not done(tmp_path, WholeFile("a.txt", TEN)).changes
    back = Renaming("b.txt", "a.txt")
    assert done(
        tmp_path,
        Renaming("a.txt", "b.txt"),
        back,
        Replacement("a.txt", ("line 6",), ("six",)),
    ).changes
    rename, beyond = (
        Renaming("a.txt", "b.txt"),
        Replacement("b.txt", ("line 9",), ("nine",)),
    )
    assert done(tmp_path, rename).changes
    assert done(tmp_path, rename, Replacement("b.txt", ("line 6",), ("six",))).changes
    with pytest.raises(ReplyRefused):
        done(tmp_path, rename, beyond)


def test_of_another_content_nothing_was_shown(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(TEN)
    terms = EditPolicy({"a.txt": digest(b"another")}, {"a.txt": SHOWN})
    with pytest.raises(ReplyRefused) as refused:
        change_set(tmp_path, [Replacement("a.txt", ("line 5",), ("five",))], terms)
    assert refused.value.unseen == {"a.txt"}


def test_who_calls_tools_is_told_to_read_them(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(TEN)
    terms = EditPolicy({"a.txt": digest(TEN.encode())}, {"a.txt": SHOWN}, parts=BY_CALL)
    with pytest.raises(ReplyRefused, match="Read"):
        change_set(tmp_path, [TextReplacement("a.txt", "line 9", "nine")], terms)


@each_row("form", ["{:>5}  {}", "{}: {}", "{} | {}", "{}\t{}", "  {}│{}"])
def test_numbers_that_a_model_has_copied_do_no_harm(tmp_path: Path, form: str) -> None:
    body = "def f():\n    a = 1\n\n    return a\n"
    (tmp_path / "a.py").write_text("import os\n\n\n" + body)
    told = "\n".join(
        form.format(number, line) for number, line in enumerate(body.splitlines(), 4)
    )
    new = told.replace("a = 1", "a = 2")
    reply = f"a.py\n<<<<<<< SEARCH\n{told}\n=======\n{new}\n>>>>>>> REPLACE\n"
    changes = change_set(tmp_path, parse_reply(reply).edits, EditPolicy(seen=None))
    assert after(changes) == "import os\n\n\n" + body.replace("a = 1", "a = 2")
    wrong = reply.replace("4", "5", 1)
    with pytest.raises(ReplyRefused):
        change_set(tmp_path, parse_reply(wrong).edits, EditPolicy(seen=None))


def test_numbers_that_are_the_files_own_stay(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1 apple\n2 pears\n")
    edit = Replacement("a.txt", ("1 apple", "2 pears"), ("1 apple", "2 plums"))
    assert (
        after(change_set(tmp_path, [edit], EditPolicy(seen=None)))
        == "1 apple\n2 plums\n"
    )
    (tmp_path / "a.txt").write_text("x\napple\npears\n")
    edit = Replacement("a.txt", ("1 apple", "2 pears"), ("1 plum",))
    with pytest.raises(ReplyRefused):
        change_set(tmp_path, [edit], EditPolicy(seen=None))


def test_ranges_in_words() -> None:
    assert (
        describe_ranges(join_ranges([(5, 7), (1, 2), (3, 3), (9, 8)]))
        == "lines 1 to 3, 5 to 7"
    )
    assert describe_ranges(((4, 4),)) == "line 4"
    assert describe_ranges(()) == ""


def test_what_was_changed_is_known_where_it_is_now() -> None:
    assert find_seen_after(TEN, TEN.replace("line 2\n", "a\nb\n"), SHOWN) == (
        (1, 3),
        (6, 8),
    )
    assert find_seen_after(TEN, TEN.replace("line 1\nline 2\n", ""), SHOWN) == ((3, 5),)
    assert find_seen_after("x\nb\ny\n", "ab\ny\n", ((1, 1), (3, 3))) is None
    assert find_changed_range("a\nb\n", "a\nx\nb\n") == (1, 2)


# ---------------------------------------------------------------------- the rule itself

LINES = st.lists(
    st.sampled_from(["a", "b", "  b", "", "}", "def f():", "    return 1"]),
    min_size=1,
    max_size=14,
)


@st.composite
def stories(draw: st.DrawFn) -> tuple[list[str], Ranges, list[Edit]]:
    """A file, what of it was shown, and edits of any of its lines."""
    lines = draw(LINES)
    place = st.integers(1, len(lines))
    shown = join_ranges(
        tuple(sorted(pair))  # type: ignore[misc]
        for pair in draw(st.lists(st.tuples(place, place), max_size=3))
    )
    edits: list[Edit] = []
    for _ in range(draw(st.integers(1, 3))):
        first, last = sorted((draw(place), draw(place)))
        find, new = tuple(lines[first - 1 : last]), tuple(draw(LINES)[:4])
        kind = draw(st.sampled_from(["lines", "text", "whole", "rename"]))
        if kind == "lines":
            edits.append(Replacement("a.txt", find, new))
        elif kind == "text":
            edits.append(
                TextReplacement(
                    "a.txt",
                    "\n".join(find)[draw(st.integers(0, 2)) :] or "a",
                    "\n".join(new),
                )
            )
        elif kind == "whole":
            edits.append(WholeFile("a.txt", "\n".join(new) + "\n"))
        else:
            edits.append(Renaming("a.txt", "b.txt"))
    return lines, shown, edits


@settings(max_examples=count_examples(300), deadline=None)
@given(stories(), st.booleans())
def test_no_line_that_was_not_shown_is_ever_changed(
    story: tuple[list[str], Ranges, list[Edit]], is_ended: bool
) -> None:
    lines, shown, edits = story
    before = "\n".join(lines) + ("\n" if is_ended else "")
    with tempfile.TemporaryDirectory() as folder:
        try:
            changes = done(Path(folder), *edits, shown=shown, before=before)
        except ReplyRefused:
            return
    is_seen = {number for first, last in shown for number in range(first, last + 1)}
    groups, group = list[list[str]](), list[str]()
    for number, line in enumerate(before.split("\n"), 1):
        if number in is_seen or (number > len(lines) and not line):
            groups.append(group)
            group = []
        else:
            group.append(line)
    for change in changes.changes:
        if change.after is None:
            continue
        left = change.after.decode().split("\n")
        for unseen in filter(None, (*groups, group)):
            places = [
                at for at in range(len(left)) if left[at : at + len(unseen)] == unseen
            ]
            assert places, (unseen, left)
            left = left[places[0] + len(unseen) :]
