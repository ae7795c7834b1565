"""The files that tests need in another tree of a project and that git lacks."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.files.json_file import JsonFile
from cdd_agent.git.project_files import ProjectFiles, list_project_files
from cdd_agent.git.repository import Repository, repository_of
from cdd_agent.project.installed_folders import (
    ENVIRONMENTS,
    UNMISTAKABLE,
    find_installed,
    link_installed,
)
from cdd_agent.threads import in_thread

_NEEDS = ".cdd/runs/tree-needs.json"
_CACHES = frozenset(
    {
        ".DS_Store",
        ".coverage",
        ".hypothesis",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        "__pycache__",
    }
)
"""Ignored files and folders that no test needs."""


class TreeNeeds(JsonFile, frozen=True):
    """Files outside git that another tree of a project has or lacks."""

    top: str = ""
    """The top of the repository, or the folder, from which the packages are."""
    linked: tuple[str, ...] = ()
    """Folders with installed packages that are or contain links, relative to the
    project.
    """
    missing: tuple[str, ...] = ()
    """Ignored files and folders, and submodules, that the tree lacks, relative to
    `top`.
    """

    @property
    def python_bases(self) -> tuple[str, ...]:
        """See the function `python_bases`."""
        return python_bases(self.linked)


def python_bases(installed: Iterable[str], project: str = ".") -> tuple[str, ...]:
    """Return the project's folder and its subfolders with a Python environment,
    relative to the project. `installed` are folders with installed packages, relative
    to the same folder as `project`.
    """
    bases = [""]
    for path in map(PurePosixPath, installed):
        if path.name in ENVIRONMENTS and path.is_relative_to(project):
            base = str(path.parent.relative_to(project))
            bases.append("" if base == "." else base)
    return tuple(dict.fromkeys(bases))


def load_tree_needs(root: Path) -> TreeNeeds:
    """Return the needs of the tree with the project `root`; empty ones for the user's
    own tree. Raises `Damaged`.
    """
    return TreeNeeds.load(root / _NEEDS) or TreeNeeds()


def linked_folders(root: Path) -> tuple[str, ...]:
    """Return the folders with installed packages that are links, made by `Equipment` or
    the user, relative to `root`. Git's `node_modules/` ignores a folder but not a link.
    Raises `Damaged`.
    """
    links = [name for name in UNMISTAKABLE if (root / name).is_symlink()]
    return tuple(dict.fromkeys((*load_tree_needs(root).linked, *links)))


class Equipment(Struct, frozen=True):
    """The installed packages of a project, for other trees of it."""

    source: Path
    top: Path
    """The top folder of its repository."""
    listed: ProjectFiles
    """The files below the top folder."""
    is_project: bool = True
    """False for a folder that has installed packages in place of the project."""

    @classmethod
    async def find(cls, source: Path, repository: Repository | None = None) -> Self:
        """List a project's packages. `repository` is the project's, if the caller has
        it. Raises `GitUnusable`.
        """
        if repository is None:
            repository = await repository_of(source)
        top = repository.top if repository else source
        return cls(source, top, await _list(top, repository))

    @classmethod
    async def find_in_folder(cls, source: Path) -> Self:
        """List the packages of a folder that replaces the project. Repositories around
        it do not count. Raises `GitUnusable`.
        """
        return cls(source, source, await _list(source, None), is_project=False)

    @property
    def installed(self) -> tuple[str, ...]:
        return self._below(find_installed(self.top, self.listed))

    def _below(self, paths: Iterable[str]) -> tuple[str, ...]:
        prefix = self.source.relative_to(self.top)
        places = [PurePosixPath(path) for path in paths]
        inside = [place for place in places if place.is_relative_to(prefix)]
        return tuple(place.relative_to(prefix).as_posix() for place in inside)

    async def link_into(self, root: Path) -> TreeNeeds:
        """Link the folders into another tree, with the project at `root`. Returns and
        saves the tree's needs. Raises `BadInput`.
        """
        return await in_thread(partial(self._link_into, root), name="links")

    def _link_into(self, root: Path) -> TreeNeeds:
        depth = len(self.source.relative_to(self.top).parts)
        tree = root.parents[depth - 1] if depth else root
        known = load_tree_needs(root)
        linked = self._below(link_installed(self.top, tree, self.listed))
        links = [
            path
            for path in dict.fromkeys((*known.linked, *linked))
            if os.path.lexists(root / path)
        ]
        needs = TreeNeeds(str(self.top), tuple(links))
        if self.is_project:
            missing = tuple(find_missing(tree, self.listed))
            needs = replace(needs, missing=missing)
        if needs != known:
            needs.save(root / _NEEDS)
        return needs


async def _list(top: Path, repository: Repository | None) -> ProjectFiles:
    with tempfile.TemporaryDirectory(prefix="cdd-") as scratch:
        return await list_project_files(top, Path(scratch), repository)


def find_missing(tree: Path, listed: ProjectFiles) -> list[str]:
    """Return the ignored files and submodules of a project that a tree lacks."""
    missing: list[str] = []
    for path in listed.ignored:
        is_cache = path.endswith((".pyc", ".pyo")) or not _CACHES.isdisjoint(
            PurePosixPath(path).parts
        )
        is_part = missing and missing[-1].endswith("/") and path.startswith(missing[-1])
        is_ours = path.startswith(".cdd/")
        if not (is_cache or is_part or is_ours or os.path.lexists(tree / path)):
            missing.append(path)
    missing += [f"{path}/" for path in listed.submodules if _is_empty(tree / path)]
    return missing


def _is_empty(folder: Path) -> bool:
    return not folder.is_dir() or not any(folder.iterdir())


def add_files(top: Path, tree: Path, missing: Iterable[str]) -> None:
    """Copy files and link folders from `top` into another tree, as far as they exist.
    Anything that cannot be added stays missing.
    """
    for path in missing:
        source, place = top / path, tree / path
        with suppress(OSError):
            if source.is_file():
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, place)
            elif not _is_empty(source):
                if place.exists():
                    # the folder of a submodule that is not checked out
                    place.rmdir()
                place.parent.mkdir(parents=True, exist_ok=True)
                place.symlink_to(source, target_is_directory=True)
