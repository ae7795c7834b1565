"""What was learnt while planning a ticket, kept so that nothing has to be paid for twice: `planning.json`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from cdd_agent.execution.record import RunRecord
from cdd_agent.execution.saved import as_json, set_aside
from cdd_agent.llm.port import Message
from cdd_agent.workspace.files import read_bytes, remove, write_atomic

_FILE = "planning.json"


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


@dataclass(frozen=True)
class NotesFile:
    """Where a ticket's notes are: in its record, without secrets, but for plans, which are used again as they are."""

    record: RunRecord

    @property
    def path(self) -> Path:
        return self.record.folder / _FILE

    def read(self) -> tuple[PlanningNotes, str]:
        """What was left, or empty notes; and what a person has to be told of it."""
        data = read_bytes(self.path)
        if data is None:
            return PlanningNotes(), ""
        try:
            return PlanningNotes.model_validate_json(data), ""
        except ValidationError:
            aside = set_aside(self.path)
            return PlanningNotes(), f"{self.path.name} of an earlier planning cannot be read; it is now {aside.name}."

    def write(self, notes: PlanningNotes) -> None:
        self.record.prepare()
        clean = notes.model_copy(
            update={
                "conversation": tuple(map(self.record.redactor.redacted, notes.conversation)),
                "questions": tuple(map(self.record.redactor.redact, notes.questions)),
            }
        )
        write_atomic(self.path, as_json(clean).encode("utf-8", errors="replace"))

    def discard(self) -> None:
        remove(self.path)
