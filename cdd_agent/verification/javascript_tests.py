"""The command for a JavaScript project's tests: the test script, else the scripts of
workspace packages, else a declared runner.
"""

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from cdd_agent.files.manifests import Manifests, ManifestUnreadable, section
from cdd_agent.pattern import Pattern
from cdd_agent.project.package_manager import package_manager
from cdd_agent.verification.project_runner import ProjectFolder, ProjectRunner

_NPM_PLACEHOLDER = "no test specified"
"""In the test script that `npm init` writes."""
_TEST_SCRIPTS = ("test", "test:unit", "unit", "tests", "test-unit")
"""The first existing script counts."""
_NODE_RUNNERS = {
    "vitest": ("npx", "--no-install", "vitest", "run"),
    "jest": ("npx", "--no-install", "jest"),
    "mocha": ("npx", "--no-install", "mocha"),
    "ava": ("npx", "--no-install", "ava"),
}
"""Commands of runners that `package.json` declares without a script."""
_WORKSPACES = {
    "npm": ("npm", "test", "--workspaces", "--if-present"),
    "pnpm": ("pnpm", "-r", "--if-present", "run", "test"),
    "yarn": ("yarn", "workspaces", "run", "test"),
    "yarn berry": ("yarn", "workspaces", "foreach", "--all", "run", "test"),
    "bun": ("bun", "run", "--filter", "*", "test"),
}
_CALLS_ANOTHER = Pattern(
    r"(python\S*( -m)?|uv run|poetry run|hatch run)? *"
    r"(pytest|tox|nox|cargo|go|make)\b.*"
)
"""A script that only starts another language's runner."""


def javascript_runner(folder: ProjectFolder) -> ProjectRunner | None:
    """Return the command for the tests of a folder; None without tests. Raises
    `ManifestUnreadable`.
    """
    if not folder.has("package.json"):
        return None
    content = folder.manifests.content("package.json")
    manager = package_manager(folder.place, folder.root)
    has_workspaces = _has_workspaces(folder, content)
    name = _test_script(content)
    if name:
        script = str(content["scripts"][name])
        if _CALLS_ANOTHER.fullmatch(script):
            return None
        words: tuple[str, ...] = (manager, "run", name)
        if name == "test" and manager != "bun":
            words = (manager, "test")
        covers = partial(_runs_folder, has_workspaces, script)
        reason = f"package.json has the script `{name}`"
        return ProjectRunner("javascript", words, reason, covers)
    if has_workspaces and _has_tests_below(folder):
        key = manager
        if manager == "yarn" and folder.has(".yarnrc.yml"):
            key = "yarn berry"
        return ProjectRunner(
            "javascript", _WORKSPACES[key], "packages of the workspace have tests"
        )
    declared = {
        **section(content, "dependencies"),
        **section(content, "devDependencies"),
    }
    for name, direct in _NODE_RUNNERS.items():
        if name in declared:
            reason = f"package.json declares {name}"
            covers = partial(_runs_folder, has_workspaces, "")
            return ProjectRunner("javascript", direct, reason, covers)
    return None


def _runs_folder(has_workspaces: bool, script: str, path: str) -> bool:
    """True if the test script may cover the folder: as a package of the workspace, or
    by name.
    """
    return has_workspaces or re.search(rf"\b{re.escape(path)}\b", script) is not None


def _has_workspaces(folder: ProjectFolder, content: Mapping[str, Any]) -> bool:
    return bool(content.get("workspaces")) or folder.has("pnpm-workspace.yaml")


def _has_tests_below(folder: ProjectFolder) -> bool:
    """True if a package below has a test script."""
    for other in folder.below:
        if "package.json" not in other.files:
            continue
        try:
            content = Manifests(folder.root / other.path).content("package.json")
        except ManifestUnreadable:
            continue
        if _test_script(content) == "test":
            return True
    return False


def _test_script(content: Mapping[str, Any]) -> str:
    """Return the name of the test script; empty without one."""
    scripts = section(content, "scripts")
    for name in _TEST_SCRIPTS:
        script = str(scripts.get(name, ""))
        if script and _NPM_PLACEHOLDER not in script:
            return name
    return ""


def why_not_installed(place: Path, root: Path) -> str:
    """Return why packages are missing; empty if they are installed or not needed."""
    content = Manifests(place).content("package.json")
    if not content.get("dependencies") and not content.get("devDependencies"):
        return ""
    for folder in (place, *place.parents):
        if (folder / "node_modules").is_dir() or Manifests(folder).has(".pnp.cjs"):
            return ""
        if folder == root:
            break
    return f"its packages are not installed (`{package_manager(place, root)} install`)"
