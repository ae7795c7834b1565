"""Tables of cases that are one test: all rows run, and each row that fails is named."""

import functools
import inspect
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tests.support.projects import Sandbox

Test = Callable[..., Any]


def each_row(
    names: str | Sequence[str],
    rows: Iterable[Any],
    *,
    ids: Iterable[str] | Callable[[Any], object] | None = None,
) -> Callable[[Test], Test]:
    """Run the test once for each row, as one test of pytest.

    It takes the arguments of `pytest.mark.parametrize`. Each row gets copies of the
    fixtures that are folders or sandboxes, and a `monkeypatch` that is undone after the
    row. Other fixtures are shared by all rows. Raises an `ExceptionGroup` with the
    failure of each failed row.
    """
    names = [name.strip() for name in names.split(",")] if type(names) is str else names
    table = dict(_label_rows(names, list(rows), ids))
    assert table, "a table has rows"

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def run_rows(*args: Any, **fixtures: Any) -> None:
            with _Rows(len(table)) as run:
                for number, (label, values) in enumerate(table.items()):
                    with run.row(label, number, fixtures) as own:
                        test(*args, **own, **values)

        @functools.wraps(test)
        async def run_rows_async(*args: Any, **fixtures: Any) -> None:
            with _Rows(len(table)) as run:
                for number, (label, values) in enumerate(table.items()):
                    with run.row(label, number, fixtures) as own:
                        await test(*args, **own, **values)

        wrapper = run_rows_async if inspect.iscoroutinefunction(test) else run_rows
        signature = inspect.signature(test)
        kept = [
            each for each in signature.parameters.values() if each.name not in names
        ]
        wrapper.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        return wrapper

    return decorate


def _label_rows(
    names: Sequence[str],
    rows: Sequence[Any],
    ids: Iterable[str] | Callable[[Any], object] | None,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a label that occurs once, and the values by name, of each row."""
    given = None if ids is None or callable(ids) else list(ids)
    for number, row in enumerate(rows):
        label = ""
        value = row
        if isinstance(row, type(pytest.param())):
            label = row.id or ""
            value = row.values if len(names) > 1 else row.values[0]
        values = dict(zip(names, value if len(names) > 1 else [value], strict=True))
        if not label and callable(ids):
            label = "-".join(str(ids(each)) for each in values.values())
        elif not label and given is not None:
            label = given[number]
        elif not label:
            label = ", ".join(f"{name}={each!r}" for name, each in values.items())
        yield f"row {number}: {label}", values


class _Rows:
    """The rows of one test, and the failures so far."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._failures: list[Exception] = []

    def __enter__(self) -> "_Rows":
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if error is None and self._failures:
            message = f"{len(self._failures)} of {self._count} rows failed"
            raise ExceptionGroup(message, self._failures)

    def row(self, label: str, number: int, fixtures: dict[str, Any]) -> "_Row":
        return _Row(label, number, fixtures, self._failures)


class _Row:
    """One row: its private fixtures while it runs, then its failure."""

    def __init__(
        self,
        label: str,
        number: int,
        fixtures: dict[str, Any],
        failures: list[Exception],
    ) -> None:
        self._label = label
        self._number = number
        self._fixtures = fixtures
        self._failures = failures
        self._stack = ExitStack()
        self._copies: dict[Path, Path] = {}

    def __enter__(self) -> dict[str, Any]:
        own = dict(self._fixtures)
        sandboxes: dict[int, Sandbox] = {}
        for name, value in self._fixtures.items():
            if isinstance(value, Path) and value.is_dir():
                own[name] = self._copy(value)
            elif isinstance(value, Sandbox):
                if id(value) not in sandboxes:
                    row = value.at(self._copy(value.root))
                    row.model = deepcopy(value.model)
                    sandboxes[id(value)] = row
                own[name] = sandboxes[id(value)]
            elif isinstance(value, pytest.MonkeyPatch):
                own[name] = self._stack.enter_context(value.context())
        return own

    def _copy(self, folder: Path) -> Path:
        """The row's copy of a folder, inside the copy of a folder that holds it."""
        for source, copy in self._copies.items():
            if folder.is_relative_to(source):
                return copy / folder.relative_to(source)
        copy = folder.with_name(f"{folder.name}-{self._number}")
        shutil.copytree(folder, copy, symlinks=True)
        self._copies[folder] = copy
        return copy

    def __exit__(
        self, kind: object, error: BaseException | None, trace: object
    ) -> bool:
        self._stack.close()
        if isinstance(error, pytest.fail.Exception):  # it is no `Exception`
            error = AssertionError(str(error)).with_traceback(error.__traceback__)
        if error is None:
            # the folders of rows that failed stay, as pytest's do
            for copy in self._copies.values():
                shutil.rmtree(copy, ignore_errors=True)
        if not isinstance(error, Exception):
            return False
        error.add_note(self._label)
        self._failures.append(error)
        return True
