"""The waits that providers ask for, in a file for all processes on this machine."""

from pathlib import Path
from typing import Any

from msgspec import Struct

from cdd_agent.files.shared_json import change_json, read_json


class SharedWaits(Struct, frozen=True):
    """The Unix time before which no process calls a provider."""

    path: Path
    provider: str

    @property
    def until(self) -> tuple[float, str]:
        wait = self._find(read_json(self.path))
        return float(wait.get("until", 0.0)), str(wait.get("reason", ""))

    def extend(self, until: float, reason: str) -> None:
        """Let no process call the provider before a time."""
        with change_json(self.path) as waits:
            if until > self._find(waits).get("until", 0.0):
                waits[self.provider] = {"until": until, "reason": reason}

    def _find(self, waits: dict[str, Any]) -> dict[str, Any]:
        wait: dict[str, Any] = waits.get(self.provider, {})
        return wait
