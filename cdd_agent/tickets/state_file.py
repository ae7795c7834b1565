"""A ticket's state file, `execution-state.json`."""

from pathlib import Path

from msgspec.structs import replace

from cdd_agent.files.atomic import read_bytes, write_atomic
from cdd_agent.tickets.plan import ImplementationPlan
from cdd_agent.tickets.state import ExecutionState, StateUnreadable, match_state
from cdd_agent.tickets.store import StateOrigin, Ticket


def read_state(ticket: Ticket) -> ExecutionState | None:
    """Return the saved state; None if nothing ran, or the folder is a copy of another
    ticket's. The state of a renamed ticket gets the present name. Raises
    `StateUnreadable`.
    """
    path = ticket.state_path
    state = read_state_file(path)
    if state is None or state.ticket_slug == ticket.slug:
        return state
    origin = ticket.state_origin(state.ticket_slug)
    if origin is StateOrigin.COPIED:
        return None
    if origin is StateOrigin.FOREIGN:
        raise StateUnreadable(
            f"{path} is the state of another ticket, {state.ticket_slug}"
        )
    return replace(state, ticket_slug=ticket.slug)


def read_state_file(path: Path) -> ExecutionState | None:
    """Return the state of any ticket; None if there is no file. Raises
    `StateUnreadable`.
    """
    data = read_bytes(path)
    return None if data is None else ExecutionState.from_json(data, str(path))


def load_state(ticket: Ticket, plan: ImplementationPlan) -> ExecutionState | None:
    """Return the saved state, matched with the plan; None if nothing ran. Raises
    `BadInput`.
    """
    state = read_state(ticket)
    return match_state(state, plan) if state else None


def save_state(state: ExecutionState, *paths: Path) -> None:
    data = state.to_json()
    for path in paths:
        write_atomic(path, data)
