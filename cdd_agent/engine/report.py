"""The report of a ticket's run: what stands, as the state says, and what it took, as the log says."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal

from cdd_agent.engine.accepted import accepted, known_so_far
from cdd_agent.engine.effort import RunCost, effort_by_step
from cdd_agent.engine.log import LogEntry, with_folders
from cdd_agent.engine.record import RunRecord
from cdd_agent.events import ModelReplaced, PlanOpened, ReplyFinished, ReplyStarted, StepStarted, TestsFinished
from cdd_agent.tickets.plan import ImplementationPlan
from cdd_agent.tickets.plan_step import PlanStep
from cdd_agent.tickets.state import ExecutionState, Files, StepExecution, unproven
from cdd_agent.tickets.status import RunStatus, StepStatus, Unproven, Verification
from cdd_agent.verification.outcomes import Reference, Result, SuiteRun


@dataclass(frozen=True)
class Counts:
    """How many tests passed, failed, and were skipped or expected to fail."""

    passed: int
    failed: int
    skipped: int

    @classmethod
    def of(cls, results: Iterable[Result]) -> "Counts":
        found = list(results)
        return cls(found.count(Result.PASSED), found.count(Result.FAILED), found.count(Result.SKIPPED))


@dataclass(frozen=True)
class StepReport:
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
    """What its check saw the last time, where it tells."""
    effort: RunCost
    files_deleted: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What its last check left for a person to look at."""
    models: tuple[str, ...] = ()
    """Those whose replies it got, in all its attempts."""


@dataclass(frozen=True)
class Report:
    """A ticket's run so far."""

    ticket_slug: str
    title: str
    status: RunStatus
    started_at: datetime | None
    completed_at: datetime | None
    steps: tuple[StepReport, ...]
    files_created: tuple[str, ...]
    """Of the steps whose work stands; what one of them created and another changed is created."""
    files_modified: tuple[str, ...]
    tests_before: Counts | None
    """The baseline; None when it was not taken, or tells nothing of single tests."""
    tests_after: Counts | None
    """What is known now of every test, from the baseline and the checks of the steps whose work stands."""
    effort: RunCost
    """With that of steps that are no longer in the plan."""
    unproven: tuple[Unproven, ...] = ()
    """The steps that were skipped, are unverified, or left old failures."""
    require: Literal["verified"] | None = None
    """The rule that held when it was made, if one did: by it each of those has failed the run."""
    files_deleted: tuple[str, ...] = ()
    """Of files that were there before the run; what one step created and another deleted is in no list."""

    @classmethod
    def of(
        cls,
        title: str,
        plan: ImplementationPlan,
        state: ExecutionState,
        record: RunRecord,
        require: Literal["verified"] | None = None,
    ) -> "Report":
        """Reads the record and its log. Secrets are redacted. Raises `BadInput` when one cannot be read."""
        efforts, notes = effort_by_step(record.log.entries()), _notes(record.log.entries())
        models = _models(record.log.entries())
        known = known_so_far(state, record)
        files = _net(step.files for step in accepted(state))
        found = unproven(plan, state)
        report = cls(
            state.ticket_slug,
            title,
            RunStatus.FAILED if require and found else state.status,
            state.started_at,
            state.completed_at,
            steps=tuple(_step(step, state.of(step.number), record, efforts, notes, models) for step in plan.steps),
            files_created=files.created,
            files_modified=files.modified,
            files_deleted=files.deleted,
            tests_before=_counts(known.baseline.tests if known.baseline else None),
            tests_after=_known(known.reference),
            effort=sum(efforts.values(), RunCost()),
            unproven=found,
            require=require,
        )
        return record.redactor.redacted(report)

    def to_json(self) -> dict[str, Any]:
        return {
            "ticket_slug": self.ticket_slug,
            "ticket_title": self.title,
            "status": self.status.value,
            "require": self.require,
            "unproven": [asdict(step) for step in self.unproven],
            "started_at": self.started_at.isoformat() if self.started_at else None,
            "completed_at": self.completed_at.isoformat() if self.completed_at else None,
            **_effort_to_json(self.effort),
            "files_created": list(self.files_created),
            "files_modified": list(self.files_modified),
            "files_deleted": list(self.files_deleted),
            "tests_before": asdict(self.tests_before) if self.tests_before else None,
            "tests_after": asdict(self.tests_after) if self.tests_after else None,
            "steps": [_step_to_json(step) for step in self.steps],
        }


