"""The steps whose work stands, and what is known of the tests from them."""

from cdd_agent.execution.outcomes import Reference
from cdd_agent.execution.record import RunRecord
from cdd_agent.execution.verify import Before
from cdd_agent.tickets.plan import ImplementationPlan
from cdd_agent.tickets.state import ExecutionState, StepExecution
from cdd_agent.tickets.status import StepStatus


def accepted(plan: ImplementationPlan, state: ExecutionState) -> tuple[tuple[int, int], ...]:
    """Completed steps, and skipped ones whose files were kept, with the number of their attempt, in the order in which
    they were over."""
    places = {step.number: place for place, step in enumerate(plan.order())}

    def counts(found: StepExecution) -> bool:
        kept = found.status is StepStatus.SKIPPED and (found.files_created or found.files_modified)
        return bool(found.attempts and found.completed_at and (found.status is StepStatus.COMPLETED or kept))

    known = {**state.former_steps, **state.step_executions}
    found = [(number, step) for number, step in known.items() if counts(step)]
    found.sort(key=lambda item: (item[1].completed_at, places.get(item[0], -1)))
    return tuple((number, step.attempts) for number, step in found)


def known_so_far(plan: ImplementationPlan, state: ExecutionState, record: RunRecord) -> Before:
    """What is known of the tests: from the baseline, and from each state of the project that was accepted since."""
    baseline = record.baseline
    reference = Reference().after(baseline.tests) if baseline and baseline.tests else Reference()
    for number, attempt in accepted(plan, state):
        seen_by_baseline = baseline is not None and (number, attempt) in baseline.already
        if not seen_by_baseline and (tests := record.attempt(number, attempt).tests):
            reference = reference.after(tests)
    return Before(baseline, reference)
