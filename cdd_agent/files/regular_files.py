"""Open regular files only: no link is followed, no pipe or device is touched."""

import os
import stat
from contextlib import suppress
from io import BufferedReader
from pathlib import Path

_CAREFULLY = os.O_RDONLY
# whichever this system has
for _name in (
    "O_NOFOLLOW",
    "O_NONBLOCK",
    "O_CLOEXEC",
    "O_BINARY",
):
    _CAREFULLY |= getattr(os, _name, 0)


def open_file(place: Path) -> BufferedReader:
    """Open a regular file for reading, or raise `OSError`: no link is followed, and no
    pipe or device is touched.
    """
    return os.fdopen(_opened(place), "rb")


def read_beginning(place: str, limit: int) -> bytes:
    """So many bytes of a regular file at most, opened like that: for many small
    files.
    """
    descriptor = _opened(place)
    try:
        size = os.fstat(descriptor).st_size
        data = os.read(descriptor, min(limit, size + 1))
        # it grows
        while size < len(data) < limit and (
            more := os.read(descriptor, limit - len(data))
        ):
            data += more
        return data
    finally:
        os.close(descriptor)


def read_small(place: Path, limit: int) -> str:
    """The beginning of a small text file of git's; empty when it cannot be read."""
    try:
        with open_file(place.resolve()) as file:
            return file.read(limit).decode("utf-8", errors="replace")
    except (OSError, RuntimeError):  # also links in a circle
        return ""


def _opened(place: Path | str) -> int:
    if not stat.S_ISREG(os.lstat(place).st_mode):
        raise OSError("not a regular file")
    descriptor = os.open(place, _CAREFULLY)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):  # exchanged meanwhile
        os.close(descriptor)
        raise OSError("not a regular file")
    return descriptor


def git_folder(top: Path) -> Path | None:
    """The `.git` of a working tree whose top this is, or where a worktree's or
    submodule's `.git` file points.
    """
    git = top / ".git"
    with suppress(OSError):  # it may be in a folder that may not be read
        if git.is_dir():
            return git
    text = read_small(git, 4096).strip()
    return (
        top / text.removeprefix("gitdir:").strip()
        if text.startswith("gitdir:")
        else None
    )
