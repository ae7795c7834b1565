"""The common flags, and a parsed command."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from cdd_agent.commands.declaration import load_address


class Invocation(NamedTuple):
    project: Path = Path()
    debug: bool = False
    trust: bool = False
    """Accept the project's settings that need trust, in this run."""
    plain: bool = False
    """Open the shell without a screen."""
    model: str | None = None
    api_base: str | None = None
    record: str | None = None

    @property
    def model_settings(self) -> dict[str, str | None]:
        return {
            "model": self.model,
            "api_base": self.api_base,
            "record": self.record,
        }


class ParsedCommand(NamedTuple):
    address: str
    """Imports a function `(invocation, **values)`."""
    invocation: Invocation
    values: Mapping[str, Any]
    interrupted: str
    """Printed after Ctrl+C."""

    def run(self) -> int:
        code: int = load_address(self.address)(self.invocation, **self.values)
        return code
