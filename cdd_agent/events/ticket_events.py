"""Events of tickets: lists, specs, plans, acceptance criteria."""

from collections.abc import Collection, Sequence

from msgspec import Struct

from cdd_agent.cost import NO_COST, Cost
from cdd_agent.events.base_event import BaseEvent
from cdd_agent.events.step_summary import StepSummary
from cdd_agent.events.strength_events import Strength
from cdd_agent.tickets.plan import ImplementationPlan, Problem, without_step_ids
from cdd_agent.tickets.plan_comparison import (
    PlanComparison,
    StepChangeKind,
    describe_checks,
    describe_file,
)
from cdd_agent.tickets.served_criteria import edited_criteria
from cdd_agent.tickets.state import ExecutionState
from cdd_agent.tickets.status import (
    ChangedFiles,
    CriterionEdit,
    EditedCriterion,
    MissingWork,
    StepOutcome,
)
from cdd_agent.tickets.step_tally import NO_STEPS, StepTally

TICKET_STATES = (
    "empty",
    "spec",
    "planned",
    "in progress",
    "failed",
    "done",
    "completed",
    "spec changed",
    "unreadable",
)


class TicketView(Struct, frozen=True):
    """A ticket in a list. `state` is one of `TICKET_STATES`."""

    slug: str
    state: str
    done: int = 0
    total: int = 0
    error: str = ""
    type: str = ""
    """Empty if neither the slug nor the spec contains it."""
    where: str = ""
    """The place of the run, in short; empty for the project itself."""
    tally: StepTally = NO_STEPS
    """The steps of the plan by outcome."""
    changed: int = 0
    """If no step remains: the number of the steps' files that were changed or removed
    since.
    """

    @property
    def is_over(self) -> bool:
        """True if no step remains, and the spec has not changed since."""
        return self.state in ("done", "completed")


class TicketsListed(BaseEvent, frozen=True):
    """The tickets that match `state` and `type`."""

    tickets: tuple[TicketView, ...]
    state: str | None = None
    type: str | None = None


class SpecOpened(BaseEvent, frozen=True):
    """A ticket without a plan was opened."""

    ticket_slug: str
    title: str
    """Empty if it is not written yet."""
    path: str
    missing: tuple[str, ...]
    """The fields that are not written."""
    open_points: tuple[str, ...] = ()
    """Open questions, and criteria without a check, from the conversation with
    Socrates.
    """


class CriterionView(Struct, frozen=True):
    """An acceptance criterion and its check; the check is empty if unknown."""

    text: str
    check: str = ""


class QuestionView(Struct, frozen=True):
    """An open question. With its number, the user can drop it."""

    number: int
    text: str


class SpecWords(Struct, frozen=True):
    """A sentence or an item of a spec, with its field."""

    field: str
    text: str


class SpecShown(BaseEvent, frozen=True):
    """The draft of a spec. Fields that are not written yet are empty."""

    ticket_slug: str
    title: str
    type: str
    priority: str
    description: str
    criteria: tuple[CriterionView, ...]
    scope: tuple[tuple[str, tuple[str, ...]], ...]
    technical_notes: str
    missing: tuple[str, ...]
    """The reasons why it is not complete, one per line."""
    open_questions: tuple[QuestionView, ...]
    not_written: tuple[str, ...]
    """The fields that differ in spec.yaml."""
    lost: tuple[SpecWords, ...] = ()
    """Sentences and items of spec.yaml that are removed or reworded if the draft is
    approved.
    """
    in_full: bool = False
    """True if the user asked to see all of it."""


