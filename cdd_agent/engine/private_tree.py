"""A private tree: a temporary copy of a project's current files, for checks and trial
changes.

Private trees are in `.cdd/runs/.private`. Their processes hold locks, so the next start
removes only trees of killed processes. Nothing in them reaches the project: the copy's
repository only reads the project's objects, and only installed folders are shared, as
links.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from filelock import FileLock, Timeout
from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.errors import BadInput
from cdd_agent.files.atomic import remove, remove_folder
from cdd_agent.files.copying import Copy
from cdd_agent.files.paths import path_inside
from cdd_agent.files.spelling import find_misspelled, ignores_spelling
from cdd_agent.git.private_repository import make_private_repository
from cdd_agent.git.project_files import ProjectFiles, list_project_files
from cdd_agent.git.repository import repository_of
from cdd_agent.pattern import Pattern
from cdd_agent.process.ending import end_noted
from cdd_agent.process.policy import CommandRunner
from cdd_agent.project.installed_folders import (
    INSTALLED,
    find_installed,
    is_installed,
    link_installed,
)
from cdd_agent.project.own_packages import own_packages
from cdd_agent.project.tree_needs import (
    find_missing,
    load_tree_needs,
    python_bases,
)
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.threads import in_thread, stop_if_left, to_its_end

_FOLDER = ".cdd/runs/.private"
_LOCK = "lock"
_NO_VARIABLES: Mapping[str, str] = MappingProxyType({})
_PATIENCE = 10.0
"""Seconds to wait for the copying thread after Ctrl+C."""
_LARGEST_IGNORED = 1 << 20
"""Largest ignored file to copy, in bytes."""
_OURS = Pattern(r"(?:^|/)\.cdd/(?:runs|cache|conversations)/")
"""This program's files, which are not copied."""


class PrivateTree(Struct, frozen=True):
    root: Path
    top: Path
    """The copy's top folder: the repository's, if there is one."""
    folder: Path
    """For reports of checks (the `folder` of `run_check`)."""
    env: Mapping[str, str]
    """Variables that make Python import the copy's packages."""
    missing: tuple[str, ...] = ()
    """Paths that the copy lacks: unreadable files, ignored folders, and large ignored
    files. Folders end with a slash.
    """

    def commands(self, runner: CommandRunner) -> CommandRunner:
        """Return a runner in the copy, with the settings of `runner`."""
        env = {**runner.env, **self.env}
        return replace(runner, root=self.root, env=env, noted_in=self.folder)


@asynccontextmanager
async def private_tree(
    root: Path,
    asked: Iterable[str] = (),
    env: Mapping[str, str] = _NO_VARIABLES,
) -> AsyncIterator[PrivateTree]:
    """Copy the project at `root` (resolved), and remove the copy at the end.

    Copied are tracked and untracked files of the repository around the project and
    those below, ignored files up to 1 MiB such as `.env`, and all `asked` files.
    Ignored folders with installed packages become links. `env` is for all commands.
    Raises `BadInput` or `GitUnusable`.
    """
    begun: list[_Place] = []
    try:
        await to_its_end(lambda: begun.append(_begin(root)), name="begin")
        yield await _fill(root, begun[0], asked, env)
    finally:
        for place in begun:
            await to_its_end(place.remove, name="removed")


def remove_abandoned_trees(root: Path) -> None:
    """Remove trees of killed processes, and end their commands. Raises `BadInput`."""
    if (root / _FOLDER).exists():
        with _exclusive(root / _FOLDER):
            _remove_abandoned(root / _FOLDER)


class _Place(Struct, frozen=True):
    """A private tree's folder, and the lock held while it is used."""

    folder: Path
    lock: FileLock

    def remove(self) -> None:
        try:
            remove_folder(self.folder)
        finally:
            self.lock.release()
            remove(Path(self.lock.lock_file))


