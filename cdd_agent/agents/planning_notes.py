"""All that was learnt while planning a ticket, kept so that nothing has to be paid for
twice.
"""

from typing import Literal

from msgspec import Struct

from cdd_agent.llm.port import Message

NAME = "planning.json"


class PlanningNotes(Struct, frozen=True, forbid_unknown_fields=True):
    """The conversation with the model, what is open in it, and what came of it."""

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
    """The digest of the spec that the conversation is about."""
    base: str = ""
    """The text of plan.md that the proposal, or the present request, is about."""
    proposal: str = ""
    """The proposed plan, as plan.md."""
    is_anew: bool = False
    """The proposal takes the place of the plan; otherwise it is a change of it."""
