"""The flags that every command takes, and a command that is ready to run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from cdd_agent.commands.declaration import load_address


class Invocation(NamedTuple):
    """The flags before or after any command."""

    project: Path = Path()
    debug: bool = False
    trust: bool = False
    """Accept the project's settings that need trust, for this run."""
    plain: bool = False
    """Open the shell without a screen."""
    model: str | None = None
    api_base: str | None = None
    record: str | None = None

    @property
    def model_settings(self) -> dict[str, str | None]:
        """The flags that are settings."""
        return {
            "model": self.model,
            "api_base": self.api_base,
            "record": self.record,
        }


class ParsedCommand(NamedTuple):
    """A command that is ready to run."""

    address: str
    """The address of a function `(invocation, **values)`."""
    invocation: Invocation
    values: Mapping[str, Any]
    interrupted: str
    """Printed after Ctrl+C."""

    def run(self) -> int:
        """Run the command. Each imports only what it needs itself."""
        code: int = load_address(self.address)(self.invocation, **self.values)
        return code
