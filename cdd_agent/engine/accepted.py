"""The steps whose work stands, and what is known of the tests from them."""

from cdd_agent.engine.record import RunRecord
from cdd_agent.tickets.state import NO_FILES, ExecutionState, StepExecution
from cdd_agent.tickets.status import StepStatus
from cdd_agent.verification.outcomes import Reference
from cdd_agent.verification.verdict import Before


def accepted(state: ExecutionState) -> tuple[StepExecution, ...]:
    """Completed steps, and skipped ones whose files were kept, in the order in which they were over."""

    def counts(found: StepExecution) -> bool:
        kept = found.status is StepStatus.SKIPPED and found.files != NO_FILES
        return bool(found.attempts and (found.status is StepStatus.COMPLETED or kept))

    return tuple(found for found in state.settled() if counts(found))


def known_so_far(state: ExecutionState, record: RunRecord, *, before: StepExecution | None = None) -> Before:
    """The knowledge about tests: from the baseline, and from each state of the project that was accepted since; of
    these only those that are older than a step that is over, where one is given.
    """
    baseline = record.baseline
    reference = Reference().after(baseline.tests) if baseline and baseline.tests else Reference()
    for step in accepted(state):
        if before is not None and step.folder == before.folder:
            break
        seen_by_baseline = baseline is not None and (step.folder, step.attempts) in baseline.already
        if not seen_by_baseline and (tests := record.attempt(step.folder, step.attempts).tests):
            reference = reference.after(tests)
    return Before(baseline, reference)
