"""Change sets: file changes that are known to apply together."""

import contextlib
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from cdd_agent.actions.model import FileAlreadyExistsError
from cdd_agent.edits.file_diff import FileDiff
from cdd_agent.edits.model import ReplyRefused
from cdd_agent.errors import BadInput, CddError
from cdd_agent.files.atomic import create_exclusive, put_file, read_bytes, write_atomic


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
    """What did not have to be done, and what nobody could judge, for people."""

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
        """What they would change, as a unified diff, for people."""
        return "".join(file.diff for file in self.files())

    def files(self) -> tuple[FileDiff, ...]:
        """What they change, file by file, for people. Takes a while for large files."""
        return tuple(FileDiff.of(str(change.path), change.before, change.after) for change in self.changes)

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
                begun.append((change, permissions(root / change.path)))
                _carry_out(root, change)
        except BaseException:
            _restore(root, begun)
            raise


def changed_meanwhile(path: PurePosixPath) -> ReplyRefused:
    return ReplyRefused(f"{path} was changed by someone else in the meantime.", unseen=frozenset({str(path)}))


def permissions(place: Path) -> int:
    """A file's permissions; 0 where there is none."""
    try:
        return stat.S_IMODE(place.stat().st_mode)
    except OSError:
        return 0


def _carry_out(root: Path, change: FileChange) -> None:
    place = root / change.path
    if change.after is None:
        _remove(place)
    elif change.before is not None:
        write_atomic(place, change.after)
    else:
        try:
            like = permissions(root / change.like) if change.like is not None else 0
            create_exclusive(place, change.after, like or None)
        except FileExistsError as error:
            raise FileAlreadyExistsError(str(change.path)) from error


def _remove(place: Path) -> None:
    try:
        place.unlink()
    except OSError as error:
        raise BadInput(f"{place} could not be removed: {error.strerror or error}") from error


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
