from collections.abc import Awaitable, Callable
from enum import Enum

from msgspec import Struct

GUIDANCE = "guidance"
"""The name of instructions for a step, which a running step can receive."""


class LineKind(Enum):
    SLASH = "slash command"
    SHELL = "shell command"
    WORD = "word of the agent"
    TEXT = "text for the model"
    NOTHING = "doubtful, or of no effect: the user gets an answer, nothing else happens"


class Meaning(Struct, frozen=True, eq=False):
    """The meaning of a line in the current state. The prompt shows its hint, and Enter
    sends it.

    Equal meanings have the same effect. A line is carried out only if its meaning still
    equals the meaning that was sent.
    """

    kind: LineKind
    name: str
    hint: str
    """The effect of Enter; empty for a message to chat."""
    act: Callable[[], Awaitable[None]]
    about: object = None
    """The arguments, and the step or proposal if it can change before Enter."""
    line: str = ""
    agent: object = None
    """The agent that receives the line; None for chat and commands."""
    runs_beside: bool = False
    """True if it may run while something else runs."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Meaning) and self._identity == other._identity

    def __ne__(self, other: object) -> bool:
        # A struct of msgspec does not derive it from `__eq__`.
        return not self == other

    # Parts of a proposal are not hashable.
    __hash__ = None  # type: ignore[assignment]

    @property
    def _identity(self) -> tuple[object, ...]:
        return self.kind, self.name, self.about, id(self.agent)

    @property
    def leaves(self) -> bool:
        return self.kind is LineKind.SLASH and self.name == "exit"

    @property
    def is_refused_at_work(self) -> bool:
        """True for undo and redo. They are refused during a turn, which may add a newer
        change.
        """
        return self.name in ("undo", "redo")

    @property
    def is_for_agent(self) -> bool:
        return self.kind not in (LineKind.SLASH, LineKind.SHELL)
