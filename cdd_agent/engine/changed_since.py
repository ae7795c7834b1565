"""Changes since a run: files of its steps, and the ticket's spec."""

from msgspec.structs import replace

from cdd_agent.engine.missing_work import compare_files
from cdd_agent.engine.record import RunRecord
from cdd_agent.errors import BadInput
from cdd_agent.events.ticket_events import PlanOpened
from cdd_agent.tickets.criteria import criteria_digests
from cdd_agent.tickets.plan import ImplementationPlan
from cdd_agent.tickets.state import ExecutionState
from cdd_agent.tickets.store import Ticket


def add_changes(
    opened: PlanOpened,
    ticket: Ticket,
    plan: ImplementationPlan,
    state: ExecutionState,
    record: RunRecord,
) -> PlanOpened:
    """Add changes since the run to an opened plan. `ticket` is the user's, even if the
    run has a separate tree. Raises `BadInput` for a damaged record.
    """
    files = compare_files(plan, state, record)
    return replace(
        opened,
        missing=files.missing,
        changed=files.changed,
        spec_changed=has_spec_changed(ticket, state),
    )


def has_spec_changed(ticket: Ticket, state: ExecutionState) -> bool:
    """True if spec.yaml changed since all steps were over, or its criteria since the
    last step began.
    """
    if state.done_spec is not None:
        return state.done_spec != ticket.spec_digest()
    if not state.criteria:
        return False
    try:
        criteria = ticket.read_spec().acceptance_criteria
    except BadInput:
        return True
    return criteria_digests(criteria) != state.criteria[-1]
