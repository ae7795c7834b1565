"""Checkpoints: what a project's files were at a moment, to look at differences and to
go back.

A checkpoint holds tracked and untracked files that are not ignored: contents, links,
permissions. It does not hold empty folders, what is inside nested repositories, or
anything outside the project.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path, PurePosixPath

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.git.command import GitUnusable
from cdd_agent.git.diff import Change, TreeEntry, read_raw
from cdd_agent.git.repository import Repository
from cdd_agent.git.restore import (
    CheckpointGone,
    Contents,
    RestoreResult,
    find_edited,
    restore,
)
from cdd_agent.git.snapshot import Snapshots, names_in
from cdd_agent.threads import in_thread, to_its_end

_SUBMODULE = "160000"
_CONTENTS = "contents"
_LONGEST_DIFF = 2_000_000
"""Bytes of a difference that are read; more is for other tools."""
_LONGEST_READ = 500_000
"""Bytes of a file that are read to be looked at."""


class Checkpoint(Struct, frozen=True):
    """A snapshot under its name."""

    name: str
    """Its last part sorts by time."""
    id: str

    @property
    def moment(self) -> str:
        return self.name.rpartition("/")[2]

    @property
    def files(self) -> str:
        """As git names the tree of its files."""
        return f"{self.id}:files"


class Checkpoints(Struct, frozen=True):
    """The checkpoints of one ticket."""

    snapshots: Snapshots
    prefix: str

    @classmethod
    async def open(
        cls,
        root: Path,
        folder: Path,
        prefix: str,
        leave_out: Sequence[str] = (),
        repository: Repository | None = None,
    ) -> Checkpoints:
        """`folder` is for what they need, `prefix` keeps their names apart from those
        of other tickets. Nobody else may use them meanwhile.

        Raises `GitUnusable`, or `BadInput` when the folder cannot be written. For the
        others see `Snapshots.open`.
        """
        snapshots = await Snapshots.open(root, folder, leave_out, repository)
        await snapshots.remove_locks(prefix)
        return cls(snapshots, prefix)

    def beside(
        self, top: Path, folder: Path, name: str, leave_out: Iterable[str] = ()
    ) -> Checkpoints:
        """The checkpoints of another tree of the same repository, kept among these
        under a name until that is forgotten. For the others see `Snapshots.beside`.
        """
        return Checkpoints(
            self.snapshots.beside(top, folder, leave_out), f"{self.prefix}/{name}"
        )

    async def check_out(self, checkpoint: Checkpoint) -> None:
        """Write all that a checkpoint holds into a tree that has none of it."""
        await self.snapshots.check_out(checkpoint.id)

    async def forget(self, name: str) -> None:
        """Forget the checkpoints whose names are below this one."""
        await self.snapshots.remove_references(f"{self.prefix}/{name}")

    async def rename(self, prefix: str) -> None:
        """Keep all of them under another prefix. These cannot be used any more. Nobody
        else may use checkpoints under either prefix meanwhile.
        """
        await self.snapshots.remove_locks(prefix)
        await self.snapshots.move_references(self.prefix, self.snapshots, prefix)

    @property
    def unseen(self) -> frozenset[str]:
        """Files that could not be read, and so are in none."""
        return frozenset(self.snapshots.unseen)

    async def take(self, name: str, also: Iterable[str] = ()) -> Checkpoint:
        """Take one, in place of an older one of that name. `also` are files that it
        holds though they are ignored.

        One of these stays part of later ones; ask before it is changed, even if it is
        not there yet, and whenever its change counts: what is ignored may be another
        one by then. No name may be a folder of another. Raises `GitUnusable` or
        `BadInput`, such as for a full disk.
        """
        return Checkpoint(
            name, await self.snapshots.take(f"{self.prefix}/{name}", also)
        )

    def close(self) -> None:
        """End the programs that answer for it; the next question starts them again."""
        self.snapshots.objects.close()

    async def find(self, name: str) -> Checkpoint | None:
        """The one that was taken under a name, if it is still there."""
        known = await self.snapshots.find(f"{self.prefix}/{name}")
        return Checkpoint(name, known) if known else None

    async def changes(
        self, before: Checkpoint, after: Checkpoint
    ) -> tuple[Change, ...]:
        """The files that differ, by path; permissions included.

        What only one of the two could see is no change: it may not have been readable,
        or in a repository within the project at the time of the other, and there all
        the same. Nor is a file that was ignored before taken for new.
        """
        if before.id == after.id:
            return ()
        was, now = (
            await self.snapshots.files(before.id),
            await self.snapshots.files(after.id),
        )
        if was is None or now is None:
            raise CheckpointGone
        old, new = (
            await self.snapshots.notes(before.id),
            await self.snapshots.notes(after.id),
        )

        def compare() -> tuple[dict[str, Change], set[str]]:
            return _changes(
                self.snapshots.objects.changes(was, now), old.modes, new.modes
            )

        try:
            found, repositories = await in_thread(compare, name="changes")
        except GitUnusable as error:  # a part of one of them
            raise CheckpointGone from error
        found |= await self._changed_permissions(after, old.modes, new.modes, found)
        hidden = old.unseen | new.unseen | repositories
        seen = {
            path: change for path, change in found.items() if not _is_in(path, hidden)
        }
        rules_changed = any(path.rpartition("/")[2] == ".gitignore" for path in seen)
        created = {
            path
            for path in seen
            if not seen[path].before and (rules_changed or path in new.also)
        }
        unknown = await self.ignored(before, created - old.also)
        return tuple(seen[path] for path in sorted(seen.keys() - unknown))

    async def diff(
        self, before: Checkpoint, after: Checkpoint, paths: Sequence[str] = ()
    ) -> str:
        """The difference, as a unified diff; of a very long one, the beginning."""
        target = self.snapshots.folder / "diff"
        how = ("--no-ext-diff", "--no-textconv", "--find-renames", "--binary")
        where = [f":(top,literal){path}" for path in paths]
        words = ("-r", "-p", *how, before.files, after.files, "--", *where)
        result = await self.snapshots.git(
            "diff-tree", *words, stdout=target, codes=(0, 128)
        )
        if result.return_code:
            raise CheckpointGone
        with target.open("rb") as file:
            data = file.read(_LONGEST_DIFF + 1)
        text = data[:_LONGEST_DIFF].decode("utf-8", errors="replace")
        return text + ("\n… (more was changed)\n" if len(data) > _LONGEST_DIFF else "")

    async def read(
        self, changes: Sequence[Change]
    ) -> dict[str, tuple[bytes | None, bytes | None]]:
        """The contents of files before and after these changes; of very long ones, the
        beginning.

        Raises `CheckpointGone`.
        """
        ids = {
            entry.content
            for change in changes
            for entry in (change.before, change.after)
            if entry
        }

        def read_all() -> dict[str, bytes | None]:
            return {
                name: self.snapshots.objects.read(name, _LONGEST_READ) for name in ids
            }

        contents = await in_thread(read_all, name="contents") if ids else {}
        if None in contents.values():
            raise CheckpointGone

        def beginning(entry: TreeEntry | None) -> bytes | None:
            return None if entry is None else contents[entry.content]

        return {
            change.path: (beginning(change.before), beginning(change.after))
            for change in changes
        }

    @asynccontextmanager
    async def contents(self, changes: Iterable[Change]) -> AsyncIterator[Contents]:
        """The contents that these changes led to, as long as this lasts. Raises
        `CheckpointGone`.
        """
        try:
            yield await self._contents(
                {change.after.content for change in changes if change.after}
            )
        finally:
            (self.snapshots.folder / _CONTENTS).unlink(missing_ok=True)

    async def restore(
        self, changes: Sequence[Change], kept: Path | None = None
    ) -> RestoreResult:
        """Restore the files to their content before these changes. With before and
        after exchanged, redo the changes.

        A file that was changed since is merged if git can, otherwise kept and named.
        The content that a file loses is saved in the folder `kept`, see `restore` in
        `restore.py`. Each file is restored completely or not at all, and repeating this
        is harmless. Raises `BadInput` if the disk refuses, `CheckpointGone` if a
        content is gone.
        """
        root = self.snapshots.root
        ids = {change.before.content for change in changes if change.before}
        edited = await in_thread(partial(find_edited, root, changes), name="edited")
        ids |= {change.after.content for change in edited if change.after}
        contents = await self._contents(ids)
        work = partial(restore, root, changes, contents, kept=kept, should_merge=True)
        try:
            return await to_its_end(work, name="restored")
        finally:
            # it may be large
            (self.snapshots.folder / _CONTENTS).unlink(missing_ok=True)

    async def expect_contents(self, changes: Iterable[Change]) -> None:
        """Raises `CheckpointGone` where changes could not be restored."""
        await self._contents(
            {change.before.content for change in changes if change.before}
        )

    async def _changed_permissions(
        self,
        after: Checkpoint,
        old: Mapping[str, int],
        new: Mapping[str, int],
        others: Collection[str],
    ) -> dict[str, Change]:
        """The files of which nothing but unusual permissions changed."""
        paths = {path for path, _ in old.items() ^ new.items()}.difference(others)
        if not paths:
            return {}
        known = await self._entries(after)
        return {
            path: Change(
                path,
                replace(entry, permissions=old.get(path)),
                replace(entry, permissions=new.get(path)),
            )
            for path, entry in known.items()
            if path in paths
        }

    async def _entries(self, checkpoint: Checkpoint) -> dict[str, TreeEntry]:
        """Return the files of a checkpoint by path, and the repositories within the
        project. Raises `CheckpointGone`.
        """
        target = self.snapshots.folder / "listed"
        words = ("ls-tree", "--full-tree", "-r", "-z", checkpoint.files)
        result = await self.snapshots.git(*words, stdout=target, codes=(0, 128))
        if result.return_code:
            raise CheckpointGone
        entries = {}
        for line in names_in(target):
            head, _, path = line.partition("\t")
            mode, _, content = head.split(" ")
            entries[path] = TreeEntry(mode, content)
        return entries

    async def find_files(
        self, checkpoint: Checkpoint, paths: Collection[str]
    ) -> dict[str, TreeEntry | None]:
        """Return the entry of each of these files in a checkpoint; None if the project
        did not have the file.

        Files that the checkpoint could not see are left out: unreadable ones, and those
        in a repository within the project. Raises `CheckpointGone`.
        """
        entries = await self._entries(checkpoint)
        notes = await self.snapshots.notes(checkpoint.id)
        hidden = {path for path, entry in entries.items() if entry.mode == _SUBMODULE}
        hidden |= notes.unseen
        return {path: entries.get(path) for path in paths if not _is_in(path, hidden)}

    async def ignored(
        self, checkpoint: Checkpoint, missing: Collection[str]
    ) -> set[str]:
        """Which of these files a checkpoint may miss only because they were ignored."""
        return (
            await self.snapshots.ignored_by(checkpoint.id, tuple(missing))
            if missing
            else set()
        )

    async def _contents(self, ids: set[str]) -> Contents:
        if not ids:
            return Contents()
        target = self.snapshots.folder / _CONTENTS
        names = self.snapshots.input(f"{name}\n" for name in sorted(ids))
        await self.snapshots.git(
            "cat-file", "--batch", "--buffer", stdin=names, stdout=target
        )
        return await in_thread(partial(Contents.read, target), name="contents")


def _changes(
    listed: bytes, old: Mapping[str, int], new: Mapping[str, int]
) -> tuple[dict[str, Change], set[str]]:
    """The changes that git listed, with the unusual permissions, and repositories
    within.
    """
    found, repositories = dict[str, Change](), set[str]()
    for change in read_raw(os.fsdecode(listed)):
        path, before, after = change.path, change.before, change.after
        if _SUBMODULE in (before and before.mode, after and after.mode):
            repositories.add(path)
            continue
        before = before and replace(before, permissions=old.get(path))
        found[path] = Change(
            path, before, after and replace(after, permissions=new.get(path))
        )
    return found, repositories


def _is_in(path: str, places: Collection[str]) -> bool:
    """Whether it is one of these files, or in one of these folders."""
    return bool(places) and any(
        place in places for place in (path, *map(str, PurePosixPath(path).parents))
    )
