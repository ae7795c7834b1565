"""A run as a row of points: how far the project had come when each step was over, and
what an undo went back from.
"""

from msgspec import Struct

from cdd_agent.events import StepView
from cdd_agent.tickets.state import load_state
from cdd_agent.tickets.store import Ticket


class Timeline(Struct, frozen=True):
    """The steps of a run in the order in which they were over, or failed."""

    ticket_slug: str
    steps: tuple[StepView, ...]
    undone: tuple[StepView, ...]
    """Those that the last undo went back from, as they were: `redo` brings them back.
    """


def timeline(ticket: Ticket) -> Timeline:
    """Reads only, without the ticket's lock. Raises `BadInput` for a plan or a state
    that cannot be used.
    """
    plan = ticket.read_plan()
    state = load_state(ticket, plan)
    if state is None:
        return Timeline(ticket.slug, (), ())
    last = state.undone[-1].steps if state.undone else ()
    return Timeline(
        ticket.slug,
        tuple(StepView.of(step, plan) for step in state.ended_steps()),
        tuple(StepView.of(step, plan) for step in last),
    )
