"""Open regular files only. Links are not followed."""

import os
import stat
from contextlib import suppress
from io import BufferedReader
from pathlib import Path

_FLAGS = os.O_RDONLY
# no system has all of these
for _name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):
    _FLAGS |= getattr(os, _name, 0)


def open_file(place: Path) -> BufferedReader:
    """Raises `OSError`, also for anything but a regular file."""
    return os.fdopen(_open(place), "rb")


def read_beginning(place: str, limit: int) -> bytes:
    """Return at most `limit` bytes; a small file takes one system call. Raises
    `OSError`.
    """
    descriptor = _open(place)
    try:
        size = os.fstat(descriptor).st_size
        data = os.read(descriptor, min(limit, size + 1))
        # the file grows
        while size < len(data) < limit:
            more = os.read(descriptor, limit - len(data))
            if not more:
                break
            data += more
        return data
    finally:
        os.close(descriptor)


def read_small(place: Path, limit: int) -> str:
    """Return the beginning of one of git's files; empty if unreadable. Follows
    links.
    """
    try:
        with open_file(place.resolve()) as file:
            return file.read(limit).decode("utf-8", errors="replace")
    # a circle of links is a `RuntimeError`
    except (OSError, RuntimeError):
        return ""


def git_folder(top: Path) -> Path | None:
    """Return the git folder of the working tree with this top. A linked worktree has it
    elsewhere.
    """
    git = top / ".git"
    # a parent folder may be closed
    with suppress(OSError):
        if git.is_dir():
            return git
    text = read_small(git, 4096).strip()
    if text.startswith("gitdir:"):
        return top / text.removeprefix("gitdir:").strip()
    return None


def _open(place: Path | str) -> int:
    _expect_regular(os.lstat(place))
    descriptor = os.open(place, _FLAGS)
    try:
        # another file may have replaced it
        _expect_regular(os.fstat(descriptor))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _expect_regular(details: os.stat_result) -> None:
    if not stat.S_ISREG(details.st_mode):
        raise OSError("not a regular file")
