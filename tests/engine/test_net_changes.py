"""Entries are folded per file: what the attempts found and made is known, any other
content that a change starts from is a version of the user's.
"""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdd_agent.engine.ledger_file import EntryKind, LedgerEntry
from cdd_agent.engine.net_changes import NetChange, NetChanges, fold
from cdd_agent.git.diff import Change, TreeEntry
from cdd_agent.tickets.state import Files
from tests.support.tables import each_row

REPLY, TOOL, COMMAND, CHECK = (
    EntryKind.REPLY,
    EntryKind.TOOL,
    EntryKind.COMMAND,
    EntryKind.CHECK,
)
BACK, REFUSED = EntryKind.RESTORED, EntryKind.WITHDRAWN
Part = tuple[EntryKind, str, str]
"""The kind of an entry, and the file before and after it."""


def entry(text: str) -> TreeEntry | None:
    """`-` is no file, `v600` the content `v` with these permissions."""
    content = text.rstrip("0123456789")
    permissions = text.removeprefix(content)
    if text == "-":
        return None
    return TreeEntry("100644", content, int(permissions, 8) if permissions else None)


def text_of(found: TreeEntry | None) -> str:
    if found is None:
        return "-"
    return found.content + (f"{found.permissions:o}" if found.permissions else "")


def entries(parts: Sequence[Part], path: str = "f") -> list[LedgerEntry]:
    """One file in the entries of one attempt."""
    return [
        LedgerEntry(kind, 1, changes=(Change(path, entry(before), entry(after)),))
        for kind, before, after in parts
    ]


def net_of(parts: Sequence[Part]) -> NetChange:
    (change,) = fold(entries(parts)).all
    return change


@each_row(
    ("parts", "before", "after", "is_edited"),
    [
        pytest.param(
            [(REPLY, "v", "a"), (REPLY, "a", "b")], "v", "b", False, id="two attempts"
        ),
        pytest.param(
            [(TOOL, "v", "a"), (COMMAND, "a", "b"), (CHECK, "b", "c")],
            "v",
            "c",
            False,
            id="a tool, a command and a check",
        ),
        pytest.param(
            [(REPLY, "v", "a"), (REPLY, "a", "x"), (BACK, "x", "a"), (REPLY, "a", "b")],
            "v",
            "b",
            False,
            id="the second step's first attempt was restored",
        ),
        pytest.param(
            [(REPLY, "v", "a"), (REPLY, "a", "x"), (BACK, "x", "a")],
            "v",
            "a",
            False,
            id="and there was no other one",
        ),
        pytest.param(
            [(REPLY, "v", "x"), (BACK, "x", "v")],
            "v",
            "v",
            False,
            id="a step that was restored whole",
        ),
        pytest.param(
            [(REPLY, "v", "x"), (BACK, "x", "v"), (REPLY, "v", "x")],
            "v",
            "x",
            False,
            id="interrupted, and continued from the same reply",
        ),
        pytest.param(
            [(REPLY, "-", "a"), (REPLY, "a", "-"), (REPLY, "-", "x"), (BACK, "x", "-")],
            "-",
            "-",
            False,
            id="a file that comes and goes",
        ),
        pytest.param(
            [(REPLY, "v", "a"), (REPLY, "p", "b")], "p", "b", True, id="edited between"
        ),
        pytest.param(
            [(REPLY, "v", "a"), (BACK, "a", "p")], "p", "p", True, id="kept, or merged"
        ),
        pytest.param(
            [(REPLY, "v", "a"), (BACK, "a", "p"), (REPLY, "p", "b")],
            "p",
            "b",
            True,
            id="kept, or merged, and changed again",
        ),
        pytest.param(
            [(REPLY, "v", "a"), (REPLY, "p", "x"), (BACK, "x", "p"), (REPLY, "p", "b")],
            "p",
            "b",
            True,
            id="edited between, and an attempt at that restored",
        ),
        pytest.param(
            [(REPLY, "v", "a"), (REPLY, "a", "b"), (REPLY, "a", "c")],
            "v",
            "c",
            False,
            id="the user reverted a step",
        ),
        pytest.param(
            [(REPLY, "v", "a"), (REPLY, "p", "b"), (REPLY, "v", "c")],
            "v",
            "c",
            False,
            id="the user reverted the edit, and all before it",
        ),
        pytest.param(
            [(REPLY, "v", "a"), (REPLY, "p", "v"), (REPLY, "v", "b")],
            "p",
            "b",
            True,
            id="what is known twice leads to what was last",
        ),
        pytest.param(
            [(REPLY, "v", "v600"), (REPLY, "v640", "v700")],
            "v640",
            "v700",
            True,
            id="permissions are edited, too",
        ),
        pytest.param(
            [(REPLY, "v", "v600"), (BACK, "v600", "v")],
            "v",
            "v",
            False,
            id="permissions restored",
        ),
        pytest.param(
            [(REPLY, "v", "a"), (REPLY, "a", "b"), (REFUSED, "-", "-")],
            "v",
            "a",
            False,
            id="a refused change was not made",
        ),
    ],
)
def test_an_undo_leads_back_to_the_first_known_version_or_to_the_users(
    parts: list[Part], before: str, after: str, is_edited: bool
) -> None:
    net = fold(entries(parts))
    (change,) = net.all
    assert (text_of(change.before), text_of(change.after)) == (before, after)
    assert net.changes == ((change,) if before != after else ())
    assert ("f" in net.edited) is is_edited