def _net(steps: Iterable[Files]) -> Files:
    """What became of files in several steps, one after the other."""
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


def _notes(entries: Iterable[LogEntry]) -> Mapping[tuple[int, int], tuple[str, ...]]:
    """By the step's folder and attempt, what its check left to look at; only of the run that goes on."""
    notes: dict[tuple[int, int], tuple[str, ...]] = {}
    attempts: dict[int, int] = {}
    for entry, step in with_folders(entries):
        match entry.event:
            case PlanOpened(resumed=False):
                notes.clear()
            case StepStarted(attempt=attempt):
                attempts[step] = attempt
            case TestsFinished(notes=told) if step in attempts:
                notes[step, attempts[step]] = told
    return notes


def _models(entries: Iterable[LogEntry]) -> Mapping[int, tuple[str, ...]]:
    """By the step's folder, the models that answered in it; only of the run that goes on."""
    answered: dict[int, dict[str, None]] = {}
    asked = ""
    for entry, step in with_folders(entries):
        match entry.event:
            case PlanOpened(resumed=False):
                answered.clear()
            case ReplyStarted(model=model) | ModelReplaced(model=model):
                asked = model
            case ReplyFinished(step=int()) if asked:
                answered.setdefault(step, {})[asked] = None
    return {step: tuple(models) for step, models in answered.items()}


def _step(
    step: PlanStep,
    now: StepExecution,
    record: RunRecord,
    efforts: Mapping[int, RunCost],
    notes: Mapping[tuple[int, int], tuple[str, ...]],
    models: Mapping[int, tuple[str, ...]],
) -> StepReport:
    decided = now.attempts and now.status in (StepStatus.COMPLETED, StepStatus.FAILED)
    return StepReport(
        step.number,
        step.title,
        now.status,
        now.verification,
        now.error,
        now.reason,
        now.attempts,
        now.files_created,
        now.files_modified,
        tests=_counts(record.attempt(now.folder, now.attempts).tests) if decided else None,
        effort=efforts.get(now.folder, RunCost()),
        files_deleted=now.files_deleted,
        notes=notes.get((now.folder, now.attempts), ()) if decided else (),
        models=models.get(now.folder, ()),
    )


def _counts(tests: SuiteRun | None) -> Counts | None:
    return None if tests is None else Counts.of(tests.results.values())


def _known(reference: Reference) -> Counts | None:
    return Counts.of(known.result for known in reference.tests.values()) if reference.tests else None


def _effort_to_json(effort: RunCost) -> dict[str, Any]:
    return {
        "seconds": round(effort.seconds, 1),
        "model_calls": effort.model_calls,
        "calls_without_usage": effort.model_calls - effort.counted_calls,
        "calls_estimated": effort.estimated_calls,
        "prompt_tokens": effort.prompt_tokens,
        "completion_tokens": effort.completion_tokens,
        "thinking_seconds": round(effort.thinking_seconds, 1),
        "thinking_tokens": effort.thinking_tokens,
        "cached_tokens": effort.cached_tokens,
        "cache_write_tokens": effort.cache_write_tokens,
        "usd": None if effort.usd is None else round(effort.usd, 6),
        "saved_usd": None if effort.saved_usd is None else round(effort.saved_usd, 6),
    }


def _step_to_json(step: StepReport) -> dict[str, Any]:
    return {
        "number": step.number,
        "title": step.title,
        "status": step.status.value,
        "verification": step.verification.value if step.verification else None,
        "error": step.error,
        "reason": step.reason,
        "attempts": step.attempts,
        "files_created": list(step.files_created),
        "files_modified": list(step.files_modified),
        "files_deleted": list(step.files_deleted),
        "tests": asdict(step.tests) if step.tests else None,
        "notes": list(step.notes),
        "models": list(step.models),
        **_effort_to_json(step.effort),
    }
