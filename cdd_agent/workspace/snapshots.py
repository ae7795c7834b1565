"""The files of a project as git objects, made with an index and settings of their own.

In a git repository the objects go into that repository's own store, where most of them are already, and the references
under `refs/worktree/cdd/`, which no branch, tag, stash or `git log` knows of. Elsewhere both are in a private
repository. HEAD, index, stash, hooks and settings of the user are neither read for it nor touched; what `.gitignore`
says counts. Bytes are taken as they are: no line ends, filters or encodings are converted.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from cdd_agent.errors import BadInput
from cdd_agent.harmless import harmless
from cdd_agent.workspace.files import read_bytes, remove_leftover, write_atomic
from cdd_agent.workspace.git_command import Git, GitUnusable
from cdd_agent.workspace.threads import in_thread
from cdd_agent.workspace.walk import git_folder

_ATTRIBUTES = b"* -text -filter -ident -working-tree-encoding !diff\n"  # in git, this file wins over all others
_CONFIG = (
    "core.bare=false",
    "core.splitIndex=false",
    "core.fsync=committed,loose-object,reference",  # what a checkpoint is made of survives a cut of power
    "core.fsyncMethod=batch",
    "gc.auto=0",
)
_USUAL = {0o644, 0o755, 0o664, 0o775}
"""Permissions that need no note: those that git knows apart."""
# What git says of something that is no part of a snapshot: it may not be read, has just gone, or is a repository
# within the project that has no commit yet.
_LEFT_OUT = re.compile(
    r"error: (?:'(?P<folder>.*)/' does not have a commit checked out"
    r"|open\(\"(?P<file>.*)\"\): (?:Permission denied|No such file or directory)"
    r"|unable to (?:index file|stat) '.*'.*)"
)


@dataclass
class Snapshots:
    """Makes snapshots of a project, and keeps references to them under names."""

    root: Path
    folder: Path
    """Private: the index and, outside a repository, everything."""
    git: Git
    """With the private index and settings."""
    references: Git
    namespace: str
    prefix: str
    """Of the project in the repository, with a slash at its end; empty at its top."""
    leave_out: tuple[str, ...]
    unseen: set[str] = field(default_factory=set)
    """Files and folders that could not be read, and so are in no snapshot."""

    @classmethod
    async def open(cls, root: Path, folder: Path, leave_out: Sequence[str] = ()) -> Snapshots:
        """Prepare snapshots of `root`, with `folder` for what they need.

        `root` is a resolved path. `leave_out` are patterns of files that are no part of the snapshots, from `root`, as
        in git's `:(glob)`. Raises `GitUnusable`, or `BadInput` when the folder cannot be written.
        """
        repository = await _repository(root)
        plain = Git(root)
        form = [f"--object-format={repository.object_format}"] if repository else []
        await plain("init", "--quiet", "--bare", "--template=", *form, str(folder))
        _settle(folder / "info" / "attributes", _ATTRIBUTES)
        _settle(folder / "info" / "exclude", repository.exclude if repository else b"")
        top = repository.top if repository else root
        env = {
            "GIT_DIR": str(folder),
            "GIT_WORK_TREE": str(top),
            "GIT_INDEX_FILE": str(await in_thread(partial(_fresh_index, folder), name="index")),
        }
        if repository:
            env["GIT_OBJECT_DIRECTORY"] = str(repository.objects)
        git = Git(top, env, (*plain.config, *_CONFIG))
        prefix = f"{root.relative_to(top).as_posix()}/" if root != top else ""
        namespace = f"refs/worktree/cdd/{hashlib.sha256(prefix.encode()).hexdigest()[:8]}"
        references = Git(top, {"GIT_DIR": str(repository.git if repository else folder)}, git.config)
        snapshots = cls(root, folder, git, references, namespace, prefix, tuple(leave_out))
        if repository:
            await snapshots._add_what_git_knows(repository)
        return snapshots

    async def take(self, name: str, also: Iterable[str] = ()) -> str:
        """Make a snapshot and keep it under a name; the object's id. `also` are files to include though ignored."""
        await self._add()
        await self._add_ignored([path for path in also if self._can_be_added(path)])
        tree = await self._tree()
        await self._list(self.folder / "listed")
        modes = await in_thread(partial(self._unusual_modes, self.folder / "listed"), name="modes")
        entries = f"040000 tree {tree}\tfiles\0"
        if modes:
            entries += f"100644 blob {await self._store(modes)}\tmodes\0"
        made = await self.git("mktree", "-z", stdin=self._input(entries.encode()))
        snapshot = made.stdout.strip()
        await self._refer(f"{self.namespace}/{name}", snapshot)
        return snapshot

    async def find(self, name: str) -> str | None:
        """The id of the snapshot of that name."""
        result = await self.references(
            "rev-parse", "--verify", "--quiet", f"{self.namespace}/{name}^{{tree}}", codes=(0, 1, 128)
        )
        return result.stdout.strip() or None

    async def _add(self) -> None:
        everything = f":(top,literal){self.prefix}" if self.prefix else ":(top)"
        excluded = [f":(top,exclude,glob){_as_glob(self.prefix)}{pattern}" for pattern in self.leave_out]
        arguments = ("--ignore-errors", "--all", "--", everything, *excluded)
        result = await self.git("-c", "advice.addEmbeddedRepo=false", "add", *arguments, codes=(0, 1, 128))
        if result.return_code == 128 and "index file" in result.stderr:  # it was torn, and is only a short cut
            await self.git("read-tree", "--empty")
            result = await self.git("add", *arguments, codes=(0, 1))
        if result.return_code:
            self._note_unseen(result.stderr)

    def _note_unseen(self, stderr: str) -> None:
        """What may be missing is noted; any other error, such as a full disk, would leave a hole in the snapshot."""
        for line in stderr.splitlines():
            if not line.startswith(("error: ", "fatal: ")):  # git also complains of what it was told to leave out
                continue
            found = _LEFT_OUT.fullmatch(line)
            if found is None:
                raise GitUnusable(f"A checkpoint could not be made: {harmless(line)}")
            self.unseen |= {name for name in found.groups() if name}

    async def _add_ignored(self, paths: Sequence[str]) -> None:
        if paths:
            names = "\0".join(f":(top,literal){self.prefix}{path}" for path in paths)
            listed = self._input(os.fsencode(names))
            await self.git("add", "--force", f"--pathspec-from-file={listed}", "--pathspec-file-nul")

    async def _add_what_git_knows(self, repository: _Repository) -> None:
        """Files that are ignored and tracked all the same: they are part of the project."""
        listed = self.folder / "listed"
        user = Git(repository.top, {"GIT_DIR": str(repository.git), "GIT_WORK_TREE": str(repository.top)})
        where = [f":(top,literal){self.prefix}"] if self.prefix else []
        await user("ls-files", "-ci", "-z", "--exclude-standard", "--", *where, stdout=listed)
        names = (name.removeprefix(self.prefix) for name in _names(listed))
        await self._add_ignored([name for name in names if self._can_be_added(name)])

    def _can_be_added(self, path: str) -> bool:
        """It is there, and not behind a link."""
        place = self.root / path
        return os.path.lexists(place) and place.parent.resolve() == self.root / Path(path).parent

    async def _tree(self) -> str:
        prefix = [f"--prefix={self.prefix}"] if self.prefix else []
        result = await self.git("write-tree", *prefix, codes=(0, 128))
        if result.return_code == 0:
            return result.stdout.strip()
        if f"prefix {self.prefix} not found" not in result.stderr:
            raise GitUnusable(f"A checkpoint could not be made: {harmless(result.stderr.strip())}")
        return (await self.git("mktree")).stdout.strip()  # there are no files

    async def _list(self, target: Path) -> None:
        await self.git("ls-files", "-z", stdout=target)

    def _unusual_modes(self, listed: Path) -> bytes:
        """The permissions that git does not keep, a line each: `600 path`, a NUL at the end."""
        lines = []
        for name in _names(listed):
            with contextlib.suppress(OSError):
                found = (self.root / name.removeprefix(self.prefix)).lstat().st_mode
                if stat.S_ISREG(found) and stat.S_IMODE(found) not in _USUAL:
                    lines.append(f"{stat.S_IMODE(found):o} {name.removeprefix(self.prefix)}\0")
        return os.fsencode("".join(lines))

    async def modes(self, snapshot: str) -> dict[str, int]:
        """The unusual permissions in a snapshot, by path."""
        target = self.folder / "modes"
        result = await self.git("cat-file", "blob", f"{snapshot}:modes", stdout=target, codes=(0, 128))
        if result.return_code:
            return {}
        entries = (line.split(" ", 1) for line in _names(target))
        return {path: int(mode, 8) for mode, path in entries}

    async def _store(self, content: bytes) -> str:
        result = await self.git("hash-object", "-w", "--no-filters", "--stdin", stdin=self._input(content))
        return result.stdout.strip()

    def _input(self, content: bytes) -> Path:
        path = self.folder / "input"
        path.write_bytes(content)
        return path

    async def _refer(self, reference: str, target: str) -> None:
        try:
            await self.references("update-ref", reference, target)
        except GitUnusable:
            lock = Path(self.references.env["GIT_DIR"]) / f"{reference}.lock"
            if not lock.exists():
                raise
            lock.unlink()  # nobody else writes this ticket's references: whoever did was killed
            await self.references("update-ref", reference, target)


