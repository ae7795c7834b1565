"""One at work on a ticket at a time: a lock that the system lets go of when its holder
is gone, however it ended.

What a holder that was killed has left running is ended by the next one.
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

_LOOK = 0.2
"""Seconds; longer than a look of `others_at_work` has a lock that nobody holds."""


class TicketTaken(BadInput):
    """Another process is at work on the ticket."""

    def __init__(self, slug: str, who: str) -> None:
        super().__init__(
            f"Another cdd is at work on {slug}{who}",
            hint=(
                "Finish or leave it there first; two at once would undo each other's"
                " work."
            ),
        )
        self.slug = slug
        self.who = who
        """Its process, host and time, as a clause; empty where that is not known."""


class LockGone(BadInput):
    """The folder of the lock was removed while it was held."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            f"{folder} was removed or replaced while it was in use",
            hint=(
                "Was the project cleaned? Leave what was begun here, and begin it"
                " again."
            ),
        )
        self.folder = folder


class TicketLock(Struct, frozen=True):
    """Held by one process. Who it is stands in a file beside it, for whoever is
    refused.
    """

    lock: FileLock
    holder: Path
    identity: tuple[int, int]
    """Of the locked file on its disk: somebody may remove it, and lock another one of
    that name.
    """
    is_lent: bool = False
    ended: int = 0
    """Commands of a holder that was killed which still ran."""

    @classmethod
    def take(cls, folder: Path, slug: str, since: str) -> Self:
        """Raises `TicketTaken` when another process has it, or `BadInput` where files
        cannot be locked, or a command of one that was killed cannot be ended.
        """
        lock, holder = FileLock(folder / "lock", timeout=_LOOK), folder / "holder.json"
        try:
            lock.acquire()
            taken = cls(lock, holder, _identity(folder / "lock"))
        except Timeout as error:
            raise TicketTaken(slug, _who(holder)) from error
        except (OSError, NotImplementedError) as error:
            why = getattr(error, "strerror", None) or error
            raise BadInput(f"{folder / 'lock'} could not be locked: {why}") from error
        try:
            who = {"pid": os.getpid(), "host": platform.node(), "since": since}
            write_atomic(holder, json.dumps(who).encode())
            return replace(taken, ended=end_noted(folder))
        except BaseException:
            lock.release()
            raise

    def lent(self) -> Self:
        """The same lock, for somebody else in this process for a while: only its holder
        releases it.
        """
        return replace(self, is_lent=True, ended=0)

    @property
    def news(self) -> tuple[Notice, ...]:
        """For whoever has it to tell."""
        if not self.ended:
            return ()
        what = "A command" if self.ended == 1 else f"{self.ended} commands"
        text = f"{what} of the run that was killed still ran, and had to be ended."
        return (Notice(text, Tone.WARNING, kind=NoticeKind.COMMAND_ENDED),)

    def check(self) -> None:
        """Raises `LockGone` when the lock's file was removed, so that somebody else may
        hold another one by now.
        """
        if not self._is_ours:
            raise LockGone(self.holder.parent)

    def release(self) -> None:
        if self.lock.is_locked and not self.is_lent:
            try:
                if self._is_ours:
                    remove(self.holder)
            finally:  # a note that stays is taken for a dead process's
                self.lock.release()

    @property
    def _is_ours(self) -> bool:
        try:
            return _identity(Path(self.lock.lock_file)) == self.identity
        except OSError:
            return False


def others_at_work(folder: Path) -> dict[str, str]:
    """The tickets at work in this project beside the one that is kept in `folder`, and
    for each, who it is.
    """
    others = dict[str, str]()
    for holder in sorted(folder.parent.glob("*/holder.json")):
        # several runs together are none themselves
        if holder.parent == folder or holder.parent.name.startswith("."):
            continue
        if is_at_work(holder.parent):
            others[holder.parent.name] = _who(holder)
    return others


def is_at_work(folder: Path) -> bool:
    """Whether somebody is at work on the run that is kept in this folder, as far as
    that can be seen.
    """
    if not (folder / "holder.json").exists():
        return False
    try:
        with FileLock(folder / "lock", timeout=0):
            return False  # whoever wrote that was killed
    except Timeout:
        return True
    except (OSError, NotImplementedError):
        return False  # it is only good to know


def _identity(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino


def _who(holder: Path) -> str:
    """As far as it is known: whoever has just taken the lock may not have written it
    down yet.
    """
    try:
        known = json.loads(read_bytes(holder) or b"")
        since = datetime.fromisoformat(known["since"]).astimezone()
        return (
            f": process {known['pid']} on {known['host']}, since {since:%Y-%m-%d %H:%M}"
        )
    except (ValueError, KeyError, TypeError):
        return ""


@contextmanager
def locked(folder: Path, slug: str, emit: Emit = ignore_event) -> Iterator[None]:
    """Nobody else works on the ticket meanwhile whose record is in the folder. Raises
    `BadInput` where someone does.
    """
    lock = TicketLock.take(
        folder, slug, datetime.now(UTC).replace(microsecond=0).isoformat()
    )
    try:
        for notice in lock.news:
            emit(notice)
        yield
    finally:
        lock.release()
