"""Accepted steps, and test results from them."""

from collections.abc import Mapping
from itertools import takewhile

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.engine.attempt import Attempt
from cdd_agent.engine.record import RunRecord
from cdd_agent.tickets.state import NO_FILES, ExecutionState, StepExecution
from cdd_agent.tickets.status import StepStatus
from cdd_agent.verification.baseline import Baseline
from cdd_agent.verification.before import Before
from cdd_agent.verification.check_run import CheckRun
from cdd_agent.verification.outcomes import Reference


def accepted(state: ExecutionState) -> tuple[StepExecution, ...]:
    """Return completed steps, and skipped ones whose files were kept, in the order in
    which they ended.
    """

    def counts(step: StepExecution) -> bool:
        has_kept_files = step.status is StepStatus.SKIPPED and step.files != NO_FILES
        return bool(
            step.attempts and (step.status is StepStatus.COMPLETED or has_kept_files)
        )

    return tuple(ended for ended in state.ended_steps() if counts(ended))


class KnownTests:
    """Known test results: from the baseline and each accepted step.

    Caches the last answer, which stays valid while the same steps are accepted.
    """

    def __init__(self, record: RunRecord) -> None:
        self._record = record
        self._known = _Known()

    def so_far(
        self, state: ExecutionState, *, before: StepExecution | None = None
    ) -> Before:
        """Return the present knowledge, or that before a finished step."""
        baseline = self._record.baseline
        steps = [(step.folder, step.attempts) for step in accepted(state)]
        if before is not None:
            steps = list(takewhile(lambda step: step[0] != before.folder, steps))
        knowledge = self._known
        if baseline != knowledge.baseline or knowledge.steps != tuple(
            steps[: len(knowledge.steps)]
        ):
            knowledge = _Known(baseline)
        for step in steps[len(knowledge.steps) :]:
            knowledge = knowledge.with_baseline_before(step)
            knowledge = knowledge.with_step(step, self._record.attempt(*step))
        self._known = knowledge  # assigned once, because several threads may ask
        knowledge = knowledge.with_baseline_before(None)
        return Before(baseline, knowledge.reference, knowledge.runs)


class _Known(Struct, frozen=True):
    baseline: Baseline | None = None
    steps: tuple[tuple[int, int], ...] = ()
    """Each as the numbers of its folder and attempt."""
    reference: Reference = Reference()
    runs: Mapping[str, CheckRun] = field(default_factory=dict)
    """Command → last result."""
    added: int = 0
    """Number of baseline runs included."""

    def with_baseline_before(self, step: tuple[int, int] | None) -> "_Known":
        """Return the knowledge with the baseline runs that did not see the step; with
        all if it is None.
        """
        knowledge = self
        runs = self.baseline.runs[self.added :] if self.baseline else ()
        for each in runs:
            if step is not None and step in each.already:
                break
            knowledge = knowledge._with_run(each.run)
        return knowledge

    def _with_run(self, run: CheckRun) -> "_Known":
        reference = self.reference
        if run.tests is not None and not run.problem:
            reference = reference.after(run.tests)
        return replace(
            self,
            reference=reference,
            runs={**self.runs, run.command: run},
            added=self.added + 1,
        )

    def with_step(self, step: tuple[int, int], attempt: Attempt) -> "_Known":
        runs = {run.command: run for run in attempt.check_runs}
        return replace(
            self,
            steps=(*self.steps, step),
            reference=self.reference.after(*attempt.runs),
            runs={**self.runs, **runs},
        )
