"""One run of a ticket at a time: a lock that the system lets go of when its holder is gone, however it ended."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from cdd_agent.errors import BadInput
from cdd_agent.workspace.files import read_bytes, write_atomic

if TYPE_CHECKING:
    from filelock import FileLock


@dataclass(frozen=True)
class TicketLock:
    """Held by one process. Who it is stands in a file beside it, for whoever is refused."""

    lock: FileLock
    holder: Path

    @classmethod
    def take(cls, folder: Path, slug: str, since: str) -> Self:
        """Raises `BadInput` when another process has it, which is named, or where files cannot be locked."""
        from filelock import FileLock, Timeout  # slow to import, and not needed to show the shell

        taken = cls(FileLock(folder / "lock", timeout=0), folder / "holder.json")
        try:
            taken.lock.acquire()
        except Timeout as error:
            raise BadInput(
                f"Another cdd is at work on {slug}{_who(taken.holder)}",
                hint="Finish or leave it there first; two at once would undo each other's work.",
            ) from error
        except (OSError, NotImplementedError) as error:
            why = getattr(error, "strerror", None) or error
            raise BadInput(f"{folder / 'lock'} could not be locked: {why}") from error
        try:
            who = {"pid": os.getpid(), "host": platform.node(), "since": since}
            write_atomic(taken.holder, json.dumps(who).encode())
        except BaseException:
            taken.lock.release()
            raise
        return taken

    def release(self) -> None:
        if self.lock.is_locked:
            self.holder.unlink(missing_ok=True)
            self.lock.release()


def _who(holder: Path) -> str:
    """As far as it is known: whoever has just taken the lock may not have written it down yet."""
    try:
        known = json.loads(read_bytes(holder) or b"")
        return f": process {known['pid']} on {known['host']}, since {known['since']}"
    except (ValueError, KeyError, TypeError):
        return ""