@each_row(
    ("parts", "present", "expected"),
    [
        pytest.param([(REPLY, "v", "a")], "a", ("v", "a"), id="as the step left it"),
        pytest.param([(REPLY, "v", "a")], "v", ("v", "v"), id="not written yet"),
        pytest.param([(REPLY, "v", "a")], "p", ("v", "a"), id="edited since"),
        pytest.param([(REPLY, "v", "a")], "-", ("v", "a"), id="deleted since"),
        pytest.param(
            [(REPLY, "v", "a"), (TOOL, "a", "b")], "a", ("v", "a"), id="a kill between"
        ),
        pytest.param(
            [(REPLY, "v", "a"), (REPLY, "p", "b")],
            "a",
            ("v", "a"),
            id="the user reverted the last step and the edit before it",
        ),
        pytest.param(
            [(REPLY, "v", "a"), (BACK, "a", "v")],
            "a",
            ("v", "a"),
            id="a kill while it was restored",
        ),
        pytest.param(
            [(REPLY, "v", "a600")], "a640", ("v", "a600"), id="permissions edited since"
        ),
    ],
)
def test_any_content_that_the_attempts_knew_leads_back(
    parts: list[Part], present: str, expected: tuple[str, str]
) -> None:
    back = net_of(parts).way_back(entry(present))
    assert (text_of(back.before), text_of(back.after)) == expected


def test_a_change_beside_the_steps_files_is_in_no_net_change() -> None:
    other = Change("other", None, entry("x"))
    for kind in (EntryKind.COMMAND, EntryKind.CHECK, EntryKind.FOUND):
        assert fold([LedgerEntry(kind, 1, others=(other,))]) == NetChanges()


def test_an_undo_and_its_reversal_are_no_change_of_an_attempt() -> None:
    made = entries([(REPLY, "v", "a")])
    undone = entries([(EntryKind.UNDONE, "a", "v"), (EntryKind.REDONE, "v", "a")])
    assert fold([*made, *undone]) == fold(made)


def test_files_are_sorted_by_what_became_of_them() -> None:
    net = fold(
        [
            *entries([(REPLY, "-", "a"), (CHECK, "a", "b")], "new"),
            *entries([(REPLY, "v", "a")], "changed"),
            *entries([(REPLY, "v", "-")], "deleted"),
            *entries([(REPLY, "-", "a"), (COMMAND, "a", "-")], "came and went"),
            *entries([(REPLY, "v", "a"), (COMMAND, "a", "v")], "as before"),
        ]
    )
    assert net.files == Files(("new",), ("changed",), ("deleted",))
    assert net.paths == {"new", "changed", "deleted"}
    assert {change.path: change.last for change in net.all} == {
        "as before": COMMAND,
        "came and went": COMMAND,
        "changed": REPLY,
        "deleted": REPLY,
        "new": CHECK,
    }


# --- A property -----------------------------------------------------------------------

WRITE, EDIT, RESTORE, REVERT = "write", "edit", "restore", "revert"
ACTS = st.lists(
    st.tuples(st.sampled_from((WRITE, WRITE, EDIT, RESTORE, REVERT)), st.integers(0)),
    min_size=1,
    max_size=20,
)
Stack = tuple[tuple[str, bool], ...]
"""Versions of a file, the newest last, each with True if it is the user's."""


@given(ACTS)
def test_whatever_happened_an_undo_leads_to_the_users_last_version(
    acts: list[tuple[str, int]],
) -> None:
    """Each content that the attempts met has the stack of versions that led to it. An
    undo takes their own versions off the top.
    """
    present = "v"
    stacks: dict[str, Stack] = {"v": (("v", True),)}
    seen = ["v"]
    made: list[LedgerEntry] = []
    for number, (act, choice) in enumerate(acts):
        match act:
            case "write":
                new = f"ours-{number}-"
                if present not in stacks:
                    stacks[present] = (*stacks[seen[-1]], (present, True))
                stacks[new] = (*stacks[present], (new, False))
                made += entries([(EntryKind.TOOL, present, new)])
                seen += [present, new]
                present = new
            case "edit":
                present = f"mine-{number}-"
            case "revert":
                present = seen[choice % len(seen)]
            case _ if present in stacks and made:
                back = last_of_user(stacks[present])
                made += entries([(EntryKind.RESTORED, present, back)])
                present = back
            case _:
                pass
    if not made:
        return
    (net,) = fold(made).all
    back = net.way_back(entry(present))
    if present in stacks:
        assert text_of(back.before) == last_of_user(stacks[present])
        assert text_of(back.after) == present
    else:
        # the content of the file is an edit: neither side of the change
        assert present not in (text_of(back.before), text_of(back.after))


def last_of_user(stack: Stack) -> str:
    return [content for content, is_users in stack if is_users][-1]
