"""Folders with installed packages, such as `node_modules`: find them in a project, and
link them into another tree of it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath

from msgspec import Struct

from cdd_agent.errors import BadInput
from cdd_agent.git.project_files import ProjectFiles
from cdd_agent.refusals.kinds import Refusal

ENVIRONMENTS = (".venv", "venv")
UNMISTAKABLE = (*ENVIRONMENTS, "node_modules")
"""Names that only folders with installed packages have."""
INSTALLED = (*UNMISTAKABLE, "vendor")
"""Names of folders with installed packages. A `vendor` may also be project code."""
_AUTOLOADER = ("autoload.php", "composer", "bin")
"""Parts of Composer that locate the project relative to themselves."""


def find_installed(top: Path, listed: ProjectFiles) -> list[str]:
    """Return the folders with installed packages, relative to `top`. They have no
    tracked files and are not nested. `vendor` counts only if git ignores it.
    """
    candidates = {path[:-1] for path in listed.ignored if path.endswith("/")}
    for path in listed.untracked:
        parts = PurePosixPath(path).parts
        for number, part in enumerate(parts, 1):
            is_link = part in INSTALLED and number == len(parts)
            if part in UNMISTAKABLE or is_link:
                candidates.add("/".join(parts[:number]))
    tracked = set()
    for path in listed.tracked:
        tracked.update(_installed_parents(path))
    folders: list[str] = []
    for path in sorted(candidates - tracked):
        is_inside = folders and path.startswith(f"{folders[-1]}/")
        is_one = PurePosixPath(path).name in INSTALLED and (top / path).is_dir()
        if is_one and not is_inside:
            folders.append(path)
    return folders


def is_installed(path: str, installed: Collection[str]) -> bool:
    """True for these folders with installed packages, and files in them."""
    return any(parent in installed for parent in _installed_parents(f"{path}/"))


def _installed_parents(path: str) -> list[str]:
    """Return the folders around a file whose names are in `INSTALLED`."""
    parts = path.split("/")
    return [
        "/".join(parts[:number])
        for number, part in enumerate(parts[:-1], 1)
        if part in INSTALLED
    ]


def link_installed(top: Path, tree: Path, listed: ProjectFiles) -> list[str]:
    """Link a project's folders with installed packages into another tree of it. Returns
    the linked folders; skips those that exist or have no place there. Raises
    `BadInput`.
    """
    linked = []
    for path in find_installed(top, listed):
        link = tree / path
        has_place = link.parent.is_dir() and link.parent.resolve() == link.parent
        if not has_place or os.path.lexists(link):
            continue
        try:
            _Installed(top, tree).link(top / path, link)
        except OSError as error:
            raise BadInput(
                f"{link} cannot be created: {error.strerror or error}",
                refusal=Refusal.DISK,
            ) from error
        linked.append(path)
    return linked


class _Installed(Struct, frozen=True):
    """Links a folder with installed packages into another tree.

    The folder may lead back to the project's own files: npm, pnpm and yarn link a
    workspace's packages, and Composer locates the project relative to its autoloader.
    Tests in the other tree must use the files there. Such a folder is therefore rebuilt
    with links to the installed packages.
    """

    top: Path
    tree: Path

    def link(self, source: Path, target: Path) -> None:
        if self._leads_back(source):
            self._make_again(source, target)
        else:
            target.symlink_to(source, target_is_directory=True)

    def _leads_back(self, folder: Path) -> bool:
        if folder.is_symlink() or folder.name in ENVIRONMENTS:
            return False
        if (folder / "composer").is_dir():
            return True
        return any(
            self._own_target(entry) or self._is_group_that_leads_back(entry)
            for entry in _entries(folder)
        )

    def _is_group_that_leads_back(self, folder: Path) -> bool:
        """True for a scope such as `@org`, a vendor's folder, or `.bin`."""
        if folder.is_symlink() or not folder.is_dir() or folder.name == ".pnpm":
            return False
        return any(self._own_target(entry) for entry in _entries(folder))

    def _own_target(self, entry: Path) -> Path | None:
        """Return the target of a link to the project's own file or folder, relative to
        the project.
        """
        if not entry.is_symlink():
            return None
        try:
            target = entry.resolve()
        except (OSError, RuntimeError):
            return None
        if not target.is_relative_to(self.top):
            return None
        inside = target.relative_to(self.top)
        return None if set(INSTALLED).intersection(inside.parts) else inside

    def _make_again(self, source: Path, target: Path) -> None:
        target.mkdir()
        has_autoloader = (source / "composer").is_dir()
        for entry in _entries(source):
            place, own_target = target / entry.name, self._own_target(entry)
            if own_target is not None:
                place.symlink_to(self.tree / own_target)
            elif has_autoloader and entry.name in _AUTOLOADER:
                _copy(entry, place)
            elif self._is_group_that_leads_back(entry):
                self._make_again(entry, place)
            else:
                place.symlink_to(entry, target_is_directory=entry.is_dir())


def _entries(folder: Path) -> Iterator[Path]:
    with os.scandir(folder) as items:
        for item in items:
            yield folder / item.name


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True)
    else:
        shutil.copy2(source, target)
