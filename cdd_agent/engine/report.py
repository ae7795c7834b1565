"""A run's report: results from the state, effort from the log."""

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
    """Skipped tests include expected failures."""

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
    """A step's summary, and what all its attempts took."""

    tests: Counts | None = None
    """The tests of its last check; None without single tests."""
    effort: RunEffort = NO_EFFORT
    notes: tuple[str, ...] = ()
    """Remarks of its last check for the user."""
    models: tuple[str, ...] = ()
    """Models that replied, in all attempts."""
    left_out: tuple[LeftOut, ...] = ()
    """Changes of its last attempt that the user did not accept."""
    edited: tuple[str, ...] = ()
    """Files of its last attempt whose proposed content the user edited."""
    refusals: tuple[str, ...] = ()
    """The user's reasons for refusing whole changes, in all attempts."""

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
    ticket_slug: str
    ticket_title: str
    status: RunStatus
    started_at: datetime | None
    completed_at: datetime | None
    steps: tuple[StepReport, ...]
    files_created: tuple[str, ...]
    """Files that completed steps created, including those that a later step changed."""
    files_modified: tuple[str, ...]
    tests_before: Counts | None
    """The baseline; None without single tests."""
    tests_after: Counts | None
    """Every test's last known result, from baseline and completed steps."""
    effort: RunEffort
    """Includes steps removed from the plan."""
    unproven: tuple[Unproven, ...] = ()
    """Finished or failed steps without passed tests."""
    require: Require | None = None
    """The run's rule, if any. It fails the run if it rejects one of `unproven`."""
    files_deleted: tuple[str, ...] = ()
    """Deleted files from before the run. Files created and deleted in the run are not
    listed.
    """
    edited_criteria: tuple[EditedCriterion, ...] = ()
    """Criteria that are new or changed since the steps were over."""
    missing: tuple[MissingWork, ...] = ()
    """Work that the tree lacked when all steps were over."""
    damaged_lines: int = 0
    """Unreadable lines of the log, whose costs are missing."""

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
        """Secrets are redacted. Raises `BadInput` if the record or log is
        unreadable.
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
    """Includes the fields of the effort."""
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
    """None if no check reports tests."""
    if baseline is None or not baseline.tests:
        return None
    return merge_runs(baseline.tests)


def _counts(tests: SuiteRun | None) -> Counts | None:
    return None if tests is None else Counts.of(tests.results.values())
