"""The meaning of a line, known before it is sent."""

from collections.abc import Awaitable, Callable
from enum import Enum

from msgspec import Struct

GUIDANCE = "guidance"
"""The name of instructions for a step, which a running step can still get."""


class LineKind(Enum):
    """The kinds of lines."""

    SLASH = "slash command"
    SHELL = "shell command"
    WORD = "word of the agent"
    TEXT = "text for the model"
    NOTHING = "doubtful, or of no effect: the user gets an answer, nothing else happens"


class Meaning(Struct, frozen=True, eq=False):
    """The meaning of a line in the present state. The prompt shows its hint, and Enter
    sends it as a value.

    Two that are equal do the same. A line is carried out only if its meaning is still
    equal to the one that was sent.
    """

    kind: LineKind
    name: str
    hint: str
    """The effect of Enter, in a few words; empty for a message to chat."""
    act: Callable[[], Awaitable[None]]
    """Carries the line out. Raises `CddError`."""
    about: object = None
    """The arguments, and the step or the proposal that it is about, if that can change
    before Enter.
    """
    line: str = ""
    agent: object = None
    """The agent that receives the line; None for chat and commands."""
    runs_beside: bool = False
    """True if it may be carried out while something else runs."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Meaning) and self._identity == other._identity

    def __ne__(self, other: object) -> bool:
        # A struct of msgspec does not derive it from `__eq__`.
        return not self == other

    # A proposal has parts that cannot be hashed.
    __hash__ = None  # type: ignore[assignment]

    @property
    def _identity(self) -> tuple[object, ...]:
        return self.kind, self.name, self.about, id(self.agent)

    @property
    def leaves(self) -> bool:
        """True if the line ends the shell."""
        return self.kind is LineKind.SLASH and self.name == "exit"

    @property
    def is_refused_at_work(self) -> bool:
        """True if the line undoes or redoes changes. It is refused while something
        runs, because by its end another change is the newest.
        """
        return self.name in ("undo", "redo")

    @property
    def is_for_agent(self) -> bool:
        """True if the active agent or chat receives the line."""
        return self.kind not in (LineKind.SLASH, LineKind.SHELL)
