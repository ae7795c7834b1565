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
    """A check starts, before anything is changed."""

    step: int
    """The step after it."""
    command: str


class BaselineTaken(NamesStep, frozen=True):
    """The result of the baseline's check: numbers of tests, or an exit code."""

    step: int
    command: str
    return_code: int | None
    """None if the command was stopped."""
    passed: int | None
    failed: int | None
    skipped: int | None
    seconds: float
    problem: str
    """The reason why the result cannot be used, or only partly, as a clause. Failures
    then count as new.
    """
    is_own: bool = False
    """True if a step names the check, so that it need not pass before the step."""
    reason: str = ""
    """The reason in the output for an exit code other than 0, as a clause."""
    is_unusable: bool = False
    """True if the check cannot run: each step with this check will stop."""


class QuestionAsked(BaseEvent, frozen=True):
    """The user asks a question about a run. No step runs."""

    step: int
    question: str


class QuestionAnswered(BaseEvent, frozen=True):
    """The model answered the question, or the call failed."""

    step: int


class RunFinished(BaseEvent, frozen=True):
    """The run ends: no step remains, or a step failed."""

    ticket_slug: str
    status: RunStatus
    completed: int
    skipped: int
    unverified: int
    total: int
    seconds: float | None
    """The time of all steps, without waiting for the user."""
    files: tuple[str, ...]
    with_old_failures: int = 0
    """The number of completed steps with the verification `baseline`."""
    unproven: tuple[Unproven, ...] = ()
    """The finished or failed steps without passed tests."""
    require: Require | None = None
    """The rule of the run. The run fails if the rule does not accept a step of
    `unproven`.
    """
    commits: tuple[str, ...] = ()
    """The commits of the run's steps, if its last step has just ended."""
    to_commit: tuple[int, ...] = ()
    """Steps with uncommitted changes, if the last step has just ended."""
    labels_to_commit: tuple[str, ...] = ()
    edited_criteria: tuple[EditedCriterion, ...] = ()
    """Criteria that were added or changed since, if no step remains."""
    missing: tuple[MissingWork, ...] = ()
    """Work that is missing in the project's tree, if no step remains."""
    tally: StepTally = NO_STEPS
    """All steps of the plan by outcome. `completed`, `skipped`, `unverified`, `total`
    and `with_old_failures` remain for readers of older lines.
    """

    def __post_init__(self) -> None:
        if not self.tally.total and self.total:
            force_setattr(self, "tally", self._older_tally())
        if not self.labels_to_commit:
            force_setattr(self, "labels_to_commit", tuple(map(str, self.to_commit)))

    def _older_tally(self) -> StepTally:
        """Return the tally of an older log, which contains only some numbers."""
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
        """`criteria` belong to the current spec."""
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
