"""Test runners that other packages add as entry points. Invalid ones are left out and
reported.
"""

from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import TypeVar

from cdd_agent.settings.extensions import Extensions, require_type
from cdd_agent.verification.outcomes import Result, Selection, SuiteRun
from cdd_agent.verification.runner import (
    Matters,
    Reported,
    Reporting,
    ReportUnreadable,
    TestRunner,
    whole,
)

_Value = TypeVar("_Value")
_RUNNERS = Extensions("cdd_agent.test_runners", "test runner")
left_out = _RUNNERS.left_out


def load_added() -> tuple[TestRunner, ...]:
    return _RUNNERS.load(_Guarded)


class _Guarded(TestRunner):
    """A runner of another package. After its first error it is not called again."""

    def __init__(self, full_name: str, runner: object) -> None:
        if not isinstance(runner, TestRunner):
            raise TypeError("it is not a TestRunner")
        self._full_name, self._runner = full_name, runner
        self.name = require_type(runner.name, str)
        self.ends_with = frozenset(require_type(each, int) for each in runner.ends_with)
        self.nothing_ran = runner.nothing_ran
        self.always_reports = bool(runner.always_reports)
        self.captures = bool(runner.captures)
        self.forbids_snapshots = bool(runner.forbids_snapshots)
        self.reports_per_process = bool(runner.reports_per_process)
        self.about_report = tuple(
            require_type(each, str) for each in runner.about_report
        )

    def place(self, argv: Sequence[str]) -> int | None:
        if self._full_name in left_out:
            return None
        return self._try(None, lambda: self._checked_place(tuple(argv)))

    def _checked_place(self, argv: tuple[str, ...]) -> int | None:
        place = self._runner.place(argv)
        if place is not None and require_type(place, int) not in range(len(argv)):
            raise IndexError(f"the command has no word {place}")
        return place

    def reporting(self, argv: Sequence[str], report: Path) -> Reporting | None:
        return self._try(None, lambda: self._checked_reporting(tuple(argv), report))

    def _checked_reporting(
        self, argv: tuple[str, ...], report: Path
    ) -> Reporting | None:
        made = self._runner.reporting(argv, report)
        if made is not None:
            variables = dict(require_type(made, Reporting).env)
            for word in (*made.argv, *variables, *variables.values()):
                require_type(word, str)
        return made

    def selection(self, argv: Sequence[str], root: Path) -> Selection:
        words = tuple(argv)
        return self._try(
            Selection((), words),
            lambda: require_type(self._runner.selection(words, root), Selection),
        )

    def read(self, reported: Reported, selection: Selection, root: Path) -> SuiteRun:
        try:
            run = require_type(self._runner.read(reported, selection, root), SuiteRun)
            for test, result in run.results.items():
                require_type(test, str)
                require_type(result, Result)
            return run
        except ReportUnreadable:
            raise
        except Exception as error:
            _RUNNERS.leave_out(self._full_name, error)
            why = f"the test runner {self._full_name} failed: {error}"
            raise ReportUnreadable(why) from error

    def shown(self, line: str, report: Path) -> str:
        return self._try(
            line, lambda: require_type(self._runner.shown(line, report), str)
        )

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
            _RUNNERS.leave_out(self._full_name, error)
            return otherwise
