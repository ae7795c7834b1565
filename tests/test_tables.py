"""Tables of cases that are one test."""

import inspect
from pathlib import Path

import pytest

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


def test_each_row_has_an_empty_folder_and_patches_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROW", "outside")

    @each_row("name", ["a", "b"])
    def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        assert list(tmp_path.iterdir()) == []
        (tmp_path / "file").touch()
        monkeypatch.setenv("ROW", name)

    check(tmp_path=tmp_path, monkeypatch=monkeypatch)
    assert len(list(tmp_path.iterdir())) == 2


async def test_tables_may_be_stacked_and_asynchronous() -> None:
    seen = []

    @each_row("first", "ab")
    @each_row("second", "xy", ids=["x", "y"])
    async def check(first: str, second: str) -> None:
        seen.append(first + second)

    assert list(inspect.signature(check).parameters) == []
    await check()
    assert seen == ["ax", "ay", "bx", "by"]


def test_a_skip_in_a_row_is_not_swallowed() -> None:
    @each_row("name", ["a"])
    def check(name: str) -> None:
        pytest.skip(name)

    with pytest.raises(pytest.skip.Exception):
        check()
