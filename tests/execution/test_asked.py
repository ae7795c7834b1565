"""Which tests a step's own words allow to go, and which files they name."""

import pytest

from cdd_agent.execution.asked import Asked
from cdd_agent.tickets.plan import AffectedFile, PlanStep

TEST = "tests/test_user.py::TestLogin::test_old[1]"


def asked(text: str, *files: AffectedFile, title: str = "Work", guidance: str = "") -> Asked:
    return Asked.by(PlanStep(number=1, title=title, description=text, files_affected=files), guidance)


@pytest.mark.parametrize(
    "text",
    [
        "Remove `test_old`.",
        "Delete tests/test_user.py, it tests nothing.",
        "Clean up. The file test_user.py is replaced by tests/test_login.py. Then run it.",
        "Rename TestLogin to TestSignIn.",
        "Move test_old to tests/test_login.py",
        "These tests are to be removed:\n\n- `test_new`\n- `test_old`\n",
        "Removing `tests/test_user.py::TestLogin` and its fixtures",
        "Remove the obsolete test `test_old()`, it is wrong.",
        "Remove test_new, test_older and **test_old**.",
        "`test_old` is removed, since login is gone.",
        "`TestLogin.test_old` will be replaced",
    ],
)
def test_a_sentence_that_names_the_test_allows_it(text: str) -> None:
    assert asked(text).to_remove(TEST)
    assert asked("", title=text.splitlines()[-1]).to_remove(TEST) or "\n" in text
    assert asked("Do it.", guidance=text).to_remove(TEST)
    assert not asked(text).to_remove("tests/test_other.py::test_other")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Remove the old login.",
        "Remove dead code. Extend tests/test_user.py.",
        "Do not remove test_old.",
        "Don't delete tests/test_user.py!",
        "Change it without removing test_old.",
        "Remove test_older and my_test_old and test_old.py.",
        "Remove src/tests/test_user.py.",
        "Removal of test_old is planned for later",
        "Remove these:\n\nDone. Look at:\n- test_old",
        "Make test_old pass.",
        "Replace eval in login.py so that test_old passes.",
        "Rename `login` to `sign_in` and update test_old.",
        "Remove the cache and make test_old pass",
        "Remove the check in tests/test_user.py",
        "test_old, which checks that the item is removed, has to pass.",
        "Moving on: see that TestLogin passes",
        "Skip test_old.",
    ],
)
def test_anything_less_does_not(text: str) -> None:
    assert not asked(text).to_remove(TEST)


def test_skipping_is_asked_for_in_its_own_words() -> None:
    for text in ("Skip test_old on Windows.", "Mark `test_old` as xfail.", "test_old is skipped for now."):
        assert asked(text).to_skip(TEST)
        assert not asked(text).to_remove(TEST)
    assert not asked("Remove test_old.").to_skip(TEST)
    assert not asked("Never skip test_old.").to_skip(TEST)


@pytest.mark.parametrize(
    ("note", "gone"),
    [
        ("deleted", True),
        ("moved to x", True),
        ("remove", True),
        ("test_old is renamed", True),
        ("remove test_old", True),
        ("remove test_a", False),
        ("extend", False),
        ("not removed", False),
        ("", False),
    ],
)
def test_the_note_beside_the_file_counts(note: str, gone: bool) -> None:
    assert asked("", AffectedFile("./tests/test_user.py", note)).to_remove(TEST) is gone


def test_files_are_named_beside_the_step_or_in_its_words() -> None:
    step = asked("Put the fixture into conftest.py, and register it.", AffectedFile("./pyproject.toml"))
    assert [step.names_file(path) for path in ("pyproject.toml", "tests/conftest.py", "setup.cfg")] == [
        True,
        True,
        False,
    ]
    assert not asked("Change tests/conftest.py.").names_file("conftest.py")
    assert not asked("Do not touch conftest.py.").names_file("conftest.py")
