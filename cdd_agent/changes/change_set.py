"""Change sets: file changes that are known to apply together."""

import contextlib
import stat
from pathlib import Path, PurePosixPath

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.actions.model import FileAlreadyExistsError
from cdd_agent.changes.file_diff import FileDiff
from cdd_agent.changes.model import ReplyRefused
from cdd_agent.errors import CddError
from cdd_agent.files.atomic import create_exclusive, read_bytes, remove, write_atomic
from cdd_agent.files.paths import without_links
from cdd_agent.git.diff import Change
from cdd_agent.git.restore import Contents, held, restore


class FileChange(Struct, frozen=True):
    """One file before (None: it did not exist) and after (None: it goes), as bytes on
    the disk.
    """

    path: PurePosixPath
    before: bytes | None
    after: bytes | None
    like: PurePosixPath | None = None
    """The file whose permissions a new one gets: what it was called before."""

    def by_id(self, root: Path) -> Change:
        """By what a checkpoint would hold, to be asked before it is written."""
        before = (
            None
            if self.before is None
            else held(self.before, permissions(root / self.path))
        )
        after = (
            None
            if self.after is None
            else held(self.after, permissions(root / (self.like or self.path)))
        )
        return Change(str(self.path), before, after)


class ChangeSet(Struct, frozen=True):
    """Changes that are known to apply together. Files whose content stays as it was are
    not in it.
    """

    changes: tuple[FileChange, ...]
    notes: tuple[str, ...] = ()
    """For people: edits that did not have to be done, or that nobody could judge."""

    @property
    def created(self) -> tuple[str, ...]:
        return tuple(
            str(change.path) for change in self.changes if change.before is None
        )

    @property
    def modified(self) -> tuple[str, ...]:
        both = (
            change
            for change in self.changes
            if change.before is not None and change.after is not None
        )
        return tuple(str(change.path) for change in both)

    @property
    def deleted(self) -> tuple[str, ...]:
        return tuple(
            str(change.path) for change in self.changes if change.after is None
        )

    @property
    def renamed(self) -> tuple[tuple[str, str], ...]:
        """The old and the new name of each file that only moved."""
        old_names = {
            change.before: str(change.path)
            for change in reversed(self.changes)
            if change.before and change.after is None
        }
        pairs = []
        for change in self.changes:
            if change.before is None and change.after:
                old = old_names.pop(change.after, None)
                if old is not None:
                    pairs.append((old, str(change.path)))
        return tuple(pairs)

    @property
    def touched(self) -> tuple[str, ...]:
        return (*self.created, *self.modified, *self.deleted)

    def diff(self) -> str:
        """A unified diff of all, for people."""
        return "".join(file.diff for file in self.files())

    def files(self) -> tuple[FileDiff, ...]:
        """The difference of each file, for people. Takes a while for large ones."""
        return tuple(
            FileDiff.of(str(change.path), change.before, change.after)
            for change in self.changes
        )

    def check_still_valid(self, root: Path) -> None:
        """Raises `ReplyRefused` if a file is no longer what it was when this was
        computed.
        """
        for change in self.changes:
            if read_bytes(root / change.path) != change.before:
                raise changed_meanwhile(change.path)

    def apply(self, root: Path) -> None:
        """Write every file, each atomically, and at last remove those that go.

        Raises `ReplyRefused` for one that is no longer what it was when this was
        computed, and `BadInput` when the disk refuses. A new one that somebody else has
        made meanwhile stays as it is: `FileAlreadyExistsError`. On every way out but
        the good one, what was written is restored.
        """
        self.check_still_valid(root)
        begun, contents = list[Change](), dict[str, bytes]()
        try:
            for change in sorted(self.changes, key=lambda change: change.after is None):
                if read_bytes(root / change.path) != change.before:
                    raise changed_meanwhile(change.path)
                by_id = replace(
                    change.by_id(root), path=without_links(root, str(change.path))
                )
                if by_id.before is not None and change.before is not None:
                    contents[by_id.before.content] = change.before
                begun.append(by_id)
                _carry_out(root, change)
        except BaseException:
            for by_id in reversed(begun):
                # as far as the disk lets us: the first error is told
                with contextlib.suppress(CddError, OSError):
                    restore(root, [by_id], Contents(contents))
            raise


def changed_meanwhile(path: PurePosixPath) -> ReplyRefused:
    return ReplyRefused(
        f"{path} was changed by someone else in the meantime.",
        unseen=frozenset({str(path)}),
    )


def permissions(place: Path) -> int:
    """A file's permissions; 0 where there is none."""
    try:
        return stat.S_IMODE(place.stat().st_mode)
    except OSError:
        return 0


def _carry_out(root: Path, change: FileChange) -> None:
    place = root / change.path
    if change.after is None:
        remove(place)
    elif change.before is not None:
        write_atomic(place, change.after)
    else:
        try:
            like = permissions(root / change.like) if change.like is not None else 0
            create_exclusive(place, change.after, like or None)
        except FileExistsError as error:
            raise FileAlreadyExistsError(str(change.path)) from error
