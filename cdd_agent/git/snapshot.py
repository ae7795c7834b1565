"""The files of a project as git objects, made with an index and settings of their own.

In a git repository the objects go into that repository's own store, where most of them
are already, and the references under `refs/cdd/`, which no branch, tag, stash or
`git log` knows of. (Not under `refs/worktree/`: cleaning up in one worktree removes
what only the references of another one hold.) Elsewhere both are in a private
repository. HEAD, index, stash, hooks and settings of the user are neither read for it
nor touched; what `.gitignore` says counts. Bytes are taken as they are: no line ends,
filters or encodings are converted.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from functools import partial
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.errors import BadInput
from cdd_agent.files.atomic import read_bytes, remove, remove_leftovers, write_atomic
from cdd_agent.git.command import Git, GitUnusable
from cdd_agent.git.known_files import KnownFiles, Unusual
from cdd_agent.git.objects import FOLDER, HINT, GitObjects, TreeItem
from cdd_agent.git.repository import Repository, repository_of
from cdd_agent.sanitize import sanitize_for_display
from cdd_agent.threads import in_thread, to_its_end

_SINCE = "since"
# in git, this file wins over all others
_ATTRIBUTES = b"* -text -filter -ident -working-tree-encoding !diff\n"
CONFIG = (
    "advice.addEmbeddedRepo=false",
    "core.bare=false",
    "core.checkStat=default",
    # what a checkpoint is made of survives a cut of power
    "core.fsync=committed,loose-object,reference",
    "core.fsyncMethod=batch",
    "core.logAllRefUpdates=false",
    # elsewhere, a file may be called `git~1`
    f"core.protectNTFS={'true' if os.name == 'nt' else 'false'}",
    "core.sparseCheckout=false",
    "core.splitIndex=false",
    "core.trustCtime=true",
    # or else `git status` is run in repositories within, by their own settings
    "diff.ignoreSubmodules=all",
    "gc.auto=0",
)
# What git says of something that is no part of a snapshot: it may not be read, has just
# gone, is a pipe or a socket, has a name that git keeps for itself, or is a repository
# within the project that has no commit yet. And what was to be left out is also
# ignored.
_LEFT_OUT = re.compile(
    r"""
    ^error:\ '(?P<folder>.*?)/'\ does\ not\ have\ a\ commit\ checked\ out$
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


class Notes(Struct, frozen=True):
    """Things that git does not know of the files in a snapshot."""

    modes: Mapping[str, int]
    """Unusual permissions, by path."""
    unseen: frozenset[str]
    """Files that were there and could not be read; of a folder, all that is in it."""
    also: frozenset[str]
    """The ignored files that were asked for, whether they were there or not."""


