"""Tables of cases that are one test: all rows run, and each failed row is named."""

import functools
import inspect
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tests.support.examples import IS_THOROUGH
from tests.support.projects import Sandbox

Test = Callable[..., Any]
_ROW_AROUND: ContextVar[tuple[int, int]] = ContextVar("_ROW_AROUND", default=(0, 1))
"""The number of the row around a table, and the number of rows there."""


def each_row(
    names: str | Sequence[str],
    rows: Iterable[Any],
    *,
    ids: Iterable[str] | Callable[[Any], object] | None = None,
    is_sparse: bool = False,
    most: int | None = None,
) -> Callable[[Test], Test]:
    """Run the test once for each row, as one test of pytest.

    A table around a table runs all combinations of their rows. If the inner one
    `is_sparse`, `make test` runs some of them, with each row at least once. Of a table
    with `most`, it runs that many rows, the first one and others at equal distances:
    for rows whose rule has a quicker test elsewhere.

    It takes the arguments of `pytest.mark.parametrize`. Each row gets copies of the
    fixtures that are folders or sandboxes, and a `monkeypatch` that is undone after the
    row. All rows share other fixtures. Raises an `ExceptionGroup` with the failure of
    each failed row.
    """
    names = [name.strip() for name in names.split(",")] if type(names) is str else names
    table = dict(_label_rows(names, list(rows), ids))
    assert table, "a table has rows"

    def choose_rows() -> list[tuple[int, tuple[str, dict[str, Any]]]]:
        numbered = list(enumerate(table.items()))
        if IS_THOROUGH:
            return numbered
        if most is not None and len(numbered) > most:
            return [numbered[len(numbered) * place // most] for place in range(most)]
        if not is_sparse:
            return numbered
        around, count = _ROW_AROUND.get()
        step = min(count, len(numbered))
        return [row for row in numbered if (row[0] - around) % step == 0]

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def run_rows(*args: Any, **fixtures: Any) -> None:
            failures: list[Exception] = []
            for number, (label, values) in choose_rows():
                with _run_row(
                    label, number, len(table), fixtures, failures
                ) as row_fixtures:
                    result = test(*args, **row_fixtures, **values)
                    assert result is None, "a test returns nothing"
            _raise_failures(failures, len(table))

        @functools.wraps(test)
        async def run_rows_async(*args: Any, **fixtures: Any) -> None:
            failures: list[Exception] = []
            for number, (label, values) in choose_rows():
                with _run_row(
                    label, number, len(table), fixtures, failures
                ) as row_fixtures:
                    result = await test(*args, **row_fixtures, **values)
                    assert result is None, "a test returns nothing"
            _raise_failures(failures, len(table))

        wrapper = run_rows_async if inspect.iscoroutinefunction(test) else run_rows
        signature = inspect.signature(test)
        parameters = [
            each for each in signature.parameters.values() if each.name not in names
        ]
        wrapper.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return wrapper

    return decorate


def _label_rows(
    names: Sequence[str],
    rows: Sequence[Any],
    ids: Iterable[str] | Callable[[Any], object] | None,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each row's unique label and its values by name."""
    labels = None if ids is None or callable(ids) else list(ids)
    for number, row in enumerate(rows):
        label = ""
        value = row
        if isinstance(row, type(pytest.param())):
            assert not row.marks, "a row has no marks"
            label = row.id or ""
            value = row.values if len(names) > 1 else row.values[0]
        values = dict(zip(names, value if len(names) > 1 else [value], strict=True))
        if not label and callable(ids):
            label = "-".join(str(ids(each)) for each in values.values())
        elif not label and labels is not None:
            label = labels[number]
        elif not label:
            label = ", ".join(f"{name}={each!r}" for name, each in values.items())
        yield f"row {number}: {label}", values


@contextmanager
def _run_row(
    label: str,
    number: int,
    count: int,
    fixtures: dict[str, Any],
    failures: list[Exception],
) -> Iterator[dict[str, Any]]:
    """Yield private copies of the fixtures, and collect the failure of the row."""
    copies: dict[Path, Path] = {}
    token = _ROW_AROUND.set((number, count))
    with ExitStack() as stack:
        stack.callback(_ROW_AROUND.reset, token)
        try:
            yield _copy_fixtures(fixtures, number, copies, stack)
        # any failure of a row is collected, and raised after the last row
        except (Exception, pytest.fail.Exception, pytest.skip.Exception) as caught:  # noqa: BLE001
            error = _as_exception(caught)
            error.add_note(label)
            failures.append(error)
            return  # the folders of failed rows stay, like pytest's
    for copy in copies.values():
        shutil.rmtree(copy, ignore_errors=True)


def _copy_fixtures(
    fixtures: dict[str, Any], number: int, copies: dict[Path, Path], stack: ExitStack
) -> dict[str, Any]:
    row_fixtures = dict(fixtures)
    sandboxes: dict[int, Sandbox] = {}
    for name, value in fixtures.items():
        if isinstance(value, Path) and value.is_dir():
            row_fixtures[name] = _copy_folder(value, number, copies)
        elif isinstance(value, Sandbox):
            if id(value) not in sandboxes:
                sandbox = value.at(_copy_folder(value.root, number, copies))
                sandbox.model = deepcopy(value.model)
                sandboxes[id(value)] = sandbox
            row_fixtures[name] = sandboxes[id(value)]
        elif isinstance(value, pytest.MonkeyPatch):
            row_fixtures[name] = stack.enter_context(value.context())
    return row_fixtures


def _copy_folder(folder: Path, number: int, copies: dict[Path, Path]) -> Path:
    """Return the row's copy of a folder, inside the copy of a folder around it."""
    for source, copy in copies.items():
        if folder.is_relative_to(source):
            return copy / folder.relative_to(source)
    copy = folder.with_name(f"{folder.name}-{number}")
    shutil.copytree(folder, copy, symlinks=True)
    copies[folder] = copy
    return copy


def _as_exception(error: BaseException) -> Exception:
    """Return an error that an `ExceptionGroup` can contain. A skipped row is a failure,
    because it would hide the other rows.
    """
    if isinstance(error, Exception):
        return error
    return AssertionError(str(error)).with_traceback(error.__traceback__)


def _raise_failures(failures: list[Exception], count: int) -> None:
    if failures:
        raise ExceptionGroup(f"{len(failures)} of {count} rows failed", failures)
