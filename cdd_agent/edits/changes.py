"""Change sets: file changes that are known to apply together."""

import contextlib
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path, PurePosixPath

from cdd_agent.actions.model import FileAlreadyExistsError
from cdd_agent.edits.model import ReplyRefused
from cdd_agent.errors import CddError
from cdd_agent.files.atomic import create_exclusive, put_file, read_bytes, remove, write_atomic

_LARGEST_COMPARED = 500_000
"""Bytes of a file whose difference is shown."""


@dataclass(frozen=True)
class FileChange:
    """One file before (None: it did not exist) and after (None: it goes), as bytes on the disk."""

    path: PurePosixPath
    before: bytes | None
    after: bytes | None
    like: PurePosixPath | None = None
    """The file whose permissions a new one gets: what it was called before."""


@dataclass(frozen=True)
class ChangeSet:
    """Changes that are known to apply together. Files whose content stays as it was are not in it."""

    changes: tuple[FileChange, ...]
    notes: tuple[str, ...] = ()
    """For people: edits that did not have to be done, or that nobody could judge."""

    @property
    def created(self) -> tuple[str, ...]:
        return tuple(str(change.path) for change in self.changes if change.before is None)

    @property
    def modified(self) -> tuple[str, ...]:
        both = (change for change in self.changes if change.before is not None and change.after is not None)
        return tuple(str(change.path) for change in both)

    @property
    def deleted(self) -> tuple[str, ...]:
        return tuple(str(change.path) for change in self.changes if change.after is None)

    @property
    def touched(self) -> tuple[str, ...]:
        return (*self.created, *self.modified, *self.deleted)

    def diff(self) -> str:
        """A unified diff of all, for people."""
        shown: list[str] = []
        for change in self.changes:
            size = max(len(data or b"") for data in (change.before, change.after))
            if size > _LARGEST_COMPARED:
                shown.append(f"{change.path} has {size:,} bytes, too many to show what is different.\n")
                continue
            sides = (change.before, change.after)
            before, after = ((data or b"").decode("utf-8", errors="replace").splitlines() for data in sides)
            was, is_now = ("/dev/null" if data is None else str(change.path) for data in sides)
            shown += [f"{line}\n" for line in unified_diff(before, after, was, is_now, lineterm="")]
        return "".join(shown)

    def check_still_valid(self, root: Path) -> None:
        """Raises `ReplyRefused` if a file is no longer what it was when this was computed."""
        for change in self.changes:
            if read_bytes(root / change.path) != change.before:
                raise changed_meanwhile(change.path)

    def apply(self, root: Path) -> None:
        """Write every file, each atomically, and at last remove those that go.

        Raises `ReplyRefused` for one that is no longer what it was when this was computed, and `BadInput` when the disk
        refuses. A new one that somebody else has made meanwhile stays as it is: `FileAlreadyExistsError`. On every way
        out but the good one, what was written is restored.
        """
        self.check_still_valid(root)
        begun: list[tuple[FileChange, int]] = []
        try:
            for change in sorted(self.changes, key=lambda change: change.after is None):
                if read_bytes(root / change.path) != change.before:
                    raise changed_meanwhile(change.path)
                place = root / change.path
                begun.append((change, permissions(place)))
                if change.after is None:
                    remove(place)
                elif change.before is not None:
                    write_atomic(place, change.after)
                else:
                    like = permissions(root / change.like) if change.like is not None else 0
                    create_exclusive(place, change.after, like or None)
        except BaseException as error:
            _restore(root, begun)
            if isinstance(error, FileExistsError):
                raise FileAlreadyExistsError(str(begun[-1][0].path)) from error
            raise


def changed_meanwhile(path: PurePosixPath) -> ReplyRefused:
    return ReplyRefused(f"{path} was changed by someone else in the meantime.", unseen=frozenset({str(path)}))


def permissions(place: Path) -> int:
    """A file's permissions; 0 where there is none."""
    try:
        return stat.S_IMODE(place.stat().st_mode)
    except OSError:
        return 0


def _restore(root: Path, begun: Sequence[tuple[FileChange, int]]) -> None:
    """As far as the disk lets us: what is told is the first error."""
    for change, mode in reversed(begun):
        place = root / change.path
        with contextlib.suppress(CddError, OSError):
            if read_bytes(place) != change.after:
                continue  # it was not reached, or is somebody else's
            if change.before is None:
                place.unlink()
            else:
                put_file(place, (change.before,), mode or 0o644)
        for folder in place.parents:
            if change.before is not None or folder == root:
                break
            with contextlib.suppress(OSError):  # it is not empty
                folder.rmdir()
