"""How far a ticket's plan has been carried out: `execution-state.json`, and the transitions that are allowed.

States are values: a transition gives a new one. Only the engine writes the file.
"""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from cdd_agent.errors import BadInput
from cdd_agent.tickets.plan import ImplementationPlan, PlanStep
from cdd_agent.tickets.status import RunStatus, StepStatus, Verification
from cdd_agent.workspace.files import read_bytes, write_atomic


class StateUnreadable(BadInput):
    """The state file is torn or not a state."""


def _aware(moment: datetime) -> datetime:
    """Older files have times without a zone; they were UTC."""
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


Moment = Annotated[datetime, AfterValidator(_aware)]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow")  # newer versions may have added keys: keep them


class StepExecution(_Record):
    """What became of one step. Paths are relative to the project."""

    step_number: int
    title: str | None = None
    """As the plan had it when the step was last started; None in older files."""
    status: StepStatus = StepStatus.PENDING
    started_at: Moment | None = None
    completed_at: Moment | None = None
    error: str | None = None
    files_created: tuple[str, ...] = ()
    files_modified: tuple[str, ...] = ()
    verification: Verification | None = None
    reason: str | None = None
    """Why it was skipped."""
    attempts: int = 0
    """Attempts at this step so far; an interrupted one that goes on is counted once."""


class ExecutionState(_Record):
    """How far the executor is."""

    ticket_slug: str
    current_step: int = 0
    """The step last started; 0 before the first."""
    started_at: Moment | None = None
    completed_at: Moment | None = None
    step_executions: dict[int, StepExecution] = Field(default_factory=dict)
    former_steps: dict[int, StepExecution] = Field(default_factory=dict)
    """Steps that are no longer in the plan: kept as history, not counted."""

    @property
    def status(self) -> RunStatus:
        statuses = {step.status for step in self.step_executions.values()}
        if statuses and all(status.over for status in statuses):
            return RunStatus.COMPLETED
        return RunStatus.FAILED if StepStatus.FAILED in statuses else RunStatus.IN_PROGRESS

    @property
    def done(self) -> int:
        """The number of steps that are over."""
        return sum(step.status.over for step in self.step_executions.values())

    def of(self, number: int) -> StepExecution:
        return self.step_executions.get(number) or self.former_steps.get(number) or StepExecution(step_number=number)

    def with_steps(self, numbers: Iterable[int]) -> Self:
        """The same state with an entry for every step of the plan, in the plan's order, and for no other."""
        known = {**self.former_steps, **self.step_executions}
        entries = {number: known.pop(number, StepExecution(step_number=number)) for number in numbers}
        return self.model_copy(update={"step_executions": entries, "former_steps": known})

    def started(self, number: int, now: datetime, *, attempt: int, title: str | None = None) -> Self:
        previous = self.of(number)
        fresh = previous.started_at if previous.status is StepStatus.IN_PROGRESS else now
        step = StepExecution(
            step_number=number, title=title, status=StepStatus.IN_PROGRESS, started_at=fresh or now, attempts=attempt
        )
        return self._with(step).model_copy(
            update={"current_step": number, "started_at": self.started_at or now, "completed_at": None}
        )

    def completed(
        self,
        number: int,
        now: datetime,
        verification: Verification,
        created: Iterable[str],
        modified: Iterable[str],
    ) -> Self:
        return self._ended(
            number,
            now,
            status=StepStatus.COMPLETED,
            verification=verification,
            error=None,
            files_created=tuple(created),
            files_modified=tuple(modified),
        )

    def failed(
        self,
        number: int,
        now: datetime,
        error: str,
        created: Iterable[str] = (),
        modified: Iterable[str] = (),
    ) -> Self:
        """The files are those that the failed attempt left behind, for the person to look at."""
        return self._ended(
            number,
            now,
            status=StepStatus.FAILED,
            error=error,
            files_created=tuple(created),
            files_modified=tuple(modified),
        )

    def skipped(
        self,
        number: int,
        now: datetime,
        reason: str,
        created: Iterable[str] = (),
        modified: Iterable[str] = (),
    ) -> Self:
        """The files are those that were kept of a failed attempt."""
        return self._ended(
            number,
            now,
            status=StepStatus.SKIPPED,
            reason=reason,
            files_created=tuple(created),
            files_modified=tuple(modified),
        )

    def put_back(self, number: int) -> Self:
        """An interrupted step is pending again: it left no trace. Its attempt goes on under the same number."""
        before = self.of(number)
        return self._with(StepExecution(step_number=number, title=before.title, attempts=before.attempts))

    def _ended(self, number: int, now: datetime, **update: Any) -> Self:
        step = self.of(number).model_copy(update={"completed_at": now, **update})
        after = self._with(step)
        return after.model_copy(update={"completed_at": now if after.status is RunStatus.COMPLETED else None})

    def _with(self, step: StepExecution) -> Self:
        place = "former_steps" if step.step_number in self.former_steps else "step_executions"
        return self.model_copy(update={place: {**getattr(self, place), step.step_number: step}})

    def to_json(self) -> str:
        """The promised keys first, in their order; then whatever else the file held."""
        promised = ("ticket_slug", "current_step", "status", "started_at", "completed_at", "step_executions")
        data = {**self.model_dump(mode="json"), "status": self.status.value}
        for record in (data, *data["step_executions"].values(), *data["former_steps"].values()):
            for key in ("started_at", "completed_at"):
                record[key] = record[key].replace("Z", "+00:00") if record[key] else None
        if not self.former_steps:
            del data["former_steps"]
        ordered = {key: data[key] for key in promised} | data
        return json.dumps(ordered, indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, data: bytes, source: str) -> Self:
        """Raises `StateUnreadable`, with `source` as the file's name."""
        try:
            content = json.loads(data)
            if isinstance(content, dict):
                content.pop("status", None)  # computed from the steps, never believed
            return cls.model_validate(content)
        except (ValueError, RecursionError) as error:  # JSON, encoding and validation errors are ValueErrors
            reason = _first(error) if isinstance(error, ValidationError) else str(error)
            raise StateUnreadable(f"{source} is not a readable execution state: {reason}") from error


