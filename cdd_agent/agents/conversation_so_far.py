"""Saved conversations with Socrates and the Planner."""

from cdd_agent.agents.planning_notes import NAME as PLANNING_NOTES
from cdd_agent.agents.spec_notes import spec_conversation_events
from cdd_agent.engine.record import RunRecord
from cdd_agent.engine.retelling import planning_retold
from cdd_agent.events.stream import SessionRestored


def conversation_so_far(record: RunRecord, agent: str) -> SessionRestored:
    """Return the conversation of `socrates` or `planner` about a ticket, oldest first.

    No lock is taken and no model is asked. A missing or damaged file gives no events:
    the agent reports the damage. Raises `BadInput` if the file cannot be read.
    """
    if agent == "socrates":
        return SessionRestored(record.slug, spec_conversation_events(record))
    assert agent == "planner"
    if not (record.folder / PLANNING_NOTES).exists():
        return SessionRestored(record.slug, ())
    return planning_retold(record)
