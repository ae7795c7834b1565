"""Reading and writing files so that a crash never leaves a half-written one."""

import contextlib
import hashlib
import os
from pathlib import Path

from cdd_agent.errors import BadInput

_IGNORE = "# Runs are this machine's own; the config and the templates are shared.\nruns/\n"


def write_atomic(path: Path, data: bytes) -> None:
    """Write `data` whole or not at all: temporary file beside it, fsync, rename, fsync of the folder.

    Missing parent folders are made, an existing file keeps its mode, and a link is followed to its target.
    Raises `BadInput` when the disk refuses (read-only, full, a folder in the way); then nothing has changed.
    """
    target = path.resolve()
    temporary = _temporary(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _write_synced(temporary, data, mode_like=target)
        temporary.replace(target)
        _sync_folder(target.parent)
    except OSError as error:
        with contextlib.suppress(OSError):  # what is told is the first error, not the clean-up's
            temporary.unlink(missing_ok=True)
        raise BadInput(
            f"{path} could not be written: {error.strerror or error}",
            hint="Check that the folder is writable and that the disk has space.",
        ) from error


def remove_leftover(path: Path) -> None:
    """Remove the temporary file that a write of `path` leaves when the process is killed in the middle of it."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        _temporary(path.resolve()).unlink()


def read_bytes(path: Path) -> bytes | None:
    """The content of a file, or None where there is none. Raises `BadInput` when it cannot be read."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise BadInput(f"{path} could not be read: {error.strerror or error}") from error


def ignore_runs(root: Path) -> Path | None:
    """See that git ignores what runs leave; the file that was made for it, or None when it is there already."""
    file = root / ".cdd" / ".gitignore"
    if file.exists():
        return None
    write_atomic(file, _IGNORE.encode())
    return file


def digest(data: bytes | None) -> str | None:
    """What identifies a content in journals: its SHA-256, or None for a file that is not there."""
    return None if data is None else hashlib.sha256(data).hexdigest()


def _temporary(target: Path) -> Path:
    """Always the same for a file: what a killed process left is used again, or found by its name."""
    return target.parent / f".cdd-{hashlib.sha256(target.name.encode('utf-8', 'surrogateescape')).hexdigest()[:12]}.tmp"


def _write_synced(path: Path, data: bytes, *, mode_like: Path) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(path, flags, 0o666)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    if mode_like.exists():
        path.chmod(mode_like.stat().st_mode & 0o7777)


def _sync_folder(folder: Path) -> None:
    """Where the system can: Windows and some network disks cannot, and the file itself is in its place by now."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
