"""Findings about spec.yaml, for all user interfaces."""

from cdd_agent.errors import BadInput
from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.tickets.plan import Problem
from cdd_agent.tickets.spec_findings import find_spec_problems
from cdd_agent.tickets.store import Ticket


def read_spec_problems(ticket: Ticket) -> tuple[Problem, ...]:
    """Return the findings; empty for an unreadable file, an error elsewhere."""
    try:
        return find_spec_problems(ticket.spec_text())
    except BadInput:
        return ()


def spec_notices(ticket: Ticket) -> list[Notice]:
    """Return a warning with file and line for each finding."""
    source = ticket.shown(ticket.spec_path)
    return [
        Notice(
            f"{source}:{problem.line}: {problem.text}",
            Tone.WARNING,
            kind=NoticeKind.SPEC_FINDING,
        )
        for problem in read_spec_problems(ticket)
    ]
