"""A ticket's run in its files: plan, state and record."""

from __future__ import annotations

from typing import Self

from msgspec import Struct

from cdd_agent.engine.record import RunRecord
from cdd_agent.text.redaction import Redactor
from cdd_agent.tickets.plan import ImplementationPlan
from cdd_agent.tickets.state import ExecutionState
from cdd_agent.tickets.state_file import load_state
from cdd_agent.tickets.store import Ticket


class SavedRun(Struct, frozen=True):
    """Read without the ticket's lock."""

    plan: ImplementationPlan
    state: ExecutionState
    """Empty if nothing ran."""
    record: RunRecord

    @classmethod
    def load(cls, ticket: Ticket, redactor: Redactor) -> Self:
        """Raises `BadInput` if plan or state is unusable."""
        plan = ticket.read_plan()
        state = load_state(ticket, plan) or ExecutionState(ticket_slug=ticket.slug)
        return cls(plan, state, RunRecord.of_ticket(ticket, redactor))