def load_state(path: Path, slug: str, plan: ImplementationPlan) -> ExecutionState | None:
    """The state beside a plan, or None when nothing has been run. Raises `StateUnreadable`, or `BadInput`."""
    data = read_bytes(path)
    if data is None:
        return None
    state = ExecutionState.from_json(data, str(path))
    if state.ticket_slug != slug:
        raise BadInput(
            f"{path} is the state of another ticket, {state.ticket_slug}",
            hint="Move it away if it was copied here by mistake.",
        )
    state = state.with_steps(step.number for step in plan.steps)
    _refuse_another_plan(path, plan, state)
    return state


def _refuse_another_plan(path: Path, plan: ImplementationPlan, state: ExecutionState) -> None:
    """Steps are known by their number: one that is over must still be the step that was carried out."""
    for step in plan.steps:
        done = state.of(step.number)
        if done.status.over and done.title not in (None, step.title):
            raise BadInput(
                f"Step {step.number} is {step.title!r} in the plan; the one that is {done.status} was {done.title!r}",
                hint=f"Give new steps new numbers. To start over with another plan, move {path} away.",
            )


def new_state(slug: str, plan: ImplementationPlan) -> ExecutionState:
    """The state of a plan of which nothing has been run."""
    return ExecutionState(ticket_slug=slug).with_steps(step.number for step in plan.steps)


def save_state(path: Path, state: ExecutionState) -> None:
    write_atomic(path, state.to_json().encode())


def ready(plan: ImplementationPlan, state: ExecutionState) -> PlanStep | None:
    """The first step, in dependency order, that is not over and whose dependencies all are."""
    for step in plan.order():
        waiting = not state.of(step.number).status.over
        if waiting and all(state.of(number).status.over for number in step.dependencies):
            return step
    return None


def _first(error: ValidationError) -> str:
    detail = error.errors()[0]
    return f"{'.'.join(map(str, detail['loc'])) or 'the whole'}: {detail['msg']}"
