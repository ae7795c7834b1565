"""A small disk that can become full: a tmpfs in a mount namespace.

Where the system forbids namespaces, a limit on the size of files replaces it.
"""

import os
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

_IN_NAMESPACE = "CDD_SOAK_NAMESPACE"
_UNSHARE = ("unshare", "--user", "--map-root-user", "--mount", "--kill-child", "--fork")
_FILE_LIMIT = 4_000
"""Bytes. Too few for the log of a run, enough for a lock."""


def enter_namespace() -> None:
    """Start this program again in a mount namespace, if the system allows one."""
    if _IN_NAMESPACE in os.environ or not _can_mount():
        return
    os.environ[_IN_NAMESPACE] = "1"
    arguments = (*_UNSHARE, sys.executable, "-m", "tests.soak", *sys.argv[1:])
    os.execvp(_UNSHARE[0], arguments)


def _can_mount() -> bool:
    try:
        tried = subprocess.run(
            [*_UNSHARE, "mount", "-t", "tmpfs", "cdd-soak", "/mnt"],
            capture_output=True,
            check=False,
        )
    except FileNotFoundError:
        return False
    return tried.returncode == 0


@dataclass
class Disk:
    """The disk of the project, its processes' home and their temporary files."""

    folder: Path
    size: int
    """Bytes, while the disk is not full."""
    is_mounted: bool = False
    filled_at: float = 0.0
    """The time at which the disk became full last."""
    freed_at: float = 0.0

    @classmethod
    def mount(cls, folder: Path, size: int) -> "Disk":
        """Mount a tmpfs at the folder if this process is in a namespace."""
        folder.mkdir(parents=True)
        disk = cls(folder, size)
        if _IN_NAMESPACE in os.environ:
            options = f"size={size}"
            command = ["mount", "-t", "tmpfs", "-o", options, "cdd-soak", str(folder)]
            subprocess.run(command, check=True)
            disk.is_mounted = True
        return disk

    def unmount(self) -> None:
        if self.is_mounted:
            subprocess.run(["umount", "--lazy", str(self.folder)], check=True)

    def fill(self, room: int) -> None:
        """Make the disk full but for some bytes."""
        self.filled_at = time.monotonic()
        usage = os.statvfs(self.folder)
        used = (usage.f_blocks - usage.f_bfree) * usage.f_frsize
        self._remount(used + room)

    def free(self) -> None:
        self._remount(self.size)
        self.freed_at = time.monotonic()

    def was_full_since(self, start: float) -> bool:
        return self.freed_at >= start or self.filled_at > self.freed_at

    def _remount(self, size: int) -> None:
        options = f"remount,size={size}"
        command = ["mount", "-o", options, str(self.folder)]
        # The disk may have grown since it was measured: then it stays as large.
        subprocess.run(command, capture_output=True, check=False)


def limit_files(pid: int) -> None:
    """Let a process write only small files, as on a disk that becomes full."""
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (_FILE_LIMIT, resource.RLIM_INFINITY))
