"""The steps whose work is accepted, and the results of tests from them."""

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
    """Return the completed steps, and the skipped ones whose files were kept, in the
    order in which they ended.
    """

    def counts(found: StepExecution) -> bool:
        kept = found.status is StepStatus.SKIPPED and found.files != NO_FILES
        return bool(found.attempts and (found.status is StepStatus.COMPLETED or kept))

    return tuple(found for found in state.ended_steps() if counts(found))


class KnownTests:
    """The known results of tests: from the baseline, and from each accepted step.

    The last answer is cached for the next call, as far as the same steps are accepted.
    """

    def __init__(self, record: RunRecord) -> None:
        self._record = record
        self._known = _Known()

    def so_far(
        self, state: ExecutionState, *, before: StepExecution | None = None
    ) -> Before:
        """Return the current knowledge, or that from before a step that has ended."""
        baseline = self._record.baseline
        steps = [(step.folder, step.attempts) for step in accepted(state)]
        if before is not None:
            steps = list(takewhile(lambda step: step[0] != before.folder, steps))
        known = self._known
        if baseline != known.baseline or known.steps != tuple(
            steps[: len(known.steps)]
        ):
            known = _Known(baseline)
        for step in steps[len(known.steps) :]:
            known = known.with_baseline_before(step)
            known = known.with_step(step, self._record.attempt(*step))
        self._known = known  # replaced as a whole: several threads may ask
        known = known.with_baseline_before(None)
        return Before(baseline, known.reference, known.runs)


class _Known(Struct, frozen=True):
    baseline: Baseline | None = None
    steps: tuple[tuple[int, int], ...] = ()
    """Each the number of a step's folder, and of its attempt."""
    reference: Reference = Reference()
    runs: Mapping[str, CheckRun] = field(default_factory=dict)
    """The last result of each check, by its command."""
    added: int = 0
    """The number of runs of the baseline that are included."""

    def with_baseline_before(self, step: tuple[int, int] | None) -> "_Known":
        """Return the knowledge with the runs of the baseline that did not see a step;
        with all of them if it is None.
        """
        known = self
        runs = self.baseline.runs[self.added :] if self.baseline else ()
        for each in runs:
            if step is not None and step in each.already:
                break
            known = known._with_run(each.run)
        return known

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
