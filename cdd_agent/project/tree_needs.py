"""Needs of a project's tests in another working tree: folders without git, packages."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from msgspec import Struct

from cdd_agent.errors import BadInput
from cdd_agent.git.project_files import ProjectFiles
from cdd_agent.process.programs import find_program, own_python
from cdd_agent.process.run import run_command

SHARED = (".venv", "venv", "node_modules")
INSTALLED = (*SHARED, "vendor")
"""Names of folders with installed packages."""
_AUTOLOADER = ("autoload.php", "composer", "bin")
"""Files and folders of Composer that find the project by their own place."""
_WHERE_FROM = """\
import importlib.util, os, sys
here = os.getcwd()
sys.path[:] = [path for path in sys.path if path and os.path.abspath(path) != here]
for name in sys.argv[1:]:
    try:
        found = importlib.util.find_spec(name)
    except Exception:
        continue
    places = list(found.submodule_search_locations or ()) if found else []
    print(name, os.path.realpath(places[0]) if places else "")
"""
_SECONDS = 20.0
_NO_VARIABLES: Mapping[str, str] = MappingProxyType({})


def link_shared(source: Path, root: Path) -> None:
    """Link the shared folders into another tree that lacks them. Raises `BadInput`."""
    for name in SHARED:
        link = root / name
        if not (source / name).is_dir() or os.path.lexists(link):
            continue
        try:
            link.symlink_to(source / name, target_is_directory=True)
        except OSError as error:
            raise BadInput(
                f"{link} could not be made: {error.strerror or error}"
            ) from error


def find_installed(top: Path, listed: ProjectFiles) -> list[str]:
    """Return the folders with installed packages that git ignores, wherever they are.
    They are relative to `top`; no folder is inside another.
    """
    found: list[str] = []
    candidates = [path[:-1] for path in listed.ignored if path.endswith("/")]
    # `node_modules/` in an ignore file is not about a link
    candidates += [path for path in listed.files if (top / path).is_symlink()]
    for path in sorted(candidates):
        is_inside = found and path.startswith(f"{found[-1]}/")
        if PurePosixPath(path).name in INSTALLED and not is_inside:
            found.append(path)
    return [path for path in found if (top / path).is_dir()]


def link_installed(top: Path, tree: Path, listed: ProjectFiles) -> list[str]:
    """Link the folders with installed packages of a project into another tree of it,
    and return them. A folder that the tree has, or has no place for, is left out.
    Raises `BadInput`.
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
                f"{link} could not be made: {error.strerror or error}"
            ) from error
        linked.append(path)
    return linked


class _Installed(Struct, frozen=True):
    """Links a folder with installed packages into another tree.

    The folder may lead back to the project's own files: npm, pnpm and yarn link the
    packages of a workspace, Composer finds the project by the place of its autoloader.
    Tests in the other tree must use the files there. Such a folder is made again, with
    links to what is installed.
    """

    top: Path
    tree: Path

    def link(self, source: Path, target: Path) -> None:
        if self._leads_back(source):
            self._make_again(source, target)
        else:
            target.symlink_to(source, target_is_directory=True)

    def _leads_back(self, folder: Path) -> bool:
        if folder.is_symlink() or folder.name in (".venv", "venv"):
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
        """Return the project's own file or folder that a link leads to, relative to the
        project.
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
            place, own = target / entry.name, self._own_target(entry)
            if own is not None:
                place.symlink_to(self.tree / own)
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


class OwnPackages(Struct, frozen=True):
    """Packages that Python would import from another tree."""

    names: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    """Their folders, relative to the project."""

    def env(
        self, root: Path, known: Mapping[str, str] = _NO_VARIABLES
    ) -> Mapping[str, str]:
        """Add variables to the `known` ones that make Python import from `root`."""
        if not self.folders:
            return known
        path = [str(root / folder) for folder in self.folders]
        if before := {**os.environ, **known}.get("PYTHONPATH"):
            path.append(before)
        return {**known, "PYTHONPATH": os.pathsep.join(path)}


async def own_packages(
    root: Path, other: Path, known: Mapping[str, str] = _NO_VARIABLES
) -> OwnPackages:
    """Find the packages at `root` that tests would import from the `other` tree, given
    the variables in `known`. Raises `BadInput` if no variable changes that.
    """
    packages = _packages_of(root)
    if not packages:
        return OwnPackages()
    foreign = await _imported_from(root, other, list(packages), known)
    if not foreign:
        return OwnPackages()
    folders = {packages[name].relative_to(root).as_posix(): None for name in foreign}
    own = OwnPackages(tuple(sorted(foreign)), tuple(folders))
    still = await _imported_from(root, other, list(foreign), own.env(root, known))
    if still:
        raise BadInput(
            f"Tests in the run's tree would import {', '.join(sorted(still))} from"
            f" {still[min(still)]}",
            hint=(
                "It is installed so that nothing can come before. Run it in your own"
                " tree, one step after the other (`--jobs 1`, without `--worktree`), or"
                " uninstall it."
            ),
        )
    return own


def _packages_of(root: Path) -> dict[str, Path]:
    """Return the folders of the project's packages by name."""
    packages: dict[str, Path] = {}
    for source in (root / "src", root):
        for init in source.glob("*/__init__.py"):
            if init.parent.name.isidentifier():
                packages[init.parent.name] = source
    return packages


async def _imported_from(
    root: Path, other: Path, names: list[str], env: Mapping[str, str]
) -> dict[str, Path]:
    """Return the places of packages that Python imports from the other tree."""
    python = (
        own_python(root)
        or find_program("python")
        or find_program("python3")
        or Path(sys.executable)
    )
    result = await run_command(
        [str(python), "-c", _WHERE_FROM, *names], cwd=root, limit=_SECONDS, env=env
    )
    places: dict[str, Path] = {}
    for line in result.stdout.splitlines():
        name, _, text = line.partition(" ")
        place = Path(text)
        is_foreign = place.is_relative_to(other) and not place.is_relative_to(root)
        # a copy in an environment is no source
        is_copy = bool({"site-packages", "dist-packages"}.intersection(place.parts))
        if text and is_foreign and not is_copy:
            places[name] = place
    return places
