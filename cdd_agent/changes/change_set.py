"""Changes of files that are known to apply together."""

import contextlib
import stat
from pathlib import Path, PurePosixPath

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.actions.model import FileAlreadyExistsError
from cdd_agent.changes.file_diff import FileDiff
from cdd_agent.changes.model import ReplyFault, ReplyRefused
from cdd_agent.errors import CddError
from cdd_agent.files.atomic import (
    create_exclusive,
    remove,
    respell,
    write_atomic,
)
from cdd_agent.files.charsets import Charsets
from cdd_agent.files.paths import without_links
from cdd_agent.files.spelling import is_same_entry, read_entry, spell_for_any_disk
from cdd_agent.git.diff import Change
from cdd_agent.git.restore import Contents, held, restore


class FileChange(Struct, frozen=True):
    """A file before and after, as bytes on the disk. None: there is no file."""

    path: PurePosixPath
    before: bytes | None
    after: bytes | None
    like: PurePosixPath | None = None
    """The old name of a new file, whose permissions it gets."""

    def by_id(self, root: Path) -> Change:
        """Return the change as a checkpoint stores it. Call this before the file is
        written.
        """
        before = after = None
        if self.before is not None:
            before = held(self.before, _read_permissions(root / self.path))
        if self.after is not None:
            model = self.like or self.path
            after = held(self.after, _read_permissions(root / model))
        return Change(str(self.path), before, after)


class ChangeSet(Struct, frozen=True):
    """Changes that are known to apply together. Unchanged files are left out."""

    changes: tuple[FileChange, ...]
    notes: tuple[str, ...] = ()
    """For the user: edits that were unnecessary or could not be judged."""

    @property
    def created(self) -> tuple[str, ...]:
        new = (change for change in self.changes if change.before is None)
        return tuple(str(change.path) for change in new)

    @property
    def modified(self) -> tuple[str, ...]:
        paths = []
        for change in self.changes:
            if change.before is not None and change.after is not None:
                paths.append(str(change.path))
        return tuple(paths)

    @property
    def deleted(self) -> tuple[str, ...]:
        gone = (change for change in self.changes if change.after is None)
        return tuple(str(change.path) for change in gone)

    @property
    def renamed(self) -> tuple[tuple[str, str], ...]:
        """Old and new names of files that were moved without changes."""
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

    def files(self, charsets: Charsets) -> tuple[FileDiff, ...]:
        """Return the difference of each file. Slow for large files."""
        return tuple(
            FileDiff.compare(str(change.path), change.before, change.after, charsets)
            for change in self.changes
        )

    def check_still_valid(self, root: Path) -> None:
        """Raise `ReplyRefused` if a file has changed since this was computed."""
        for change in self.changes:
            _expect_unchanged(root, change)

    def apply(self, root: Path) -> None:
        """Write each file atomically, and delete files last. After an error, all files
        are restored.

        Raises `ReplyRefused` if a file has changed since this was computed,
        `FileAlreadyExistsError` if a new file has been created by someone else, and
        `BadInput` if the disk refuses.
        """
        self.check_still_valid(root)
        undo = _Undo(root)
        try:
            for old, new in self._find_respelled(root):
                undo.begin(old)
                undo.begin(new)
                data = new.after if new.after != old.before else None
                respell(root / old.path, root / new.path, data)
            for change in sorted(self.changes, key=lambda change: change.after is None):
                if change.path not in undo.paths:
                    undo.begin(change)
                    _carry_out(root, change)
        except BaseException:
            undo.restore()
            raise

    def _find_respelled(self, root: Path) -> list[tuple[FileChange, FileChange]]:
        """Return each deleted file with the new one that is the same entry on this
        disk: the names differ only in case or normal form.
        """
        deleted = {}
        for change in self.changes:
            if change.after is None:
                deleted[spell_for_any_disk(change.path)] = change
        pairs = []
        for new in self.changes:
            old = deleted.get(spell_for_any_disk(new.path))
            if old is None or new.before is not None:
                continue
            if is_same_entry(root / old.path, root / new.path):
                pairs.append((old, new))
        return pairs


class _Undo(Struct):
    """The changes begun so far."""

    root: Path
    begun: list[Change] = field(default_factory=list)
    contents: dict[str, bytes] = field(default_factory=dict)
    paths: set[PurePosixPath] = field(default_factory=set)

    def begin(self, change: FileChange) -> None:
        """Raises `ReplyRefused` if the file has changed since the change was
        computed.
        """
        _expect_unchanged(self.root, change)
        path = without_links(self.root, str(change.path))
        by_id = replace(change.by_id(self.root), path=path)
        if by_id.before is not None and change.before is not None:
            self.contents[by_id.before.content] = change.before
        self.begun.append(by_id)
        self.paths.add(change.path)

    def restore(self) -> None:
        """Restore the files. New files are removed first: they may block old ones."""
        contents = Contents(self.contents)
        for change in sorted(self.begun, key=lambda change: change.before is not None):
            # best effort: the first error is the one to report
            with contextlib.suppress(CddError, OSError):
                restore(self.root, [change], contents)


def _expect_unchanged(root: Path, change: FileChange) -> None:
    if read_entry(root, change.path) != change.before:
        raise build_changed_refusal(change.path)


def build_changed_refusal(path: PurePosixPath) -> ReplyRefused:
    return ReplyRefused(
        f"{path} was changed by someone else after it was read.",
        fault=ReplyFault.CHANGED_SINCE,
        path=str(path),
        unseen=frozenset({str(path)}),
    )


def _read_permissions(place: Path) -> int:
    """Return a file's permissions; 0 if it does not exist."""
    try:
        return stat.S_IMODE(place.stat().st_mode)
    except OSError:
        return 0


def _carry_out(root: Path, change: FileChange) -> None:
    place = root / change.path
    if change.after is None:
        remove(place)
        return
    if change.before is not None:
        write_atomic(place, change.after)
        return
    like = _read_permissions(root / change.like) if change.like is not None else 0
    try:
        create_exclusive(place, change.after, like or None)
    except FileExistsError as error:
        raise FileAlreadyExistsError(str(change.path)) from error
