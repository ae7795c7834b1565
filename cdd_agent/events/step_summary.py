"""The summary of a step, for events, reports and faces."""

from msgspec import Struct, field
from msgspec.structs import asdict

from cdd_agent.cost import NO_COST, Cost
from cdd_agent.events.base_event import BaseEvent
from cdd_agent.tickets.plan import ImplementationPlan, PlanStep
from cdd_agent.tickets.state import ExecutionState, StepExecution
from cdd_agent.tickets.status import (
    Evidence,
    StepOutcome,
    StepStatus,
    Verification,
    fill_label,
)
from cdd_agent.tickets.step_tally import NO_STEPS, StepTally


class StepSummary(Struct, frozen=True):
    """A step: status, evidence, files, cost."""

    number: int
    title: str
    status: StepStatus = StepStatus.PENDING
    verification: Verification | None = None
    error: str | None = None
    reason: str | None = None
    """The reason for skipping it."""
    files_created: tuple[str, ...] = ()
    files_modified: tuple[str, ...] = ()
    files_deleted: tuple[str, ...] = ()
    attempts: int = 0
    seconds: float | None = None
    """The time from its start to its end."""
    completed_at: str | None = None
    """The time of its end or failure, in ISO 8601."""
    evidence: Evidence | None = None
    cost: Cost = NO_COST
    """The cost of all its attempts so far."""
    changed: bool = False
    """True if it is over, and the plan was changed since."""
    folder: int = 0
    """The number of its folder in the run's record; 0 in older logs: its own number."""
    depends_on: tuple[int, ...] = ()
    label: str = ""
    """The number in the plan, such as `1b`, which users see and type."""
    refusal: str = ""
    """The id of the kind of failure, for `cdd help`. Empty if there is none, and in
    older logs.
    """

    def __post_init__(self) -> None:
        fill_label(self, self.number)

    @property
    def outcome(self) -> StepOutcome:
        return StepOutcome.from_status(self.status, self.verification, self.evidence)

    @property
    def files(self) -> tuple[str, ...]:
        """All files that it created, changed or deleted."""
        return (*self.files_created, *self.files_modified, *self.files_deleted)

    @classmethod
    def from_state(
        cls, execution: StepExecution, plan: ImplementationPlan
    ) -> "StepSummary":
        """Return the summary of a step. The title comes from the plan, if the step is
        still there.
        """
        step = plan.step(execution.step_number)
        title = step.title if step else execution.title
        is_edited = step is not None and not execution.identity.is_unchanged(step)
        return StepSummary(
            execution.step_number,
            title or "",
            execution.status,
            execution.verification,
            execution.error,
            execution.reason,
            execution.files_created,
            execution.files_modified,
            execution.files_deleted,
            attempts=execution.attempts,
            seconds=execution.seconds,
            completed_at=execution.completed_at.isoformat()
            if execution.completed_at
            else None,
            evidence=execution.evidence,
            cost=execution.spent,
            changed=execution.status.is_over and is_edited,
            folder=execution.folder,
            depends_on=step.dependencies if step else (),
            label=plan.label_of(execution.step_number),
            refusal=execution.refusal,
        )


class StepFinished(StepSummary, BaseEvent, frozen=True):
    """A step is over, failed, or pending again after an interruption."""

    number: int = field(name="step")
    done: int = 0
    """The number of finished steps in the plan."""
    total: int = 0
    """The number of steps in the plan."""
    tally: StepTally = NO_STEPS
    """All steps of the plan by outcome. Not in older logs."""
    is_earlier_failure: bool = False
    """True if an earlier attempt caused the failure, because the last one got no
    reply.
    """

    @property
    def step(self) -> int:
        """The step's number, with the same name as in other events."""
        return self.number

    @property
    def summary(self) -> StepSummary:
        fields = {name: getattr(self, name) for name in StepSummary.__struct_fields__}
        return StepSummary(**fields)

    @classmethod
    def from_run(
        cls, step: PlanStep, plan: ImplementationPlan, state: ExecutionState
    ) -> "StepFinished":
        summary = StepSummary.from_state(state.step(step.number), plan)
        tally = state.tally
        return StepFinished(
            **asdict(summary), done=tally.over, total=tally.total, tally=tally
        )
