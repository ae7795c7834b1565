"""A table of the tickets: state, cost, last change, next command."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from cdd_agent.agents.spec_notes import open_points
from cdd_agent.commands.listing import type_of, view
from cdd_agent.engine.whereabouts import in_its_tree
from cdd_agent.errors import CddError
from cdd_agent.events.ticket_events import TicketView
from cdd_agent.session.open_project import Project
from cdd_agent.tickets.store import Ticket

_LARGEST = 4_000_000
"""Maximum bytes of a report that is read for its cost."""


class TicketOverview(Struct, frozen=True):
    """A row of the table. `next_line` is the command that continues the ticket."""

    view: TicketView
    next_line: str
    touched: datetime | None = None
    """The last change of the spec, plan or run."""
    usd: float | None = None
    """The cost of the run in the last report."""


def overviews(project: Project) -> Iterator[TicketOverview]:
    """Yield all tickets, the last changed first. Reads files of each: call it in a
    thread.
    """
    rows = [_overview(ticket) for ticket in project.tickets.list()]
    oldest = datetime.min.replace(tzinfo=UTC)
    yield from sorted(rows, key=lambda ticket: ticket.touched or oldest, reverse=True)


def next_command(ticket: Ticket, seen: TicketView | None = None) -> str:
    """Return the command that continues a ticket. Reads files: call it in a thread."""
    seen, where = seen or view(ticket), _find_tree(ticket)
    line = _next_by_state(ticket, seen)
    if where != ticket and seen.is_over:
        return f"/land {ticket.slug}"
    if where != ticket and seen.state != "spec changed":
        return f"{line} --worktree"
    return line


def _find_tree(ticket: Ticket) -> Ticket:
    try:
        return in_its_tree(ticket)
    except CddError:  # the view reports it
        return ticket


def _next_by_state(ticket: Ticket, seen: TicketView) -> str:
    match seen.state:
        case "done" | "completed":
            return f"/diff {ticket.slug}"
        case "planned" | "in progress" | "failed":
            return f"/exec {ticket.slug}"
        case "spec" if _is_complete(ticket):
            return f"/plan {ticket.slug}"
        case "spec changed":
            return f"/plan {ticket.slug}"
        case "empty" | "spec":
            return f"/socrates {ticket.slug}"
        case _:
            return f"/status {ticket.slug}"


def _is_complete(ticket: Ticket) -> bool:
    try:
        spec = ticket.read_spec()
        return not spec.missing() and not open_points(ticket.record, spec)
    except CddError:
        return False


def _overview(ticket: Ticket) -> TicketOverview:
    seen = view(ticket, type_of(ticket))
    where = _find_tree(ticket)
    times = []
    for path in (ticket.spec_path, ticket.plan_path, where.state_path):
        try:
            times.append(path.stat().st_mtime)
        except OSError:
            continue
    touched = datetime.fromtimestamp(max(times), UTC) if times else None
    line = next_command(ticket, seen)
    return TicketOverview(seen, line, touched, _money(where.record))


def _money(folder: Path) -> float | None:
    report = folder / "report.json"
    try:
        if report.stat().st_size > _LARGEST:
            return None
        usd = json.loads(report.read_bytes())["usd"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        # There was no run, or its report has no cost.
        return None
    return float(usd) if isinstance(usd, int | float) else None
