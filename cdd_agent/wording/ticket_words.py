"""Words of the events of tickets, plans and criteria."""

import unicodedata
from collections.abc import Sequence

from cdd_agent.events.notices import Tone
from cdd_agent.events.ticket_events import (
    CriteriaShown,
    CriterionProof,
    PlanChecked,
    PlanOpened,
    TicketsListed,
    TicketView,
)
from cdd_agent.tickets.findings import quote
from cdd_agent.tickets.outcome_words import (
    OUTCOME_WORDS,
    remarks_on,
    tally_in_words,
)
from cdd_agent.tickets.status import EditedCriterion, MissingWork, StepOutcome
from cdd_agent.wording.registry import Lines, words_of
from cdd_agent.wording.step_signs import (
    IN_PROGRESS_SIGN,
    SHOWN_NAMES,
    first_names,
    step_line,
)
from cdd_agent.wording.strength_words import rate_in_words

_SHOWN_MISSING = 3
"""Maximum missing files or tests in the line of a step."""


def progress(ticket: TicketView) -> str:
    """Return a ticket's progress in short: its state, and the finished steps without
    passed tests.
    """
    state = ticket.state
    if state in ("in progress", "failed"):
        state = f"{state} {ticket.done}/{ticket.total}"
    return ", ".join([state, *remarks_on(ticket.tally)])


@words_of.register
def describe_tickets(event: TicketsListed) -> Lines:
    if not event.tickets:
        return [(_no_ticket(event), Tone.PLAIN)]
    width = max(_cells(ticket.slug) for ticket in event.tickets)
    lines = []
    for ticket in event.tickets:
        gap = " " * (width - _cells(ticket.slug) + 2)
        remark = ticket.error or "; ".join(filter(None, _remarks(ticket)))
        line = f"{ticket.slug}{gap}{progress(ticket)}  {remark}"
        lines.append((line.rstrip(), Tone.PLAIN))
    return lines


def _remarks(ticket: TicketView) -> tuple[str, ...]:
    changed = ""
    if ticket.changed:
        files = "file has" if ticket.changed == 1 else "files have"
        changed = f"{ticket.changed} {files} changed since"
    return changed, ticket.where


def _no_ticket(event: TicketsListed) -> str:
    if event.state is None and event.type is None:
        return "No tickets yet. Create one: `/new feature NAME`."
    of_type = f" of the type {event.type}" if event.type else ""
    where = f"is {event.state}" if event.state else "is there"
    return f"No ticket{of_type} {where}."


def _cells(text: str) -> int:
    """Return the width of a text in a terminal."""
    width = 0
    for sign in text:
        if unicodedata.east_asian_width(sign) in "WF":
            width += 2
        elif unicodedata.category(sign) not in ("Mn", "Me", "Cf"):
            width += 1
    return width


@words_of.register
def describe_plan_opened(event: PlanOpened) -> Lines:
    lines = [(f"{event.ticket_slug}: {event.title}", Tone.HEADING)]
    for step in event.steps:
        line = f"  {step_line(step)}  {step.cost.in_short()}".rstrip()
        lines.append((line, Tone.PLAIN))
    if event.tally.open < event.tally.total:
        lines.append((f"  {tally_in_words(event.tally)}", Tone.PLAIN))
    if event.cost.tokens:
        lines.append((f"  {event.cost.in_full()} so far", Tone.QUIET))
    lines += edited_criteria_lines(event.edited_criteria)
    for line in missing_work(event.missing):
        lines.append((f"  not in this tree: {line}", Tone.WARNING))
    return [*lines, *_changed_since(event)]


def _changed_since(event: PlanOpened) -> Lines:
    lines = []
    for step in event.changed[:SHOWN_NAMES]:
        names = first_names(step.files, _SHOWN_MISSING)
        text = f"  changed since step {step.label}, {step.title}: {names}"
        lines.append((text, Tone.PLAIN))
    if len(event.changed) > SHOWN_NAMES:
        text = f"  and files of {len(event.changed) - SHOWN_NAMES} more steps"
        lines.append((text, Tone.PLAIN))
    if event.spec_changed:
        lines.append(("  spec.yaml has changed since the run", Tone.PLAIN))
    if event.changed or event.missing:
        text = f"  Run the checks again: `cdd verify {event.ticket_slug}`"
        lines.append((text, Tone.QUIET))
    return lines


