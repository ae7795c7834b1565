"""What a project's files are, found by looking at their times: only what has changed
since the last look is read.

It comes to what `git add --all` and `git write-tree` come to, and starts neither. It is
for the usual: whatever is not (a repository within the project, a file that cannot be
read, a name that git may keep for itself, a great many changes) is left to git, and
what git finds is known from then on.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct, field

from cdd_agent.files.ignore import IgnoreRules
from cdd_agent.files.regular_files import open_file
from cdd_agent.git.objects import FOLDER, GitObjects, TreeItem
from cdd_agent.git.restore import USUAL_PERMISSIONS

MOST_FILES = 20_000
"""In a larger project git itself is as fast."""
_MOST_READ, _LARGEST = 200, 8 << 20
"""Changed files, and bytes of one, that are read here."""
_NEEDS_NO_NOTE = frozenset(stat.S_IFREG | mode for mode in USUAL_PERMISSIONS)
_LINK, _EXECUTABLE, _PLAIN = "120000", "100755", "100644"
_RULES = b".gitignore"
_NOT_GITS_OWN = re.compile(
    rb"(?!\.git)[ -~]+|\.git(?:ignore|attributes|keep|hub)"
    if sys.platform == "darwin"
    else rb"(?!\.git).+|\.git(?:ignore|attributes|keep|hub)",
    re.IGNORECASE | re.DOTALL,
)
"""A name that git does not keep for itself; a Mac has many ways to write one that it
does.
"""

Stamp = tuple[int, int, int, int, int]
"""The times, size, number and mode of a file: once one is past, another content has
another one.
"""
_UNSURE: Stamp = (0, 0, 0, 0, 0)
"""Of a file that was changed in the very moment in which it was looked at: it may
change again without a trace.
"""


class Unusual(Exception):
    """Something that is left to git."""


class _File(NamedTuple):
    mode: str
    id: str
    stamp: Stamp


class _Folder(Struct):
    id: str = ""
    """Of its tree; empty where no file is in it."""
    files: dict[bytes, _File] = field(default_factory=dict)
    folders: dict[bytes, _Folder] = field(default_factory=dict)
    passed: set[bytes] = field(default_factory=set)
    """Names that are no part of the project; those of folders end in a slash."""
    rules: Stamp | None = None
    """Of its `.gitignore`."""

    def paths(self, path: bytes) -> Iterator[bytes]:
        yield from (path + name for name in self.files)
        for name, folder in self.folders.items():
            yield from folder.paths(path + name + b"/")

    @property
    def has_rules(self) -> bool:
        return self.rules is not None or any(
            folder.has_rules for folder in self.folders.values()
        )


class KnownFiles:
    """The files of a project as they were at the last look. What looks may raise
    `Unusual`: then it is git's turn.
    """

    def __init__(
        self,
        root: Path,
        prefix: str,
        leave_out: Iterable[str],
        objects: GitObjects,
        clock: Path,
    ) -> None:
        """`leave_out` are patterns of what is no part of the project, from its root.
        `clock` is a file to write, on its disk, which tells what time is there.
        """
        self._root, self._objects, self._clock = os.fsencode(root), objects, clock
        self._above = [
            os.fsencode(parent / ".gitignore")
            for parent in root.parents[: prefix.count("/")]
        ]
        self._leave_out = IgnoreRules(
            _ascii(os.fsencode("\n".join(f"/{pattern}" for pattern in leave_out))), 0
        )
        self._top: _Folder | None = None
        self._rules_above: list[Stamp | None] = []
        self.rules = 0
        """How often what is ignored may have become something else."""
        self.added = set[str]()
        """Files that came since git has looked."""
        self.modes: list[str] = []
        """The permissions that git does not keep, at the last look, a line each:
        `600 path`.
        """
        self._began = self._read = 0

    def begin(self) -> None:
        """Before each look, also before one of git's. Raises `OSError`."""
        self._clock.write_bytes(b"\n")
        self._began = self._clock.stat().st_mtime_ns

    def forget(self) -> None:
        self._top = None

    def take_over(self, tree: str, listed: bytes) -> None:
        """What git has found since it began: a tree, and what it lists of it by
        `ls-tree -r -t -z`.
        """
        self.forget()
        self._forget_rules()
        self.added, self.modes = set(), []
        entries, top = listed.split(b"\0")[:-1], _Folder(tree)
        folders, is_known = (
            {b"": top},
            os.name == "posix" and len(entries) <= MOST_FILES,
        )
        root, lstat = self._root + b"/", os.lstat
        for entry in entries:  # in large projects, half of the time goes by here
            head, _, path = entry.partition(b"\t")
            above, _, name = path.rpartition(b"/") if is_known else (b"", b"", b"")
            if entry.startswith(b"040000"):
                if is_known := is_known and not self._is_left_out(path, is_folder=True):
                    folders[path] = folders[above].folders[name] = _Folder(_id(head))
                continue
            try:
                now = lstat(root + path)
            except OSError:  # gone by now
                is_known = False
                continue
            if now.st_mode not in _NEEDS_NO_NOTE:
                self._note(path, now.st_mode)
            if is_known:
                is_known = not entry.startswith(b"160000")  # a repository within
                folders[above].files[name] = _File(
                    head[:6].decode(), _id(head), self._stamp(now)
                )
                if name == _RULES:
                    folders[above].rules = self._stamp(now)
        if is_known:
            self._top, self._rules_above = (
                top,
                [self._rules_in(path) for path in self._above],
            )

    def look(self) -> str:
        """Look at all files; the id of their tree. Raises `GitUnusable` or `BadInput`,
        too.
        """
        top = self._top
        if top is None or (top.id and self._objects.id_of(top.id) is None):
            # where git has the last tree, it has all that is in it: it removes no part
            # of what it keeps
            raise Unusual
        self.forget()  # unless it comes to its end
        self.modes, self._read = [], 0
        above = [self._rules_in(path) for path in self._above]
        if is_fresh := above != self._rules_above or _UNSURE in above:
            self._rules_above = above
            self._forget_rules()
        try:
            self._look(top, self._root, b"", is_fresh)
        except (OSError, RecursionError) as error:
            raise Unusual from error
        self._top = top
        return top.id or self._objects.tree(())

    def holds(self, path: str) -> bool:
        """Whether a file was there at the last look."""
        *above, name = os.fsencode(path).split(b"/")
        folder = self._top
        for each in above:
            folder = folder.folders.get(each) if folder else None
        return folder is not None and name in folder.files

    def ignored(self, paths: Sequence[str]) -> set[str]:
        """Which of these paths the ignore files are about, which have to be what they
        were at the last look.
        """
        asked = {os.fsencode(path): path for path in paths}
        for path in asked:
            folder, place = self._top, b""
            if (
                folder is None
                or [self._rules_in(path) for path in self._above] != self._rules_above
            ):
                raise Unusual
            for name in path.split(b"/"):
                rules = self._rules_in(b"%s/%s%s" % (self._root, place, _RULES))
                if rules == _UNSURE or rules != (folder.rules if folder else None):
                    raise Unusual
                folder, place = (
                    folder.folders.get(name) if folder else None,
                    place + name + b"/",
                )
        return {asked[path] for path in self._objects.ignored(list(asked))}

    def _look(self, folder: _Folder, place: bytes, path: bytes, is_fresh: bool) -> None:
        """`place` is the folder's, `path` the beginning of those in it. `is_fresh`:
        ignore files above have changed.
        """
        with os.scandir(place) as items:
            found = {item.name: item for item in items}
        if found.pop(b".git", None) and path:
            raise Unusual
        rules = (
            self._stamp(found[_RULES].stat(follow_symlinks=False))
            if _RULES in found
            else None
        )
        if rules != folder.rules or rules == _UNSURE:
            folder.rules, is_fresh = rules, True
            self._forget_rules()
        if is_fresh:
            folder.passed.clear()
        is_dirty = self._drop_what_is_gone(folder, path, found)
        new, before = (
            list[os.DirEntry[bytes]](),
            {name: inner.id for name, inner in folder.folders.items()},
        )
        for name, item in found.items():
            if name in folder.folders:
                self._look(
                    folder.folders[name],
                    place + b"/" + name,
                    path + name + b"/",
                    is_fresh,
                )
            elif name in folder.files:
                is_dirty |= self._update(folder, item, path)
            elif _key(item) not in folder.passed:
                new.append(item)
        for item in self._ours(folder, path, new):
            if _is_folder(item):
                folder.folders[item.name] = _Folder()
                self._look(
                    folder.folders[item.name],
                    place + b"/" + item.name,
                    path + item.name + b"/",
                    is_fresh,
                )
            else:
                is_dirty |= self._update(folder, item, path)
                self.added.add(os.fsdecode(path + item.name))
        if is_dirty or any(
            inner.id != before.get(name, "") for name, inner in folder.folders.items()
        ):
            tree = [
                TreeItem(file.mode, file.id, name)
                for name, file in folder.files.items()
            ]
            tree += [
                TreeItem(FOLDER, inner.id, name)
                for name, inner in folder.folders.items()
                if inner.id
            ]
            folder.id = self._objects.tree(tree) if tree else ""

    def _drop_what_is_gone(
        self, folder: _Folder, path: bytes, found: dict[bytes, os.DirEntry[bytes]]
    ) -> bool:
        """Also where something of another kind is in its place. Whether it was
        anything.
        """
        files = [
            name
            for name in folder.files
            if name not in found or _is_folder(found[name])
        ]
        folders = [
            name
            for name in folder.folders
            if name not in found or not _is_folder(found[name])
        ]
        gone = [path + name for name in files]
        for name in folders:
            gone += folder.folders[name].paths(path + name + b"/")
            if folder.folders.pop(name).has_rules:
                self._forget_rules()
        for name in files:
            del folder.files[name]
        if any(self._is_left_out(each, is_folder=False) for each in gone):
            raise Unusual
        self.added.difference_update(map(os.fsdecode, gone))
        return bool(gone)

    def _ours(
        self, folder: _Folder, path: bytes, new: list[os.DirEntry[bytes]]
    ) -> list[os.DirEntry[bytes]]:
        """Those that are part of the project; the others are passed from now on."""
        new = [
            item
            for item in new
            if _is_folder(item)
            or item.is_symlink()
            or item.is_file(follow_symlinks=False)
        ]
        out = {
            path + item.name
            for item in new
            if self._is_left_out(path + item.name, is_folder=_is_folder(item))
        }
        if asked := [path + item.name for item in new if path + item.name not in out]:
            out |= self._objects.ignored(asked)
        folder.passed.update(_key(item) for item in new if path + item.name in out)
        ours = [item for item in new if path + item.name not in out]
        if not all(_NOT_GITS_OWN.fullmatch(item.name) for item in ours):
            raise Unusual
        return ours

    def _update(self, folder: _Folder, item: os.DirEntry[bytes], path: bytes) -> bool:
        """Look at a file; whether it is another one, for git, than it was."""
        now, before = item.stat(follow_symlinks=False), folder.files.get(item.name)
        if now.st_mode not in _NEEDS_NO_NOTE:
            self._note(path + item.name, now.st_mode)
        if before is not None and before.stamp == _stamp(now):
            return False
        path += item.name
        self._read += 1
        if (
            self._read > _MOST_READ
            or now.st_size > _LARGEST
            or self._is_left_out(path, is_folder=False)
        ):
            raise Unusual
        if stat.S_ISLNK(now.st_mode):
            # byte for byte
            mode, content = _LINK, os.readlink(item.path)  # noqa: PTH115
        else:
            mode = _EXECUTABLE if now.st_mode & stat.S_IXUSR else _PLAIN
            with open_file(Path(os.fsdecode(item.path))) as file:
                content = file.read()
        after = _File(mode, self._objects.blob(content), self._stamp(now))
        folder.files[item.name] = after
        return before is None or (before.mode, before.id) != (after.mode, after.id)

    def _note(self, path: bytes, mode: int) -> None:
        if stat.S_ISREG(mode):
            self.modes.append(f"{stat.S_IMODE(mode):o} {os.fsdecode(path)}")

    def _forget_rules(self) -> None:
        self.rules += 1
        self._objects.forget_ignore_files()

    def _is_left_out(self, path: bytes, *, is_folder: bool) -> bool:
        text = _ascii(path)
        return bool(
            self._leave_out.verdict(text, text.rpartition("/")[2], is_folder=is_folder)
        )

    def _rules_in(self, path: bytes) -> Stamp | None:
        try:
            return self._stamp(os.lstat(path))
        except OSError:
            return None

    def _stamp(self, now: os.stat_result) -> Stamp:
        if now.st_ctime_ns >= self._began or now.st_mtime_ns >= self._began:
            return _UNSURE
        return _stamp(now)


def _stamp(now: os.stat_result) -> Stamp:
    return now.st_ctime_ns, now.st_mtime_ns, now.st_size, now.st_ino, now.st_mode


def _id(head: bytes) -> str:
    """Of what `git ls-tree` says of an entry: its mode, kind and id."""
    return head.rpartition(b" ")[2].decode()


def _is_folder(item: os.DirEntry[bytes]) -> bool:
    return item.is_dir(follow_symlinks=False)


def _key(item: os.DirEntry[bytes]) -> bytes:
    return item.name + b"/" if _is_folder(item) else item.name


def _ascii(path: bytes) -> str:
    """A character for each byte: to git, `?` is one byte."""
    return path.decode("ascii", "surrogateescape")
