"""The lines that a step changed, in the current file."""

from hypothesis import given
from hypothesis import strategies as st

from cdd_agent.verification.strength.lines import find_changed_lines
from tests.support.tables import each_row


@each_row(
    ("before", "after", "current", "expected"),
    [
        ("", "a\nb\n", "a\nb\n", {1, 2}),
        ("a\nb\n", "a\nc\nb\n", "a\nc\nb\n", {2}),
        ("a\nb\n", "a\nc\nb\n", "x\n\na\nc\nb\n", {4}),  # moved by a later edit
        ("a\nb\n", "a\nc\nb\n", "a\nd\nb\n", set()),  # changed again
        ("a\nb\n", "a\nc\nb\n", "a\nb\n", set()),  # removed again
        ("a\nb\n", "a\nB\n", "a\nB\nc\n", {2}),
        ("a\nb\n", "a\nb\n", "a\nb\n", set()),
        ("a\nb\n", "b\n", "b\n", set()),  # only removed
        ("", "a\n\n  \nb\n", "a\n\n  \nb\n", {1, 4}),
        ("", "a\r\nb\r\n", "a\nb\n", {1, 2}),
        ("", "a\nb", "", set()),
        ("", "a\n" * 10_001, "a\n" * 10_001, set()),
    ],
)
def test_changed_lines(
    before: str, after: str, current: str, expected: set[int]
) -> None:
    assert find_changed_lines(before, after, current) == expected


texts = st.lists(st.sampled_from("abcd "), max_size=12).map(
    lambda lines: "".join(f"{line}\n" for line in lines)
)


@given(before=texts, after=texts, current=texts)
def test_each_line_is_new_with_the_change_and_still_there(
    before: str, after: str, current: str
) -> None:
    new, now = after.split("\n"), current.split("\n")
    for number in find_changed_lines(before, after, current):
        assert now[number - 1].strip()
        assert now[number - 1] in new


@given(before=texts, after=texts)
def test_a_change_that_stays_has_all_its_lines(before: str, after: str) -> None:
    lines = find_changed_lines(before, after, after)
    new = after.split("\n")
    rest = [line for number, line in enumerate(new, 1) if number not in lines]
    remaining = iter(before.split("\n"))
    assert all(line in remaining for line in rest if line.strip())
