"""The report of a ticket's run: what stands, as the state says, and what it took, as
the log says.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Literal

from msgspec import Struct, to_builtins

from cdd_agent.edits.file_diff import LeftOut
from cdd_agent.engine.accepted import KnownTests, accepted
from cdd_agent.engine.effort import RunCost, effort_by_step
from cdd_agent.engine.log import LogEntry, with_folders
from cdd_agent.engine.record import RunRecord
from cdd_agent.events import (
    ChangesReviewed,
    ModelReplaced,
    PlanOpened,
    ReplyFinished,
    ReplyStarted,
    StepStarted,
    TestsFinished,
)
from cdd_agent.tickets.plan import ImplementationPlan
from cdd_agent.tickets.run_outcome import judge_run
from cdd_agent.tickets.state import ExecutionState, Files
from cdd_agent.tickets.status import (
    EditedCriterion,
    MissingWork,
    RunStatus,
    StepStatus,
    Unproven,
    Verification,
    fill_label,
)
from cdd_agent.verification.outcomes import Result, SuiteRun


class Counts(Struct, frozen=True):
    """How many tests passed, failed, and were skipped or expected to fail."""

    passed: int
    failed: int
    skipped: int

    @classmethod
    def of(cls, results: Iterable[Result]) -> "Counts":
        found = list(results)
        return cls(
            found.count(Result.PASSED),
            found.count(Result.FAILED),
            found.count(Result.SKIPPED),
        )


class StepReport(Struct, frozen=True):
    """One step: where it stands, and what all its attempts together took."""

    number: int
    title: str
    status: StepStatus
    verification: Verification | None
    error: str | None
    reason: str | None
    """Why it was skipped."""
    attempts: int
    files_created: tuple[str, ...]
    files_modified: tuple[str, ...]
    tests: Counts | None
    """As its check saw them the last time, where it tells."""
    effort: RunCost
    files_deleted: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """Things that its last check left for a person to look at."""
    models: tuple[str, ...] = ()
    """Those whose replies it got, in all its attempts."""
    left_out: tuple[LeftOut, ...] = ()
    """The changes of its last attempt that a person did not take."""
    edited: tuple[str, ...] = ()
    """Files whose proposed result they edited in it."""
    refusals: tuple[str, ...] = ()
    """Their reasons for taking nothing of a change, in all its attempts."""
    label: str = ""
    """What users call the step."""

    def __post_init__(self) -> None:
        fill_label(self, self.number)


class Report(Struct, frozen=True):
    """A ticket's run so far."""

    ticket_slug: str
    ticket_title: str
    status: RunStatus
    started_at: datetime | None
    completed_at: datetime | None
    steps: tuple[StepReport, ...]
    files_created: tuple[str, ...]
    """Of the steps whose work stands; what one of them created and another changed is
    created.
    """
    files_modified: tuple[str, ...]
    tests_before: Counts | None
    """The baseline; None when it was not taken, or tells nothing of single tests."""
    tests_after: Counts | None
    """Every test as it is known now, from the baseline and the checks of the steps
    whose work stands.
    """
    effort: RunCost
    """With that of steps that are no longer in the plan."""
    unproven: tuple[Unproven, ...] = ()
    """The steps that were skipped, are unverified, or left old failures."""
    require: Literal["verified"] | None = None
    """The rule that held when it was made, if one did: by it each of those has failed
    the run.
    """
    files_deleted: tuple[str, ...] = ()
    """Of files that were there before the run; what one step created and another
    deleted is in no list.
    """
    edited_criteria: tuple[EditedCriterion, ...] = ()
    """Criteria of the spec that are new or were changed since the steps were over."""
    missing: tuple[MissingWork, ...] = ()
    """The work that the project's tree did not have when all steps were over."""

    @classmethod
    def of(
        cls,
        title: str,
        plan: ImplementationPlan,
        state: ExecutionState,
        record: RunRecord,
        criteria: Sequence[str],
        require: Literal["verified"] | None = None,
        missing: tuple[MissingWork, ...] = (),
    ) -> "Report":
        """Reads the record and its log. Secrets are redacted. Raises `BadInput` when
        one cannot be read.
        """
        efforts = effort_by_step(record.log.entries())
        logged = _FromLog.of(record.log.entries())
        known = KnownTests(record).so_far(state)
        files = _net(step.files for step in accepted(state))
        outcome = judge_run(plan, state, criteria, require, missing)
        steps = []
        for step in plan.steps:
            now = state.step(step.number)
            decided = now.attempts and now.status in (
                StepStatus.COMPLETED,
                StepStatus.FAILED,
            )
            steps.append(
                StepReport(
                    step.number,
                    step.title,
                    now.status,
                    now.verification,
                    now.error,
                    now.reason,
                    now.attempts,
                    now.files_created,
                    now.files_modified,
                    tests=_counts(record.attempt(now.folder, now.attempts).tests)
                    if decided
                    else None,
                    effort=efforts.get(now.folder, RunCost()),
                    files_deleted=now.files_deleted,
                    notes=logged.notes.get((now.folder, now.attempts), ())
                    if decided
                    else (),
                    models=tuple(logged.models.get(now.folder, ())),
                    left_out=tuple(logged.left_out.get((now.folder, now.attempts), ())),
                    edited=tuple(logged.edited.get((now.folder, now.attempts), ())),
                    refusals=tuple(logged.refusals.get(now.folder, ())),
                    label=step.label,
                )
            )
        tests = [test.result for test in known.reference.tests.values()]
        report = cls(
            state.ticket_slug,
            title,
            outcome.status,
            state.started_at,
            state.completed_at,
            tuple(steps),
            files_created=files.created,
            files_modified=files.modified,
            files_deleted=files.deleted,
            tests_before=_counts(known.baseline.tests if known.baseline else None),
            tests_after=Counts.of(tests) if tests else None,
            effort=sum(efforts.values(), RunCost()),
            unproven=outcome.unproven,
            edited_criteria=outcome.edited_criteria,
            require=require,
            missing=missing,
        )
        return record.redactor.redacted(report)

    def to_json(self) -> dict[str, Any]:
        moments = {"started_at": self.started_at, "completed_at": self.completed_at}
        return {
            **_fields(self),
            **{name: moment and moment.isoformat() for name, moment in moments.items()},
            "steps": [_fields(step) for step in self.steps],
        }