class Snapshots(Struct):
    """Makes snapshots of a project, and keeps references to them under names.

    A snapshot is a git tree with the entry `files`, the tree of the project's files,
    and where needed the lists of its `Notes` as `modes`, `unseen` and `also`.
    """

    root: Path
    folder: Path
    """Private to one process at a time: the index, what git is told and says, and
    outside a repository everything.
    """
    index: Path
    git: Git
    """With the private index and settings."""
    references: Git
    namespace: str
    prefix: str
    """Of the project in the repository, with a slash at its end; empty at its top."""
    leave_out: tuple[str, ...]
    objects: GitObjects
    known: KnownFiles
    unseen: set[str] = field(default_factory=set)
    """Files and folders that could not be read, and so are in no snapshot."""
    _also: set[str] = field(default_factory=set)
    """Ignored files that are part of the project: tracked all the same, or asked for.
    """
    _notes: dict[str, Notes] = field(default_factory=dict)
    """Of snapshots that are known already."""
    _since: set[str] = field(default_factory=set)
    """Files that came since the index was written, by an earlier process."""
    _rules: dict[str, int] = field(default_factory=dict)
    """How often what is ignored had changed when snapshots were made."""
    _trees: dict[str, str] = field(default_factory=dict)
    """The trees of files of snapshots that are known already."""

    @classmethod
    async def open(
        cls,
        root: Path,
        folder: Path,
        leave_out: Sequence[str] = (),
        repository: Repository | None = None,
    ) -> Snapshots:
        """Prepare snapshots of `root`, with `folder` for what they need: no other
        process may use it meanwhile.

        `root` is a resolved path. `leave_out` are patterns of files that are no part of
        the snapshots, from `root`, as in git's `:(glob)`; `folder` never is.
        `repository` is that of the project, for whoever has looked already. Raises
        `GitUnusable`, or `BadInput` when the folder cannot be written.
        """
        # a project that became a repository meanwhile
        began_without = (folder / "refs" / "cdd").exists()
        repository = None if began_without else repository or await repository_of(root)
        plain = Git(root)
        form = [f"--object-format={repository.object_format}"] if repository else []
        await plain("init", "--quiet", "--bare", "--template=", *form, str(folder))
        index = await in_thread(partial(_prepare, folder, repository), name="index")
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
        whose = f"{repository.worktree if repository else ''}:{prefix}"
        namespace = f"refs/cdd/{hashlib.sha256(os.fsencode(whose)).hexdigest()[:8]}"
        keeper = {
            "GIT_DIR": str(repository.shared if repository else folder),
            "GIT_WORK_TREE": str(top),
        }
        references = Git(top, keeper, git.config)
        objects = GitObjects(git, references, folder)
        own = (
            re.sub(r"([*?\[\\])", r"\\\1", folder.relative_to(root).as_posix())
            if folder.is_relative_to(root)
            else ""
        )
        known = KnownFiles(
            root, prefix, filter(None, (*leave_out, own)), objects, folder / "clock"
        )
        snapshots = cls(
            root,
            folder,
            index,
            git,
            references,
            namespace,
            prefix,
            tuple(leave_out),
            objects,
            known,
        )
        snapshots._since.update(
            os.fsdecode(name)
            for name in (read_bytes(folder / _SINCE) or b"").split(b"\0")[:-1]
        )
        if repository:
            await repository.tracked_though_ignored(
                root, snapshots._everything(), folder / "listed"
            )
            snapshots._also = set(names_in(folder / "listed"))
        return snapshots

    def beside(self, top: Path, folder: Path, leave_out: Iterable[str]) -> Snapshots:
        """Snapshots of another working tree of the same repository, with names among
        these. `top` is that of the tree, `folder` is there, and theirs alone;
        `leave_out` are more patterns of what is no part of them.
        """
        root, index = top / self.prefix, folder / "index"
        env = {**self.git.env, "GIT_WORK_TREE": str(top), "GIT_INDEX_FILE": str(index)}
        git, leave_out = (
            replace(self.git, folder=root, env=env),
            (*self.leave_out, *leave_out),
        )
        objects = GitObjects(git, self.references, folder)
        return replace(
            self,
            root=root,
            folder=folder,
            index=index,
            git=git,
            leave_out=leave_out,
            objects=objects,
            known=KnownFiles(root, self.prefix, leave_out, objects, folder / "clock"),
            unseen=set(),
            _also=set(self._also),
            _notes=dict(self._notes),
            _since=set(),
            _rules={},
            _trees=dict(self._trees),
        )

    async def take(self, name: str, also: Iterable[str] = ()) -> str:
        """Make a snapshot and keep it under a name; the object's id. `also` are files
        to include though ignored.

        Those that are ignored stay part of later snapshots, also if they come later.
        """
        asked, reference = frozenset(also), f"{self.namespace}/{name}"

        def look() -> tuple[str, bool]:
            snapshot = self._store(self._look(asked))
            try:
                self.objects.refer(reference, snapshot)
            except GitUnusable:
                return snapshot, False
            return snapshot, True

        try:
            snapshot, is_kept = await to_its_end(look, name="look")
        except (Unusual, GitUnusable):
            self._also |= asked
            snapshot, is_kept = await self._look_by_git(), False
        if not is_kept:
            await self._refer(reference, snapshot)
        return snapshot

    async def find(self, name: str) -> str | None:
        """The object of the snapshot that is kept under a name."""
        found = await self.references(
            "rev-parse", "--verify", "--quiet", f"{self.namespace}/{name}", codes=(0, 1)
        )
        return found.stdout.strip() or None

    @property
    def is_private(self) -> bool:
        """They are in a repository of their own, and not in the user's."""
        return self.references.env["GIT_DIR"] == str(self.folder)

    async def check_out(self, snapshot: str) -> None:
        """Write all files of a snapshot into a tree that has none of them, and go on
        from there: what is not changed is not read again.
        """
        await self.git(
            "read-tree",
            *([f"--prefix={self.prefix}"] if self.prefix else []),
            f"{snapshot}:files",
        )
        await self.git("checkout-index", "--all", "--force", "--index", "--quiet")
        await in_thread(self._begin, name="begin")
        tree, listed = await self.files(snapshot) or "", self.folder / "listed"
        await self.git("ls-tree", "--full-tree", "-r", "-t", "-z", tree, stdout=listed)
        await in_thread(
            lambda: self.known.take_over(tree, listed.read_bytes()), name="known"
        )
        notes = await self.notes(snapshot)
        self._also |= notes.also
        for path, mode in notes.modes.items():
            if not (place := self.root / path).is_symlink():
                place.chmod(mode)

    async def remove_references(self, under: str) -> None:
        """Forget all snapshots whose names begin so."""
        listed = self.folder / "listed"
        names = "--format=delete %(refname)", f"{self.namespace}/{under}/"
        await self.references("for-each-ref", *names, stdout=listed)
        if listed.stat().st_size:
            await self.references("update-ref", "--stdin", stdin=listed)

    async def move_references(
        self, under: str, target: Snapshots, new: str = ""
    ) -> None:
        """Give what is kept under names that begin so to another tree of the same
        repository, perhaps under a new beginning.
        """
        names, listed = f"{self.namespace}/{under}/", self.folder / "listed"
        await self.references(
            "for-each-ref", "--format=%(objectname) %(refname)", names, stdout=listed
        )
        lines = (
            line.split(" ", 1)
            for line in listed.read_text(encoding="utf-8").splitlines()
        )
        found = {name.removeprefix(names): target_ for target_, name in lines}
        for what in (
            [
                f"update {target.namespace}/{new or under}/{name} {tree}\n"
                for name, tree in found.items()
            ],
            [f"delete {names}{name}\n" for name in found],
        ):
            await self.references("update-ref", "--stdin", stdin=self.input(what))

    async def notes(self, snapshot: str) -> Notes:
        """All that a snapshot has beside its files."""
        if snapshot not in self._notes:
            kinds = ("modes", "unseen", "also")
            found = await in_thread(
                lambda: [self.objects.read(f"{snapshot}:{kind}") for kind in kinds],
                name="notes",
            )
            self._notes[snapshot] = _as_notes(
                *(map(os.fsdecode, (text or b"").split(b"\0")[:-1]) for text in found)
            )
        return self._notes[snapshot]

    async def files(self, snapshot: str) -> str | None:
        """The tree of a snapshot's files; None where it is gone."""
        if snapshot not in self._trees:
            found = await in_thread(
                partial(self.objects.id_of, f"{snapshot}:files"), name="files"
            )
            if found is None:
                return None
            self._trees[snapshot] = found
        return self._trees[snapshot]

    async def ignored_by(self, snapshot: str, paths: Sequence[str]) -> set[str]:
        """Which of these paths the ignore files are about that were there at the time
        of a snapshot.
        """
        # they are there still, unless they have changed just now
        if self._rules.get(snapshot) == self.known.rules:
            with suppress(Unusual, GitUnusable):
                return await in_thread(
                    partial(self.known.ignored, paths), name="ignored"
                )
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
        await git("read-tree", f"{snapshot}:files")
        parents = {parent for path in paths for parent in Path(path).parents}
        listed = self.input(
            f"{(parent / '.gitignore').as_posix()}\0" for parent in parents
        )
        into = f"--prefix={rules}/{self.prefix}"
        await git(
            "checkout-index",
            "--quiet",
            "--force",
            "-z",
            "--stdin",
            into,
            stdin=listed,
            codes=(0, 1),
        )
        asked = self.input(f"{self.prefix}{path}\0" for path in paths)
        target = self.folder / "listed"
        await git(
            "check-ignore",
            "-z",
            "--stdin",
            "--no-index",
            stdin=asked,
            stdout=target,
            codes=(0, 1),
        )
        return {name.removeprefix(self.prefix) for name in names_in(target)}

    def input(self, parts: Iterable[str], *, name: str = "input") -> Path:
        """A file for git to read. Raises `BadInput`."""
        path = self.folder / name
        try:
            path.write_bytes(os.fsencode("".join(parts)))
        except OSError as error:
            raise BadInput(
                f"{path} could not be written: {error.strerror or error}", hint=HINT
            ) from error
        return path

    def _look(self, asked: Set[str]) -> str:
        """The tree of all files as they are now. Raises `Unusual` where only git can
        tell.
        """
        self._begin()
        added = set(self.known.added)
        tree = self.known.look()
        self._also |= self.known.ignored(
            [path for path in asked - self._also if not self.known.holds(path)]
        )
        if any(
            not self.known.holds(path) and _is_own_file(self.root, path)
            for path in self._also
        ):
            raise Unusual  # an ignored file that has come since
        if self.known.added != added:
            self.input((f"{path}\0" for path in sorted(self.known.added)), name=_SINCE)
        return tree

    async def _look_by_git(self) -> str:
        await in_thread(self._begin, name="begin")
        self.known.forget()
        try:
            tree, unseen = await self._tree()
        except GitUnusable:
            # the index may be torn or locked, or know objects that somebody has removed
            # since
            await in_thread(self._forget_index, name="index")
            tree, unseen = await self._tree()
        listed = self.folder / "listed"
        await self.git("ls-tree", "--full-tree", "-r", "-t", "-z", tree, stdout=listed)

        def take_over() -> str:
            self.known.take_over(tree, listed.read_bytes())
            self._since.clear()
            (self.folder / _SINCE).unlink(missing_ok=True)
            if unseen:
                self.known.forget()
            return self._store(tree, unseen)

        return await to_its_end(take_over, name="store")

    def _store(self, tree: str, unseen: Set[str] = frozenset()) -> str:
        """Make a snapshot of a tree of all files; its id."""
        modes, made = self.known.modes, [TreeItem(FOLDER, tree, b"files")]
        for kind, lines in {
            "also": self._also,
            "modes": modes,
            "unseen": unseen,
        }.items():
            if lines:
                content = b"".join(os.fsencode(line) + b"\0" for line in sorted(lines))
                made.append(
                    TreeItem("100644", self.objects.blob(content), kind.encode())
                )
        snapshot = self.objects.tree(made)
        self._notes[snapshot], self._trees[snapshot] = (
            _as_notes(modes, unseen, self._also),
            tree,
        )
        self._rules[snapshot] = self.known.rules
        self.unseen |= unseen
        return snapshot

    def _begin(self) -> None:
        try:
            self.known.begin()
        except OSError as error:
            raise BadInput(
                f"{self.folder} could not be written: {error.strerror or error}",
                hint=HINT,
            ) from error

    async def _tree(self) -> tuple[str, set[str]]:
        result = await self.git(
            "add",
            "--ignore-errors",
            "--all",
            "--",
            *self._everything(),
            codes=(0, 1, 128),
        )
        unseen = (
            _unseen(result.stderr) if result.return_code or result.stderr else set()
        )
        unseen = {name.removeprefix(self.prefix) for name in unseen}
        if wanted := self._also | self._since | self.known.added:
            await self.git("ls-files", "-z", stdout=self.folder / "listed")
            if missing := await in_thread(
                partial(self._not_added_yet, wanted), name="ignored"
            ):
                asked = self.input(f"{path}\0" for path in missing)
                await self.git(
                    "update-index", "--add", "--replace", "-z", "--stdin", stdin=asked
                )
        return await self._write_tree(), unseen

    def _everything(self) -> list[str]:
        """The pathspecs of all that belongs to the project, from its folder."""
        # git looks behind none
        links = {
            pattern for pattern in self.leave_out if (self.root / pattern).is_symlink()
        }
        below = [f"{pattern}/**" for pattern in self.leave_out if pattern not in links]
        out = [f":(exclude,glob){pattern}" for pattern in (*self.leave_out, *below)]
        if self.folder.is_relative_to(self.root):
            out.append(
                f":(exclude,literal){self.folder.relative_to(self.root).as_posix()}"
            )
        return [".", *out]

    def _not_added_yet(self, wanted: Set[str]) -> list[str]:
        """The ignored files that are there and can be read, neither behind a link nor
        in a repository within.
        """
        listed = b"\0" + (self.folder / "listed").read_bytes()
        missing = [
            path
            for path in sorted(wanted)
            if b"\0%s\0" % os.fsencode(path) not in listed
        ]
        return [path for path in missing if _is_own_file(self.root, path)]

    async def _write_tree(self) -> str:
        prefix = [f"--prefix={self.prefix}"] if self.prefix else []
        result = await self.git("write-tree", *prefix, codes=(0, 128))
        if result.return_code == 0:
            return result.stdout.strip()
        if f"prefix {self.prefix} not found" not in result.stderr:
            raise GitUnusable(
                "A checkpoint could not be made:"
                f" {sanitize_for_display(result.stderr.strip())}",
                hint=HINT,
            )
        # there are no files
        return await in_thread(partial(self.objects.tree, ()), name="tree")

    def _forget_index(self) -> None:
        try:
            for path in (self.index, Path(f"{self.index}.lock")):
                path.unlink(missing_ok=True)
        except OSError as error:
            raise BadInput(
                f"{self.index} could not be removed: {error.strerror or error}",
                hint=HINT,
            ) from error

    async def remove_locks(self, prefix: str) -> None:
        """Remove what a git that was killed has left beside the references under
        `prefix`, where nobody else writes. Raises `BadInput`.
        """

        def remove_all() -> None:
            for lock in (
                Path(self.references.env["GIT_DIR"]) / self.namespace / prefix
            ).rglob("*.lock"):
                remove(lock)

        await in_thread(remove_all, name="locks")

    async def _refer(self, reference: str, target: str) -> None:
        refer = partial(self.objects.refer, reference, target)
        try:
            await to_its_end(refer, name="refer")
        except GitUnusable:
            lock = Path(self.references.env["GIT_DIR"]) / f"{reference}.lock"
            if not lock.exists():
                raise
            remove(lock)  # of a git that was stopped
            await to_its_end(refer, name="refer")


