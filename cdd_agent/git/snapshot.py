"""The files of one repository as a git tree, made with a private index and settings.

The objects go into the repository's own store, which has most of them. The references
are under `refs/cdd/`, where no branch, tag, stash or `git log` sees them. (Not under
`refs/worktree/`: a cleanup in one worktree removes objects that only references of
another one hold.) A folder without a repository gets a private one.

The user's HEAD, index, stash, hooks and settings are neither read nor changed;
`.gitignore` applies. Bytes stay unchanged, without conversion of line ends, filters or
encodings.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import secrets
import shutil
import stat
from collections.abc import (
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from functools import partial
from pathlib import Path, PurePosixPath
from typing import NamedTuple, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.errors import BadInput
from cdd_agent.files.atomic import (
    put_file,
    put_link,
    read_bytes,
    remove,
    remove_leftovers,
    write_atomic,
)
from cdd_agent.files.ignore import IgnoreRules
from cdd_agent.files.spelling import find_misspelled, ignores_spelling
from cdd_agent.git.command import Git, GitUnusable
from cdd_agent.git.content_store import ContentStore
from cdd_agent.git.diff import EXECUTABLE, LINK, PLAIN, REPOSITORY, TreeEntry
from cdd_agent.git.repository import Repository
from cdd_agent.git.restore import USUAL_PERMISSIONS
from cdd_agent.pattern import Pattern
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.text.sanitize import sanitize_for_display
from cdd_agent.threads import in_thread, to_its_end

T = TypeVar("T")
LARGEST_SAVED = 1 << 20
"""Maximum bytes of an ignored file to save."""
HINT = (
    "Check that the folder is writable and the disk has space. Add unreadable files to"
    " .gitignore."
)
# in git, this file overrides all others
_ATTRIBUTES = b"* -text -filter -ident -working-tree-encoding !diff\n"
CONFIG = (
    "advice.addEmbeddedRepo=false",
    "core.bare=false",
    "core.checkStat=default",
    # a checkpoint must survive a power cut
    "core.fsync=committed,loose-object,reference",
    "core.fsyncMethod=batch",
    "core.logAllRefUpdates=false",
    # keep names as the disk has them
    "core.precomposeunicode=false",
    # outside Windows, a file may be called `git~1`
    f"core.protectNTFS={'true' if os.name == 'nt' else 'false'}",
    "core.sparseCheckout=false",
    "core.splitIndex=false",
    "core.trustCtime=true",
    # or git runs `git status` in nested repositories, with their settings
    "diff.ignoreSubmodules=all",
    "gc.auto=0",
)
# Messages of git about entries that no snapshot has: an unreadable or just removed
# file, a pipe or socket, a name that git reserves, a nested repository without a
# commit. Also about excluded entries that are ignored.
_LEFT_OUT = Pattern(
    r"""
    ^error:\ '(?P<hollow>.*?)/'\ does\ not\ have\ a\ commit\ checked\ out$
    | ^error:\ open\("(?P<file>.*?)"\):
      \ (?:Permission\ denied|No\ such\ file\ or\ directory)$
    | ^error:\ (?P<special>[^\n]*):
      \ can\ only\ add\ regular\ files,\ symbolic\ links\ or\ git-directories$
    | ^error:\ invalid\ path\ '(?P<reserved>.*?)'$
    | ^error:\ unable\ to\ (?:index\ file|stat|add)\ '.*?'(?::\ [^\n]*|\ to\ index)?$
    | ^warning:\ could\ not\ open\ directory\ '(?P<closed>.*?)/':\ [^\n]*$
    | ^(?P<hidden>(?!error:|fatal:)[^\n]*):\ Permission\ denied$
    | ^(?:warning|hint):\ [^\n]*$
    | ^fatal:\ adding\ files\ failed$
    | ^The\ following\ paths\ are\ ignored\ [^\n]*
      (?:\n(?!error:|fatal:|warning:|hint:)[^\n]*)*$
    """,
    re.DOTALL | re.MULTILINE | re.VERBOSE,  # a name may have more than one line
)
_NEEDS_NO_NOTE = frozenset(stat.S_IFREG | mode for mode in USUAL_PERMISSIONS)


class Snapshot(Struct, frozen=True):
    """The files of one repository at one moment, relative to its folder."""

    tree: str
    modes: Mapping[str, int] = {}
    """Unusual permissions, by path."""
    unseen: frozenset[str] = frozenset()
    """Files that are unreadable or too large. A folder stands for everything in it."""
    also: frozenset[str] = frozenset()
    """Ignored files that the caller asked for, whether or not they existed."""
    saved: Mapping[str, TreeEntry] = {}
    """The asked files that existed. Their contents are in the content store."""


class Snapshots(Struct):
    """Takes snapshots of one repository, and keeps references to them under names."""

    root: Path
    folder: Path
    """Private to one process at a time: index, git's input and output, and the objects
    if there is no repository.
    """
    index: Path
    git: Git
    """With the private index and settings."""
    references: Git
    namespace: str
    prefix: str
    """The project's path in the repository, ending with a slash, or empty."""
    leave_out: tuple[str, ...]
    store: ContentStore
    unseen: set[str] = field(default_factory=set)
    """Unreadable files and folders, which no snapshot has."""
    too_large: set[str] = field(default_factory=set)
    """Ignored files that the caller asked for and that are too large to save."""
    not_here: set[str] = field(default_factory=set)
    """Changed ignored files of which a saved content is missing."""
    refused: set[str] = field(default_factory=set)
    """Folders of nested repositories that git cannot read. They are left out."""
    hollow: set[str] = field(default_factory=set)
    """Folders of nested repositories that had no commit at the last snapshot."""
    _tracked: frozenset[str] = frozenset()
    """Ignored files that the user's index tracks."""
    _asked: set[str] = field(default_factory=set)
    """Files to include even if they are ignored."""
    _listed: str = ""
    """The tree that `_files` lists."""
    _files: dict[str, str] = field(default_factory=dict)
    """The files of the last tree, with git's modes."""

    @classmethod
    async def open(
        cls,
        root: Path,
        folder: Path,
        store: ContentStore,
        leave_out: Sequence[str] = (),
        repository: Repository | None = None,
        name: str = "",
    ) -> Snapshots:
        """Prepare snapshots of `root`, a resolved path. `folder` stores their data; no
        other process may use it at the time.

        `leave_out` are patterns of excluded files, relative to `root`, as in git's
        `:(glob)`; `folder` is always excluded. `name` separates the references from
        others in the repository. Raises `GitUnusable`, or `BadInput` if the folder
        cannot be written.
        """
        plain = Git(root)
        if not (folder / "objects").exists():  # git makes it last
            form = [f"--object-format={repository.object_format}"] if repository else []
            words = ("init", "--quiet", "--bare", "--template=", *form, str(folder))
            await plain(*words)
        index = await to_its_end(partial(_prepare, folder, repository), name="index")
        top = repository.top if repository else root
        env = {
            "GIT_DIR": str(folder),
            "GIT_WORK_TREE": str(top),
            "GIT_INDEX_FILE": str(index),
        }
        if repository:
            env["GIT_OBJECT_DIRECTORY"] = str(repository.objects)
        settings = repository.settings if repository else ()
        git = Git(root, env, (*plain.config, *settings, *CONFIG))
        prefix = f"{root.relative_to(top).as_posix()}/" if root != top else ""
        whose = f"{repository.worktree if repository else ''}:{prefix}{name}"
        digest = hashlib.sha256(os.fsencode(whose)).hexdigest()[:8]
        keeper = {
            "GIT_DIR": str(repository.shared if repository else folder),
            "GIT_WORK_TREE": str(top),
        }
        snapshots = cls(
            root=root,
            folder=folder,
            index=index,
            git=git,
            references=Git(top, keeper, git.config),
            namespace=f"refs/cdd/{digest}",
            prefix=prefix,
            leave_out=tuple(leave_out),
            store=store,
        )
        if repository:
            listed = folder / "listed"
            where = snapshots._everything()
            await repository.tracked_though_ignored(root, where, listed)
            snapshots._tracked = frozenset(names_in(listed))
        return snapshots

    def beside(self, top: Path, folder: Path, leave_out: Iterable[str]) -> Snapshots:
        """Return snapshots of another working tree of the same repository, with names
        among these.

        `top` is the top of that tree. `folder` exists and is unused. `leave_out` are
        further patterns of excluded files.
        """
        root, index = top / self.prefix, folder / "index"
        env = {**self.git.env, "GIT_WORK_TREE": str(top), "GIT_INDEX_FILE": str(index)}
        return Snapshots(
            root=root,
            folder=folder,
            index=index,
            git=replace(self.git, folder=root, env=env),
            references=self.references,
            namespace=self.namespace,
            prefix=self.prefix,
            leave_out=(*self.leave_out, *leave_out),
            store=self.store,
            _tracked=self._tracked,
            _asked=set(self._asked),
        )

    @property
    def was_taken(self) -> bool:
        """True if this object has taken a snapshot."""
        return bool(self._listed)

    @property
    def is_private(self) -> bool:
        """True if the snapshots are in cdd's repository instead of the user's."""
        return self.references.env["GIT_DIR"] == str(self.folder)

    async def take(self, name: str, also: Iterable[str] = ()) -> Snapshot:
        """Take a snapshot and keep it under a name. `also` are files to include even if
        they are ignored, now and in later snapshots. Raises `GitUnusable` or
        `BadInput`.
        """
        self._asked |= set(also)
        previous_files = self._files
        # in parallel, as both take long in a large project
        (tree, unseen), modes = await asyncio.gather(
            self._with_sound_index(self._look),
            in_thread(partial(self._modes, previous_files), name="modes"),
        )

        def note() -> Snapshot:
            new = dict(self._files.items() - previous_files.items())
            tracked = {path: modes[path] for path in modes.keys() & self._files.keys()}
            return self._note(tree, unseen, tracked | self._modes(new))

        snapshot = await in_thread(note, name="notes")
        await self._refer(f"{self.namespace}/{name}", tree)
        return snapshot

    async def _with_sound_index(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run work on the private index. If git fails, repeat it with an empty index:
        the old one may be torn, locked, or refer to removed objects.
        """
        try:
            return await work()
        except GitUnusable:
            await in_thread(self._forget_index, name="index")
        try:
            return await work()
        except GitUnusable as error:
            raise GitUnusable(error.message, hint=error.hint or HINT) from error

    async def _look(self) -> tuple[str, set[str]]:
        """Return the tree of all files, and the unreadable ones."""
        unseen = await self._add()
        if await in_thread(partial(ignores_spelling, self.root), name="names"):
            unseen |= await self._respell()
        tree = await self._write_tree()
        await self._list(tree)
        if missing := self._missing(self._tracked):
            asked = self.input(f"{path}\0" for path in missing)
            words = ("update-index", "--add", "--replace", "-z", "--stdin")
            await self.git(*words, stdin=asked)
            tree = await self._write_tree()
            await self._list(tree)
        return tree, unseen

    @property
    def inner_repositories(self) -> set[str]:
        """Folders of nested repositories in the last snapshot."""
        linked = {path for path, mode in self._files.items() if mode == REPOSITORY}
        return linked | self.hollow

    async def find_inner(self) -> set[str]:
        """List the folders of nested repositories, except those in other ones. Raises
        `GitUnusable`.
        """
        listed, inner = self.folder / "listed", set[str]()

        async def list_all() -> None:
            words = ("-z", "--stage", "--others", "--exclude-standard")
            everything = self._everything()
            await self.git("ls-files", *words, "--", *everything, stdout=listed)

        await self._with_sound_index(list_all)
        for line in names_in(listed):
            head, is_indexed, path = line.partition("\t")
            if is_indexed and head.startswith(REPOSITORY):
                inner.add(path)
            elif head.endswith("/"):
                inner.add(head.removesuffix("/"))
        return inner

    async def find(self, name: str) -> str | None:
        commits = await self.references(
            "rev-parse", "--verify", "--quiet", f"{self.namespace}/{name}", codes=(0, 1)
        )
        return commits.stdout.strip() or None

    async def check_out(self, snapshot: Snapshot) -> None:
        """Write all files of a snapshot into an empty tree. Files that stay unchanged
        are not read again later.
        """
        prefix = [f"--prefix={self.prefix}"] if self.prefix else []
        await self.git("read-tree", *prefix, snapshot.tree)
        await self.git("checkout-index", "--all", "--force", "--index", "--quiet")
        self._asked |= snapshot.also

        def write_others() -> None:
            for path, mode in snapshot.modes.items():
                if not (place := self.root / path).is_symlink():
                    place.chmod(mode)
            for path, entry in snapshot.saved.items():
                self._write_saved(self.root / path, entry)

        await in_thread(write_others, name="others")

    def _write_saved(self, place: Path, entry: TreeEntry) -> None:
        content = self.store.read(entry.content)
        if entry.mode == LINK:
            put_link(place, os.fsdecode(content))
            return
        usual = 0o755 if entry.mode == EXECUTABLE else 0o644
        put_file(place, [content], entry.permissions or usual)

    async def remove_references(self, under: str) -> None:
        """Forget all snapshots in the folder of names `under`."""
        listed = self.folder / "listed"
        names = "--format=delete %(refname)", f"{self.namespace}/{under}/"
        await self.references("for-each-ref", *names, stdout=listed)
        if listed.stat().st_size:
            await self.references("update-ref", "--stdin", stdin=listed)

    async def names(self, under: str) -> dict[str, str]:
        """Return the objects in the folder of names `under`, by the rest of the
        name.
        """
        names, listed = f"{self.namespace}/{under}/", self.folder / "listed"
        await self.references(
            "for-each-ref", "--format=%(objectname) %(refname)", names, stdout=listed
        )
        names_by_id = {}
        for line in listed.read_text(encoding="utf-8").splitlines():
            target, name = line.split(" ", 1)
            names_by_id[name.removeprefix(names)] = target
        return names_by_id

    async def move_references(
        self, under: str, target: Snapshots, new: str = ""
    ) -> None:
        """Move names to another tree of the same repository, and rename their folder to
        `new`.
        """
        names = await self.names(under)
        where = f"{target.namespace}/{new or under}"
        added = (f"update {where}/{name} {tree}\n" for name, tree in names.items())
        removed = (f"delete {self.namespace}/{under}/{name}\n" for name in names)
        for lines in (added, removed):
            await self.references("update-ref", "--stdin", stdin=self.input(lines))

    async def read_old(self, snapshot: str) -> Snapshot | None:
        """Read a snapshot of version 0.1: a tree with the entry `files` and optional
        lists `modes`, `unseen` and `also`. None if it is gone.
        """
        kinds = ("files", "modes", "unseen", "also")
        asked = self.input(f"{snapshot}:{kind}\n" for kind in kinds)
        answers = self.folder / "listed"
        await self.git("cat-file", "--batch", stdin=asked, stdout=answers)
        lists = {}
        with answers.open("rb") as file:
            for kind in kinds:
                *_, size = file.readline().split()
                if size.isdigit():
                    lists[kind] = file.read(int(size))
                    file.read(1)
        if "files" not in lists:
            return None
        lines = {
            kind: [os.fsdecode(line) for line in text.split(b"\0")[:-1]]
            for kind, text in lists.items()
            if kind != "files"
        }
        modes = (line.split(" ", 1) for line in lines.get("modes", []))
        return Snapshot(
            tree=f"{snapshot}:files",
            modes={path: int(mode, 8) for mode, path in modes},
            unseen=frozenset(lines.get("unseen", [])),
            also=frozenset(lines.get("also", [])),
        )

    async def changes(self, before: str, after: str) -> bytes | None:
        """List the differences between two trees in git's raw format (`diff.py`). None
        if a tree is gone.
        """
        if before == after:
            return b""
        target = self.folder / "listed"
        words = ("diff-tree", "-r", "-z", "--no-renames", "--no-abbrev", before, after)
        result = await self.git(*words, stdout=target, codes=(0, 128))
        return None if result.return_code else target.read_bytes()

    async def entries(self, tree: str) -> dict[str, TreeEntry] | None:
        """Return the files and nested repositories of a tree by path. None if the tree
        is gone.
        """
        target = self.folder / "listed"
        words = ("ls-tree", "--full-tree", "-r", "-z", tree)
        result = await self.git(*words, stdout=target, codes=(0, 128))
        if result.return_code:
            return None
        entries = {}
        for line in names_in(target):
            head, _, path = line.partition("\t")
            mode, _, content = head.split(" ")
            entries[path] = TreeEntry(mode, content)
        return entries

    async def ignored_by(self, tree: str, paths: Sequence[str]) -> set[str]:
        how = ("check-ignore", "-z", "--stdin", "--no-index")
        target = self.folder / "listed"
        if tree == self._listed:
            # its ignore files are still on disk
            asked = self.input(f"{path}\0" for path in paths)
            result = await self.git(*how, stdin=asked, stdout=target, codes=(0, 1, 128))
            # 128 for a path behind a link
            if result.return_code != 128:
                return set(names_in(target))
        rules = self.folder / "rules" / "files"
        await in_thread(
            partial(_copy_ignore_files, self.root, self.prefix, rules), name="rules"
        )
        index = {"GIT_INDEX_FILE": str(self.folder / "rules" / "index")}
        git = replace(
            self.git,
            folder=rules,
            env={**self.git.env, **index, "GIT_WORK_TREE": str(rules)},
        )
        await git("read-tree", tree)
        parents = {parent for path in paths for parent in Path(path).parents}
        listed = self.input(
            f"{(parent / '.gitignore').as_posix()}\0" for parent in parents
        )
        into = f"--prefix={rules}/{self.prefix}"
        words = ("checkout-index", "--quiet", "--force", "-z", "--stdin", into)
        await git(*words, stdin=listed, codes=(0, 1))
        asked = self.input(f"{self.prefix}{path}\0" for path in paths)
        await git(*how, stdin=asked, stdout=target, codes=(0, 1))
        return {name.removeprefix(self.prefix) for name in names_in(target)}

    def input(self, parts: Iterable[str], *, name: str = "input") -> Path:
        path = self.folder / name
        try:
            path.write_bytes(os.fsencode("".join(parts)))
        except OSError as error:
            raise BadInput(
                f"{path} could not be written: {error.strerror or error}",
                hint=HINT,
                refusal=Refusal.DISK,
            ) from error
        return path

    async def _add(self) -> set[str]:
        words = ("add", "--ignore-errors", "--all", "--", *self._everything())
        result = await self.git(*words, codes=(0, 1, 128))
        if not (result.return_code or result.stderr):
            self.hollow = set()
            return set()
        errors = _read_errors(result.stderr)
        self.hollow = {name.removeprefix(self.prefix) for name in errors.hollow}
        return {name.removeprefix(self.prefix) for name in errors.unseen}

    async def _respell(self) -> set[str]:
        """Rename the index's files to their spelling on disk: on a disk that ignores
        case or normal form, git keeps a renamed file's old name. Returns the unreadable
        files.
        """
        listed = self.folder / "listed"
        await self.git("ls-files", "-z", stdout=listed)
        find = partial(find_misspelled, self.root, names_in(listed))
        misspelled = await in_thread(find, name="names")
        if not misspelled:
            return set()
        asked = self.input(f"{path}\0" for path in misspelled)
        await self.git("update-index", "--force-remove", "-z", "--stdin", stdin=asked)
        return await self._add()

    def _everything(self) -> list[str]:
        """Return the pathspecs of the whole project, relative to its folder."""
        # git follows no links
        links = {
            pattern for pattern in self.leave_out if (self.root / pattern).is_symlink()
        }
        below = [f"{pattern}/**" for pattern in self.leave_out if pattern not in links]
        out = [f":(exclude,glob){pattern}" for pattern in (*self.leave_out, *below)]
        for repository_folder in (self.folder, self.store.folder):
            if repository_folder.is_relative_to(self.root):
                path = repository_folder.relative_to(self.root).as_posix()
                out.append(f":(exclude,literal){path}")
        out += [f":(exclude,literal){folder}" for folder in sorted(self.refused)]
        return [".", *out]

    async def _write_tree(self) -> str:
        prefix = [f"--prefix={self.prefix}"] if self.prefix else []
        result = await self.git("write-tree", *prefix, codes=(0, 128))
        if result.return_code == 0:
            return result.stdout.strip()
        if f"prefix {self.prefix} not found" not in result.stderr:
            raise GitUnusable(
                "Cannot create a checkpoint:"
                f" {sanitize_for_display(result.stderr.strip())}",
                hint=HINT,
            )
        # there are no files
        words = ("hash-object", "-w", "-t", "tree", "--stdin")
        return (await self.git(*words, stdin=self.input(()))).stdout.strip()

    async def _list(self, tree: str) -> None:
        if tree == self._listed:
            return
        listed = self.folder / "listed"
        await self.git("ls-files", "-z", "--stage", stdout=listed)
        files = {}
        for line in names_in(listed):
            head, _, path = line.partition("\t")
            files[path] = head[:6]
        self._files, self._listed = files, tree

    def _missing(self, paths: Iterable[str]) -> list[str]:
        """Return the files that the last tree lacks and that can be read, neither
        behind a link nor in a nested repository.
        """
        missing = [path for path in sorted(paths) if path not in self._files]
        return [path for path in missing if _is_own_file(self.root, path)]

    def _note(self, tree: str, unseen: set[str], modes: Mapping[str, int]) -> Snapshot:
        ignored = {
            path
            for path in self._asked
            if path not in self._files and not self.is_left_out(path)
        }
        saved = {}
        for path in self._missing(ignored):
            place = self.root / path
            status = place.lstat()
            if status.st_size > LARGEST_SAVED:
                self.too_large.add(path)
                unseen.add(path)
            else:
                saved[path] = self._save(place, status.st_mode)
        unseen |= self.refused
        self.unseen |= unseen - self.too_large
        return Snapshot(tree, modes, frozenset(unseen), frozenset(ignored), saved)

    def _save(self, place: Path, mode: int) -> TreeEntry:
        if stat.S_ISLNK(mode):
            return TreeEntry(LINK, self.store.put(os.fsencode(place.readlink())))
        permissions = stat.S_IMODE(mode)
        return TreeEntry(
            EXECUTABLE if mode & stat.S_IXUSR else PLAIN,
            self.store.put(place),
            None if permissions in USUAL_PERMISSIONS else permissions,
        )

    def _modes(self, files: Mapping[str, str]) -> dict[str, int]:
        modes, root, lstat = {}, f"{self.root}/", os.lstat
        for path, kind in files.items():
            if kind in (LINK, REPOSITORY):
                continue
            try:
                mode = lstat(root + path).st_mode
            except OSError:  # it was removed since
                continue
            if mode not in _NEEDS_NO_NOTE and stat.S_ISREG(mode):
                modes[path] = stat.S_IMODE(mode)
        return modes

    def is_left_out(self, path: str, *, is_folder: bool = False) -> bool:
        rules = IgnoreRules("\n".join(f"/{one}" for one in self.leave_out), 0)
        place = PurePosixPath(path)
        if rules.decide(path, place.name, is_folder=is_folder):
            return True
        return any(
            rules.decide(str(parent), parent.name, is_folder=True)
            for parent in place.parents
        )

    def _forget_index(self) -> None:
        self._listed = ""
        try:
            for path in (self.index, Path(f"{self.index}.lock")):
                path.unlink(missing_ok=True)
        except OSError as error:
            raise BadInput(
                f"{self.index} could not be removed: {error.strerror or error}",
                hint=HINT,
                refusal=Refusal.DISK,
            ) from error

    async def remove_locks(self, prefix: str) -> None:
        """Remove locks of a killed git under `prefix`, where no one else writes. Raises
        `BadInput`.
        """

        def remove_all() -> None:
            folder = Path(self.references.env["GIT_DIR"]) / self.namespace / prefix
            for lock in folder.rglob("*.lock"):
                remove(lock)

        await in_thread(remove_all, name="locks")

    async def _refer(self, reference: str, target: str) -> None:
        try:
            await self.references("update-ref", reference, target)
        except GitUnusable as error:
            lock = Path(self.references.env["GIT_DIR"]) / f"{reference}.lock"
            if not lock.exists():
                raise GitUnusable(error.message, hint=HINT) from error
            remove(lock)  # of a git that was stopped
            await self.references("update-ref", reference, target)


def names_in(listed: Path) -> Iterator[str]:
    return (os.fsdecode(name) for name in listed.read_bytes().split(b"\0") if name)


def _prepare(folder: Path, repository: Repository | None) -> Path:
    remove_leftovers(folder / "info")
    contents = {
        "attributes": _ATTRIBUTES,
        "exclude": repository.exclude if repository else b"",
    }
    for name, content in contents.items():
        path = folder / "info" / name
        if read_bytes(path) != content:
            write_atomic(path, content)
    return _fresh_index(folder)


def _fresh_index(folder: Path) -> Path:
    """Return the path of a new index for this process: a killed process's git may still
    use the last one.

    The last index is moved, not copied. Git compares its time with the files' to detect
    changes in the moment it was written.
    """
    fresh = folder / f"index-{secrets.token_hex(4)}"
    try:
        entries = sorted(
            folder.glob("index-*"), key=lambda path: path.lstat().st_mtime_ns
        )
        complete = [path for path in entries if path.suffix != ".lock"]
        if complete:
            complete[-1].replace(fresh)
        for path in entries:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise BadInput(
            f"{fresh} could not be written: {error.strerror or error}",
            hint=HINT,
            refusal=Refusal.DISK,
        ) from error
    return fresh


def _copy_ignore_files(root: Path, prefix: str, target: Path) -> None:
    """Start a folder of ignore files with those of the folders around the project."""
    try:
        shutil.rmtree(target.parent, ignore_errors=True)
        (target / prefix).mkdir(parents=True)
        for number, place in enumerate(
            (target / prefix).relative_to(target).parents if prefix else ()
        ):
            content = read_bytes(root.parents[number] / ".gitignore")
            if content is not None:
                (target / place / ".gitignore").write_bytes(content)
    except OSError as error:
        raise BadInput(
            f"{target} could not be written: {error.strerror or error}",
            hint=HINT,
            refusal=Refusal.DISK,
        ) from error


class _Errors(NamedTuple):
    hollow: set[str]
    unseen: set[str]


def _read_errors(stderr: str) -> _Errors:
    """Parse git's messages about skipped files. Raises `GitUnusable` for any other
    error, such as a full disk, which would leave a hole in the snapshot.
    """
    hollow, unseen = set[str](), set[str]()
    for match in _LEFT_OUT.finditer(stderr):
        if match["hollow"]:
            hollow.add(match["hollow"])
        unseen.update(name for name in match.groups() if name)
    rest = _LEFT_OUT.sub("", stderr).strip()
    if rest:
        raise GitUnusable(
            f"Cannot create a checkpoint: {sanitize_for_display(rest.splitlines()[0])}",
            hint=HINT,
        )
    return _Errors(hollow, unseen)


def _is_own_file(root: Path, path: str) -> bool:
    place = root / path
    if ".." in place.parts or not place.is_relative_to(root):
        return False
    if ".git" in path.lower().split("/"):
        return False
    inner = [
        parent
        for parent in place.parents
        if parent != root and parent.is_relative_to(root)
    ]
    if any(parent.is_symlink() or os.path.lexists(parent / ".git") for parent in inner):
        return False
    try:
        mode = place.lstat().st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISLNK(mode) or (stat.S_ISREG(mode) and os.access(place, os.R_OK))