def missing_work(missing: Sequence[MissingWork]) -> list[str]:
    """Return a line for each of the first steps with missing work."""
    lines = [_missing(work) for work in missing[:SHOWN_NAMES]]
    if len(missing) > SHOWN_NAMES:
        lines.append(f"and {len(missing) - SHOWN_NAMES} more steps")
    return lines


def _missing(work: MissingWork) -> str:
    return f"{work.label}. {work.title}: {missing_files(work)}"


def missing_files(work: MissingWork) -> str:
    """Return the missing files and tests of a step."""
    parts = [
        f"{what} {first_names(names, _SHOWN_MISSING)}"
        for what, names in (
            ("missing files:", work.missing),
            ("files without the step's change:", work.reverted),
            ("deleted files that exist again:", work.restored),
            ("missing tests:", work.tests),
        )
        if names
    ]
    return "; ".join(parts)


def edited_criteria_lines(edited: Sequence[EditedCriterion]) -> Lines:
    """Return the criteria without a step for their current words."""
    lines = [
        f"  criterion {criterion.place} is {criterion.edit}: {quote(criterion.text)}"
        for criterion in edited[:SHOWN_NAMES]
    ]
    if len(edited) > SHOWN_NAMES:
        lines.append(f"  and {len(edited) - SHOWN_NAMES} more criteria")
    return [(line, Tone.WARNING) for line in lines]


@words_of.register
def describe_criteria(event: CriteriaShown) -> Lines:
    lines = [(f"{event.ticket_slug}: {event.title}", Tone.HEADING)]
    for criterion in event.criteria:
        lines += _criterion(criterion)
    if not event.criteria:
        lines.append(("The spec has no acceptance criteria yet.", Tone.WARNING))
    return lines


def _criterion(criterion: CriterionProof) -> Lines:
    text = f"{criterion_sign(criterion)} {criterion.number}. {criterion.text}"
    lines = [(text, Tone.PLAIN)]
    for step in criterion.steps:
        lines.append((f"    step {step_line(step)}", Tone.PLAIN))
    if criterion.tests:
        lines.append((f"    tests: {first_names(criterion.tests)}", Tone.QUIET))
    if criterion.files:
        lines.append((f"    files: {first_names(criterion.files)}", Tone.QUIET))
    if criterion.strength:
        tone = Tone.WARNING if criterion.strength.is_weak else Tone.QUIET
        lines.append((f"    strength: {rate_in_words(criterion.strength)}", tone))
    if criterion.missing:
        lines.append((f"    {not_in_this_tree(criterion)}", Tone.WARNING))
    if not criterion.steps:
        lines.append((f"    {unserved(criterion)}", Tone.WARNING))
    return lines


def not_in_this_tree(criterion: CriterionProof) -> str:
    """Return the files of a criterion that are gone, or lack their step's change."""
    return (
        "changed or missing in this tree since the run:"
        f" {first_names(criterion.missing)}"
    )


def unserved(criterion: CriterionProof) -> str:
    """Return why a criterion without a step has no evidence."""
    if criterion.edit:
        return f"{criterion.edit}; no step of the plan covers its current text"
    return "no step of the plan covers it"


def criterion_sign(criterion: CriterionProof) -> str:
    """Return the sign of a criterion: met, partly done, or open."""
    if not any(step.status.is_over for step in criterion.steps):
        return OUTCOME_WORDS[StepOutcome.OPEN].sign
    if criterion.is_seen:
        return OUTCOME_WORDS[StepOutcome.PASSED].sign
    return IN_PROGRESS_SIGN


@words_of.register
def describe_plan_checked(event: PlanChecked) -> Lines:
    lines = []
    for problem in event.problems:
        where = f"{event.source}:{problem.line}" if problem.line else event.source
        if problem.is_warning:
            lines.append((f"{where}: warning: {problem.text}", Tone.WARNING))
        else:
            lines.append((f"{where}: {problem.text}", Tone.ERROR))
    wrong = sum(not problem.is_warning for problem in event.problems)
    if not wrong:
        return [*lines, ("Plan check passed.", Tone.GOOD)]
    problems = "problem" if wrong == 1 else "problems"
    return [*lines, (f"Plan check failed: {wrong} {problems}.", Tone.ERROR)]
