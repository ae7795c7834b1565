"""The steps whose work stands, and what is known of the tests from them."""

from itertools import takewhile
from typing import NamedTuple

from cdd_agent.engine.record import RunRecord
from cdd_agent.tickets.state import NO_FILES, ExecutionState, StepExecution
from cdd_agent.tickets.status import StepStatus
from cdd_agent.verification.baseline import Baseline
from cdd_agent.verification.before import Before
from cdd_agent.verification.outcomes import Reference


def accepted(state: ExecutionState) -> tuple[StepExecution, ...]:
    """Completed steps, and skipped ones whose files were kept, in the order in which
    they were over.
    """

    def counts(found: StepExecution) -> bool:
        kept = found.status is StepStatus.SKIPPED and found.files != NO_FILES
        return bool(found.attempts and (found.status is StepStatus.COMPLETED or kept))

    return tuple(found for found in state.ended_steps() if counts(found))


class KnownTests:
    """The knowledge about tests: from the baseline, and from each state of the project
    that was accepted since.

    What came of the steps that were accepted is kept for the next question, and counts
    while their work stands.
    """

    def __init__(self, record: RunRecord) -> None:
        self._record = record
        self._kept = _Sum()  # replaced as a whole: several threads may ask

    def so_far(
        self, state: ExecutionState, *, before: StepExecution | None = None
    ) -> Before:
        """All of it; where a step that is over is given, only what is older than that
        step.
        """
        baseline = self._record.baseline
        steps = [(step.folder, step.attempts) for step in accepted(state)]
        if before is not None:
            steps = list(takewhile(lambda step: step[0] != before.folder, steps))
        kept = self._kept
        if baseline == kept.baseline and kept.steps == tuple(steps[: len(kept.steps)]):
            reference = kept.reference
        else:
            kept = _Sum()
            reference = (
                Reference().after(baseline.tests)
                if baseline and baseline.tests
                else Reference()
            )
        for folder, attempt in steps[len(kept.steps) :]:
            seen_by_baseline = (
                baseline is not None and (folder, attempt) in baseline.already
            )
            if not seen_by_baseline:
                reference = reference.after(*self._record.attempt(folder, attempt).runs)
        self._kept = _Sum(baseline, tuple(steps), reference)
        return Before(baseline, reference)


class _Sum(NamedTuple):
    """What is known after these attempts at steps, by the numbers of their folders."""

    baseline: Baseline | None = None
    steps: tuple[tuple[int, int], ...] = ()
    reference: Reference = Reference()
