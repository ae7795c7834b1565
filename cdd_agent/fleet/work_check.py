"""Check that the work of a completed run is in the run's tree."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from cdd_agent.engine.ledger import Ledger, no_part
from cdd_agent.engine.lock import locked
from cdd_agent.engine.missing_work import find_missing_work
from cdd_agent.engine.old_records import take_over
from cdd_agent.errors import CddError
from cdd_agent.fleet.board import Row, RunState
from cdd_agent.fleet.job import TicketJob
from cdd_agent.fleet.local_runs import find_run
from cdd_agent.tickets.state_file import load_state
from cdd_agent.tickets.status import MissingWork
from cdd_agent.tickets.store import Ticket


async def check_work(root: Path, prefix: str, row: Row, ticket: Ticket) -> Row:
    """Return the row of a completed run, as failed if its tree lacks work of the run.
    An unreadable run stays completed.
    """
    with suppress(CddError):
        missing = await _find_missing_work(root, prefix, row.job, ticket)
        if missing:
            labels = ", ".join(work.label for work in missing)
            steps = f"step {labels}" if len(missing) == 1 else f"steps {labels}"
            why = f"the run's worktree lacks the changes of {steps}"
            return replace(row, state=RunState.FAILED, why=why)
    return row


async def _find_missing_work(
    root: Path, prefix: str, job: TicketJob, ticket: Ticket
) -> tuple[MissingWork, ...]:
    """Raises `CddError`."""
    run = find_run(root, prefix, job, ticket)
    if run is None:
        return ()
    record = run.record
    plan = ticket.read_plan()
    state = load_state(run.ticket, plan)
    if state is None:
        return ()
    record.prepare()
    with locked(record.folder, record.slug):
        ledger = Ledger(
            record, no_part(record.root, [run.ticket.shown(run.ticket.folder)])
        )
        await take_over(ledger, state)
        return await find_missing_work(plan, state, record, ledger)
