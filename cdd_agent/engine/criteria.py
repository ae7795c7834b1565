"""Traces acceptance criteria to steps, tests and files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cdd_agent.engine.accepted import accepted
from cdd_agent.engine.missing_work import compare_files
from cdd_agent.engine.saved_run import SavedRun
from cdd_agent.engine.strength_summary import (
    StrengthSettings,
    StrengthSummary,
    load_summary,
)
from cdd_agent.events.step_summary import StepSummary
from cdd_agent.events.strength_events import Strength
from cdd_agent.events.ticket_events import CriteriaShown, CriterionProof
from cdd_agent.text.redaction import Redactor
from cdd_agent.tickets.served_criteria import find_standings
from cdd_agent.tickets.spec import TicketSpec
from cdd_agent.tickets.store import Ticket
from cdd_agent.verification.outcomes import Reference, Result, merge_runs

_NO_SETTINGS = StrengthSettings()


def criteria_of(
    spec: TicketSpec,
    ticket: Ticket,
    redactor: Redactor,
    settings: StrengthSettings = _NO_SETTINGS,
) -> CriteriaShown:
    """Read the criteria without the ticket's lock. `spec` is the user's, even if the
    run has a separate tree. `settings` select the measured strength that fits the
    current files. Raises `BadInput` for a damaged file.
    """
    if not ticket.plan_path.exists():
        return CriteriaShown(ticket.slug, spec.title, unplanned_criteria(spec))
    run = SavedRun.load(ticket, redactor)
    strength = load_summary(run.plan, run.state, run.record, settings)
    proofs = trace_criteria(spec.acceptance_criteria, run, strength)
    return CriteriaShown(ticket.slug, spec.title, proofs)


def unplanned_criteria(spec: TicketSpec) -> tuple[CriterionProof, ...]:
    criteria = enumerate(spec.acceptance_criteria, 1)
    return tuple(CriterionProof(place, text) for place, text in criteria)


def trace_criteria(
    criteria: Iterable[str], run: SavedRun, strength: StrengthSummary | None
) -> tuple[CriterionProof, ...]:
    """Return each criterion with its steps, tests, files and strength. Raises
    `BadInput` for a damaged record.
    """
    criteria = tuple(criteria)
    steps = {
        step.number: StepSummary.from_state(run.state.step(step.number), run.plan)
        for step in run.plan.steps
    }
    tests = _find_tests_made_green(run)
    files = {
        step.step_number: StepSummary.from_state(step, run.plan).files
        for step in accepted(run.state)
    }
    missing = {
        work.step: (*work.missing, *work.reverted, *work.restored)
        for work in compare_files(run.plan, run.state, run.record).missing
    }
    strengths: dict[int, Strength | None] = {}
    if strength is not None:
        for score in strength.summarise_criteria(criteria):
            strengths[score.number] = score.strength
    proofs = []
    for standing in find_standings(run.plan, run.state, criteria):
        proof = CriterionProof(
            standing.place,
            standing.text,
            tuple(steps[number] for number in standing.steps),
            _join(tests, standing.steps),
            _join(files, standing.steps),
            standing.edit,
            _join(missing, standing.steps),
            strengths.get(standing.place),
        )
        proofs.append(proof)
    return tuple(proofs)


def _join(
    values: Mapping[int, tuple[str, ...]], steps: Iterable[int]
) -> tuple[str, ...]:
    joined: dict[str, None] = {}
    for step in steps:
        joined |= dict.fromkeys(values.get(step, ()))
    return tuple(joined)


def _find_tests_made_green(run: SavedRun) -> Mapping[int, tuple[str, ...]]:
    baseline = run.record.baseline
    reference = Reference()
    if baseline and baseline.tests:
        reference = reference.after(*baseline.tests)
    green: dict[int, tuple[str, ...]] = {}
    for step in accepted(run.state):
        runs = run.record.attempt(step.folder, step.attempts).runs
        if not runs:
            continue
        passed = merge_runs(runs).having(Result.PASSED)
        green[step.step_number] = tuple(
            test
            for test in passed
            if test not in reference.tests or reference.failed(test)
        )
        reference = reference.after(*runs)
    return green
