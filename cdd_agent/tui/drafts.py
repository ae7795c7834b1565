"""Drafts: text that is typed and not sent, on the disk while a shell runs. A killed one
leaves it to the next.
"""

from __future__ import annotations

import json
import secrets
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from cdd_agent.errors import CddError
from cdd_agent.files.atomic import ignore_runs

if TYPE_CHECKING:
    from collections.abc import Sequence


class Drafts:
    """One shell's drafts: a file in a project's runs, which the shell locks while it
    runs. If the disk refuses them, they are only in memory, without a message.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folder = root / ".cdd" / "runs" / "drafts"
        self._file = self._folder / f"{secrets.token_hex(8)}.json"
        self._lock: FileLock | None = None
        self._kept: list[str] = []
        self._is_closed = False

    def keep(self, lines: Sequence[str]) -> None:
        """These are the drafts now."""
        if (
            self._is_closed
            or list(lines) == self._kept
            or not (self._root / ".cdd").is_dir()
        ):
            return
        with suppress(OSError, CddError, NotImplementedError):
            if self._lock is None:
                ignore_runs(self._root)
                self._folder.mkdir(parents=True, exist_ok=True)
                self._lock = _locked(self._file)
            # it need not survive more than this process: no fsync
            beside = self._file.with_suffix(".tmp")
            beside.touch(0o600)
            beside.write_text(json.dumps(list(lines)), encoding="utf-8")
            beside.replace(self._file)
            self._kept = list(lines)

    def left_by_others(self) -> list[str]:
        """The drafts of shells that were killed. They are the caller's from now on."""
        left = list[str]()
        with suppress(OSError):
            for file in sorted(self._folder.glob("*.json")):
                if file != self._file:
                    left += _taken_over(file)
        return left

    def close(self, *, leave: bool = False) -> None:
        """The shell ends, and nothing more is kept. `leave`: what was kept so far is
        left to the next one.
        """
        self._is_closed = True
        if self._lock is not None:
            with suppress(OSError):
                if not (leave and self._kept):
                    self._file.unlink(missing_ok=True)
            _release(self._lock)
            self._lock = None


def _locked(file: Path) -> FileLock:
    lock = FileLock(file.with_suffix(".lock"), timeout=0)
    lock.acquire()
    return lock


def _release(lock: FileLock) -> None:
    lock.release()
    with suppress(OSError):
        Path(lock.lock_file).unlink(missing_ok=True)


def _taken_over(file: Path) -> list[str]:
    try:
        lock = _locked(file)
    except (Timeout, OSError, NotImplementedError):  # its shell lives
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
    return (
        [line for line in lines if isinstance(line, str)]
        if isinstance(lines, list)
        else []
    )
