"""Saves unsent text while a shell runs, for the next shell if this one is killed."""

from __future__ import annotations

import json
import secrets
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from cdd_agent.errors import CddError
from cdd_agent.files.atomic import ignore_runs

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from collections.abc import Sequence
    from io import BufferedWriter


class Drafts:
    """One shell's drafts, in a file that the shell locks. If the disk refuses the file,
    the drafts are only in memory.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folder = root / ".cdd" / "runs" / "drafts"
        self._file = self._folder / f"{secrets.token_hex(8)}.json"
        self._lock: BufferedWriter | None = None
        self._saved: list[str] = []
        self._is_closed = False

    def save(self, lines: Sequence[str]) -> None:
        is_project = (self._root / ".cdd").is_dir()
        if self._is_closed or list(lines) == self._saved or not is_project:
            return
        with suppress(OSError, CddError):
            if self._lock is None:
                ignore_runs(self._root)
                self._folder.mkdir(parents=True, exist_ok=True)
                self._lock = _lock_file(self._file)
            # No fsync: a draft must survive the process, not the machine.
            temporary = self._file.with_suffix(".tmp")
            temporary.touch(0o600)
            temporary.write_text(json.dumps(list(lines)), encoding="utf-8")
            temporary.replace(self._file)
            self._saved = list(lines)

    def take_over(self) -> list[str]:
        lines: list[str] = []
        with suppress(OSError):
            for file in sorted(self._folder.glob("*.json")):
                if file != self._file:
                    lines += _take_over_file(file)
        return lines

    def close(self, *, keep: bool = False) -> None:
        """Save nothing more. Delete the file, unless `keep`."""
        self._is_closed = True
        if self._lock is None:
            return
        with suppress(OSError):
            if not (keep and self._saved):
                self._file.unlink(missing_ok=True)
        _release(self._lock)
        self._lock = None


def _lock_file(file: Path) -> BufferedWriter:
    """Raise `OSError` if another shell has locked the file, and on Windows."""
    if sys.platform == "win32":
        raise OSError("drafts cannot be locked here")
    lock = file.with_suffix(".lock").open("wb")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise
    return lock


def _release(lock: BufferedWriter) -> None:
    lock.close()
    with suppress(OSError):
        Path(lock.name).unlink(missing_ok=True)


def _take_over_file(file: Path) -> list[str]:
    try:
        lock = _lock_file(file)
    except OSError:  # its shell still runs
        return []
    try:
        lines = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        lines = []
    finally:
        with suppress(OSError):
            file.unlink(missing_ok=True)
            file.with_suffix(".tmp").unlink(missing_ok=True)
        _release(lock)
    if not isinstance(lines, list):
        return []
    return [line for line in lines if isinstance(line, str)]
