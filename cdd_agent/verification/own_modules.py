"""Finds missing modules and programs that the project itself provides.

A test written before its code cannot import it. That is not the environment's fault:
the environment lacks only what neither the project nor the plan provides.
"""

import re
from collections.abc import Collection, Iterable
from pathlib import Path, PurePosixPath

from cdd_agent.files.manifests import Manifests, ManifestUnreadable
from cdd_agent.pattern import Pattern
from cdd_agent.project.source_folders import SourceFolder, source_folders

_NAMED = Pattern(
    r"\b(?:module|package|library) `([^`]+)` is missing|`([^`]+)` is not installed"
)
"""The name in a cause, see `statements.py`."""
_CODE = frozenset(
    (".py", ".pyi", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".tsx", ".vue", ".rb")
)
_ALIASES = ("@/", "~/", "#", "$lib/")
"""Prefixes for a JavaScript project's own sources."""
_DEPTH = 6


def find_own_modules(
    causes: Iterable[str], root: Path, planned: Collection[str]
) -> frozenset[str]:
    """Return the causes that name a module or program of the project. `planned` are
    paths that the plan's steps declare.
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
    """Return the names a project may provide the module under: its outermost, or a
    scoped JavaScript package.
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
    """Return the names of the folder's modules, and of the package it is."""
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
