"""A project's profile from its manifests: name, description and commands."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct, field

from cdd_agent.files.manifests import Manifests, ManifestUnreadable, section
from cdd_agent.project.package_manager import package_manager

T = TypeVar("T")

_PURPOSES = {
    "set up": ("install", "setup", "bootstrap"),
    "build": ("build",),
    "lint": ("lint", "check", "typecheck"),
    "format": ("format", "fmt"),
}
"""Purposes of commands, with the usual names of their targets and scripts."""


class Profile(Struct):
    name: str
    description: str = ""
    commands: dict[str, list[str]] = field(
        default_factory=lambda: {purpose: [] for purpose in _PURPOSES}
    )
    unread: list[str] = field(default_factory=list)
    """Files that could not be read, with the reasons."""

    def describe(self, content: Mapping[str, Any]) -> None:
        """Use name and description of the first manifest with a description."""
        if self.description:
            return
        for key in ("name", "description"):
            text = content.get(key)
            if isinstance(text, str) and text.strip():
                setattr(self, key, " ".join(text.split()))

    def add(self, purpose: str, *commands: str) -> None:
        self.commands[purpose].extend(commands)

    def read(self, ask: Callable[[], T]) -> T | None:
        """Return a manifest's answer, or note that it cannot be read."""
        try:
            return ask()
        except ManifestUnreadable as error:
            self.unread.append(f"{error.name}: {error.why}")
            return None


def profile(root: Path) -> Profile:
    """Read pyproject.toml, package.json, Cargo.toml, go.mod, Makefile and the like."""
    facts, manifests = Profile(root.name), Manifests(root)
    _add_make(manifests, facts)
    _add_python(manifests, facts)
    _add_node(manifests, facts)
    _add_rust(manifests, facts)
    _add_go(manifests, facts)
    if manifests.has(".pre-commit-config.yaml"):
        facts.add("lint", "pre-commit run --all-files")
    return facts


def _add_make(manifests: Manifests, facts: Profile) -> None:
    targets = facts.read(lambda: manifests.targets) or set()
    for purpose, names in _PURPOSES.items():
        for name in names:
            if name in targets:
                facts.add(purpose, f"make {name}")


def _add_python(manifests: Manifests, facts: Profile) -> None:
    content = facts.read(lambda: manifests.content("pyproject.toml")) or {}
    project, tool = section(content, "project"), section(content, "tool")
    poetry = section(tool, "poetry")
    facts.describe(project or poetry)
    has_build = bool(project) or "build-system" in content
    set_up, prefix = _python_set_up(
        manifests, has_poetry=bool(poetry), builds=has_build
    )
    if set_up:
        facts.add("set up", set_up)
    if "ruff" in tool or manifests.has("ruff.toml", ".ruff.toml"):
        facts.add("lint", f"{prefix}ruff check .")
        facts.add("format", f"{prefix}ruff format .")
    if manifests.has(".flake8"):
        facts.add("lint", f"{prefix}flake8")
    if "mypy" in tool or manifests.has("mypy.ini"):
        names_files = {"files", "packages", "modules"} & section(tool, "mypy").keys()
        files = "" if names_files else " ."
        facts.add("lint", f"{prefix}mypy{files}")
    if "black" in tool:
        facts.add("format", f"{prefix}black .")


def _python_set_up(
    manifests: Manifests, *, has_poetry: bool, builds: bool
) -> tuple[str, str]:
    if manifests.has("uv.lock"):
        return "uv sync", "uv run "
    if has_poetry or manifests.has("poetry.lock"):
        return "poetry install", "poetry run "
    if builds or manifests.has("setup.py"):
        return "pip install -e .", ""
    if manifests.has("requirements.txt"):
        return "pip install -r requirements.txt", ""
    return "", ""


def _add_node(manifests: Manifests, facts: Profile) -> None:
    content = facts.read(lambda: manifests.content("package.json"))
    if content is None or not manifests.has("package.json"):
        return
    facts.describe(content)
    manager = package_manager(manifests.root, manifests.root)
    facts.add("set up", f"{manager} install")
    scripts = section(content, "scripts")
    for purpose, names in _PURPOSES.items():
        for name in names:
            if purpose != "set up" and name in scripts:
                facts.add(purpose, f"{manager} run {name}")


def _add_rust(manifests: Manifests, facts: Profile) -> None:
    content = facts.read(lambda: manifests.content("Cargo.toml"))
    if not content:
        return
    facts.describe(section(content, "package"))
    facts.add("build", "cargo build")
    facts.add("lint", "cargo clippy")
    facts.add("format", "cargo fmt")


def _add_go(manifests: Manifests, facts: Profile) -> None:
    text = facts.read(lambda: manifests.text("go.mod")) or ""
    module = re.search(r"^module[ \t]+(\S+)", text, re.MULTILINE)
    if module is None:
        return
    facts.describe({"name": module[1].rpartition("/")[2]})
    facts.add("build", "go build ./...")
    facts.add("lint", "go vet ./...")
    facts.add("format", "gofmt -w .")
