"""Faults of the program itself in a shell: each is a line for the person and a
traceback in a file.
"""

from __future__ import annotations

import traceback
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

from cdd_agent.errors import CddError
from cdd_agent.files.atomic import append_line, ignore_runs
from cdd_agent.redaction import Redactor
from cdd_agent.user_folders import state_folder

_AGAIN = 10.0
"""Seconds in which the same fault is not told again: a screen is drawn often."""
_LONGEST = 100_000
"""Characters of a traceback."""


class FaultLog:
    """The file of tracebacks: with the project's runs, or where the person's other
    state is.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self.count = 0
        """How many there were."""
        self._told: dict[tuple[str, str], float] = {}

    def is_new(self, error: BaseException) -> bool:
        """Whether to tell of it: not when it has just been told."""
        last = traceback.extract_tb(error.__traceback__)[-1:]
        key, now = (repr(type(error)), repr(last)), monotonic()
        is_new = now - self._told.get(key, -_AGAIN) >= _AGAIN
        if is_new:
            self._told[key] = now
        return is_new

    def write(self, error: BaseException) -> str:
        """Keep its traceback, and say in a line what happened and where that is."""
        self.count += 1
        redactor = Redactor.of_environment(())
        first = str(error).strip().partition("\n")[0][:200]
        what = f"{type(error).__name__}: {first}" if first else type(error).__name__
        words = redactor.redact(
            f"A fault in cdd itself: {what.removesuffix('.')}. The session goes on"
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
            shown = (
                place.relative_to(self._root)
                if place.is_relative_to(self._root)
                else place
            )
            return f"{words}; the traceback is in {shown}"
        return f"{words}; its traceback could not be kept anywhere"

    def _places(self) -> list[Path]:
        folders = []
        if (self._root / ".cdd").is_dir():
            folders.append(self._root / ".cdd" / "runs")
        if state := state_folder():
            folders.append(state)
        return [folder / "errors.log" for folder in folders]
