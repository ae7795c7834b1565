"""Needs of a project's tests in another working tree: folders without git, packages."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct

from cdd_agent.errors import BadInput
from cdd_agent.process.programs import find_program, own_python
from cdd_agent.process.run import run_command

SHARED = (".venv", "venv", "node_modules")
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
