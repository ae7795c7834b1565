"""The summary of a step: for events, reports and faces."""

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
    """One step: its status, its evidence, its files, its cost."""

    number: int
    title: str
    status: StepStatus = StepStatus.PENDING
    verification: Verification | None = None
    error: str | None = None
    reason: str | None = None
    """Why it was skipped."""
    files_created: tuple[str, ...] = ()
    files_modified: tuple[str, ...] = ()
    files_deleted: tuple[str, ...] = ()
    attempts: int = 0
    seconds: float | None = None
    """The time from its start to its end."""
    completed_at: str | None = None
    """The time at which it ended or failed, in ISO 8601."""
    evidence: Evidence | None = None
    cost: Cost = NO_COST
    """The cost of all its attempts so far."""
    changed: bool = False
    """True if it is over and was edited in the plan since."""
    folder: int = 0
    """The number of its folder in the run's record; 0 in older logs: its own number."""
    depends_on: tuple[int, ...] = ()
    label: str = ""
    """The number as the plan writes it, such as `1b`. Users see and type this."""
    refusal: str = ""
    """The id of the kind of failure, as `cdd help` explains it. Empty if there is none
    or in older logs.
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
    def from_state(cls, now: StepExecution, plan: ImplementationPlan) -> "StepSummary":
        """Summarize a step of the state. Its title is the plan's, if the plan still has
        the step.
        """
        step = plan.step(now.step_number)
        title = step.title if step else now.title
        is_edited = step is not None and not now.identity.is_unchanged(step)
        return StepSummary(
            now.step_number,
            title or "",
            now.status,
            now.verification,
            now.error,
            now.reason,
            now.files_created,
            now.files_modified,
            now.files_deleted,
            attempts=now.attempts,
            seconds=now.seconds,
            completed_at=now.completed_at.isoformat() if now.completed_at else None,
            evidence=now.evidence,
            cost=now.spent,
            changed=now.status.is_over and is_edited,
            folder=now.folder,
            depends_on=step.dependencies if step else (),
            label=plan.label_of(now.step_number),
            refusal=now.refusal,
        )


class StepFinished(StepSummary, BaseEvent, frozen=True):
    """A step is over, failed, or pending again after an interruption."""

    number: int = field(name="step")
    done: int = 0
    """The number of steps of the plan that are over."""
    total: int = 0
    """The number of steps of the plan."""
    tally: StepTally = NO_STEPS
    """All steps of the plan by their outcomes. Older logs do not have it."""
    is_earlier_failure: bool = False
    """True if the failure is that of an earlier attempt: the last one got no reply."""

    @property
    def step(self) -> int:
        """Return its number, under the name that all events have for it."""
        return self.number

    @property
    def summary(self) -> StepSummary:
        """Return the summary without the progress of the run."""
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
