"""Which tests and files a text names literally."""

from time import process_time

from cdd_agent.tickets.plan import PlanStep
from cdd_agent.verification.mentions import Mentions
from cdd_agent.verification.test_id import TestId
from tests.support.tables import each_row

TEST = TestId.parse("tests/test_user.py::TestLogin::test_old[1]")
OTHER = TestId.parse("tests/test_other.py::test_other")


def mentions(text: str) -> Mentions:
    return Mentions.in_step(PlanStep(number=1, title="Work", description=text))


@each_row(
    "text",
    [
        "Make test_old pass.",
        "`tests/test_user.py` has to turn green",
        "The tests in ./tests/test_user.py, which fail today.",
        "Remove tests\\test_user.py",
        "Fix what `pytest tests/test_user.py -k old` shows.",
        "See tests/test_user.py::TestLogin::test_old[1].",
        "See tests/test_user.py::TestLogin::test_old[other].",
        "`test_user.py::TestLogin` is red",
        "It fails at tests/test_user.py:12: AssertionError.",
        "TestLogin.test_old() does not pass yet",
        "(test_user.py)",
        "Remove test_new, test_older and **test_old**.",
        "Make it pass without changing tests/test_user.py.",
        "Do not touch test_user.py, but make it pass.",
        "These are red:\n\n- test_new\n- test_old\n",
    ],
)
def test_a_test_is_named_by_its_file_its_class_or_its_name(text: str) -> None:
    assert mentions(text).names_test(TEST)
    assert Mentions.in_step(PlanStep(1), guidance=text).names_test(TEST)
    assert not mentions(text).names_test(OTHER)


@each_row(
    "text",
    [
        "",
        "Make the tests pass.",
        "Make test_older and my_test_old pass.",
        "Make test_old.py and test_old-ish pass.",
        "Make src/tests/test_user.py pass.",
        "See tests/test_other.py::test_old.",
        "See tests/test_user.py::TestLogin::test_new.",
        "See TestOther.test_old.",
        "Put it into tests/",
    ],
)
def test_nothing_else_names_a_test(text: str) -> None:
    assert not mentions(text).names_test(TEST)


def test_a_file_that_could_not_be_collected_is_named_by_its_tests() -> None:
    step = mentions("Make test_old pass.")
    file = TestId.parse("tests/test_user.py")
    assert step.names_test(file, {"TestLogin", "test_old"})
    assert not step.names_test(file, {"TestLogin"})
    new = TestId.parse("tests/test_user.py::test_new")
    assert not step.names_test(new, {"test_old"})


@each_row(
    ("name", "text", "is_named"),
    [
        ("calc > adds two numbers", "Make `adds two numbers` pass.", True),
        ("calc > adds two numbers", "See that it adds two numbers.", True),
        ("calc > adds two numbers", "Make `adds three numbers` pass.", False),
        ("calc > works", "See that it works.", False),
        ("calc > works", "The test `works` is red.", True),
        ("calc > works", "The test 'works' is red.", True),
        ("Calculator > adds", "Write the Calculator.", False),
        ("Calculator > adds", "Fix `Calculator`.", True),
    ],
)
def test_ordinary_words_are_names_only_as_code(
    name: str, text: str, is_named: bool
) -> None:
    test = TestId.parse(f"test/calc.test.js::{name}")
    assert mentions(text).names_test(test) is is_named


def test_names_are_found_whatever_signs_are_in_them() -> None:
    for name in ("+", "a-b", "a.b", "calc > +", "größer", "adds 1,000", "__x__"):
        test = TestId.parse(f"test/calc.test.js::{name}")
        assert mentions(f"Make `{name}` pass.").names_test(test), name
        assert not mentions("Make it pass.").names_test(test), name


def test_many_tests_take_no_longer_than_their_number_explains() -> None:
    tests = [TestId.parse(f"tests/test_{n}.py::test_{n}") for n in range(20_000)]
    text = mentions("word test_x foo/bar.py " * 10_000)
    started = process_time()
    assert not any(map(text.names_test, tests))
    assert process_time() - started < 5


def test_a_command_is_all_code() -> None:
    test = TestId.parse("src/lib.rs::tests::subtracts")
    assert Mentions.in_text(code="cargo test subtracts").names_test(test)
    assert not Mentions.in_text("cargo test subtracts").names_test(test)


@each_row(
    "text",
    ["Make TestAdd pass.", "Fix what calc_test.go shows.", "See TestAdd/negative."],
)
def test_tests_of_go_are_named_as_go_names_them(text: str) -> None:
    assert mentions(text).names_test(TestId.parse("calc_test.go::TestAdd/negative"))


@each_row(
    ("text", "path", "is_named"),
    [
        ("Put it into conftest.py, and register it.", "conftest.py", True),
        ("Put it into conftest.py, and register it.", "tests/conftest.py", True),
        ("Change tests/conftest.py.", "conftest.py", False),
        ("Change `__init__.py`.", "src/__init__.py", True),
        ("Change setup.py.", "_setup.py", False),
        ("Change app/[id].tsx.", "app/[id].tsx", True),
        ("Shorten `docs/user guide.md`.", "docs/user guide.md", True),
        ("Trim (`user guide.md`)", "docs/user guide.md", True),
        ("Shorten `docs/user guide.md`.", "docs/other guide.md", False),
        ("Write the Makefile.", "Makefile", True),
    ],
)
def test_a_file_is_named_by_its_path_or_its_name(
    text: str, path: str, is_named: bool
) -> None:
    assert mentions(text).names_file(path) is is_named
