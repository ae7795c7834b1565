"""Tables of cases that are one test."""

import inspect
import os
from pathlib import Path

import pytest

from tests.support import examples, tables
from tests.support.projects import Sandbox
from tests.support.tables import each_row


def test_every_row_runs_and_each_failed_row_is_named() -> None:
    seen = []

    @each_row(("number", "limit"), [(1, 2), (5, 2), pytest.param(3, 2, id="above")])
    def check(number: int, limit: int) -> None:
        seen.append(number)
        assert number < limit

    with pytest.raises(ExceptionGroup, match="2 of 3 rows failed") as caught:
        check()
    notes = [note for error in caught.value.exceptions for note in error.__notes__]
    assert notes == ["row 1: number=5, limit=2", "row 2: above"]
    assert seen == [1, 5, 3]


def test_each_row_has_separate_folders_sandboxes_and_patches(
    tmp_path: Path, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROW", "outside")
    (tmp_path / "given").touch()

    @each_row("name", ["a", "b"])
    def check(
        tmp_path: Path, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        assert sandbox.root == tmp_path
        assert [path.name for path in tmp_path.iterdir()] == ["given"]
        (sandbox.root / "file").touch()
        assert sandbox.flags == {}
        sandbox.flags["model"] = name
        assert os.environ["ROW"] == "outside"
        monkeypatch.setenv("ROW", name)

    check(tmp_path=tmp_path, sandbox=sandbox, monkeypatch=monkeypatch)
    assert [path.name for path in tmp_path.iterdir()] == ["given"]


def test_a_row_that_raises_nothing_is_named_where_it_should_raise() -> None:
    @each_row("name", [1, 2], ids=["first", "second"])
    def check(name: int) -> None:
        with pytest.raises(ValueError, match="never"):
            assert name

    with pytest.raises(ExceptionGroup) as caught:
        check()
    notes = [note for error in caught.value.exceptions for note in error.__notes__]
    assert notes == ["row 0: first", "row 1: second"]


async def test_tables_may_be_stacked_and_asynchronous() -> None:
    seen = []

    @each_row("first", "ab")
    @each_row("second", "xy", ids=["x", "y"])
    async def check(first: str, second: str) -> None:
        seen.append(first + second)

    assert list(inspect.signature(check).parameters) == []
    await check()
    assert seen == ["ax", "ay", "bx", "by"]


def test_a_skipped_row_hides_no_failure() -> None:
    @each_row("name", ["a", "b"])
    def check(name: str) -> None:
        if name == "b":
            pytest.skip("no b here")
        raise ValueError

    with pytest.raises(ExceptionGroup) as caught:
        check()
    kinds = [type(error) for error in caught.value.exceptions]
    assert kinds == [ValueError, AssertionError]


def test_a_sparse_table_in_a_table_runs_each_row_at_least_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = []

    @each_row("letter", "abc")
    @each_row("number", range(5), is_sparse=True)
    def check(letter: str, number: int) -> None:
        seen.append((letter, number))

    monkeypatch.setattr(tables, "IS_THOROUGH", False)
    check()
    assert seen == [("a", 0), ("a", 3), ("b", 1), ("b", 4), ("c", 2)]
    seen.clear()
    monkeypatch.setattr(tables, "IS_THOROUGH", True)
    check()
    assert len(seen) == 15


def test_a_table_with_a_limit_runs_rows_at_equal_distances(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = []

    @each_row("number", range(10), most=4)
    def check(number: int) -> None:
        seen.append(number)

    monkeypatch.setattr(tables, "IS_THOROUGH", False)
    check()
    assert seen == [0, 2, 5, 7]
    seen.clear()
    monkeypatch.setattr(tables, "IS_THOROUGH", True)
    check()
    assert seen == [*range(10)]


def test_every_value_is_in_a_chosen_row(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(a, b, "expected") for a in range(5) for b in range(3)]
    monkeypatch.setattr(examples, "IS_THOROUGH", False)
    chosen = examples.cover_values(rows, 2)
    assert {row[0] for row in chosen} == {*range(5)}
    assert {row[1] for row in chosen} == {*range(3)}
    assert len(chosen) == 5
    monkeypatch.setattr(examples, "IS_THOROUGH", True)
    assert examples.cover_values(rows, 2) == rows


def test_every_pair_of_values_is_in_a_chosen_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [(a, b, c, "expected") for a in range(5) for b in range(3) for c in range(2)]

    def pairs(chosen: list[tuple[int, int, int, str]]) -> set[tuple[int, ...]]:
        places = [(0, 1), (0, 2), (1, 2)]
        return {(x, y, row[x], row[y]) for row in chosen for x, y in places}

    monkeypatch.setattr(examples, "IS_THOROUGH", False)
    chosen = examples.cover_pairs(rows, 3)
    assert pairs(chosen) == pairs(rows)
    assert len(chosen) < 20
    monkeypatch.setattr(examples, "IS_THOROUGH", True)
    assert examples.cover_pairs(rows, 3) == rows
