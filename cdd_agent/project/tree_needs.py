"""What the tests of a project need in another working tree of it: folders that git does
not have, its own packages.
"""

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
"""Folders of the project that its tests need, and that are linked."""
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


def link_shared(source: Path, root: Path) -> None:
    """Link what tests need from one tree's project into another's, where that has
    nothing of the name. Raises `BadInput`.
    """
    for name in SHARED:
        link = root / name
        if (source / name).is_dir() and not os.path.lexists(link):
            try:
                link.symlink_to(source / name, target_is_directory=True)
            except OSError as error:
                raise BadInput(
                    f"{link} could not be made: {error.strerror or error}"
                ) from error


class OwnPackages(Struct, frozen=True):
    """Packages that would be imported from another tree, were it not for its
    environment.
    """

    names: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    """Those of the tree that they are in, from the project's."""

    def env(
        self, root: Path, known: Mapping[str, str] = MappingProxyType({})
    ) -> Mapping[str, str]:
        """The variables with which commands import those of the project at `root`,
        beside those that are `known`.
        """
        if not self.folders:
            return known
        before = {**os.environ, **known}.get("PYTHONPATH")
        first = (str(root / folder) for folder in self.folders)
        return {
            **known,
            "PYTHONPATH": os.pathsep.join([*first, *([before] if before else [])]),
        }


async def own_packages(
    root: Path, other: Path, known: Mapping[str, str] = MappingProxyType({})
) -> OwnPackages:
    """See that tests in the project at `root` import its own packages, and not those of
    the `other` tree of the repository, which are installed in editable mode, or come
    first by variables that are `known`. Raises `BadInput` where they would in any case.
    """
    sources = [folder for folder in (root / "src", root) if folder.is_dir()]
    packages = {
        init.parent.name: init.parent.parent
        for folder in sources
        for init in folder.glob("*/__init__.py")
    }
    packages = {
        name: folder for name, folder in packages.items() if name.isidentifier()
    }
    python = (
        own_python(root)
        or find_program("python")
        or find_program("python3")
        or Path(sys.executable)
    )

    async def elsewhere(names: list[str], env: Mapping[str, str]) -> dict[str, Path]:
        found = await run_command(
            [str(python), "-c", _WHERE_FROM, *names], cwd=root, limit=_SECONDS, env=env
        )
        entries = (
            line.split(" ", 1) for line in found.stdout.splitlines() if " " in line
        )
        places = {name: Path(place) for name, place in entries if place}
        return {
            name: place
            for name, place in places.items()
            if place.is_relative_to(other)
            and not place.is_relative_to(root)
            # a copy in an environment is no source
            and {"site-packages", "dist-packages"}.isdisjoint(place.parts)
        }

    if not packages or not (there := await elsewhere([*packages], known)):
        return OwnPackages()
    folders = dict.fromkeys(
        packages[name].relative_to(root).as_posix() for name in there
    )
    own = OwnPackages(tuple(sorted(there)), tuple(folders))
    if still := await elsewhere([*there], own.env(root, known)):
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
