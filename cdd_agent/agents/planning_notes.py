"""The saved conversation about a plan, so that no reply is paid for twice."""

from typing import Literal

from msgspec import Struct

from cdd_agent.llm.port import Message

NAME = "planning.json"


class PlanningNotes(Struct, frozen=True, forbid_unknown_fields=True):
    task: Literal["plan", "change"] = "plan"
    conversation: tuple[Message, ...] = ()
    """Without the system message, which is built for each request."""
    is_open: bool = False
    """True if the model's answer has not arrived."""
    questions: tuple[str, ...] = ()
    asked: int = 0
    """Number of questions since the user's last request."""
    spec: str = ""
    """The digest of the conversation's spec."""
    base: str = ""
    """The text of plan.md that the proposal or the request is based on."""
    proposal: str = ""
    is_anew: bool = False
    """True if the proposal replaces the plan, instead of changing it."""
