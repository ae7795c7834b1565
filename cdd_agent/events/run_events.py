"""Events of a run as a whole: its baseline, questions about it, its end."""

from collections.abc import Sequence

from msgspec.structs import force_setattr

from cdd_agent.events.base_event import BaseEvent, NamesStep
from cdd_agent.events.step_summary import StepSummary
from cdd_agent.tickets.plan import ImplementationPlan
from cdd_agent.tickets.run_outcome import Require, judge_run
from cdd_agent.tickets.state import ExecutionState
from cdd_agent.tickets.status import (
    EditedCriterion,
    MissingWork,
    RunStatus,
    Unproven,
)
from cdd_agent.tickets.step_tally import NO_STEPS, StepTally


class BaselineStarted(BaseEvent, frozen=True):
    """A check runs before anything is changed."""

    step: int
    """The step that comes after it."""
    command: str


class BaselineTaken(NamesStep, frozen=True):
    """The result of that check: numbers of tests, or else the exit code."""

    step: int
    command: str
    return_code: int | None
    """None if the command did not end by itself."""
    passed: int | None
    failed: int | None
    skipped: int | None
    seconds: float
    problem: str
    """Why its result is of no use, or of limited use, as a clause. Failures then count
    as new.
    """
    is_own: bool = False
    """True if a step names the check: it need not pass before the step."""
    reason: str = ""
    """The output's reason for an exit code other than 0, as a clause."""
    is_unusable: bool = False
    """True if the check cannot run at all: each step that it checks will stop."""


class QuestionAsked(BaseEvent, frozen=True):
    """The user asks something about a run. No step runs for it."""

    step: int
    question: str


class QuestionAnswered(BaseEvent, frozen=True):
    """The model answered the question, or could not be asked."""

    step: int


class RunFinished(BaseEvent, frozen=True):
    """The run stops: all steps are over, or one failed."""

    ticket_slug: str
    status: RunStatus
    completed: int
    skipped: int
    unverified: int
    total: int
    seconds: float | None
    """The time of all steps together, without waiting for the user."""
    files: tuple[str, ...]
    with_old_failures: int = 0
    """The number of completed steps with the verification `baseline`."""
    unproven: tuple[Unproven, ...] = ()
    """The steps that are over, or failed, without passed tests."""
    require: Require | None = None
    """The rule of the run, if it has one. It fails the run if it does not accept one of
    `unproven`.
    """
    commits: tuple[str, ...] = ()
    """The commits of its steps, if its last step has just ended."""
    to_commit: tuple[int, ...] = ()
    """Steps with uncommitted changes, if its last step has just ended."""
    labels_to_commit: tuple[str, ...] = ()
    edited_criteria: tuple[EditedCriterion, ...] = ()
    """Criteria that are new or were changed since, if all steps are over."""
    missing: tuple[MissingWork, ...] = ()
    """Work that the project's tree does not have, if all steps are over."""
    tally: StepTally = NO_STEPS
    """All steps of the plan by their outcomes. `completed`, `skipped`, `unverified`,
    `total` and `with_old_failures` are for readers of older lines.
    """

    def __post_init__(self) -> None:
        if not self.tally.total and self.total:
            force_setattr(self, "tally", self._older_tally())
        if not self.labels_to_commit:
            force_setattr(self, "labels_to_commit", tuple(map(str, self.to_commit)))

    def _older_tally(self) -> StepTally:
        """Return the tally of an older log, which has only some of the numbers."""
        proved = self.completed - self.unverified - self.with_old_failures
        return StepTally(
            passed=proved,
            old_failures=self.with_old_failures,
            unverified=self.unverified,
            skipped=self.skipped,
            open=self.total - self.completed - self.skipped,
        )

    @classmethod
    def from_run(
        cls,
        plan: ImplementationPlan,
        state: ExecutionState,
        criteria: Sequence[str],
        require: Require | None = None,
        missing: tuple[MissingWork, ...] = (),
    ) -> "RunFinished":
        """`criteria` are those of the current spec."""
        outcome = judge_run(plan, state, criteria, require, missing)
        steps = [
            StepSummary.from_state(state.step(step.number), plan) for step in plan.steps
        ]
        seconds = [step.seconds for step in steps if step.seconds is not None]
        tally = StepTally.count(step.outcome for step in steps)
        return RunFinished(
            state.ticket_slug,
            outcome.status,
            completed=tally.completed,
            skipped=tally.skipped,
            unverified=tally.unverified,
            total=tally.total,
            seconds=sum(seconds) if seconds else None,
            files=tuple(sorted({path for step in steps for path in step.files})),
            with_old_failures=tally.old_failures + tally.may_fail,
            unproven=outcome.unproven,
            require=require,
            edited_criteria=outcome.edited_criteria,
            missing=missing,
            tally=tally,
        )


RunEvent = (
    BaselineStarted | BaselineTaken | QuestionAsked | QuestionAnswered | RunFinished
)
