"""Tables of cases that are one test: all rows run, and each row that fails is named."""

import copy
import functools
import inspect
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
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

    It takes the arguments of `pytest.mark.parametrize`. Each row gets an empty folder
    as `tmp_path`, a `monkeypatch` that is undone after the row, and a copy of each
    sandbox. Other fixtures are shared by all rows. Raises an `ExceptionGroup` with the
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

    def __enter__(self) -> dict[str, Any]:
        own = dict(self._fixtures)
        folder: Path | None = own.get("tmp_path")
        if folder is not None:
            own["tmp_path"] = folder / f"row-{self._number}"
            own["tmp_path"].mkdir()
        for sandbox in {id(v): v for v in own.values() if type(v) is Sandbox}.values():
            root = sandbox.root.with_name(f"{sandbox.root.name}-row-{self._number}")
            shutil.copytree(sandbox.root, root, symlinks=True)
            row = sandbox.at(root)
            row.model = copy.deepcopy(sandbox.model)
            own |= {name: row for name in own if own[name] is sandbox}
        patch: pytest.MonkeyPatch | None = own.get("monkeypatch")
        if patch is not None:
            own["monkeypatch"] = self._stack.enter_context(patch.context())
        return own

    def __exit__(
        self, kind: object, error: BaseException | None, trace: object
    ) -> bool:
        self._stack.close()
        if not isinstance(error, Exception):
            return False
        error.add_note(self._label)
        self._failures.append(error)
        return True
