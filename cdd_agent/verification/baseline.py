"""The baseline: what the project's own check says before a run changes anything.

Old failures are then not blamed on a step, and a test that vanishes is missed. It is
taken once for a run.
"""

from collections.abc import Iterable
from pathlib import Path

from msgspec.structs import force_setattr

from cdd_agent.errors import BadInput
from cdd_agent.events import BaselineTaken
from cdd_agent.files.json_file import JsonFile
from cdd_agent.process.policy import CommandRunner
from cdd_agent.tickets.plan import PlanStep
from cdd_agent.verification.checks import Check, check_for, project_check, run_check
from cdd_agent.verification.outcomes import Result, SuiteRun


class Baseline(JsonFile, frozen=True):
    """The project's own check, as it ended before a run changed anything."""

    step: int
    """The step that it was taken before: the first, unless the run is older than its
    baseline.
    """
    command: str | None = None
    """None: there was nothing to run."""
    return_code: int | None = None
    """None: it did not come to its end."""
    seconds: float = 0.0
    problem: str = ""
    """Why its outcome cannot be used, as a clause."""
    tests: SuiteRun | None = None
    """None where it does not tell, or is of no use: nothing is known then."""
    already: tuple[tuple[int, int], ...] = ()
    """Steps, with the number of their attempt, whose work was there already."""

    def __post_init__(self) -> None:
        if self.problem:  # also in one that an earlier version saved
            force_setattr(self, "tests", None)

    @property
    def is_empty(self) -> bool:
        """Tests were looked for, and there are none."""
        return self.tests is not None and not self.tests.results


def is_of_use(
    steps: Iterable[PlanStep], test_command: str | None, commands: CommandRunner
) -> bool:
    """Whether one of these steps will be compared with a baseline: by the project's
    check, or test by test.
    """
    try:
        project = project_check(test_command, commands)
        own = (
            check_for(step, test_command, commands)
            for step in steps
            if step.checks is not None
        )
        tests = project is None or project.invocation is not None
        return any(step.checks is None for step in steps) or any(
            check.invocation and tests for check in own if check
        )
    except BadInput:  # that is a matter of the steps that use it
        return False


async def take_baseline(
    step: int, check: Check | None, commands: CommandRunner, limit: float, folder: Path
) -> tuple[Baseline, str]:
    """Run the project's check once before `step`, as `run_check` does; that there is
    nothing to run is known then too. Returns the baseline, and the whole output.

    A check that fails, or that is of no use, ends nothing: nothing is known then, and
    every failure counts as new.
    """
    if check is None:
        return Baseline(step=step), ""
    try:
        ran = await run_check(check, commands, limit, folder)
    except BadInput as error:
        return Baseline(step=step, command=check.shown, problem=error.message), ""
    result, problem = ran.result, ""
    if result.timed_out:
        problem = f"it was still running after {result.limit:g} s and was ended"
    elif check.always_reports and ran.tests is None:
        problem = f"it left no report of its tests (exit code {result.return_code})"
    elif ran.tests and (not ran.tests.is_finished or not check.came_to_its_end(result)):
        problem = f"it did not come to its end (exit code {result.return_code})"
    return_code = None if result.timed_out else result.return_code
    baseline = Baseline(
        step=step,
        command=check.shown,
        return_code=return_code,
        seconds=result.seconds,
        problem=problem,
        tests=ran.tests,
    )
    return baseline, ran.output


def as_event(baseline: Baseline) -> BaselineTaken:
    """The event by which people are told of it."""
    tests = baseline.tests
    return BaselineTaken(
        baseline.step,
        baseline.command or "",
        return_code=baseline.return_code,
        passed=tests.count(Result.PASSED) if tests else None,
        failed=tests.count(Result.FAILED) if tests else None,
        skipped=tests.count(Result.SKIPPED) if tests else None,
        seconds=baseline.seconds,
        problem=baseline.problem,
    )