def names_in(listed: Path) -> Iterator[str]:
    """The names that git listed, each ended by a NUL."""
    return (os.fsdecode(name) for name in listed.read_bytes().split(b"\0") if name)


def _prepare(folder: Path, repository: Repository | None) -> Path:
    """Write the private settings; the index to use."""
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
    """An index of this process alone: a killed process's git may still have the last
    one.

    It goes on from that one, moved and not copied: git compares its time with the
    files', to know what may have changed in the moment it was written.
    """
    fresh = folder / f"index-{secrets.token_hex(4)}"
    try:
        known = sorted(
            folder.glob("index-*"), key=lambda path: path.lstat().st_mtime_ns
        )
        complete = [path for path in known if path.suffix != ".lock"]
        if complete:
            complete[-1].replace(fresh)
        for path in known:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise BadInput(
            f"{fresh} could not be written: {error.strerror or error}", hint=HINT
        ) from error
    return fresh


def _copy_ignore_files(root: Path, prefix: str, target: Path) -> None:
    """Begin a folder of ignore files with those of the folders that a project is in."""
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
            f"{target} could not be written: {error.strerror or error}", hint=HINT
        ) from error


def _as_notes(
    modes: Iterable[str], unseen: Iterable[str], also: Iterable[str]
) -> Notes:
    """`modes` are lines of the form `600 path`."""
    entries = (line.split(" ", 1) for line in modes)
    return Notes(
        {path: int(mode, 8) for mode, path in entries},
        frozenset(unseen),
        frozenset(also),
    )


def _unseen(stderr: str) -> set[str]:
    """The files that git could not read. Any other error, such as a full disk, would
    leave a hole in the snapshot.
    """
    found = {
        name for match in _LEFT_OUT.finditer(stderr) for name in match.groups() if name
    }
    rest = _LEFT_OUT.sub("", stderr).strip()
    if rest:
        raise GitUnusable(
            "A checkpoint could not be made:"
            f" {sanitize_for_display(rest.splitlines()[0])}",
            hint=HINT,
        )
    return found


def _is_own_file(root: Path, path: str) -> bool:
    """Whether it is a file or link that can be read, neither behind a link nor in a
    repository within the project.
    """
    place = root / path
    if ".." in place.parts or not place.is_relative_to(root):
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
