"""The leave that a plan's fields give a step."""

from pathlib import Path

import pytest

from cdd_agent.tickets.declared_files import declare_files
from cdd_agent.tickets.plan import AffectedFile, MayFail, PlanStep
from cdd_agent.verification.permissions import (
    FailureLeave,
    FailureLeaves,
    Permissions,
)
from cdd_agent.verification.test_id import TestId
from tests.support.tables import each_row

HERE = Path.cwd()
TEST = TestId.parse("tests/unit/test_user.py::TestLogin::test_old[1]")


@each_row(
    ("entry", "is_covered"),
    [
        ("tests/unit/test_user.py::TestLogin::test_old[1]", True),
        ("tests/unit/test_user.py::TestLogin::test_old", True),
        ("tests/unit/test_user.py::TestLogin", True),
        ("./tests/unit/test_user.py", True),
        ("tests\\unit\\test_user.py", True),
        ("test_user.py::TestLogin::test_old", True),
        ("test_user.py", True),
        ("TestLogin::test_old", True),
        ("TestLogin.test_old", True),
        ("tests.unit.test_user.TestLogin.test_old", True),
        ("test_user.TestLogin", True),
        ("TestLogin", True),
        ("test_old", True),
        ("`test_old()`", True),
        ("test_old[1]", True),
        ("tests/unit/", True),
        ("tests/unit", True),
        ("tests/", True),
        ("tests/unit/test_user.py::TestLogin::test_old[2]", False),
        ("test_old[2]", False),
        ("tests/unit/test_user.py::test_old", False),
        ("tests/test_user.py", False),
        ("unit/test_user.py", False),
        ("unit/", False),
        ("test_older", False),
        ("old", False),
        ("TestLogin::test", False),
        ("test_other.py::test_old", False),
        ("", False),
    ],
)
def test_an_entry_is_an_id_a_name_a_file_or_a_folder(
    entry: str, is_covered: bool
) -> None:
    assert Permissions(removes=(entry,)).may_remove(TEST) is is_covered
    assert FailureLeave(entry, "1").covers(TEST) is is_covered
    assert Permissions(removes=("another", entry)).may_remove(TEST) is is_covered


@each_row("removes", [None, ()])
def test_without_entries_no_test_may_be_removed(
    removes: tuple[str, ...] | None,
) -> None:
    step = PlanStep(
        1,
        "Remove test_old",
        "Remove `tests/unit/test_user.py`, and skip TestLogin.",
        files_affected=(AffectedFile("tests/unit/test_user.py", "extended"),),
        removes_tests=removes,
    )
    permissions = Permissions.of_step(
        step, declare_files(HERE, step), "Delete test_old."
    )
    assert not permissions.may_remove(TEST)


def test_a_test_that_the_user_allowed_may_be_removed() -> None:
    other = TestId.parse("tests/unit/test_user.py::test_other")
    for name in (str(TEST), str(TEST.function)):
        permissions = Permissions(allowed=frozenset({name}))
        assert permissions.may_remove(TEST)
        assert not permissions.may_remove(other)


@each_row(
    ("file", "path", "is_declared", "may_be_deleted"),
    [
        (AffectedFile("src/a.py"), "src/a.py", True, True),
        (AffectedFile("./src/a.py"), "src/a.py", True, True),
        (AffectedFile("src/a.py:3-9"), "src/a.py", True, True),
        (AffectedFile("src/a.py"), "a.py", False, False),
        (AffectedFile("src/"), "src/x/a.py", True, False),
        (AffectedFile("src/", "deleted"), "src/x/a.py", True, True),
        (AffectedFile("src/"), "srcs/a.py", False, False),
        (AffectedFile("src/*.py"), "src/a.py", True, False),
        (AffectedFile("src/*.py", "deleted"), "src/a.py", True, True),
        (AffectedFile("src/*.py"), "src/a.js", False, False),
        (AffectedFile("app/[id]/*.tsx"), "app/[id]/page.tsx", True, False),
    ],
)
def test_a_declared_file_may_be_shortened_and_a_named_one_deleted(
    file: AffectedFile, path: str, is_declared: bool, may_be_deleted: bool
) -> None:
    step = PlanStep(1, files_affected=(file,))
    permissions = Permissions.of_step(step, declare_files(HERE, step))
    assert permissions.declares(path) is is_declared
    assert permissions.may_delete(path) is may_be_deleted
    assert permissions.names_file(path) is is_declared


