"""A ticket's lock: one process works on it. The system releases it when the process
ends.

Commands left running by a killed process are ended by the next holder.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from filelock import FileLock, Timeout
from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.errors import BadInput
from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.events.stream import Emit, ignore_event
from cdd_agent.files.atomic import read_bytes, remove, write_atomic
from cdd_agent.process.ending import end_noted
from cdd_agent.refusals.kinds import Refusal

_LOOK = 0.2
"""Seconds to wait: longer than `is_at_work` holds the lock."""


class TicketTaken(BadInput):
    """Another process works on the ticket."""

    refusal = Refusal.IN_USE

    def __init__(self, slug: str, who: str) -> None:
        super().__init__(
            f"Another cdd is working on {slug}{who}",
            hint="Finish or close it there first. Two at once would undo each"
            " other's work.",
        )
        self.slug = slug
        self.who = who
        """Process, host and time as a clause; empty if unknown."""


class LockGone(BadInput):
    """The lock's folder was removed while it was held."""

    refusal = Refusal.LOCK_LOST

    def __init__(self, folder: Path) -> None:
        super().__init__(
            f"{folder} was removed or replaced while it was in use",
            hint="Did something clean the project? Leave the ticket and open it again.",
        )
        self.folder = folder


class TicketLock(Struct, frozen=True):
    """A file next to the lock names its process."""

    lock: FileLock
    holder: Path
    identity: tuple[int, int]
    """Device and inode of the locked file. Another process could delete it and lock a
    new one.
    """
    is_lent: bool = False
    ended: int = 0
    """Number of a killed process's commands that were still running."""

    @classmethod
    def take(cls, folder: Path, slug: str, since: str) -> Self:
        """Take the lock. Raises `TicketTaken` if another process has it, or `BadInput`
        if files cannot be locked, or a killed process's command cannot be ended.
        """
        lock, holder = FileLock(folder / "lock", timeout=_LOOK), folder / "holder.json"
        try:
            lock.acquire()
            ticket_lock = cls(lock, holder, _identity(folder / "lock"))
        except Timeout as error:
            raise TicketTaken(slug, _who(holder)) from error
        except (OSError, NotImplementedError) as error:
            why = getattr(error, "strerror", None) or error
            raise BadInput(
                f"{folder / 'lock'} could not be locked: {why}", refusal=Refusal.DISK
            ) from error
        try:
            who = {"pid": os.getpid(), "host": platform.node(), "since": since}
            write_atomic(holder, json.dumps(who).encode())
            return replace(ticket_lock, ended=end_noted(folder))
        except BaseException:
            lock.release()
            raise

    def lent(self) -> Self:
        """Return the lock for another part of this process, which cannot release it."""
        return replace(self, is_lent=True, ended=0)

    @property
    def news(self) -> tuple[Notice, ...]:
        if not self.ended:
            return ()
        count = self.ended
        what = "a running command" if count == 1 else f"{count} running commands"
        text = f"Ended {what} of the killed run."
        return (Notice(text, Tone.WARNING, kind=NoticeKind.COMMAND_ENDED),)

    def check(self) -> None:
        """Raise `LockGone` if the lock's file was deleted: another process may hold a
        new lock.
        """
        if not self._is_ours:
            raise LockGone(self.holder.parent)

    def release(self) -> None:
        if self.lock.is_locked and not self.is_lent:
            try:
                if self._is_ours:
                    remove(self.holder)
            finally:  # a note left behind counts as a dead process's
                self.lock.release()

    @property
    def _is_ours(self) -> bool:
        try:
            return _identity(Path(self.lock.lock_file)) == self.identity
        except OSError:
            return False


def others_at_work(folder: Path) -> dict[str, str]:
    """Return other tickets that run in this project, with their processes. `folder` is
    this ticket's record.
    """
    others = dict[str, str]()
    for holder in sorted(folder.parent.glob("*/holder.json")):
        # a folder of several runs is no run
        if holder.parent == folder or holder.parent.name.startswith("."):
            continue
        if is_at_work(holder.parent):
            others[holder.parent.name] = _who(holder)
    return others


def is_at_work(folder: Path) -> bool:
    """True if a process works on the run, False if that cannot be seen."""
    if not (folder / "holder.json").exists():
        return False
    try:
        with FileLock(folder / "lock", timeout=0):
            return False  # its process was killed
    except Timeout:
        return True
    except (OSError, NotImplementedError):
        # the caller works without the answer
        return False


def is_other_at_work(folder: Path) -> bool:
    """True if another process works on the run."""
    if not is_at_work(folder):
        return False
    try:
        holder = json.loads(read_bytes(folder / "holder.json") or b"")
        return bool(holder["pid"] != os.getpid())
    except (ValueError, KeyError, TypeError):
        return True


def _identity(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino


def _who(holder: Path) -> str:
    """Return the holder as a clause. Empty if unknown: a new holder may not have
    written its name yet.
    """
    try:
        note = json.loads(read_bytes(holder) or b"")
        since = datetime.fromisoformat(note["since"]).astimezone()
        return (
            f": process {note['pid']} on {note['host']}, since {since:%Y-%m-%d %H:%M}"
        )
    except (ValueError, KeyError, TypeError):
        return ""


@contextmanager
def locked(folder: Path, slug: str, emit: Emit = ignore_event) -> Iterator[None]:
    """Hold the ticket's lock. Raises `BadInput` if another process works on it."""
    lock = TicketLock.take(
        folder, slug, datetime.now(UTC).replace(microsecond=0).isoformat()
    )
    try:
        for notice in lock.news:
            emit(notice)
        yield
    finally:
        lock.release()
