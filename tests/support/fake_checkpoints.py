"""Checkpoints of a test's project in plain files, without git.

`FakeCheckpoints` has the methods of `Checkpoints` that a run uses in one tree. Tests of
side trees, commits and travelling use git, and so do stories.
"""

import difflib
import hashlib
import json
import os
import stat
from collections.abc import (
    AsyncIterator,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from cdd_agent.files.ignore import IgnoreRules
from cdd_agent.git.checkpoint import Checkpoint
from cdd_agent.git.diff import Change, TreeEntry
from cdd_agent.git.restore import (
    USUAL_PERMISSIONS,
    CheckpointGone,
    Contents,
    RestoreResult,
    find_edited,
    restore,
)

_LINK, _EXECUTABLE, _PLAIN = "120000", "100755", "100644"
_RULES = ".gitignore"

Files = dict[str, TreeEntry]


class FakeCheckpoints:
    """The checkpoints of one ticket, in `folder`: a file for each content, each list of
    files, and each name.
    """

    unseen: frozenset[str] = frozenset()
    uncovered: Mapping[str, str] = {}
    has_inner = False

    def __init__(
        self, root: Path, folder: Path, prefix: str, leave_out: Sequence[str]
    ) -> None:
        self.root = root
        self.folder = folder
        self.prefix = prefix
        self._left_out = IgnoreRules("\n".join(f"/{one}" for one in leave_out), 0)
        for name in ("contents", "lists", "names"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        self._also = set(self._load("also", []))

    @classmethod
    async def open(
        cls, root: Path, folder: Path, prefix: str, leave_out: Sequence[str] = ()
    ) -> "FakeCheckpoints":
        return cls(root, folder, prefix, leave_out)

    async def take(self, name: str, also: Iterable[str] = ()) -> Checkpoint:
        self._also |= {path for path in also if self._is_ignored(path)}
        files = {
            path: (entry.mode, entry.content, entry.permissions)
            for path, entry in sorted(self._look())
        }
        text = json.dumps([files, sorted(self._also)])
        identity = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
        (self.folder / "lists" / identity).write_text(text)
        (self.folder / "also").write_text(json.dumps(sorted(self._also)))
        place = self._place_of(name)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(identity)
        return Checkpoint(name, identity)

    async def find(self, name: str) -> Checkpoint | None:
        place = self._place_of(name)
        return Checkpoint(name, place.read_text()) if place.is_file() else None

    async def changes(
        self, before: Checkpoint, after: Checkpoint
    ) -> tuple[Change, ...]:
        if before.id == after.id:
            return ()
        old, old_also = self._files(before)
        new, new_also = self._files(after)
        found = {
            path: Change(path, old.get(path), new.get(path))
            for path in sorted(old.keys() | new.keys())
            if old.get(path) != new.get(path)
            or _permissions(old.get(path)) != _permissions(new.get(path))
        }
        has_new_rules = any(path.rpartition("/")[2] == _RULES for path in found)
        created = {
            path
            for path, change in found.items()
            if change.before is None and (has_new_rules or path in new_also)
        }
        unknown = await self.ignored(before, created - old_also)
        return tuple(found[path] for path in found if path not in unknown)

    async def find_files(
        self, checkpoint: Checkpoint, paths: Collection[str]
    ) -> dict[str, TreeEntry | None]:
        files = self._files(checkpoint)[0]
        return {path: files.get(path) for path in paths}

    async def diff(
        self, before: Checkpoint, after: Checkpoint, paths: Sequence[str] = ()
    ) -> str:
        old, new = self._files(before)[0], self._files(after)[0]
        chosen = [
            Change(path, old.get(path), new.get(path))
            for path in sorted(old.keys() | new.keys())
            if old.get(path) != new.get(path) and (not paths or path in paths)
        ]
        return "".join(line for change in chosen for line in self._diff(change))

    async def read(
        self, changes: Sequence[Change]
    ) -> dict[str, tuple[bytes | None, bytes | None]]:
        return {
            change.path: (self._content(change.before), self._content(change.after))
            for change in changes
        }

    @asynccontextmanager
    async def contents(self, changes: Iterable[Change]) -> AsyncIterator[Contents]:
        yield self._contents([change.after for change in changes])

    async def restore(
        self, changes: Sequence[Change], kept: Path | None = None
    ) -> RestoreResult:
        entries = [change.before for change in changes]
        entries += [change.after for change in find_edited(self.root, changes)]
        contents = self._contents(entries)
        return restore(self.root, changes, contents, kept=kept, should_merge=True)

    async def ignored(
        self, checkpoint: Checkpoint, missing: Collection[str]
    ) -> set[str]:
        if not missing:
            return set()
        files, _ = self._files(checkpoint)
        rules = {
            path: self._content(entry) or b""
            for path, entry in files.items()
            if path.rpartition("/")[2] == _RULES
        }
        return {path for path in missing if _is_ignored(path, rules)}

    async def forget(self, name: str) -> None:
        for place in sorted(self._place_of(name).rglob("*"), reverse=True):
            place.rmdir() if place.is_dir() else place.unlink()

    async def rename(self, prefix: str) -> None:
        names = self.folder / "names"
        if (names / self.prefix).exists():
            (names / self.prefix).rename(names / prefix)

    def _place_of(self, name: str) -> Path:
        return self.folder / "names" / self.prefix / name

    def _load(self, name: str, default: object) -> object:
        try:
            return json.loads((self.folder / name).read_text())
        except FileNotFoundError:
            return default

    def _files(self, checkpoint: Checkpoint) -> tuple[Files, set[str]]:
        try:
            text = (self.folder / "lists" / checkpoint.id).read_text()
        except FileNotFoundError as error:
            raise CheckpointGone from error
        files, also = json.loads(text)
        return {path: TreeEntry(*entry) for path, entry in files.items()}, set(also)

    def _content(self, entry: TreeEntry | None) -> bytes | None:
        if entry is None:
            return None
        try:
            return (self.folder / "contents" / entry.content).read_bytes()
        except FileNotFoundError as error:
            raise CheckpointGone from error

    def _contents(self, entries: Iterable[TreeEntry | None]) -> Contents:
        return Contents(
            {entry.content: self._content(entry) or b"" for entry in entries if entry}
        )

    def _diff(self, change: Change) -> Iterator[str]:
        old, new = (
            (self._content(entry) or b"").decode("utf-8", errors="replace")
            for entry in (change.before, change.after)
        )
        path, before, after = change.path, change.before, change.after
        yield f"diff --git a/{path} b/{path}\n"
        if before is None and after is not None:
            yield f"new file mode {after.mode}\n"
        elif after is None and before is not None:
            yield f"deleted file mode {before.mode}\n"
        elif before is not None and after is not None and before.mode != after.mode:
            yield f"old mode {before.mode}\nnew mode {after.mode}\n"
        lines = difflib.unified_diff(
            old.splitlines(keepends=True),
            new.splitlines(keepends=True),
            f"a/{path}" if before else "/dev/null",
            f"b/{path}" if after else "/dev/null",
        )
        for line in lines:
            yield line
            if not line.endswith("\n"):
                yield "\n\\ No newline at end of file\n"

    # The project's files

    def _look(self) -> Iterator[tuple[str, TreeEntry]]:
        yield from self._below(self.root, "", [])
        for path in self._also:
            with suppress(OSError):
                yield path, self._keep(self.root / path)

    def _below(
        self, folder: Path, prefix: str, above: Sequence[IgnoreRules]
    ) -> Iterator[tuple[str, TreeEntry]]:
        rules = list(above)
        own_rules = folder / _RULES
        if own_rules.is_file():
            rules.append(IgnoreRules(own_rules.read_text(), len(prefix)))
        for item in os.scandir(folder):
            path, is_folder = prefix + item.name, item.is_dir(follow_symlinks=False)
            if self._left_out.decide(path, item.name, is_folder=is_folder):
                continue
            if item.name == ".git" or Path(item.path) == self.folder:
                continue
            if _verdict(rules, path, item.name, is_folder=is_folder):
                continue
            if is_folder:
                if not (Path(item.path) / ".git").exists():
                    yield from self._below(Path(item.path), f"{path}/", rules)
            elif item.is_symlink() or item.is_file():
                yield path, self._keep(Path(item.path))

    def _is_ignored(self, path: str) -> bool:
        rules = {
            file.relative_to(self.root).as_posix(): file.read_bytes()
            for parent in (self.root / path).parents
            if parent.is_relative_to(self.root) and (file := parent / _RULES).is_file()
        }
        return _is_ignored(path, rules)

    def _keep(self, file: Path) -> TreeEntry:
        found = file.lstat()
        if stat.S_ISLNK(found.st_mode):
            mode, data, permissions = _LINK, os.fsencode(file.readlink()), None
        else:
            data, own = file.read_bytes(), stat.S_IMODE(found.st_mode)
            mode = _EXECUTABLE if own & stat.S_IXUSR else _PLAIN
            permissions = None if own in USUAL_PERMISSIONS else own
        sha = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False)
        content = sha.hexdigest()
        place = self.folder / "contents" / content
        if not place.exists():
            place.write_bytes(data)
        return TreeEntry(mode, content, permissions)


def _permissions(entry: TreeEntry | None) -> int | None:
    return entry.permissions if entry else None


def _verdict(
    rules: Sequence[IgnoreRules], path: str, name: str, *, is_folder: bool
) -> bool:
    """True if the innermost rule about a path ignores it."""
    for one in reversed(rules):
        verdict = one.decide(path, name, is_folder=is_folder)
        if verdict is not None:
            return verdict
    return False


def _is_ignored(path: str, rules: dict[str, bytes]) -> bool:
    """True if these ignore files ignore a path or a folder above it."""
    parts, above = path.split("/"), list[IgnoreRules]()
    for depth, name in enumerate(parts):
        prefix = "".join(f"{part}/" for part in parts[:depth])
        if prefix + _RULES in rules:
            text = rules[prefix + _RULES].decode("utf-8", errors="surrogateescape")
            above.append(IgnoreRules(text, len(prefix)))
        is_folder = depth < len(parts) - 1
        if _verdict(above, prefix + name, name, is_folder=is_folder):
            return True
    return False
