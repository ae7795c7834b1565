"""The timeline of a run: its steps in the order in which they ended, and those that the
last undo reverted.
"""

from msgspec import Struct

from cdd_agent.events.step_summary import StepSummary
from cdd_agent.tickets.state import load_state
from cdd_agent.tickets.store import Ticket


class Timeline(Struct, frozen=True):
    """The steps of a run in the order in which they ended or failed."""

    ticket_slug: str
    steps: tuple[StepSummary, ...]
    undone: tuple[StepSummary, ...]
    """The steps that the last undo reverted, as they were. `redo` restores them."""


def timeline(ticket: Ticket) -> Timeline:
    """Read the timeline, without the ticket's lock. Raises `BadInput` for a plan or a
    state that cannot be used.
    """
    plan = ticket.read_plan()
    state = load_state(ticket, plan)
    if state is None:
        return Timeline(ticket.slug, (), ())
    last = state.undone[-1].steps if state.undone else ()
    return Timeline(
        ticket.slug,
        tuple(StepSummary.from_state(step, plan) for step in state.ended_steps()),
        tuple(StepSummary.from_state(step, plan) for step in last),
    )