@dataclass(frozen=True)
class _Repository:
    """The user's repository, where a project is in one."""

    top: Path
    git: Path
    objects: Path
    object_format: str
    exclude: bytes


async def _repository(root: Path) -> _Repository | None:
    """The repository that a project is a part of; None where there is none, or it ignores the project."""
    found = ((top, place) for top in (root, *root.parents) if (place := git_folder(top)) is not None)
    top, folder = next(found, (root, None))
    if folder is None:
        return None
    git = Git(top, {"GIT_DIR": str(folder), "GIT_WORK_TREE": str(top)})
    asked = ("--show-object-format", "--git-path", "objects", "--git-path", "info/exclude")
    answer = await git("rev-parse", *asked, codes=(0, 128))
    if answer.return_code:  # what is called `.git` is no repository
        return None
    if root != top and (await git("check-ignore", "--quiet", "--", str(root), codes=(0, 1))).return_code == 0:
        return None
    object_format, objects, exclude = answer.stdout.splitlines()
    return _Repository(top, folder, top / objects, object_format, read_bytes(top / exclude) or b"")


def _settle(place: Path, content: bytes) -> None:
    remove_leftover(place)
    if read_bytes(place) != content:
        write_atomic(place, content)


def _fresh_index(folder: Path) -> Path:
    """An index of this process alone, begun with what the last one had; a killed process's git may still have that."""
    fresh = folder / f"index-{secrets.token_hex(4)}"
    known = sorted(folder.glob("index-*"), key=lambda path: path.lstat().st_mtime_ns, reverse=True)
    complete = [path for path in known if path.suffix != ".lock"]
    try:
        if complete:
            shutil.copyfile(complete[0], fresh)
        for path in known:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise BadInput(f"{fresh} could not be written: {error.strerror or error}") from error
    return fresh


def _names(listed: Path) -> Iterator[str]:
    """What git listed, each ended by a NUL."""
    return (os.fsdecode(name) for name in listed.read_bytes().split(b"\0") if name)


def _as_glob(prefix: str) -> str:
    return re.sub(r"([*?\[\\])", r"\\\1", prefix)
