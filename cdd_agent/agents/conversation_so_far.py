"""The conversation so far with Socrates or the Planner, read from what they saved."""

from cdd_agent.agents.planning_notes import NAME as PLANNING_NOTES
from cdd_agent.agents.spec_notes import spec_conversation_events
from cdd_agent.engine.record import RunRecord
from cdd_agent.engine.retelling import planning_retold
from cdd_agent.events.stream import SessionRestored


def conversation_so_far(record: RunRecord, agent: str) -> SessionRestored:
    """Return what the user and `socrates` or `planner` said about a ticket, oldest
    first. It has no events if nothing was saved, or if the file is damaged: opening
    the agent reports that. It takes no lock and asks no model.

    Raises `BadInput` if the file cannot be read.
    """
    if agent == "socrates":
        return SessionRestored(record.slug, spec_conversation_events(record))
    assert agent == "planner"
    if not (record.folder / PLANNING_NOTES).exists():
        return SessionRestored(record.slug, ())
    return planning_retold(record)
