"""Runners of tests that other packages add, as entry points. One that does not keep to
`TestRunner` is left out, and named.
"""

import logging
from collections.abc import Callable, Sequence
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path, PurePosixPath
from typing import TypeVar

from cdd_agent.verification.outcomes import Result, Selection, SuiteRun
from cdd_agent.verification.runner import (
    Matters,
    Reported,
    Reporting,
    ReportUnreadable,
    TestRunner,
    whole,
)

GROUP = "cdd_agent.test_runners"
_log = logging.getLogger(__name__)
_Value = TypeVar("_Value")
left_out: dict[str, str] = {}
"""The runners that are left out, with the reason."""


def load_added() -> tuple[TestRunner, ...]:
    """Load the runners of all installed packages."""
    runners: list[TestRunner] = []
    for entry_point in entry_points(group=GROUP):
        name = _name(entry_point)
        try:
            runners.append(_Guarded(name, entry_point.load()()))
        # whatever another package does, checks run without it
        except Exception as error:  # noqa: BLE001
            _leave_out(name, error)
    return tuple(runners)


def _name(entry_point: EntryPoint) -> str:
    package = entry_point.dist.name if entry_point.dist else entry_point.value
    return f"{entry_point.name} of {package}"


def _leave_out(name: str, error: Exception) -> None:
    """Note that a runner is not used any more."""
    if name not in left_out:
        left_out[name] = f"{type(error).__name__}: {error}"[:300]
        _log.warning("The test runner %s is left out: %s", name, left_out[name])


class _Guarded(TestRunner):
    """A runner of another package. Its first mistake is its last call."""

    def __init__(self, full_name: str, runner: object) -> None:
        if not isinstance(runner, TestRunner):
            raise TypeError("it is not a TestRunner")
        self._full_name, self._runner = full_name, runner
        self.name = _checked(runner.name, str)
        self.ends_with = frozenset(_checked(each, int) for each in runner.ends_with)
        self.nothing_ran = runner.nothing_ran
        self.always_reports = bool(runner.always_reports)
        self.captures = bool(runner.captures)
        self.forbids_snapshots = bool(runner.forbids_snapshots)
        self.reports_per_process = bool(runner.reports_per_process)
        self.about_report = tuple(_checked(each, str) for each in runner.about_report)

    def place(self, argv: Sequence[str]) -> int | None:
        if self._full_name in left_out:
            return None
        return self._try(None, lambda: self._checked_place(tuple(argv)))

    def _checked_place(self, argv: tuple[str, ...]) -> int | None:
        place = self._runner.place(argv)
        if place is not None and _checked(place, int) not in range(len(argv)):
            raise IndexError(f"the command has no word {place}")
        return place

    def reporting(self, argv: Sequence[str], report: Path) -> Reporting | None:
        return self._try(None, lambda: self._checked_reporting(tuple(argv), report))

    def _checked_reporting(
        self, argv: tuple[str, ...], report: Path
    ) -> Reporting | None:
        made = self._runner.reporting(argv, report)
        if made is not None:
            variables = dict(_checked(made, Reporting).env)
            for word in (*made.argv, *variables, *variables.values()):
                _checked(word, str)
        return made

    def selection(self, argv: Sequence[str], root: Path) -> Selection:
        words = tuple(argv)
        return self._try(
            Selection((), words),
            lambda: _checked(self._runner.selection(words, root), Selection),
        )

    def read(self, reported: Reported, selection: Selection, root: Path) -> SuiteRun:
        try:
            run = _checked(self._runner.read(reported, selection, root), SuiteRun)
            for test, result in run.results.items():
                _checked(test, str)
                _checked(result, Result)
            return run
        except ReportUnreadable:
            raise
        except Exception as error:
            _leave_out(self._full_name, error)
            why = f"the test runner {self._full_name} failed: {error}"
            raise ReportUnreadable(why) from error

    def shown(self, line: str, report: Path) -> str:
        return self._try(line, lambda: _checked(self._runner.shown(line, report), str))

    def what_matters(self, path: PurePosixPath) -> Matters | None:
        matters = self._try(None, lambda: self._runner.what_matters(path))
        if matters is None or matters is whole:
            return matters

        def compared(text: str) -> object:
            return self._try(object(), lambda: matters(text))

        return compared

    def _try(self, otherwise: _Value, call: Callable[[], _Value]) -> _Value:
        try:
            return call()
        except Exception as error:  # noqa: BLE001
            _leave_out(self._full_name, error)
            return otherwise


def _checked(value: object, kind: type[_Value]) -> _Value:
    if not isinstance(value, kind):
        raise TypeError(f"{value!r:.80} is not a {kind.__name__}")
    return value
