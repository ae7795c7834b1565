"""The baseline: the result of the project's check before a run changes anything.

Because of it, no step is blamed for an old failure, and a test that disappears is
noticed. A run takes its baseline once.
"""

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import force_setattr

from cdd_agent.errors import BadInput
from cdd_agent.events.run_events import BaselineTaken
from cdd_agent.files.json_file import JsonFile
from cdd_agent.process.policy import CommandRunner
from cdd_agent.tickets.plan import PlanStep
from cdd_agent.verification.check import Check
from cdd_agent.verification.check_run import Ran, run_check
from cdd_agent.verification.checks import checks_for, project_checks
from cdd_agent.verification.outcomes import Result, SuiteRun


class Baseline(JsonFile, frozen=True):
    """The result of the project's check before a run changed anything."""

    step: int
    """Number of the step before which it was taken: the first step, unless the run is
    older than its baseline.
    """
    command: str | None = None
    """None if there was nothing to run."""
    return_code: int | None = None
    """None if the check did not end."""
    seconds: float = 0.0
    problem: str = ""
    """Why the result cannot be used, as a clause."""
    tests: SuiteRun | None = None
    """None if the check does not report on each test, or has a problem."""
    already: tuple[tuple[int, int], ...] = ()
    """Steps, each with the number of its attempt, whose files the check saw."""

    def __post_init__(self) -> None:
        if self.problem:  # earlier versions saved tests beside a problem
            force_setattr(self, "tests", None)

    @property
    def is_empty(self) -> bool:
        """True if the check looked for tests and found none."""
        return self.tests is not None and not self.tests.results


def is_of_use(
    steps: Sequence[PlanStep], test_command: str | None, commands: CommandRunner
) -> bool:
    """True if one of these steps will be compared with a baseline: by the project's
    check, or test by test.
    """
    try:
        project = project_checks(test_command, commands)
        if any(step.checks is None for step in steps):
            return True
        if any(check.invocation is None for check in project):
            return False
        for step in steps:
            checks = checks_for(step, test_command, commands)
            if any(check.invocation for check in checks):
                return True
    except BadInput:  # the steps that use the command report the error
        return False
    return False


async def take_baseline(
    step: int, check: Check | None, commands: CommandRunner, limit: float, folder: Path
) -> tuple[Baseline, str]:
    """Run the project's check before `step`, and return the baseline with the whole
    output. `check` is None if there is nothing to run.

    A check that fails or cannot be used does not stop the run. If it cannot be used,
    every failure counts as new.
    """
    if check is None:
        return Baseline(step=step), ""
    try:
        ran = await run_check(check, commands, limit, folder)
    except BadInput as error:
        return Baseline(step=step, command=check.shown, problem=error.message), ""
    result = ran.result
    baseline = Baseline(
        step=step,
        command=check.shown,
        return_code=None if result.timed_out else result.return_code,
        seconds=result.seconds,
        problem=_problem(check, ran),
        tests=ran.tests,
    )
    return baseline, ran.output


def _problem(check: Check, ran: Ran) -> str:
    """Return why a result is of no use as a baseline, as a clause; empty if it is."""
    result = ran.result
    if result.timed_out:
        return f"it was still running after {result.limit:g} s and was ended"
    if check.always_reports and ran.tests is None:
        return f"it left no report of its tests (exit code {result.return_code})"
    if ran.tests and (not ran.tests.is_finished or not check.came_to_its_end(result)):
        return f"it did not come to its end (exit code {result.return_code})"
    return ""


def as_event(baseline: Baseline, label: str) -> BaselineTaken:
    """Return the event that reports the baseline to the user. `label` is that of the
    step before which it was taken.
    """
    tests = baseline.tests
    passed = failed = skipped = None
    if tests is not None:
        passed = tests.count(Result.PASSED)
        failed = tests.count(Result.FAILED)
        skipped = tests.count(Result.SKIPPED)
    return BaselineTaken(
        baseline.step,
        baseline.command or "",
        return_code=baseline.return_code,
        passed=passed,
        failed=failed,
        skipped=skipped,
        seconds=baseline.seconds,
        problem=baseline.problem,
        label=label,
    )
