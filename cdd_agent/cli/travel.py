"""`cdd push` and `cdd pull`: continue a run in another copy of the project."""

from __future__ import annotations

from cdd_agent.cli.invocation import Invocation
from cdd_agent.cli.without_screen import open_for_reading, printer_for
from cdd_agent.cli.working import Output
from cdd_agent.errors import BadInput, ExitCode
from cdd_agent.tickets.slugs import is_folder_name
from cdd_agent.tickets.store import Ticket, TicketStore
from cdd_agent.travel.pull import pull as pull_run
from cdd_agent.travel.push import push as push_run
from cdd_agent.wiring.runs import open_travel


def push(
    invocation: Invocation,
    *,
    slug: str,
    remote: str | None,
    take_over: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    project, output = open_for_reading(invocation), Output(printer_for(as_json))
    ticket = project.tickets.find(slug)
    run = open_travel(project, ticket, output.emit)
    output.carry_out(push_run(run, remote, force=take_over, dry_run=dry_run))
    return ExitCode.DONE


def pull(
    invocation: Invocation,
    *,
    slug: str,
    remote: str | None,
    take_over: bool,
    replace: bool,
    as_json: bool,
) -> int:
    project, output = open_for_reading(invocation), Output(printer_for(as_json))
    ticket = _find_whole_slug(project.tickets, slug)
    run = open_travel(project, ticket, output.emit)
    output.carry_out(pull_run(run, remote, force=take_over, replace=replace))
    return ExitCode.DONE


def _find_whole_slug(tickets: TicketStore, typed: str) -> Ticket:
    """Return the ticket with exactly this slug or path, otherwise a new one. The remote
    may have a ticket that is missing here, and whose slug is the beginning of another.
    """
    try:
        return tickets.find(typed)
    except BadInput:
        if not is_folder_name(typed):
            raise
        return tickets.new_ticket(typed)
