"""A conversation as a model's window has room for it."""

from dataclasses import dataclass

from cdd_agent.dialogue.turns import Dialogue
from cdd_agent.llm.port import Message


@dataclass(frozen=True)
class FittedPrompt:
    """What the model is asked, and with which tools."""

    dialogue: Dialogue
    messages: tuple[Message, ...]
    left_out: tuple[str, ...]
    """What there was no room for in its window."""
