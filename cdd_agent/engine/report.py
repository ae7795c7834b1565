"""The report of a ticket's run: its results from the state, its effort from the log."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import asdict

from cdd_agent.changes.file_diff import LeftOut
from cdd_agent.engine.accepted import KnownTests, accepted
from cdd_agent.engine.effort import NO_EFFORT, RunEffort
from cdd_agent.engine.logged_run import LoggedRun
from cdd_agent.engine.record import RunRecord
from cdd_agent.events.step_summary import StepSummary
from cdd_agent.tickets.plan import ImplementationPlan
from cdd_agent.tickets.run_outcome import Require, judge_run
from cdd_agent.tickets.state import ExecutionState, Files, StepExecution
from cdd_agent.tickets.status import (
    EditedCriterion,
    MissingWork,
    RunStatus,
    StepStatus,
    Unproven,
)
from cdd_agent.tickets.step_tally import StepTally
from cdd_agent.verification.baseline import Baseline
from cdd_agent.verification.outcomes import Result, SuiteRun, merge_runs


class Counts(Struct, frozen=True):
    """How many tests passed, failed, and were skipped or expected to fail."""

    passed: int
    failed: int
    skipped: int

    @classmethod
    def of(cls, results: Iterable[Result]) -> "Counts":
        counted = list(results)
        return cls(
            counted.count(Result.PASSED),
            counted.count(Result.FAILED),
            counted.count(Result.SKIPPED),
        )


class StepReport(StepSummary, frozen=True):
    """One step: its summary, and what all its attempts together took."""

    tests: Counts | None = None
    """The tests of its last check, if that reports single tests."""
    effort: RunEffort = NO_EFFORT
    notes: tuple[str, ...] = ()
    """Points of its last check for the user to look at."""
    models: tuple[str, ...] = ()
    """The models whose replies it got, in all its attempts."""
    left_out: tuple[LeftOut, ...] = ()
    """The changes of its last attempt that the user did not take."""
    edited: tuple[str, ...] = ()
    """Files of its last attempt whose proposed content the user edited."""
    refusals: tuple[str, ...] = ()
    """The user's reasons for taking nothing of a change, in all its attempts."""

    @classmethod
    def from_run(
        cls,
        now: StepExecution,
        plan: ImplementationPlan,
        record: RunRecord,
        logged: LoggedRun,
    ) -> "StepReport":
        tests, notes = None, tuple[str, ...]()
        step = logged.step(now.folder)
        attempt = step.attempt(now.attempts)
        if now.attempts and now.status in (StepStatus.COMPLETED, StepStatus.FAILED):
            tests = _counts(record.attempt(now.folder, now.attempts).tests)
            notes = attempt.notes
        return StepReport(
            **asdict(StepSummary.from_state(now, plan)),
            tests=tests,
            effort=logged.efforts.get(now.folder, NO_EFFORT),
            notes=notes,
            models=tuple(step.models),
            left_out=tuple(attempt.left_out),
            edited=tuple(attempt.edited),
            refusals=tuple(step.refusals),
        )


class Report(Struct, frozen=True):
    """A ticket's run so far."""

    ticket_slug: str
    ticket_title: str
    status: RunStatus
    started_at: datetime | None
    completed_at: datetime | None
    steps: tuple[StepReport, ...]
    files_created: tuple[str, ...]
    """Files of completed steps. A file that one step created and another changed is
    listed here.
    """
    files_modified: tuple[str, ...]
    tests_before: Counts | None
    """The baseline; None if it was not taken or does not report single tests."""
    tests_after: Counts | None
    """The last known result of every test, from the baseline and the checks of
    completed steps.
    """
    effort: RunEffort
    """Includes steps that are no longer in the plan."""
    unproven: tuple[Unproven, ...] = ()
    """The steps that are over, or failed, without passed tests."""
    require: Require | None = None
    """The rule of the run, if it has one. It fails the run if it does not accept one of
    `unproven`.
    """
    files_deleted: tuple[str, ...] = ()
    """Files that existed before the run. A file that one step created and another
    deleted is in no list.
    """
    edited_criteria: tuple[EditedCriterion, ...] = ()
    """Criteria of the spec that are new or were changed since the steps were over."""
    missing: tuple[MissingWork, ...] = ()
    """The work that the project's tree did not have when all steps were over."""
    damaged_lines: int = 0
    """Lines of the log that could not be read. What they cost is not counted."""

    @property
    def tally(self) -> StepTally:
        return StepTally.count(step.outcome for step in self.steps)

    @classmethod
    def from_run(
        cls,
        title: str,
        plan: ImplementationPlan,
        state: ExecutionState,
        record: RunRecord,
        criteria: Sequence[str],
        require: Require | None = None,
        missing: tuple[MissingWork, ...] = (),
    ) -> "Report":
        """Read the record and its log. Secrets are redacted. Raises `BadInput` when one
        of them cannot be read.
        """
        logged = LoggedRun.read(record.log)
        results = KnownTests(record).so_far(state)
        files = _net(step.files for step in accepted(state))
        outcome = judge_run(plan, state, criteria, require, missing)
        steps = tuple(
            StepReport.from_run(state.step(step.number), plan, record, logged)
            for step in plan.steps
        )
        tests = [test.result for test in results.reference.tests.values()]
        report = cls(
            state.ticket_slug,
            title,
            outcome.status,
            state.started_at,
            state.completed_at,
            steps,
            files_created=files.created,
            files_modified=files.modified,
            files_deleted=files.deleted,
            tests_before=_counts(_tests_of(results.baseline)),
            tests_after=Counts.of(tests) if tests else None,
            effort=logged.effort,
            unproven=outcome.unproven,
            edited_criteria=outcome.edited_criteria,
            require=require,
            missing=missing,
            damaged_lines=logged.damaged_lines,
        )
        return record.redactor.redacted(report)

    def to_json(self) -> dict[str, Any]:
        moments = {"started_at": self.started_at, "completed_at": self.completed_at}
        return {
            **_fields(self),
            **{name: moment and moment.isoformat() for name, moment in moments.items()},
            "tally": to_builtins(self.tally),
            "steps": [_fields(step) for step in self.steps],
        }


def _fields(report: Report | StepReport) -> dict[str, Any]:
    """Return all fields by name. Those of the effort are among them."""
    fields: dict[str, Any] = to_builtins(report)
    del fields["effort"]
    return fields | report.effort.to_json()


def _net(steps: Iterable[Files]) -> Files:
    fates: dict[str, str] = {}
    for files in steps:
        for path in files.created:
            fates[path] = "modified" if fates.get(path) == "deleted" else "created"
        for path in files.modified:
            fates.setdefault(path, "modified")
        for path in files.deleted:
            if fates.pop(path, "modified") == "modified":
                fates[path] = "deleted"

    def those(fate: str) -> tuple[str, ...]:
        return tuple(sorted(path for path in fates if fates[path] == fate))

    return Files(those("created"), those("modified"), those("deleted"))


def _tests_of(baseline: Baseline | None) -> SuiteRun | None:
    """Return the tests of the baseline; None if no check reports them."""
    if baseline is None or not baseline.tests:
        return None
    return merge_runs(baseline.tests)


def _counts(tests: SuiteRun | None) -> Counts | None:
    return None if tests is None else Counts.of(tests.results.values())
