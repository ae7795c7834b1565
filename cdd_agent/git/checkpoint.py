"""Checkpoints: a project's files at a moment, to compare and to restore.

A checkpoint holds files that are not ignored, tracked or not: contents, links,
permissions. It also holds ignored files that the caller asked for. It covers the
project's repository (or folder), and every repository below that is not ignored or
contains such a file. It holds no empty folders and nothing outside the project.
"""

from __future__ import annotations

import os
import re
from collections.abc import (
    AsyncIterator,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path, PurePosixPath

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.files.atomic import read_bytes, remove_folder, write_atomic
from cdd_agent.files.json_file import as_json, from_json
from cdd_agent.git.content_store import ContentStore
from cdd_agent.git.diff import REPOSITORY, Change, TreeEntry, diff_contents, read_raw
from cdd_agent.git.inner import InnerRepositories, find_owner
from cdd_agent.git.repository import Repository, repository_of
from cdd_agent.git.restore import (
    CheckpointGone,
    ContentPiece,
    Contents,
    RestoreResult,
    find_edited,
    restore,
)
from cdd_agent.git.snapshot import Snapshot, Snapshots
from cdd_agent.pattern import Pattern
from cdd_agent.threads import in_thread, to_its_end

CONTENTS = "contents"
"""The folder for contents that never enter git, next to the folder of `open`."""
_BATCH = "batch"
_NOTES = "notes"
_OLD = 1
FORM = 2
"""The current format of checkpoints. Version 0.1 wrote format 1."""
_ID = Pattern("[0-9a-f]{40}(?:[0-9a-f]{24})?")
_LONGEST_DIFF = 2_000_000
"""Bytes of a diff to read."""
_LONGEST_READ = 500_000
"""Bytes of a file to read for display."""
_TOO_LARGE = "it is ignored and larger than 1 MiB"
_NOT_HERE = "its saved content is not on this computer"
_CAME_OR_WENT = "its repository was made or removed, so its files are left unchanged"


class Checkpoint(Struct, frozen=True, omit_defaults=True):
    """The files of a project at a moment, by paths relative to the project. The caller
    saves it as JSON.
    """

    name: str
    """The last part sorts by time."""
    id: str
    """The tree of the project's own repository. In version 0.1, a tree with the entry
    `files` and lists.
    """
    form: int = _OLD
    modes: dict[str, int] = field(default_factory=dict)
    """Unusual permissions, by path."""
    unseen: tuple[str, ...] = ()
    """Unreadable files. A folder stands for everything in it."""
    also: tuple[str, ...] = ()
    """Ignored files that the caller asked for, whether or not they existed."""
    saved: dict[str, TreeEntry] = field(default_factory=dict)
    """The asked files that existed. Their contents never enter git."""
    inner: dict[str, str] = field(default_factory=dict)
    """The trees of the repositories below, by folder."""

    def __post_init__(self) -> None:
        """Raises `ValueError` for a path outside the project or in git's files, and for
        an id that git would read as an option. A record may come from another computer.
        """
        paths = (*self.modes, *self.also, *self.saved, *self.inner)
        for path in paths:
            if not _is_inside(path):
                raise ValueError(f"{path!r} is not the path of a project file")
        for tree in (self.id, *self.inner.values()):
            if not _ID.fullmatch(tree):
                raise ValueError(f"{tree!r} is not the id of a tree")

    def __hash__(self) -> int:
        return hash((self.name, self.id))

    @property
    def moment(self) -> str:
        return self.name.rpartition("/")[2]

    @property
    def files(self) -> str:
        """The tree of the project's own repository, as git names it."""
        return self.id if self.form == FORM else f"{self.id}:files"

    @property
    def folders(self) -> tuple[str, ...]:
        return tuple(map(path_of_name, self.inner))

    def is_same(self, other: Checkpoint) -> bool:
        """True if both hold the same files. The names may differ."""
        return replace(self, name="") == replace(other, name="")

    def part(self, folder: str) -> Snapshot:
        """Return the part in one repository, with paths relative to it."""
        folders = self.folders

        def select_names(names: Iterable[str]) -> Iterator[tuple[str, str]]:
            for name in names:
                path = path_of_name(name)
                if find_owner(path, folders) == folder:
                    yield name, path[len(folder) + 1 :] if folder else path

        return Snapshot(
            tree=self.inner[name_in_json(folder)] if folder else self.files,
            modes={short: self.modes[path] for path, short in select_names(self.modes)},
            unseen=frozenset(short for _, short in select_names(self.unseen)),
            also=frozenset(short for _, short in select_names(self.also)),
            saved={short: self.saved[path] for path, short in select_names(self.saved)},
        )


def name_in_json(path: str) -> str:
    """Return a path as JSON can hold it. Each byte that is not UTF-8 becomes a NUL and
    two hex digits.
    """
    return re.sub(
        "[\udc80-\udcff]", lambda match: f"\0{ord(match[0]) - 0xDC00:02x}", path
    )


def _is_inside(path: str) -> bool:
    parts = path.lower().split("/")
    return not path.startswith("/") and ".." not in parts and ".git" not in parts


def path_of_name(name: str) -> str:
    """Reverse `name_in_json`. Raises `ValueError`."""
    return re.sub("\0(..)", lambda match: chr(0xDC00 + int(match[1], 16)), name)


def _join(checkpoint: str, parts: Mapping[str, Snapshot]) -> Checkpoint:
    """Make a checkpoint from the snapshots of all repositories, by folder."""

    def name(folder: str, path: str) -> str:
        return name_in_json(_whole(folder, path))

    modes, saved = dict[str, int](), dict[str, TreeEntry]()
    unseen, asked = set[str](), set[str]()
    for folder, part in parts.items():
        modes |= {name(folder, path): mode for path, mode in part.modes.items()}
        saved |= {name(folder, path): entry for path, entry in part.saved.items()}
        unseen |= {name(folder, path) for path in part.unseen}
        asked |= {name(folder, path) for path in part.also if _is_inside(path)}
    return Checkpoint(
        name=checkpoint,
        id=parts[""].tree,
        form=FORM,
        modes=modes,
        # the outer repository cannot read one without a commit
        unseen=tuple(sorted(unseen - {name("", folder) for folder in parts})),
        also=tuple(sorted(asked)),
        saved=saved,
        inner={
            name("", folder): part.tree
            for folder, part in sorted(parts.items())
            if folder
        },
    )


class Checkpoints(Struct, frozen=True):
    snapshots: Snapshots
    """The snapshots of the project's own repository."""
    prefix: str
    inner: InnerRepositories
    _in_between: set[str] = field(default_factory=set)
    """Repositories below that exist in only one of two compared checkpoints."""
    _old: dict[str, Snapshot] = field(default_factory=dict)
    """Snapshots that version 0.1 wrote, as read."""

    @classmethod
    async def open(
        cls,
        root: Path,
        folder: Path,
        prefix: str,
        leave_out: Sequence[str] = (),
        repository: Repository | None = None,
    ) -> Checkpoints:
        """Open the checkpoints of a ticket. No other process may use them at the time.

        `folder` stores their data. `prefix` separates their names from those of other
        tickets. `repository` is the project's, if the caller has it. For `leave_out`
        see `Snapshots.open`. Repositories below are found now, so that `uncovered` can
        be reported before the first checkpoint. Raises `GitUnusable`, or `BadInput` if
        the folder cannot be written.
        """
        # the project may have become a repository later
        began_without = (folder / "refs" / "cdd").exists()
        repository = None if began_without else repository or await repository_of(root)
        object_format = repository.object_format if repository else "sha1"
        store = ContentStore(folder.parent / CONTENTS, object_format)
        snapshots = await Snapshots.open(root, folder, store, leave_out, repository)
        allowed = [root, *([repository.shared.resolve()] if repository else [])]
        checkpoints = cls(snapshots, prefix, InnerRepositories(snapshots, allowed))
        await snapshots.remove_locks(prefix)
        await checkpoints.inner.find_all()
        for inner in checkpoints.inner.parts.values():
            await inner.remove_locks(prefix)
        return checkpoints

    def beside(
        self, top: Path, folder: Path, name: str, leave_out: Iterable[str] = ()
    ) -> Checkpoints:
        """Return checkpoints of another tree of the same repository, stored under
        `name` until `forget`. For the other arguments see `Snapshots.beside`.
        """
        snapshots = self.snapshots.beside(top, folder, leave_out)
        inner = InnerRepositories(snapshots, self.inner.allowed)
        return Checkpoints(snapshots, f"{self.prefix}/{name}", inner)

    async def check_out(self, checkpoint: Checkpoint) -> None:
        """Write the project's own repository of a checkpoint into an empty tree."""
        await self.snapshots.check_out(await self.own_part(checkpoint))

    async def forget(self, name: str) -> None:
        for part in self.inner.all_parts.values():
            await part.remove_references(f"{self.prefix}/{name}")
        folder = self._notes / name
        await to_its_end(partial(remove_folder, folder), name="notes")

    async def rename(self, prefix: str) -> None:
        """Rename all checkpoints to another prefix. This object must not be used
        afterwards. No other process may use either prefix then.
        """
        for part in self.inner.all_parts.values():
            await part.remove_locks(prefix)
            await part.move_references(self.prefix, part, prefix)

    async def move(self, target: Checkpoints) -> None:
        """Move all checkpoints to another tree of the same repository, except those of
        repositories below.
        """
        for name in await self.snapshots.names(self.prefix):
            if (checkpoint := self._load(name)) is not None:
                target.save_notes(checkpoint)
        await self.snapshots.move_references(
            self.prefix, target.snapshots, target.prefix
        )

    @property
    def unseen(self) -> frozenset[str]:
        """Files that no checkpoint has because they could not be read."""
        paths = set[str]()
        for folder, part in self.inner.all_parts.items():
            paths |= {_whole(folder, path) for path in part.unseen}
        return frozenset(paths - self.inner.parts.keys() - self.inner.uncovered.keys())

    @property
    def uncovered(self) -> dict[str, str]:
        """The reasons why files or repositories are in no checkpoint, by path:
        repositories that git cannot read, large ignored files, and repositories that
        exist in only one of two compared checkpoints.
        """
        reasons = dict.fromkeys(self._in_between, _CAME_OR_WENT) | self.inner.uncovered
        for folder, part in self.inner.all_parts.items():
            reasons |= {_whole(folder, path): _TOO_LARGE for path in part.too_large}
            reasons |= {_whole(folder, path): _NOT_HERE for path in part.not_here}
        return reasons

    @property
    def has_inner(self) -> bool:
        """True if there are repositories below the project, covered or not."""
        return bool(self.inner.parts or self.inner.uncovered)

    async def take(self, name: str, also: Iterable[str] = ()) -> Checkpoint:
        """Take a checkpoint; replace an existing one of that name.

        `also` are ignored files to include, in later checkpoints too. Ask for such a
        file before it is changed (even if it does not exist yet), and whenever its
        change matters. A name must not be a folder of another name. Raises
        `GitUnusable`, or `BadInput` for instance on a full disk.
        """
        parts = await self.inner.take(f"{self.prefix}/{name}", also)
        checkpoint = _join(name, parts)
        await to_its_end(partial(self.save_notes, checkpoint), name="notes")
        return checkpoint

    async def find(self, name: str) -> Checkpoint | None:
        commit = await self.snapshots.find(f"{self.prefix}/{name}")
        if commit is None:
            return None
        saved = self._load(name)
        if saved is None:
            return Checkpoint(name, commit)
        return saved if saved.id == commit else None

    async def all(self) -> list[Checkpoint]:
        checkpoints = []
        for name, tree in (await self.snapshots.names(self.prefix)).items():
            saved = self._load(name)
            is_saved = saved is not None and saved.id == tree
            checkpoints.append(saved if saved and is_saved else Checkpoint(name, tree))
        return checkpoints

    def save_notes(self, checkpoint: Checkpoint) -> None:
        """Save the parts of a checkpoint that git does not store."""
        write_atomic(self._place_of_notes(checkpoint.name), as_json(checkpoint))

    def _load(self, name: str) -> Checkpoint | None:
        data = read_bytes(self._place_of_notes(name))
        try:
            return from_json(data, Checkpoint) if data else None
        except ValueError:
            return None

    @property
    def _notes(self) -> Path:
        return self.snapshots.folder / _NOTES

    def _place_of_notes(self, name: str) -> Path:
        return self._notes / f"{name}.json"

    async def changes(
        self, before: Checkpoint, after: Checkpoint
    ) -> tuple[Change, ...]:
        """Return the files that differ, permissions included, sorted by path.

        Files that only one of the two could see do not count: unreadable files, or
        those in a repository that only one covers. Nor does a file that was ignored
        before count as new. Raises `CheckpointGone`.
        """
        if before.is_same(after):
            return ()
        old, new = await self._parts_of(before), await self._parts_of(after)
        self._in_between.update(old.keys() ^ new.keys())
        folders = old.keys() | new.keys()
        changes = list[Change]()
        for folder in old.keys() & new.keys():
            if old[folder] == new[folder]:
                continue
            part = self.inner.all_parts.get(folder)
            if part is None:
                raise CheckpointGone
            for change in await _PartOfChanges(part, old[folder], new[folder]).find():
                path = _whole(folder, change.path)
                # one checkpoint may have seen a nested repository as a plain folder
                if find_owner(path, folders) == folder:
                    changes.append(replace(change, path=path))
        return tuple(sorted(changes, key=lambda change: change.path))

    async def diff(
        self, before: Checkpoint, after: Checkpoint, paths: Sequence[str] = ()
    ) -> str:
        """Return a unified diff. A very long one is cut. Raises `CheckpointGone`."""
        old, new = await self._parts_of(before), await self._parts_of(after)
        texts = list[str]()
        for folder in sorted(old.keys() & new.keys()):
            paths_of_part = [
                path for path in paths if find_owner(path, old.keys()) == folder
            ]
            if (paths and not paths_of_part) or old[folder] == new[folder]:
                continue
            short = [
                path[len(folder) + 1 :] if folder else path for path in paths_of_part
            ]
            texts.append(await self._diff_part(folder, old[folder], new[folder], short))
        text = "".join(texts)
        if len(text) <= _LONGEST_DIFF:
            return text
        return f"{text[:_LONGEST_DIFF]}\n… (more was changed)\n"

    async def _diff_part(
        self, folder: str, old: Snapshot, new: Snapshot, paths: Sequence[str]
    ) -> str:
        part = self.inner.all_parts.get(folder)
        if part is None:
            raise CheckpointGone
        saved = await self._diff_saved(folder, old, new, paths)
        if old.tree == new.tree:
            return saved
        target = part.folder / "diff"
        how = ["--no-ext-diff", "--no-textconv", "--binary", "--ignore-submodules=all"]
        if folder:
            # "rename from" would name a path without the folder
            prefixes = (f"--src-prefix=a/{folder}/", f"--dst-prefix=b/{folder}/")
            how += ["--no-renames", *prefixes]
        else:
            how += ["--find-renames"]
        where = [f":(top,literal){path}" for path in paths]
        words = ("-r", "-p", *how, old.tree, new.tree, "--", *where)
        result = await part.git("diff-tree", *words, stdout=target, codes=(0, 128))
        if result.return_code:
            raise CheckpointGone
        with target.open("rb") as file:
            data = file.read(_LONGEST_DIFF + 1)
        return data.decode("utf-8", errors="replace") + saved

    async def _diff_saved(
        self, folder: str, old: Snapshot, new: Snapshot, paths: Sequence[str]
    ) -> str:
        changes = [
            Change(_whole(folder, path), old.saved.get(path), new.saved.get(path))
            for path in sorted(old.saved.keys() | new.saved.keys())
            if (not paths or path in paths) and path in old.also & new.also
        ]
        changes = [change for change in changes if change.before != change.after]
        contents = await self.read(changes)
        return "".join(
            diff_contents(change, *contents[change.path]) for change in changes
        )

    async def read(
        self, changes: Sequence[Change]
    ) -> dict[str, tuple[bytes | None, bytes | None]]:
        """Return the contents of files before and after these changes. Very long ones
        are cut. Raises `CheckpointGone`.
        """

        def beginning(contents: Contents, entry: TreeEntry | None) -> bytes | None:
            if entry is None:
                return None
            data = b""
            for chunk in contents.chunks(entry.content):
                data += chunk
                if len(data) >= _LONGEST_READ:
                    break
            return data[:_LONGEST_READ]

        def read_all(contents: Contents) -> dict[str, tuple[bytes | None, ...]]:
            return {
                change.path: tuple(
                    beginning(contents, entry)
                    for entry in (change.before, change.after)
                )
                for change in changes
            }

        wanted = [
            (change.path, entry)
            for change in changes
            for entry in (change.before, change.after)
        ]
        async with self._contents(wanted) as contents:
            contents_by_path = await in_thread(
                partial(read_all, contents), name="contents"
            )
        return {
            path: (before, after) for path, (before, after) in contents_by_path.items()
        }

    @asynccontextmanager
    async def contents(self, changes: Iterable[Change]) -> AsyncIterator[Contents]:
        """Provide the contents after these changes while the block runs. Raises
        `CheckpointGone`.
        """
        wanted = [(change.path, change.after) for change in changes]
        async with self._contents(wanted) as contents:
            yield contents

    async def restore(
        self, changes: Sequence[Change], kept: Path | None = None
    ) -> RestoreResult:
        """Restore the files to their content before these changes. With before and
        after exchanged, redo the changes.

        A file that changed since is merged if git can, otherwise left unchanged and
        reported. The replaced content is saved in the folder `kept`, see `restore` in
        `restore.py`. Each file is restored completely or not at all, and repeating this
        is harmless. Raises `BadInput` if the disk refuses, `CheckpointGone` if a
        content is missing.
        """
        root = self.snapshots.root
        edited = await in_thread(partial(find_edited, root, changes), name="edited")
        wanted = [(change.path, change.before) for change in changes]
        wanted += [(change.path, change.after) for change in edited]
        async with self._contents(wanted) as contents:
            work = partial(
                restore, root, changes, contents, kept=kept, should_merge=True
            )
            return await to_its_end(work, name="restored")

    async def find_files(
        self, checkpoint: Checkpoint, paths: Collection[str]
    ) -> dict[str, TreeEntry | None]:
        """Return the entries of these files in a checkpoint, None for a file that did
        not exist.

        Leaves out files that the checkpoint could not see: unreadable ones, and those
        in a repository that it does not cover. Raises `CheckpointGone`.
        """
        parts = await self._parts_of(checkpoint)
        entries_by_path = dict[str, TreeEntry | None]()
        for folder, short_paths in _by_owner(paths, parts).items():
            part = self.inner.all_parts.get(folder)
            entries = await part.entries(parts[folder].tree) if part else None
            if entries is None:
                raise CheckpointGone
            hidden = {path for path in entries if entries[path].mode == REPOSITORY}
            hidden |= parts[folder].unseen
            entries |= parts[folder].saved
            for path in short_paths:
                if not _is_in(path, hidden):
                    entries_by_path[_whole(folder, path)] = entries.get(path)
        return entries_by_path

    async def ignored(
        self, checkpoint: Checkpoint, missing: Collection[str]
    ) -> set[str]:
        """Return the missing files that may have existed all the same: ignored ones,
        and those in a repository that the checkpoint does not cover.
        """
        if not missing:
            return set()
        parts, ignored_paths = await self._parts_of(checkpoint), set[str]()
        uncovered = self.inner.all_parts.keys() - parts.keys()
        uncovered |= self.inner.uncovered.keys()
        for folder, paths in _by_owner(missing, parts).items():
            part = self.inner.all_parts.get(folder)
            if part is None:
                raise CheckpointGone
            ignored = await part.ignored_by(parts[folder].tree, tuple(paths))
            ignored |= {
                path for path in paths if _is_in(_whole(folder, path), uncovered)
            }
            ignored_paths |= {_whole(folder, path) for path in ignored}
        return ignored_paths

    async def own_part(self, checkpoint: Checkpoint) -> Snapshot:
        return (await self._parts_of(checkpoint))[""]

    async def _parts_of(self, checkpoint: Checkpoint) -> dict[str, Snapshot]:
        """Return the parts by repository folder. Raises `CheckpointGone`."""
        if checkpoint.form == FORM:
            return {
                folder: checkpoint.part(folder) for folder in ("", *checkpoint.folders)
            }
        if checkpoint.id not in self._old:
            old = await self.snapshots.read_old(checkpoint.id)
            if old is None:
                raise CheckpointGone
            self._old[checkpoint.id] = old
        return {"": self._old[checkpoint.id]}

    @asynccontextmanager
    async def _contents(
        self, wanted: Iterable[tuple[str, TreeEntry | None]]
    ) -> AsyncIterator[Contents]:
        """Provide the contents of these files while the block runs. Raises
        `CheckpointGone`.
        """
        remaining = {entry.content: path for path, entry in wanted if entry}
        places = dict[str, ContentPiece | bytes]()
        owners = {find_owner(path, self.inner.all_parts) for path in remaining.values()}
        # a file may have belonged to another repository at the time
        other_parts = sorted(self.inner.all_parts.keys() - owners)
        batches = list[Path]()
        try:
            for folder in (*sorted(owners), *other_parts):
                part = self.inner.all_parts[folder]
                for name in list(remaining):
                    if part.store.has(name):
                        place = part.store.find(name)
                        places[name] = ContentPiece(place, 0, place.stat().st_size)
                        del remaining[name]
                if not remaining:
                    break
                batches.append(part.folder / _BATCH)
                names = part.input(f"{name}\n" for name in sorted(remaining))
                words = ("cat-file", "--batch", "--buffer")
                await part.git(*words, stdin=names, stdout=batches[-1])
                read = partial(Contents.read, batches[-1])
                read_places = (await in_thread(read, name="contents")).places
                places |= read_places
                remaining = {
                    name: path
                    for name, path in remaining.items()
                    if name not in read_places
                }
            if remaining:
                raise CheckpointGone
            yield Contents(places)
        finally:
            for batch in batches:  # it may be large
                batch.unlink(missing_ok=True)


class _PartOfChanges(Struct, frozen=True):
    part: Snapshots
    old: Snapshot
    new: Snapshot

    async def find(self) -> list[Change]:
        listed = await self.part.changes(self.old.tree, self.new.tree)
        if listed is None:
            raise CheckpointGone
        changes, repositories = dict[str, Change](), set[str]()
        for change in read_raw(os.fsdecode(listed)):
            if REPOSITORY in (
                change.before and change.before.mode,
                change.after and change.after.mode,
            ):
                repositories.add(change.path)
            else:
                changes[change.path] = self._with_permissions(change)
        changes |= await self._changed_permissions(changes.keys())
        self._add_saved(changes)
        hidden = self.old.unseen | self.new.unseen | repositories
        seen = {
            path: change for path, change in changes.items() if not _is_in(path, hidden)
        }
        return [seen[path] for path in seen.keys() - await self._not_new(seen)]

    def _with_permissions(self, change: Change) -> Change:
        path, before, after = change.path, change.before, change.after
        old, new = self.old.modes.get(path), self.new.modes.get(path)
        return Change(
            path,
            before and replace(before, permissions=old),
            after and replace(after, permissions=new),
        )

    async def _changed_permissions(self, others: Collection[str]) -> dict[str, Change]:
        old, new = self.old.modes, self.new.modes
        paths = {path for path, _ in old.items() ^ new.items()}.difference(others)
        if not paths:
            return {}
        entries = await self.part.entries(self.new.tree)
        if entries is None:
            raise CheckpointGone
        return {
            path: self._with_permissions(Change(path, entries[path], entries[path]))
            for path in paths & entries.keys()
        }

    def _add_saved(self, changes: dict[str, Change]) -> None:
        """Add the changes of saved ignored files. A file that only one checkpoint was
        asked for does not count, unless git had it at the time of the other.
        """
        for path in self.old.saved.keys() | self.new.saved.keys():
            in_git = changes.get(path, Change(path, None, None))
            before = self.old.saved.get(path, in_git.before)
            after = self.new.saved.get(path, in_git.after)
            was_asked = path in self.old.also or before is not None
            is_asked = path in self.new.also or after is not None
            changes.pop(path, None)
            if not was_asked or not is_asked or _is_same(before, after):
                continue
            saved = (self.old.saved.get(path), self.new.saved.get(path))
            if all(self.part.store.has(entry.content) for entry in saved if entry):
                changes[path] = Change(path, before, after)
            else:
                # contents do not travel with a run
                self.part.not_here.add(path)

    async def _not_new(self, seen: Mapping[str, Change]) -> set[str]:
        has_new_rules = any(path.rpartition("/")[2] == ".gitignore" for path in seen)
        created = [
            path
            for path, change in seen.items()
            if change.before is None
            and path not in self.old.also
            and (has_new_rules or path in self.new.also)
        ]
        if not created:
            return set()
        return await self.part.ignored_by(self.old.tree, created)


def _is_same(before: TreeEntry | None, after: TreeEntry | None) -> bool:
    if before is None or after is None:
        return before is after
    return before == after and before.permissions == after.permissions


def _by_owner(paths: Iterable[str], folders: Collection[str]) -> dict[str, list[str]]:
    paths_by_owner = dict[str, list[str]]()
    for path in paths:
        owner = find_owner(path, folders)
        short = path[len(owner) + 1 :] if owner else path
        paths_by_owner.setdefault(owner, []).append(short)
    return paths_by_owner


def _whole(folder: str, path: str) -> str:
    return f"{folder}/{path}" if folder else path


def _is_in(path: str, places: Collection[str]) -> bool:
    """True if the path is in `places` or below one of them."""
    return bool(places) and any(
        place in places for place in (path, *map(str, PurePosixPath(path).parents))
    )
