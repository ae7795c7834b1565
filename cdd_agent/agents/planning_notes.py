"""The saved conversation of planning a ticket, so that nothing is paid for twice."""

from typing import Literal

from msgspec import Struct

from cdd_agent.llm.port import Message

NAME = "planning.json"


class PlanningNotes(Struct, frozen=True, forbid_unknown_fields=True):
    """The conversation with the model, what is open in it, and what came of it."""

    task: Literal["plan", "change"] = "plan"
    conversation: tuple[Message, ...] = ()
    """Without the system's message, which is built for each request."""
    is_open: bool = False
    """The model was asked, and its answer did not come."""
    questions: tuple[str, ...] = ()
    """Questions that wait for the user's answer."""
    asked: int = 0
    """Number of questions since the user's last request."""
    spec: str = ""
    """The digest of the spec that the conversation is about."""
    base: str = ""
    """The text of plan.md that the proposal, or the present request, is about."""
    proposal: str = ""
    is_anew: bool = False
    """The proposal takes the place of the plan; otherwise it is a change of it."""
