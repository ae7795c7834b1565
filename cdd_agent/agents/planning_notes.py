"""What was learnt while planning a ticket, kept so that nothing has to be paid for twice: `planning.json`."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from cdd_agent.agents.agent_file import AgentFile
from cdd_agent.engine.record import RunRecord
from cdd_agent.llm.port import Message
from cdd_agent.redaction import Redactor


class PlanningNotes(BaseModel):
    """The conversation with the model, what is open in it, and what came of it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    task: Literal["plan", "change"] = "plan"
    conversation: tuple[Message, ...] = ()
    """Without the system's message, which is made anew each time."""
    is_open: bool = False
    """The model was asked, and its answer did not come."""
    questions: tuple[str, ...] = ()
    """Those that wait for the person."""
    asked: int = 0
    """Questions since the person said what they want."""
    spec: str = ""
    """What identifies the spec that the conversation is about."""
    base: str = ""
    """The text of plan.md that the proposal, or the present request, is about."""
    proposal: str = ""
    """The proposed plan, as plan.md."""
    is_anew: bool = False
    """The proposal takes the place of the plan; otherwise it is a change of it."""


def open_notes(record: RunRecord) -> AgentFile[PlanningNotes]:
    """A ticket's notes; see `AgentFile.open`."""
    return AgentFile.open(record, "planning.json", PlanningNotes)


def without_secrets(notes: PlanningNotes, redactor: Redactor) -> PlanningNotes:
    """As they are kept. Plans are used again as they are."""
    conversation, questions = redactor.redacted((notes.conversation, notes.questions))
    return notes.model_copy(update={"conversation": conversation, "questions": questions})
