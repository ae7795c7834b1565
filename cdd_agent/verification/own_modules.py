"""Find the missing modules and programs that the project makes itself.

A test that is written before its code cannot import it: that is no fault of the
environment, and the step that makes the module has to. Only a module that neither the
project's files nor the files of the plan provide is one that the environment lacks.
"""

import re
from collections.abc import Collection, Iterable
from pathlib import Path, PurePosixPath

from cdd_agent.files.manifests import Manifests, ManifestUnreadable
from cdd_agent.project.source_folders import SourceFolder, source_folders

_NAMED = re.compile(
    r"\b(?:module|package|library) `([^`]+)` is missing|`([^`]+)` is not installed"
)
"""The name in a cause, see `statements.py`."""
_CODE = frozenset(
    (".py", ".pyi", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".tsx", ".vue", ".rb")
)
_ALIASES = ("@/", "~/", "#", "$lib/")
"""Beginnings of names that mean the project's sources in JavaScript."""
_DEPTH = 6


def find_own_modules(
    causes: Iterable[str], root: Path, planned: Collection[str]
) -> frozenset[str]:
    """Return the causes that name a module or a program of the project. `planned` are
    the paths of the files that the steps of the plan declare.
    """
    named = {}
    for cause in causes:
        match = _NAMED.search(cause)
        if match is not None:
            named[cause] = match[1] or match[2]
    if not named:
        return frozenset()
    provided = _names_in_plan(planned)
    for folder in source_folders(root, _DEPTH):
        provided |= _names_in(root, folder)
    return frozenset(
        cause
        for cause, module in named.items()
        if module.startswith((*_ALIASES, "."))
        or not provided.isdisjoint(_outer_names(module))
    )


def _outer_names(module: str) -> set[str]:
    """Return the names under which a project may provide a module: the outermost one,
    and that of a package of JavaScript with its scope.
    """
    first = re.split(r"[./]", module)[0]
    if not module.startswith("@"):
        return {first}
    return {"/".join(module.split("/")[:2])}


def _names_in_plan(planned: Collection[str]) -> set[str]:
    names: set[str] = set()
    for path in map(PurePosixPath, planned):
        names.update((*path.parts[:-1], path.stem))
    return names


def _names_in(root: Path, folder: SourceFolder) -> set[str]:
    """Return the names of the modules in a folder, and of the package it is."""
    code = [PurePosixPath(name) for name in folder.files]
    names = {file.stem for file in code if file.suffix in _CODE}
    if names:
        names.add(PurePosixPath(folder.path).name)
    if "package.json" in folder.files:
        try:
            content = Manifests(root / folder.path).content("package.json")
        except ManifestUnreadable:
            return names
        names.add(str(content.get("name", "")))
    return names
