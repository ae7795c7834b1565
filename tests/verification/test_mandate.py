"""Which tests a step's own words allow to go, and which files they name."""

from time import process_time

from cdd_agent.tickets.plan import AffectedFile, PlanStep
from cdd_agent.verification.mandate import StepMandate
from cdd_agent.verification.test_id import TestId
from tests.support.tables import each_row

TEST = TestId.parse("tests/test_user.py::TestLogin::test_old[1]")


def asked(
    text: str, *files: AffectedFile, title: str = "Work", guidance: str = ""
) -> StepMandate:
    return StepMandate.by(
        PlanStep(number=1, title=title, description=text, files_affected=files),
        guidance,
    )


@each_row(
    "text",
    [
        "Remove `test_old`.",
        "Delete ./tests/test_user.py.",
        "Remove tests\\test_user.py",
        "Delete tests/test_user.py, it tests nothing.",
        (
            "Clean up. The file test_user.py is replaced by tests/test_login.py. Then"
            " run it."
        ),
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
    assert not asked(text).to_remove(TestId.parse("tests/test_other.py::test_other"))


@each_row(
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
    for text in (
        "Skip test_old on Windows.",
        "Mark `test_old` as xfail.",
        "test_old is skipped for now.",
    ):
        assert asked(text).to_skip(TEST)
        assert not asked(text).to_remove(TEST)
    for text in ("Remove test_old.", "Never skip test_old."):
        assert not asked(text).to_skip(TEST), text
    assert not asked("Skip it.").to_skip(TEST)


@each_row(
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
    step = asked(
        "Put the fixture into conftest.py, and register it.",
        AffectedFile("./pyproject.toml"),
    )
    assert [
        step.names_file(path)
        for path in ("pyproject.toml", "tests/conftest.py", "setup.cfg")
    ] == [
        True,
        True,
        False,
    ]
    for text in ("Change tests/conftest.py.", "Do not touch conftest.py."):
        assert not asked(text).names_file("conftest.py"), text
    plain = asked("Change conftest.py.")
    assert plain.names_file("conftest.py")


@each_row(
    "text",
    [
        "Make test_old pass.",
        "`tests/test_user.py` has to turn green",
        "The tests in ./tests/test_user.py, which fail today.",
        "Fix what `pytest tests/test_user.py -k old` shows.",
        "See tests/test_user.py::TestLogin::test_old[1].",
        "See tests/test_user.py::TestLogin::test_old[other].",
        "It fails at tests/test_user.py:12: AssertionError.",
        "TestLogin.test_old() does not pass yet",
        "(test_user.py)",
        "Make it pass without changing tests/test_user.py.",
        "Do not touch test_user.py, but make it pass.",
        "These are red:\n\n- test_new\n- test_old\n",
    ],
)
def test_a_test_is_named_by_its_file_its_class_or_its_own_name(text: str) -> None:
    assert asked(text).names_test(TEST)
    assert asked("Do it.", guidance=text).names_test(TEST)
    assert not asked(text).names_test(TestId.parse("tests/test_other.py::test_other"))


@each_row(
    "text",
    [
        "",
        "Make the tests pass.",
        "Make test_older and my_test_old pass.",
        "Make src/tests/test_user.py pass.",
        "Add test_old to tests/test_other.py.",
        "See tests/test_other.py::test_old.",
        "Put it into tests/",
    ],
)
def test_and_by_nothing_else(text: str) -> None:
    assert not asked(text).names_test(TEST)


def test_what_could_not_be_collected_is_named_by_the_tests_in_it() -> None:
    step = asked("Make test_old pass.")
    assert step.names_test(
        TestId.parse("tests/test_user.py"), {"TestLogin", "test_old"}
    )
    assert not step.names_test(TestId.parse("tests/test_user.py"), {"TestLogin"})
    assert not step.names_test(
        TestId.parse("tests/test_user.py::test_new"), {"test_old"}
    )


@each_row(
    "text",
    [
        "test_old fails until step 3.",
        "tests/test_user.py stays red until step 3 has added the login",
        "`test_old` does not pass until step 3.",
        "test_old may still fail afterwards.",
        "test_user.py may stay red.",
        "test_old is allowed to fail.",
        "test_old need not pass yet." + " (It needs not pass.)",
        "TestLogin does not have to pass.",
        "test_old must fail first.",
        "test_old is expected to fail.",
        "Add the failing test `test_old`.",
        "Leave test_old failing.",
    ],
)
def test_a_step_may_leave_a_test_red_if_it_says_so(text: str) -> None:
    assert asked(text).lets_fail(TEST, (), later=[2, 3])
    assert asked(
        text.replace("test_user", "test_x")
        .replace("test_old", "test_x")
        .replace("TestLogin", "x")
    ).lets_fail(TestId.parse("tests/test_x.py::x::test_x"), (), later=[3])
    assert not asked(text).lets_fail(
        TestId.parse("tests/test_other.py::test_other"), (), later=[3]
    )


@each_row(
    "text",
    [
        "test_old fails until step 1.",
        "test_old fails until `login` is fixed.",
        "test_old has to pass before step 3.",
        "test_old is failing.",
        "test_old still fails.",
        "test_old does not pass yet; make it pass.",
        "test_old keeps failing in CI.",
        "test_old may fail on Windows.",
        "Fix the failing test test_old.",
        "test_old is known to fail.",
        "test_old: an empty name should fail with ValueError.",
        "test_new may still fail. Make test_old pass.",
    ],
)
def test_that_it_fails_is_no_leave(text: str) -> None:
    assert not asked(text).lets_fail(TEST, (), later=[2, 3])


@each_row("words", ["fail until ", "add "])
def test_repeated_words_of_a_leave_are_read_in_time_that_their_number_explains(
    words: str,
) -> None:
    def seconds(number: int) -> float:
        started = process_time()
        asked("test_old " + words * number).lets_fail(TEST, (), later=[3])
        return process_time() - started

    assert seconds(1600) < 30 * (seconds(200) + 0.01)


SENTENCE = TestId.parse("test/calc.test.js::calc > adds two numbers")


@each_row(
    "text",
    [
        "Shorten `docs/user guide.md`.",
        "Clean up `./docs/user guide.md`, please",
        "Trim (`user guide.md`)",
    ],
)
def test_a_file_with_a_space_in_its_name_is_named_in_backticks(text: str) -> None:
    step = asked(text)
    assert step.names_file("docs/user guide.md")
    assert step.to_shorten("docs/user guide.md")
    assert not step.names_file("docs/other guide.md")
    assert not asked(
        f"Do not change anything. {text.replace('user', 'my')}"
    ).names_file("docs/user guide.md")


def test_a_file_whose_name_begins_with_marks_is_named() -> None:
    assert asked("Change `__init__.py`.").names_file("src/__init__.py")
    assert asked("Make __tests__/a.test.js pass.").names_test(
        TestId.parse("__tests__/a.test.js::adds")
    )
    assert asked("Change app/[id].tsx.").names_file("app/[id].tsx")
    assert asked("Change _src/app.py_.").names_file("src/app.py")
    assert not asked("Change setup.py.").names_file("_setup.py")
    in_folder = TestId.parse("__tests__/a.test.js::adds")
    assert asked("Remove __tests__/.").to_remove(in_folder)
    assert not asked("Remove tests/.").to_remove(in_folder)


def test_a_test_in_such_a_file_is_named_by_it_too() -> None:
    test = TestId.parse("tests/test a.py::test_old")
    for text in (
        "Remove `tests/test a.py`.",
        "Remove `tests/test b.py` and `tests/test a.py`.",
    ):
        assert asked(text).to_remove(test)
        assert asked(text).names_test(test)
    assert asked("Remove `my tests/unit`.").to_remove(
        TestId.parse("my tests/unit/test_a.py::test_old")
    )
    assert asked(
        "Run `pytest tests/test_user.py -k old`, and make it pass."
    ).names_test(TEST)
    assert not asked("Remove `tests/test b.py`.").to_remove(test)


def test_a_test_whose_name_is_a_sentence_is_named_by_it() -> None:
    assert asked("Make `adds two numbers` pass.").names_test(SENTENCE)
    assert asked("Remove the test `adds two numbers`.").to_remove(SENTENCE)
    assert not asked("Make `adds three numbers` pass.").names_test(SENTENCE)
    assert not asked("In test/other.test.js, make `adds two numbers` pass.").names_test(
        SENTENCE
    )


@each_row(
    "text",
    ["Make TestAdd pass.", "Fix what calc_test.go shows.", "Remove TestAdd/negative."],
)
def test_tests_of_go_are_named_as_go_names_them(text: str) -> None:
    assert asked(text).names_test(TestId.parse("calc_test.go::TestAdd/negative"))