def _begin(root: Path) -> _Place:
    """Make an empty place, and remove those of killed processes."""
    parent = root / _FOLDER
    try:
        parent.mkdir(parents=True, exist_ok=True)
        with _exclusive(parent):
            _remove_abandoned(parent)
            folder = parent / secrets.token_hex(4)
            # released by another thread
            lock = FileLock(f"{folder}.lock", thread_local=False)
            lock.acquire()
            (folder / "tree").mkdir(parents=True)
    except (OSError, NotImplementedError) as error:
        why = getattr(error, "strerror", None) or error
        raise BadInput(
            f"Could not create a separate tree in {parent}: {why}",
            hint="Check that the folder is writable and that the disk has space.",
            refusal=Refusal.DISK,
        ) from error
    return _Place(folder, lock)


@contextmanager
def _exclusive(parent: Path) -> Iterator[None]:
    with FileLock(parent / _LOCK):
        yield


def _remove_abandoned(parent: Path) -> None:
    for folder in parent.iterdir():
        if not folder.is_dir():
            continue
        lock = FileLock(f"{folder}.lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            continue
        try:
            end_noted(folder)
        finally:
            _Place(folder, lock).remove()


async def _fill(
    root: Path, place: _Place, asked: Iterable[str], env: Mapping[str, str]
) -> PrivateTree:
    repository = await repository_of(root)
    top = repository.top if repository else root
    prefix = root.relative_to(top)
    tree, folder = place.folder / "tree", place.folder
    paths = [(prefix / path).as_posix() for path in asked if _is_inside(path)]
    listed = await list_project_files(top, folder, repository, paths)
    copy = partial(_copy, top, tree, listed, paths)
    unreadable = await in_thread(copy, name="copy", patience=_PATIENCE)
    if repository is not None:
        await make_private_repository(tree, repository, folder)
    (tree / prefix).mkdir(parents=True, exist_ok=True)
    installed = await asyncio.to_thread(link_installed, top, tree, listed)
    missing = await asyncio.to_thread(find_missing, tree, listed)
    bases = python_bases(installed, prefix.as_posix())
    try:
        # a run's tree is inside the user's, from where packages may be installed
        others = Path(load_tree_needs(root).top or top)
        packages = await own_packages(tree / prefix, others, env, bases)
    except BadInput as error:
        raise BadInput(
            error.message,
            hint="It is installed in a way that always takes precedence. Uninstall it.",
            refusal=Refusal.CHECK_UNUSABLE,
        ) from error
    return PrivateTree(
        tree / prefix,
        tree,
        folder,
        packages.env(tree / prefix, env),
        tuple(sorted((*missing, *unreadable))),
    )


def _copy(
    top: Path, tree: Path, listed: ProjectFiles, asked: Iterable[str]
) -> list[str]:
    """Copy the files. Returns unreadable ones."""
    installed = frozenset(find_installed(top, listed))
    chosen = dict.fromkeys((*listed.files, *asked))
    for path in listed.ignored:
        if not path.endswith("/") and _size(top / path) <= _LARGEST_IGNORED:
            chosen[path] = None
    copy = Copy(top, tree)
    try:
        if ignores_spelling(top):
            # git may have an old spelling
            for path in find_misspelled(top, tuple(chosen)):
                del chosen[path]
                chosen[path_inside(top, path) or path] = None
        copy.add(
            (
                path
                for path in chosen
                if not _OURS.search(path) and not is_installed(path, installed)
            ),
            stop_if_left,
        )
    except OSError as error:
        raise BadInput(
            f"Could not create a separate tree in {tree}: {error.strerror or error}",
            hint="Check that the folder is writable and that the disk has space.",
            refusal=Refusal.DISK,
        ) from error
    return copy.unreadable


def _is_inside(path: str) -> bool:
    """True for project files outside installed packages: a state may come from another
    computer.
    """
    parts = PurePosixPath(path).parts
    return not (path.startswith("/") or {"..", ".git", *INSTALLED}.intersection(parts))


def _size(place: Path) -> int:
    try:
        return place.lstat().st_size
    except OSError:
        return 0