class PlanOpened(BaseEvent, frozen=True):
    """A plan was read. `steps` are in the order of the run."""

    ticket_slug: str
    title: str
    steps: tuple[StepSummary, ...]
    resumed: bool
    """True if there was an earlier run."""
    former_cost: Cost = NO_COST
    """The cost of steps that are no longer in the plan."""
    edited_criteria: tuple[EditedCriterion, ...] = ()
    """Criteria of the spec that were added or changed since the run began, and have no
    step.
    """
    missing: tuple[MissingWork, ...] = ()
    """Files of steps that are missing in the project's tree, if that was checked."""
    changed: tuple[ChangedFiles, ...] = ()
    """Files of steps that have changed since, if that was checked."""
    spec_changed: bool = False
    """True if spec.yaml has changed since the run, if that was checked."""

    @property
    def tally(self) -> StepTally:
        return StepTally.count(step.outcome for step in self.steps)

    @property
    def cost(self) -> Cost:
        """The cost of the run."""
        return sum((step.cost for step in self.steps), self.former_cost)

    @classmethod
    def from_run(
        cls,
        title: str,
        plan: ImplementationPlan,
        state: ExecutionState,
        criteria: Sequence[str],
    ) -> "PlanOpened":
        """`title` and `criteria` belong to the current spec."""
        steps = (
            StepSummary.from_state(state.step(step.number), plan)
            for step in plan.order()
        )
        former = sum((step.spent for step in state.former_steps.values()), NO_COST)
        return PlanOpened(
            state.ticket_slug,
            title,
            tuple(steps),
            state.started_at is not None,
            former,
            edited_criteria(plan, state, criteria),
        )


class ProposedStep(Struct, frozen=True):
    """A step of a plan that is not approved."""

    label: str
    title: str
    files: tuple[str, ...] = ()
    """Paths, each with its note."""
    checks: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    is_completed: bool = False
    kind: StepChangeKind | None = None
    """The difference from the present plan; None if there is none, or if the whole plan
    is new.
    """


class PlanProposed(BaseEvent, frozen=True):
    """A plan, or changes of a plan, that need approval."""

    ticket_slug: str
    title: str
    text: str
    """The whole plan in Markdown, without the ids of its steps."""
    steps: tuple[ProposedStep, ...]
    changes: PlanComparison | None = None
    """The differences from the present plan, or from the last proposal. None if the
    whole plan is new.
    """
    summary: str = ""
    """The model's summary of the changes."""
    in_full: bool = True
    """False if a list of the steps is enough."""

    @classmethod
    def from_plan(
        cls,
        ticket_slug: str,
        plan: ImplementationPlan,
        text: str,
        completed: Collection[str],
        changes: PlanComparison | None,
        summary: str = "",
    ) -> "PlanProposed":
        """`completed` are the labels of completed steps."""
        steps = []
        for step in plan.steps:
            steps.append(
                ProposedStep(
                    step.label,
                    step.title,
                    tuple(map(describe_file, step.files_affected)),
                    tuple(describe_checks(step)),
                    plan.labels_of(step.dependencies),
                    is_completed=step.label in completed,
                    kind=changes.kind_of(step.label) if changes else None,
                )
            )
        return PlanProposed(
            ticket_slug,
            plan.ticket_title,
            without_step_ids(text),
            tuple(steps),
            changes,
            summary,
        )


class CriterionProof(Struct, frozen=True):
    """An acceptance criterion with its work and evidence."""

    number: int
    """The position in the spec, from 1."""
    text: str
    steps: tuple[StepSummary, ...] = ()
    """The steps that served its words, or will serve them."""
    tests: tuple[str, ...] = ()
    """The tests that pass since these steps: new ones, and ones that failed before."""
    files: tuple[str, ...] = ()
    """The files that these steps changed."""
    edit: CriterionEdit | None = None
    """The reason why no work of the run counts for it. None if the run knows its words,
    or a step will serve them.
    """

    missing: tuple[str, ...] = ()
    """Files of these steps that are not in the project's tree as the run left them."""
    strength: Strength | None = None
    """The share of small faults in these steps' lines that the checks notice. None
    unless measured with the current files.
    """

    @property
    def is_seen(self) -> bool:
        """True if all its steps are completed and verified by tests, and the files are
        there.
        """
        is_verified = bool(self.steps) and all(
            step.outcome is StepOutcome.PASSED for step in self.steps
        )
        return is_verified and not self.missing


class CriteriaShown(BaseEvent, frozen=True):
    """The acceptance criteria of a ticket."""

    ticket_slug: str
    title: str
    criteria: tuple[CriterionProof, ...]


class PlanChecked(BaseEvent, frozen=True):
    """The findings about a plan. The plan can run if none is an error."""

    ticket_slug: str
    source: str
    """A file, or a plan that is not written yet."""
    problems: tuple[Problem, ...]


TicketEvent = (
    TicketsListed
    | SpecOpened
    | SpecShown
    | PlanOpened
    | PlanProposed
    | CriteriaShown
    | PlanChecked
)
