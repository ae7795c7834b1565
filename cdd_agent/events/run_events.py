"""Events of a run as a whole: its baseline, questions about it, its end."""

from collections.abc import Sequence
from typing import Literal

from msgspec.structs import force_setattr

from cdd_agent.events.base_event import BaseEvent, NamesStep
from cdd_agent.events.step_summary import StepSummary
from cdd_agent.tickets.plan import ImplementationPlan
from cdd_agent.tickets.run_outcome import judge_run
from cdd_agent.tickets.state import ExecutionState
from cdd_agent.tickets.status import (
    EditedCriterion,
    MissingWork,
    RunStatus,
    StepStatus,
    Unproven,
    Verification,
)


class BaselineStarted(BaseEvent, frozen=True):
    """A check runs before the run, or the step, changes anything."""

    step: int
    """The step that comes after it."""
    command: str


class BaselineTaken(NamesStep, frozen=True):
    """The result of a check before the step: numbers of tests, or else the exit
    code.
    """

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


class QuestionAsked(BaseEvent, frozen=True):
    """The user asks something about a run, before or after this step. No step runs for
    it.
    """

    step: int
    question: str


class QuestionAnswered(BaseEvent, frozen=True):
    """The model has answered the user's question, or could not be asked."""

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
    """The number of completed steps whose check still shows failures from before the
    run.
    """
    unproven: tuple[Unproven, ...] = ()
    """The steps that were skipped, are unverified, or left old failures."""
    require: Literal["verified"] | None = None
    """The rule of the run, if it has one. Each of `unproven` then fails the run."""
    commits: tuple[str, ...] = ()
    """The commits of its steps, if its last step has just ended."""
    to_commit: tuple[int, ...] = ()
    """Steps with uncommitted changes, if its last step has just ended."""
    labels_to_commit: tuple[str, ...] = ()
    """The labels of these steps."""
    edited_criteria: tuple[EditedCriterion, ...] = ()
    """Criteria that are new or were changed since, if all steps are over."""
    missing: tuple[MissingWork, ...] = ()
    """Work that the project's tree does not have, if all steps are over."""

    def __post_init__(self) -> None:
        if not self.labels_to_commit:
            force_setattr(self, "labels_to_commit", tuple(map(str, self.to_commit)))

    @classmethod
    def from_run(
        cls,
        plan: ImplementationPlan,
        state: ExecutionState,
        criteria: Sequence[str],
        require: Literal["verified"] | None = None,
        missing: tuple[MissingWork, ...] = (),
    ) -> "RunFinished":
        """`criteria` are those of the spec as it is now."""
        outcome = judge_run(plan, state, criteria, require, missing)
        steps = [
            StepSummary.from_state(state.step(step.number), plan) for step in plan.steps
        ]
        seconds = [step.seconds for step in steps if step.seconds is not None]
        statuses = [step.status for step in steps]
        verifications = [step.verification for step in steps]
        return RunFinished(
            state.ticket_slug,
            outcome.status,
            completed=statuses.count(StepStatus.COMPLETED),
            skipped=statuses.count(StepStatus.SKIPPED),
            unverified=verifications.count(Verification.NONE),
            total=len(steps),
            seconds=sum(seconds) if seconds else None,
            files=tuple(sorted({path for step in steps for path in step.files})),
            with_old_failures=verifications.count(Verification.BASELINE),
            unproven=outcome.unproven,
            require=require,
            edited_criteria=outcome.edited_criteria,
            missing=missing,
        )


RunEvent = (
    BaselineStarted | BaselineTaken | QuestionAsked | QuestionAnswered | RunFinished
)
