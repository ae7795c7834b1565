"""A lock on a file, which the system lets go of when its holder is gone, however it ended.

The package `filelock` does the same for more systems, but takes half as long to import as an HTTP client.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Self

_LOOK = 0.05
"""Seconds between two tries."""


class Locked(Exception):
    """Somebody else holds it."""


class FileLock:
    """For one holder at a time, among all processes and within this one. The file stays when it is let go of."""

    def __init__(self, path: Path, timeout: float | None = None) -> None:
        """`timeout`: seconds that are waited for it; None: as long as it takes."""
        self.path = path
        self._timeout = timeout
        self._file: int | None = None

    @property
    def is_held(self) -> bool:
        return self._file is not None

    def acquire(self) -> None:
        """Raises `Locked`, or `OSError` where the file cannot be made, or no file can be locked."""
        until = None if self._timeout is None else time.monotonic() + self._timeout
        while not self._try():
            if until is not None and time.monotonic() >= until:
                raise Locked
            time.sleep(_LOOK)

    def release(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            os.close(file)  # and with that, the system lets go of the lock

    def _try(self) -> bool:
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o644)
        try:
            if (
                not _lock(file) or not os.fstat(file).st_nlink
            ):  # its last holder has removed it: another one is the lock
                return False
            self._file, file = file, -1
            return True
        finally:
            if file >= 0:
                os.close(file)

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *error: object) -> None:
        self.release()

    def __del__(self) -> None:
        self.release()


def _lock(file: int) -> bool:
    """Without waiting; False: somebody else has it."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True
