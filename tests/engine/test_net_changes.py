"""Segments are folded per file: what the attempts found and left is known, anything
else in between is a person's.
"""

import pytest

from cdd_agent.engine.net_changes import Between, Segment, fold
from cdd_agent.git.checkpoint import Checkpoint
from cdd_agent.git.diff import Change, TreeEntry
from tests.support.tables import each_row

OURS, BETWEEN, OWN = "attempt", "between", "restored by the journal"


def entry(text: str) -> TreeEntry | None:
    """`-` is no file, `v600` the content `v` with these permissions."""
    content, permissions = (
        text.rstrip("0123456789"),
        text.lstrip("abcdefghijklmnopqrstuvwxyz-"),
    )
    return (
        None
        if text == "-"
        else TreeEntry("100644", content, int(permissions, 8) if permissions else None)
    )


def segments(*parts: tuple[str, str, str]) -> list[tuple[Segment, tuple[Change, ...]]]:
    """Of one file: whose they are, and what it was before and after."""
    made = []
    for number, (whose, before, after) in enumerate(parts):
        changes = () if before == after else (Change("f", entry(before), entry(after)),)
        own = ("f",) if whose == OWN else ()
        first, second = (
            Checkpoint(f"{number}", f"{number}:{before}"),
            Checkpoint(f"{number + 1}", f"{number}:{after}"),
        )
        kind = Between if whose == BETWEEN else Segment
        made.append((kind(first, second, own), changes))
    return made


@each_row(
    ("parts", "before", "after", "is_edited"),
    [
        pytest.param(
            [(OURS, "v", "a"), (OURS, "a", "b")], "v", "b", False, id="two attempts"
        ),
        pytest.param(
            [(OURS, "v", "a"), (OURS, "a", "x"), (BETWEEN, "x", "a"), (OURS, "a", "b")],
            "v",
            "b",
            False,
            id="the second step's first attempt was restored",
        ),
        pytest.param(
            [(OURS, "v", "a"), (OURS, "a", "x"), (BETWEEN, "x", "a")],
            "v",
            "a",
            False,
            id="and there was no other one",
        ),
        pytest.param(
            [(OURS, "v", "x"), (BETWEEN, "x", "v")],
            "v",
            "v",
            False,
            id="a step that was restored whole",
        ),
        pytest.param(
            [(OURS, "-", "a"), (OURS, "a", "-"), (OURS, "-", "x"), (BETWEEN, "x", "-")],
            "-",
            "-",
            False,
            id="a file that comes and goes",
        ),
        pytest.param(
            [(OURS, "v", "a"), (BETWEEN, "a", "p"), (OURS, "p", "b")],
            "p",
            "b",
            True,
            id="edited in between",
        ),
        pytest.param(
            [(OURS, "v", "a"), (BETWEEN, "a", "p")], "p", "p", True, id="edited last"
        ),
        pytest.param(
            [
                (OURS, "v", "a"),
                (BETWEEN, "a", "p"),
                (OURS, "p", "x"),
                (BETWEEN, "x", "p"),
                (OURS, "p", "b"),
            ],
            "p",
            "b",
            True,
            id="edited in between, and an attempt at that restored",
        ),
        pytest.param(
            [(OURS, "v", "a"), (OURS, "a", "b"), (BETWEEN, "b", "a")],
            "v",
            "a",
            False,
            id="a person took a step back",
        ),
        pytest.param(
            [
                (OURS, "v", "a"),
                (BETWEEN, "a", "p"),
                (BETWEEN, "p", "v"),
                (OURS, "v", "b"),
            ],
            "v",
            "b",
            False,
            id="a person took the edit back, and all before it",
        ),
        pytest.param(
            [
                (OURS, "v", "-"),
                (BETWEEN, "-", "p"),
                (OURS, "p", "-"),
                (OURS, "-", "x"),
                (BETWEEN, "x", "-"),
            ],
            "p",
            "-",
            True,
            id="what is known twice leads to what was last",
        ),
        pytest.param(
            [(BETWEEN, "v", "p"), (OURS, "p", "b")],
            "p",
            "b",
            False,
            id="edited before it all",
        ),
        pytest.param(
            [(OURS, "v", "a"), (OURS, "p", "b")],
            "p",
            "b",
            True,
            id="an edit that no checkpoint shows",
        ),
        pytest.param(
            [(OURS, "v", "a"), (OWN, "a", "x"), (BETWEEN, "x", "a"), (OURS, "a", "b")],
            "v",
            "b",
            False,
            id="interrupted and restored",
        ),
        pytest.param(
            [(OWN, "v", "x"), (BETWEEN, "x", "v")],
            "v",
            "v",
            False,
            id="only interrupted",
        ),
        pytest.param(
            [(OWN, "v", "p")], "p", "p", True, id="interrupted, and kept as a person's"
        ),
        pytest.param(
            [(OURS, "v", "v600"), (BETWEEN, "v600", "v640"), (OURS, "v640", "v700")],
            "v640",
            "v700",
            True,
            id="permissions are edited, too",
        ),
        pytest.param(
            [(OURS, "v", "v600"), (BETWEEN, "v600", "v")],
            "v",
            "v",
            False,
            id="permissions restored",
        ),
    ],
)
def test_an_undo_leads_back_to_the_first_known_version_or_to_a_persons(
    parts: list[tuple[str, str, str]], before: str, after: str, is_edited: bool
) -> None:
    net = fold(segments(*parts))
    exact = [(change.before, change.after) for change in net.changes]
    assert list(map(contents, exact)) == (
        [contents((entry(before), entry(after)))] if before != after else []
    )
    assert ("f" in net.edited) is is_edited
    assert net.since["f"].id.endswith(f":{before}")


def contents(entries: tuple[TreeEntry | None, TreeEntry | None]) -> list[object]:
    return [found and (found.content, found.permissions) for found in entries]


def test_a_file_that_no_attempt_touched_is_nobodys_business() -> None:
    net = fold(segments((BETWEEN, "v", "p"), (BETWEEN, "p", "q")))
    assert (net.changes, net.edited, net.since) == ((), frozenset(), {})
