"""From a ticket's acceptance criteria to the steps, tests and files that serve each."""

from collections.abc import Iterable, Mapping

from cdd_agent.engine.accepted import accepted
from cdd_agent.engine.missing_work import compare_files
from cdd_agent.engine.record import RunRecord
from cdd_agent.engine.strength_summary import StrengthSettings, load_summary
from cdd_agent.events.step_summary import StepSummary
from cdd_agent.events.ticket_events import CriteriaShown, CriterionProof, PlanOpened
from cdd_agent.redaction import Redactor
from cdd_agent.tickets.served_criteria import find_standings
from cdd_agent.tickets.spec import TicketSpec
from cdd_agent.tickets.state import ExecutionState, load_state
from cdd_agent.tickets.store import Ticket
from cdd_agent.verification.outcomes import Reference, Result, merge_runs

_NO_SETTINGS = StrengthSettings()


def criteria_of(
    spec: TicketSpec,
    ticket: Ticket,
    redactor: Redactor,
    settings: StrengthSettings = _NO_SETTINGS,
) -> CriteriaShown:
    """Read the criteria, without the ticket's lock. `spec` is the user's, even if the
    ticket is in the tree of its run. `settings` decide which measured strength of
    tests belongs to the current files. Raises `BadInput` for a damaged file.
    """
    if not ticket.plan_path.exists():
        criteria = (
            CriterionProof(place, text)
            for place, text in enumerate(spec.acceptance_criteria, 1)
        )
        return CriteriaShown(ticket.slug, spec.title, tuple(criteria))
    plan = ticket.read_plan()
    state = load_state(ticket, plan) or ExecutionState(ticket_slug=ticket.slug)
    record = RunRecord.of_ticket(ticket, redactor)
    opened = PlanOpened.from_run(spec.title, plan, state, spec.acceptance_criteria)
    views = {view.number: view for view in opened.steps}
    tests = _turned_green(state, record)
    files = {
        step.step_number: StepSummary.from_state(step, plan).files
        for step in accepted(state)
    }
    missing = {
        work.step: (*work.missing, *work.reverted, *work.restored)
        for work in compare_files(plan, state, record).missing
    }
    summary = load_summary(plan, state, record, settings)
    strengths = {
        one.number: one.strength
        for one in (
            summary.summarise_criteria(spec.acceptance_criteria) if summary else ()
        )
    }
    proofs = []
    for standing in find_standings(plan, state, spec.acceptance_criteria):
        proof = CriterionProof(
            standing.place,
            standing.text,
            tuple(views[number] for number in standing.steps),
            _joined(tests, standing.steps),
            _joined(files, standing.steps),
            standing.edit,
            _joined(missing, standing.steps),
            strengths.get(standing.place),
        )
        proofs.append(proof)
    return CriteriaShown(ticket.slug, spec.title, tuple(proofs))


def _joined(
    values: Mapping[int, tuple[str, ...]], steps: Iterable[int]
) -> tuple[str, ...]:
    """Return the values of steps, each once."""
    joined: dict[str, None] = {}
    for step in steps:
        joined |= dict.fromkeys(values.get(step, ()))
    return tuple(joined)


def _turned_green(
    state: ExecutionState, record: RunRecord
) -> Mapping[int, tuple[str, ...]]:
    """Return, for each step, the tests that its check was the first to see pass: new
    ones, and ones that failed before.
    """
    baseline = record.baseline
    known = Reference()
    if baseline and baseline.tests:
        known = known.after(*baseline.tests)
    green = dict[int, tuple[str, ...]]()
    for step in accepted(state):
        runs = record.attempt(step.folder, step.attempts).runs
        if runs:
            passed = merge_runs(runs).having(Result.PASSED)
            green[step.step_number] = tuple(
                test for test in passed if test not in known.tests or known.failed(test)
            )
            known = known.after(*runs)
    return green
