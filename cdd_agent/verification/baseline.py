"""The baseline: results of checks before a run or a step changes anything.

It shows which failures are old, and which tests disappear. The project's checks run
once before the first step. A step's own check runs before the step if its results would
otherwise be unknown.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

from msgspec.structs import replace

from cdd_agent.errors import BadInput
from cdd_agent.events.run_events import BaselineTaken
from cdd_agent.files.json_file import Damaged, JsonFile
from cdd_agent.process.policy import CommandRunner
from cdd_agent.tickets.plan import PlanStep
from cdd_agent.verification.check import Check
from cdd_agent.verification.check_run import CheckRun
from cdd_agent.verification.checks import project_checks, read_checks
from cdd_agent.verification.outcomes import Result, SuiteRun

AlreadyOver = tuple[tuple[int, int], ...]
"""Steps that were over, as numbers of the step's folder and its attempt."""


class BaselineRun(JsonFile, frozen=True):
    step: int
    run: CheckRun
    already: AlreadyOver = ()
    """Steps that were over when it ran: it saw their files."""


class Baseline(JsonFile, frozen=True):
    """Results from before a run. Each check occurs once."""

    step: int
    """The step before which the project's checks ran. Not the first if the run is older
    than its baseline.
    """
    runs: tuple[BaselineRun, ...] = ()
    """In order; empty if there was nothing to run."""
    has_project_checks: bool = False
    """True after the search for the project's checks."""

    @classmethod
    def load(cls, path: Path) -> Self | None:
        """Version 0.1's format is read too. Raises `Damaged`."""
        try:
            return super().load(path)
        except Damaged as error:
            try:
                old = _OldBaseline.load(path)
            except Damaged:
                raise error from None
            return cls(old.step, old.runs(), has_project_checks=True) if old else None

    @property
    def tests(self) -> tuple[SuiteRun, ...]:
        """The test results of each usable run."""
        return tuple(
            each.run.tests
            for each in self.runs
            if each.run.tests is not None and not each.run.problem
        )

    @property
    def is_empty(self) -> bool:
        """True if nothing ran, or if each check looked for tests and found none."""
        return all(
            each.run.tests is not None and not each.run.tests.results
            for each in self.runs
        )

    def has(self, command: str) -> bool:
        return any(each.run.command == command for each in self.runs)

    def knows(self, check: Check) -> bool:
        """True if a wider run of the same runner has the results of all its tests, and
        its exit code agrees with them.
        """
        if not check.asks_for_report or check.invocation is None:
            return False
        asked = check.invocation.selection
        for each in self.runs:
            tests = each.run.tests
            if tests is None or each.run.problem or _has_other_reason(each.run):
                continue
            earlier = tests.selection
            is_wider = earlier.options == asked.options and not earlier.paths
            if is_wider and earlier.runner == asked.runner:
                return True
        return False

    def add(self, step: int, run: CheckRun, already: AlreadyOver) -> "Baseline":
        return replace(
            self, runs=(*self.runs, BaselineRun(step=step, run=run, already=already))
        )


class _OldBaseline(JsonFile, frozen=True):
    """The format of version 0.1."""

    step: int
    command: str | None = None
    return_code: int | None = None
    seconds: float = 0.0
    problem: str = ""
    tests: SuiteRun | None = None
    already: AlreadyOver = ()

    def runs(self) -> tuple[BaselineRun, ...]:
        if self.command is None:
            return ()
        run = CheckRun(
            self.command,
            self.return_code,
            self.seconds,
            None if self.problem else self.tests,
            problem=self.problem,
        )
        return (BaselineRun(step=self.step, run=run, already=self.already),)


def is_of_use(
    steps: Sequence[PlanStep], test_command: str | None, commands: CommandRunner
) -> bool:
    """True if a step needs the baseline: it names no check, or its checks and
    the project's report single tests.
    """
    try:
        project = project_checks(test_command, commands)
        if any(step.checks is None for step in steps):
            return True
        if project and not any(check.invocation for check in project):
            return False
        for step in steps:
            checks = read_checks(step, test_command, commands)
            if any(check.invocation for check in checks):
                return True
    except BadInput:  # reported by the steps that use the command
        return False
    return False


def _has_other_reason(run: CheckRun) -> bool:
    if run.tests is None or not run.return_code:
        return False
    return bool(run.exit_reasons) or not run.tests.having(Result.FAILED)


def as_event(baseline: BaselineRun, label: str, *, is_own: bool) -> BaselineTaken:
    """`label` is the label of the step that follows; `is_own` is true if a step names
    the check.
    """
    run = baseline.run
    tests = None if run.problem else run.tests
    passed = failed = skipped = None
    if tests is not None:
        passed = tests.count(Result.PASSED)
        failed = tests.count(Result.FAILED)
        skipped = tests.count(Result.SKIPPED)
    return BaselineTaken(
        baseline.step,
        run.command,
        return_code=run.return_code,
        passed=passed,
        failed=failed,
        skipped=skipped,
        seconds=run.seconds,
        problem=f"it {run.problem}" if run.problem else "",
        label=label,
        is_own=is_own,
        reason=_reason_of_exit(run),
        is_unusable=bool(run.unusable),
    )


def _reason_of_exit(run: CheckRun) -> str:
    """Return why the check exited as it did. Without results of single tests, any
    statement may explain it.
    """
    reasons = run.exit_reasons if run.has_tests else run.statements
    if not run.return_code or not reasons:
        return ""
    return reasons[0].text
