"""A project's profile, by its own manifests: its name, what it is for, and the commands
by which it is worked on.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct, field

from cdd_agent.files.manifests import Manifests, ManifestUnreadable, section

T = TypeVar("T")

_NODE_LOCKS = {
    "pnpm-lock.yaml": "pnpm",
    "yarn.lock": "yarn",
    "bun.lock": "bun",
    "bun.lockb": "bun",
}
_PURPOSES = {
    "set up": ("install", "setup", "bootstrap"),
    "build": ("build",),
    "lint": ("lint", "check", "typecheck"),
    "format": ("format", "fmt"),
}
"""The purposes of commands, and the names that people give such targets and scripts."""


class Profile(Struct):
    """Commands are by what they are for; nothing that a file does not say is
    guessed.
    """

    name: str
    description: str = ""
    commands: dict[str, list[str]] = field(
        default_factory=lambda: {purpose: [] for purpose in _PURPOSES}
    )
    unread: list[str] = field(default_factory=list)
    """Files that could not be read, each with the reason."""

    def describe(self, content: Mapping[str, Any]) -> None:
        """The name and description, where they are texts; the first file that has a
        description gives both.
        """
        if self.description:
            return
        for key in ("name", "description"):
            if isinstance(text := content.get(key), str) and text.strip():
                setattr(self, key, " ".join(text.split()))

    def read(self, ask: Callable[[], T]) -> T | None:
        """A manifest's answer; None where it cannot be read, which is noted."""
        try:
            return ask()
        except ManifestUnreadable as error:
            self.unread.append(f"{error.name}: {error.why}")
            return None


def profile(root: Path) -> Profile:
    """Read what a project holds of pyproject.toml, package.json, Cargo.toml, go.mod,
    Makefile and the like.
    """
    found, manifests = Profile(root.name), Manifests(root)
    # a project's own say best how it is meant
    targets = found.read(lambda: manifests.targets) or set()
    for purpose, names in _PURPOSES.items():
        found.commands[purpose] += [
            f"make {target}" for target in names if target in targets
        ]
    _python(manifests, found)
    _node(manifests, found)
    if rust := found.read(lambda: manifests.content("Cargo.toml")):
        found.describe(section(rust, "package"))
        for purpose, command in (
            ("build", "cargo build"),
            ("lint", "cargo clippy"),
            ("format", "cargo fmt"),
        ):
            found.commands[purpose].append(command)
    go = found.read(lambda: manifests.text("go.mod")) or ""
    if module := re.search(r"^module[ \t]+(\S+)", go, re.MULTILINE):
        found.describe({"name": module[1].rpartition("/")[2]})
        for purpose, command in (
            ("build", "go build ./..."),
            ("lint", "go vet ./..."),
            ("format", "gofmt -w ."),
        ):
            found.commands[purpose].append(command)
    if manifests.has(".pre-commit-config.yaml"):
        found.commands["lint"].append("pre-commit run --all-files")
    return found


def _python(manifests: Manifests, found: Profile) -> None:
    content = found.read(lambda: manifests.content("pyproject.toml")) or {}
    project, tool = section(content, "project"), section(content, "tool")
    poetry = section(tool, "poetry")
    found.describe(project or poetry)
    prefix = ""
    if manifests.has("uv.lock"):
        prefix = "uv run "
        found.commands["set up"].append("uv sync")
    elif poetry or manifests.has("poetry.lock"):
        prefix = "poetry run "
        found.commands["set up"].append("poetry install")
    elif project or "build-system" in content or manifests.has("setup.py"):
        found.commands["set up"].append("pip install -e .")
    elif manifests.has("requirements.txt"):
        found.commands["set up"].append("pip install -r requirements.txt")
    if "ruff" in tool or manifests.has("ruff.toml", ".ruff.toml"):
        found.commands["lint"].append(f"{prefix}ruff check .")
        found.commands["format"].append(f"{prefix}ruff format .")
    if manifests.has(".flake8"):
        found.commands["lint"].append(f"{prefix}flake8")
    if "mypy" in tool or manifests.has("mypy.ini"):
        names_files = {"files", "packages", "modules"} & section(tool, "mypy").keys()
        found.commands["lint"].append(
            f"{prefix}mypy" if names_files else f"{prefix}mypy ."
        )
    if "black" in tool:
        found.commands["format"].append(f"{prefix}black .")


def _node(manifests: Manifests, found: Profile) -> None:
    content = found.read(lambda: manifests.content("package.json"))
    if content is None or not manifests.has("package.json"):
        return
    found.describe(content)
    manager = next(
        (manager for lock, manager in _NODE_LOCKS.items() if manifests.has(lock)), "npm"
    )
    found.commands["set up"].append(f"{manager} install")
    for purpose, names in _PURPOSES.items():
        if purpose != "set up":
            scripts = section(content, "scripts")
            found.commands[purpose] += [
                f"{manager} run {script}" for script in names if script in scripts
            ]
