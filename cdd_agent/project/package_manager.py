"""The package manager of a JavaScript project: the one in `package.json`, else the one
with a lock file. Packages of a workspace use that of the folders around them.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cdd_agent.files.manifests import Manifests, ManifestUnreadable, section

_LOCKS = {
    "pnpm-lock.yaml": "pnpm",
    "pnpm-workspace.yaml": "pnpm",
    "yarn.lock": "yarn",
    "bun.lock": "bun",
    "bun.lockb": "bun",
    "package-lock.json": "npm",
    "npm-shrinkwrap.json": "npm",
}
_MANAGERS = frozenset(_LOCKS.values())


def package_manager(folder: Path, root: Path) -> str:
    """Return the package manager for a folder of a project."""
    for place in (folder, *folder.parents):
        if not place.is_relative_to(root):
            break
        manifests = Manifests(place)
        named = _named_manager(manifests)
        if named:
            return named
        for lock, manager in _LOCKS.items():
            if manifests.has(lock):
                return manager
    return "npm"


def _named_manager(manifests: Manifests) -> str:
    """Return the manager that package.json names, or an empty text."""
    try:
        content: Mapping[str, Any] = manifests.content("package.json")
    except ManifestUnreadable:
        return ""
    named = content.get("packageManager")
    if not named:
        named = section(content, "devEngines", "packageManager").get("name")
    name = str(named or "").partition("@")[0]
    return name if name in _MANAGERS else ""
