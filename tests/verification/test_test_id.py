"""Names of tests: read in one place, and the same from run to run."""

from hypothesis import given
from hypothesis import strategies as st

from cdd_agent.verification.test_id import TestId
from tests.support.tables import each_row


@each_row(
    ("text", "test", "parts"),
    [
        (
            "tests/test_a.py::TestK::test_x[a::b]",
            TestId("tests/test_a.py", "TestK::test_x", "[a::b]"),
            ["TestK", "test_x"],
        ),
        ("tests/test_a.py", TestId("tests/test_a.py"), []),
        ("tests", TestId("tests"), []),
        (
            "app/[id]/a.test.ts::x > y [1]",
            TestId("app/[id]/a.test.ts", "x > y [1]"),
            ["x", "y [1]"],
        ),
        ("a_test.go::TestA/sub", TestId("a_test.go", "TestA/sub"), ["TestA", "sub"]),
        (
            "src/lib.rs::tests::adds",
            TestId("src/lib.rs", "tests::adds"),
            ["tests", "adds"],
        ),
    ],
)
def test_a_test_is_known_by_its_file_and_its_name(
    text: str, test: TestId, parts: list[str]
) -> None:
    assert TestId.parse(text) == test
    assert str(test) == text
    assert test.parts == parts


@given(st.text())
def test_every_text_is_the_id_of_what_it_says(text: str) -> None:
    read = TestId.parse(text)
    assert TestId.parse(str(read)) == read
    assert list(read.places())[-1] == "."


def test_a_declared_test_is_found_within_its_module() -> None:
    run = TestId.parse("src/lib.rs::tests::adds")
    assert run.ends_with(TestId("src/lib.rs", "adds"))
    assert not run.ends_with(TestId("src/lib.rs", "dds"))
    assert not run.ends_with(TestId("src/main.rs", "adds"))
    assert not run.ends_with(TestId("src/lib.rs"))


@each_row(
    ("title", "row", "is_row"),
    [
        ("adds %i", "adds 1", True),
        ("adds %i", "adds ", False),
        ("adds %i", "subtracts 1", False),
        ("%s and %s", "and and", False),
        ("%s and %s", "a and b and c", True),
        ("%i%%", "5 %", True),
        ("group $a > adds ${b}", "group 1 > adds 2", True),
        ("%s", "group > adds", False),
        ("%s" * 30 + "x", "a" * 5000, False),
        ("%s a" * 30, "a a" * 5000, True),
    ],
)
def test_a_row_has_a_value_where_its_title_has_a_place_for_it(
    title: str, row: str, is_row: bool
) -> None:
    table = TestId("a.test.js", title)
    assert table.is_table
    assert table.has_row(TestId("a.test.js", row)) is is_row
    assert not table.has_row(TestId("b.test.js", row))
