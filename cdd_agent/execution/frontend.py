"""The person, as the engine sees them."""

from dataclasses import dataclass
from typing import Protocol

from cdd_agent.events import ChangesProposed


class Frontend(Protocol):
    """Whoever answers the engine's questions: the shell, or a policy where nobody is there."""

    async def approve(self, changes: ChangesProposed) -> bool:
        """May these changes be written? Raises `NotApproved` where there is nobody to ask."""
        ...


@dataclass(frozen=True)
class Always:
    """Approves everything: `approval: edits` and `auto`, and `--yes`."""

    async def approve(self, changes: ChangesProposed) -> bool:
        del changes
        return True
