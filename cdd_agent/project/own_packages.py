"""Find a project's Python packages that are installed from another tree of it (in
editable mode): tests would import the other tree's code.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct

from cdd_agent.errors import BadInput
from cdd_agent.process.environments import own_python
from cdd_agent.process.programs import find_program
from cdd_agent.process.run import run_command
from cdd_agent.refusals.kinds import Refusal

_WHERE_FROM = """\
import importlib.util, os, sys
# `python -c` adds the current folder, unlike a runner of tests
sys.path[:] = [path for path in sys.path if path]
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


class OwnPackages(Struct, frozen=True):
    """Packages that Python would import from another tree."""

    names: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    """Their folders, relative to the project."""

    def env(
        self, root: Path, environment: Mapping[str, str] = _NO_VARIABLES
    ) -> Mapping[str, str]:
        """Add variables to `environment` that make Python import from `root`."""
        if not self.folders:
            return environment
        path = [str(root / folder) for folder in self.folders]
        before = {**os.environ, **environment}.get("PYTHONPATH")
        if before:
            path.append(before)
        return {**environment, "PYTHONPATH": os.pathsep.join(path)}


async def own_packages(
    root: Path,
    other: Path,
    environment: Mapping[str, str] = _NO_VARIABLES,
    bases: Sequence[str] = ("",),
) -> OwnPackages:
    """Find the packages at `root` that tests would import from the `other` tree.
    `bases` are the folders that have a Python environment or use the project's. Raises
    `BadInput` if no variable changes that.
    """
    look = _ImportSearch(root, other)
    owners: dict[str, list[str]] = {}
    folders: dict[str, None] = {}
    foreign: dict[str, Path] = {}
    for base in bases:
        packages = _packages_of(root / base)
        for name in packages:
            owners.setdefault(name, []).append(base)
        places = await look.find_foreign(base, packages, environment)
        foreign |= places
        for name in places:
            folders[packages[name].relative_to(root).as_posix()] = None
    if not foreign:
        return OwnPackages()
    own = OwnPackages(tuple(sorted(foreign)), tuple(folders))
    # one variable for all commands cannot put two packages of one name first
    still = {name: foreign[name] for name in foreign if len(owners[name]) > 1}
    for base in bases:
        names = [name for name in foreign if base in owners[name]]
        still |= await look.find_foreign(base, names, own.env(root, environment))
    if still:
        raise BadInput(
            f"Tests in another tree would import {', '.join(sorted(still))} from"
            f" {still[min(still)]}",
            hint=(
                "Its installation takes precedence over PYTHONPATH. Run the steps in"
                " your own tree (`--jobs 1`, without `--worktree`), or uninstall the"
                " package."
            ),
            refusal=Refusal.CHECK_UNUSABLE,
        )
    return own


def package_names(root: Path, bases: Iterable[str]) -> frozenset[str]:
    """Return the names of the project's packages, with their folders."""
    names = set[str]()
    for base in bases:
        names.update(f"{base}/{name}" for name in _packages_of(root / base))
    return frozenset(names)


def _packages_of(root: Path) -> dict[str, Path]:
    packages: dict[str, Path] = {}
    for source in (root / "src", root):
        for init in source.glob("*/__init__.py"):
            if init.parent.name.isidentifier():
                packages[init.parent.name] = source
    return packages


class _ImportSearch(Struct, frozen=True):
    """Finds the packages that tests at `root` would import from the `other` tree."""

    root: Path
    other: Path

    async def find_foreign(
        self, base: str, names: Iterable[str], env: Mapping[str, str]
    ) -> dict[str, Path]:
        """Return the places of the packages that Python in the folder `base` imports
        from the other tree.
        """
        asked = list(names)
        if not asked:
            return {}
        folder = self.root / base
        python = (
            own_python(folder)
            or own_python(self.root)
            or find_program("python")
            or find_program("python3")
            or Path(sys.executable)
        )
        command = [str(python), "-c", _WHERE_FROM, *asked]
        result = await run_command(command, cwd=folder, limit=_SECONDS, env=env)
        places: dict[str, Path] = {}
        for line in result.stdout.splitlines():
            name, _, text = line.partition(" ")
            if text and self._is_foreign(Path(text)):
                places[name] = Path(text)
        return places

    def _is_foreign(self, place: Path) -> bool:
        # a copy in an environment is no source
        is_copy = bool({"site-packages", "dist-packages"}.intersection(place.parts))
        is_there = place.is_relative_to(self.other)
        return is_there and not place.is_relative_to(self.root) and not is_copy
