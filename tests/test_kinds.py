"""The kinds of tests, and the sample that CI takes of the slow ones."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.kinds import choose_sample, mark_unit_tests


class Item:
    """A collected test, as far as the kinds of tests need it."""

    def __init__(self, nodeid: str, *marks: str) -> None:
        self.nodeid = nodeid
        self.marks = list(marks)

    def iter_markers(self) -> list[Any]:
        return [SimpleNamespace(name=mark) for mark in self.marks]

    def add_marker(self, mark: str) -> None:
        self.marks.append(mark)


def test_a_test_without_a_kind_is_a_unit_test() -> None:
    items: list[Any] = [Item("a"), Item("b", "long"), Item("c", "fork", "pty")]
    mark_unit_tests(items)
    assert [item.marks for item in items] == [
        ["unit"],
        ["long", "unit"],
        ["fork", "pty"],
    ]


@pytest.mark.parametrize("marks", [("story", "fork"), ("unit", "story")])
def test_a_quick_test_has_no_second_kind(marks: tuple[str, ...]) -> None:
    items: list[Any] = [Item("tests/a.py::test_x", *marks)]
    with pytest.raises(pytest.UsageError, match=r"test_x is marked as"):
        mark_unit_tests(items)


def test_a_sample_depends_on_its_seed_alone_and_is_about_the_share() -> None:
    items: list[Any] = [Item(f"tests/a.py::test_{number}") for number in range(2_000)]
    chosen, others = choose_sample(items, 0.25, "seed")
    again, _ = choose_sample(list(reversed(items)), 0.25, "seed")
    different, _ = choose_sample(items, 0.25, "another")
    assert 400 < len(chosen) < 600
    assert [item for item in items if item in chosen] == chosen
    assert len(chosen) + len(others) == len(items)
    assert again == list(reversed(chosen))
    assert different != chosen
