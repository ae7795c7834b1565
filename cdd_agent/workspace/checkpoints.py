"""Checkpoints: what a project's files were at a moment, to look at differences and to go back.

A checkpoint holds tracked and untracked files that are not ignored: contents, links, permissions. It does not hold
empty folders, what is inside nested repositories, or anything outside the project.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cdd_agent.workspace.snapshots import Snapshots
from cdd_agent.workspace.taking_back import Change, Contents, Entry, TakenBack, put_back
from cdd_agent.workspace.threads import in_thread

_SUBMODULE = "160000"
_ABSENT = "000000"
_LONGEST_DIFF = 2_000_000
"""Bytes of a difference that are read; more is for other tools."""


@dataclass(frozen=True)
class Checkpoint:
    """A snapshot under its name."""

    name: str
    id: str

    @property
    def files(self) -> str:
        """As git names the tree of its files."""
        return f"{self.id}:files"


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoints of one ticket."""

    snapshots: Snapshots
    prefix: str

    @classmethod
    async def open(cls, root: Path, folder: Path, prefix: str, leave_out: Sequence[str] = ()) -> Checkpoints:
        """`folder` is for what they need, `prefix` keeps their names apart from those of other tickets.

        Raises `GitUnusable`, or `BadInput` when the folder cannot be written. For `leave_out` see `Snapshots.open`.
        """
        return cls(await Snapshots.open(root, folder, leave_out), prefix)

    @property
    def unseen(self) -> frozenset[str]:
        """What could not be read, and so is in none."""
        return frozenset(self.snapshots.unseen)

    async def take(self, name: str, also: Iterable[str] = ()) -> Checkpoint:
        """Take one, in place of an older one of that name. `also` are files that it holds though they are ignored.

        No name may be a folder of another. Raises `GitUnusable`, such as for a full disk.
        """
        return Checkpoint(name, await self.snapshots.take(f"{self.prefix}/{name}", also))

    async def find(self, name: str) -> Checkpoint | None:
        found = await self.snapshots.find(f"{self.prefix}/{name}")
        return Checkpoint(name, found) if found else None

    async def changes(self, before: Checkpoint, after: Checkpoint) -> tuple[Change, ...]:
        """The files that differ, by path; permissions included."""
        if before.id == after.id:
            return ()
        target = self.snapshots.folder / "changes"
        arguments = ("-r", "-z", "--no-renames", "--no-abbrev", before.files, after.files)
        await self.snapshots.git("diff-tree", *arguments, stdout=target)
        old, new = await self.snapshots.modes(before.id), await self.snapshots.modes(after.id)
        return await in_thread(partial(_changes, target, old, new), name="changes")

    async def diff(self, before: Checkpoint, after: Checkpoint, paths: Sequence[str] = ()) -> str:
        """What differs, as a unified diff; of a very long one, the beginning."""
        target = self.snapshots.folder / "diff"
        arguments = ("--no-ext-diff", "--no-textconv", "--find-renames", before.files, after.files)
        where = [f":(top,literal){path}" for path in paths]
        await self.snapshots.git("diff-tree", "-r", "-p", *arguments, "--", *where, stdout=target)
        with target.open("rb") as file:
            data = file.read(_LONGEST_DIFF + 1)
        text = data[:_LONGEST_DIFF].decode("utf-8", errors="replace")
        return text + ("\n… (more was changed)\n" if len(data) > _LONGEST_DIFF else "")

    async def take_back(self, before: Checkpoint, after: Checkpoint) -> TakenBack:
        """Take back what changed from `before` to `after`; with the two exchanged, do it again.

        A file that is no longer as it was after is kept and named. Each one is put back whole or not at all, and to do
        it once more is harmless. Raises `BadInput` when the disk refuses.
        """
        return await self.put_back(await self.changes(before, after))

    async def put_back(self, changes: Sequence[Change]) -> TakenBack:
        """The same for single changes."""
        contents = await self._contents({change.before.content for change in changes if change.before})
        return await in_thread(partial(put_back, self.snapshots.root, changes, contents), name="put back")

    async def _contents(self, ids: set[str]) -> Contents:
        if not ids:
            return Contents(None)
        target = self.snapshots.folder / "contents"
        names = self.snapshots.folder / "wanted"
        names.write_text("".join(f"{name}\n" for name in sorted(ids)))
        await self.snapshots.git("cat-file", "--batch", "--buffer", stdin=names, stdout=target)
        return await in_thread(partial(Contents.read, target), name="contents")


def _changes(listed: Path, old: dict[str, int], new: dict[str, int]) -> tuple[Change, ...]:
    """Read `git diff-tree -z`: `:mode mode id id letter`, NUL, path, NUL."""
    fields = [os.fsdecode(part) for part in listed.read_bytes().split(b"\0")]
    found: dict[str, Change] = {}
    for head, path in zip(fields[0::2], fields[1::2], strict=False):
        was, now, was_id, now_id, _ = head.removeprefix(":").split(" ")
        if _SUBMODULE in (was, now):
            continue
        before = None if was == _ABSENT else Entry(was, was_id, old.get(path))
        after = None if now == _ABSENT else Entry(now, now_id, new.get(path))
        found[path] = Change(path, before, after)
    return tuple(found[path] for path in sorted(found))
