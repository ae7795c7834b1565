import time
from collections.abc import Sequence
from typing import Any

from msgspec import Struct, field

from cdd_agent.tools.base import Answer, Tool

_READS_FILES = "read_file"


class Exploration(Struct):
    """The limits and the use so far, for one request to the model."""

    most_files: int = 40
    most_searches: int = 40
    """Includes listings and views of the history."""
    most_seconds: float = 600.0
    files: int = 0
    searches: int = 0
    _began: float = field(default_factory=time.monotonic)

    def bounded(self, tools: Sequence[Tool[Any]]) -> tuple[Tool[Any], ...]:
        """Return the same tools, which refuse further calls at the limit."""
        return tuple(_Bounded(tool, self) for tool in tools)

    def take(self, tool: str) -> str:
        """Count a use. Return why it exceeds a limit; empty if it does not."""
        what = ""
        if time.monotonic() - self._began > self.most_seconds:
            what = f"The {self.most_seconds:.0f} seconds for looking around are over."
        elif tool == _READS_FILES and self.files >= self.most_files:
            what = f"{self.most_files} files were read, which is the limit."
        elif tool == _READS_FILES:
            self.files += 1
        elif self.searches >= self.most_searches:
            what = f"{self.most_searches} searches were made, which is the limit."
        else:
            self.searches += 1
        return what and f"{what} Continue with what you know."

    @property
    def in_words(self) -> str:
        seconds = time.monotonic() - self._began
        return (
            f"read {self.files} of {self.most_files} files,"
            f" {self.searches} of {self.most_searches} searches, {seconds:.0f} of"
            f" {self.most_seconds:.0f} s"
        )


class _Bounded(Tool[Any]):
    def __init__(self, tool: Tool[Any], exploration: Exploration) -> None:
        self._tool, self._exploration = tool, exploration
        kind = type(tool)
        vars(self).update(
            name=kind.name,
            category=kind.category,
            tags=kind.tags,
            main_argument=kind.main_argument,
            acts=kind.acts,
            unsent=kind.unsent,
        )
        self.returns, self.examples, self.arguments = (
            tool.returns,
            tool.examples,
            tool.arguments,
        )

    @property
    def purpose(self) -> str:
        return self._tool.purpose

    async def run(self, arguments: Any) -> Answer:
        if why := self._exploration.take(self.name):
            return {"error": why}
        return await self._tool.run(arguments)
