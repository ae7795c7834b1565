"""Reports internal faults in a shell: one line for the user, the traceback in a
file.
"""

from __future__ import annotations

import traceback
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

from cdd_agent.errors import CddError
from cdd_agent.files.atomic import append_line, ignore_runs
from cdd_agent.settings.user_folders import state_folder
from cdd_agent.text.redaction import Redactor

_AGAIN = 10.0
"""Seconds until the same fault is reported again. A screen draws often, so one fault
may recur many times a second.
"""
_LONGEST = 100_000


class FaultLog:
    """The log of tracebacks, with the project's runs or in the user's state folder."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.count = 0
        self._reported_at: dict[tuple[str, str], float] = {}

    def is_new(self, error: BaseException) -> bool:
        """True if the fault was not reported recently."""
        last = traceback.extract_tb(error.__traceback__)[-1:]
        key, now = (repr(type(error)), repr(last)), monotonic()
        if now - self._reported_at.get(key, -_AGAIN) < _AGAIN:
            return False
        self._reported_at[key] = now
        return True

    def write(self, error: BaseException) -> str:
        """Save the traceback. Return a line for the user that names the fault and the
        file.
        """
        self.count += 1
        redactor = Redactor.of_environment(())
        first = str(error).strip().partition("\n")[0][:200]
        what = type(error).__name__
        if first:
            what = f"{what}: {first}"
        words = redactor.redact(
            f"Internal error in cdd: {what.removesuffix('.')}. The session continues"
        )
        text = redactor.redact("".join(traceback.format_exception(error)))[-_LONGEST:]
        entry = f"--- {datetime.now(UTC).isoformat(timespec='seconds')}\n{text}"
        for place in self._places():
            try:
                if place.parent.parent.name == ".cdd":
                    ignore_runs(self._root)
                append_line(place, entry.encode(errors="replace"), 0o600)
            except CddError:
                continue
            shown = place
            if place.is_relative_to(self._root):
                shown = place.relative_to(self._root)
            return f"{words}. Traceback: {shown}"
        return f"{words}. Its traceback could not be saved"

    def _places(self) -> list[Path]:
        folders = []
        if (self._root / ".cdd").is_dir():
            folders.append(self._root / ".cdd" / "runs")
        state = state_folder()
        if state is not None:
            folders.append(state)
        return [folder / "errors.log" for folder in folders]
