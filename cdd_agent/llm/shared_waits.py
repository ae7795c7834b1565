"""The waits that providers ask for, shared by the processes that ask them: a file."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from cdd_agent.files.shared_json import change_json, read_json


class SharedWaits(Struct, frozen=True):
    """When a provider may be asked again, in Unix time: the processes are on one
    machine.
    """

    path: Path
    provider: str

    @property
    def until(self) -> tuple[float, str]:
        """The time, and the reason to wait until then."""
        found = read_json(self.path).get(self.provider, {})
        return float(found.get("until", 0.0)), str(found.get("reason", ""))

    def extend(self, until: float, reason: str) -> None:
        """Let no process ask the provider before that time."""
        with change_json(self.path) as waits:
            if until > waits.get(self.provider, {}).get("until", 0.0):
                waits[self.provider] = {"until": until, "reason": reason}