def _fields(report: Report | StepReport) -> dict[str, Any]:
    """By their names, those of its effort among them."""
    fields: dict[str, Any] = to_builtins(report)
    del fields["effort"]
    return fields | report.effort.to_json()


def _net(steps: Iterable[Files]) -> Files:
    """The net fate of files in several steps, one after the other."""
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


class _FromLog(Struct, frozen=True):
    """Of the run that goes on; of an attempt by the step's folder and its number, of a
    step by its folder.
    """

    notes: dict[tuple[int, int], tuple[str, ...]]
    """The output of an attempt's check, to be looked at."""
    models: dict[int, dict[str, None]]
    """Those that answered in a step."""
    left_out: dict[tuple[int, int], dict[LeftOut, None]]
    edited: dict[tuple[int, int], dict[str, None]]
    refusals: dict[int, dict[str, None]]

    @classmethod
    def of(cls, entries: Iterable[LogEntry]) -> "_FromLog":
        found = cls({}, {}, {}, {}, {})
        attempts: dict[int, int] = {}
        asked: dict[int, str] = {}
        for entry, step in with_folders(entries):
            attempt = (step, attempts.get(step, 0))
            match entry.event:
                case PlanOpened(resumed=False):
                    found = cls({}, {}, {}, {}, {})
                case StepStarted(attempt=number):
                    attempts[step] = number
                case TestsFinished(notes=told) if step in attempts:
                    found.notes[attempt] = told
                case ReplyStarted(model=model) | ModelReplaced(model=model):
                    asked[step] = model
                case ReplyFinished(step=int()) if asked.get(step):
                    found.models.setdefault(step, {})[asked[step]] = None
                case ChangesReviewed(reason="") as answer:
                    # told again where the step was interrupted
                    found.left_out.setdefault(attempt, {}).update(
                        dict.fromkeys(answer.left_out)
                    )
                    found.edited.setdefault(attempt, {}).update(
                        dict.fromkeys(answer.edited)
                    )
                case ChangesReviewed(reason=reason):
                    found.refusals.setdefault(step, {})[reason] = None
        return found


def _counts(tests: SuiteRun | None) -> Counts | None:
    return None if tests is None else Counts.of(tests.results.values())