def test_a_file_that_the_step_names_may_be_deleted() -> None:
    step = PlanStep(
        1,
        description="Remove `src/old.py` and `legacy/`.",
        removes_tests=("tests/test_old.py", "tests/unit/", "test_x"),
    )
    permissions = Permissions.of_step(step, declare_files(HERE, step))
    paths = (
        "tests/test_old.py",
        "tests/unit/test_a.py",
        "tests/test_x.py",
        "src/old.py",
        "legacy/a/b.py",
        "src/other.py",
    )
    assert [permissions.may_delete(path) for path in paths] == [
        True,
        True,
        False,
        True,
        True,
        False,
    ]


# --- May fail -------------------------------------------------------------------------

NET = "tests/test_net.py::test_net"


def plan(*leaves: tuple[MayFail, ...]) -> list[PlanStep]:
    """Return a step labelled `1`, `1b`, `2`, … for each."""
    labels = ("1", "1b", "2", "3")
    return [
        PlanStep(number, label=label, may_fail=may_fail)
        for number, (label, may_fail) in enumerate(zip(labels, leaves, strict=True), 1)
    ]


def stages(steps: list[PlanStep], test: str = NET) -> list[str]:
    """Return what holds for a failed test while each step runs in turn."""
    found = []
    for place, step in enumerate(steps):
        leaves = FailureLeaves.of_step(step, steps[:place], steps[place + 1 :])
        name = TestId.parse(test)
        if leaves.find_excuse(name, (), ()):
            found.append("may fail")
        elif leaves.find_ended(name, ()):
            found.append("has to pass")
        else:
            found.append("")
    return found


UNTIL = {
    "without until, in its own step": (MayFail(NET), ["may fail", "", "", ""]),
    "until the last step": (
        MayFail(NET, "3"),
        ["may fail", "may fail", "may fail", "has to pass"],
    ),
    "until a step with a letter": (
        MayFail(NET, "1B"),
        ["may fail", "has to pass", "", ""],
    ),
    "until its own step": (MayFail(NET, "1"), ["has to pass", "", "", ""]),
    "a folder": (MayFail("tests/", "2"), ["may fail", "may fail", "has to pass", ""]),
    "another test": (MayFail("tests/test_net.py::test_x", "3"), ["", "", "", ""]),
}


@pytest.mark.parametrize("case", UNTIL)
def test_a_leave_ends_with_the_step_that_it_names(case: str) -> None:
    leave, expected = UNTIL[case]
    assert stages(plan((leave,), (), (), ())) == expected


def test_a_leave_of_a_later_step_does_not_hold_yet_and_the_longest_one_counts() -> None:
    late = plan((), (MayFail(NET, "3"),), (), ())
    assert stages(late) == ["", "may fail", "may fail", "has to pass"]
    twice = plan((MayFail(NET, "1b"),), (MayFail(NET, "2"),), (), ())
    assert stages(twice) == ["may fail", "may fail", "has to pass", ""]


FILE = TestId.parse("tests/test_net.py")
INSIDE = {
    "the file": (("tests/test_net.py",), (), True),
    "its name": (("test_net.py",), (NET,), True),
    "its folder": (("tests/",), (NET,), True),
    "a test in it": ((NET,), (), True),
    "a test in it, by name": (("test_net",), (), True),
    "a class and a test in it": (("TestNet::test_net",), (), True),
    "a test in it, which passed": ((NET,), (NET,), True),
    "another test in it passed": ((NET,), (NET, "tests/test_net.py::test_x"), False),
    "both that passed": (
        (NET, "tests/test_net.py::test_x"),
        (NET, "tests/test_net.py::test_x"),
        True,
    ),
    "a test of another file": (("tests/test_x.py::test_net",), (), False),
    "a name that is not in it": (("test_other",), (), False),
}


@each_row(("entries", "passed", "is_excused"), INSIDE.values(), ids=INSIDE)
def test_a_file_that_cannot_be_collected_may_fail_with_the_tests_in_it(
    entries: tuple[str, ...], passed: tuple[str, ...], is_excused: bool
) -> None:
    leaves = FailureLeaves(tuple(FailureLeave(entry, "1") for entry in entries))
    excuse = leaves.find_excuse(
        FILE, {"TestNet", "test_net"}, [TestId.parse(name) for name in passed]
    )
    assert (excuse is not None) is is_excused
