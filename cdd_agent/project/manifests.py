"""What a project's own files say of it: its name, what it is for, and the commands by which it is worked on."""

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_LARGEST = 1_000_000
_NODE_LOCKS = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lock": "bun", "bun.lockb": "bun"}
_PURPOSES = {
    "set up": ("install", "setup", "bootstrap"),
    "build": ("build",),
    "lint": ("lint", "check", "typecheck"),
    "format": ("format", "fmt"),
}
"""What a command is for, and the names that people give such targets and scripts."""


@dataclass
class Manifests:
    """What was found. Commands are by what they are for; nothing that a file does not say is guessed."""

    name: str
    description: str = ""
    commands: dict[str, list[str]] = field(default_factory=lambda: {purpose: [] for purpose in _PURPOSES})
    unread: list[str] = field(default_factory=list)
    """Files that could not be read, each with the reason."""


def read_manifests(root: Path) -> Manifests:
    """Read what a project holds of pyproject.toml, package.json, Cargo.toml, go.mod, Makefile and the like."""
    found = Manifests(root.name)
    for read in (_makefile, _python, _node, _rust, _go):  # a project's own targets say best how it is meant
        read(root, found)
    if (root / ".pre-commit-config.yaml").is_file():
        found.commands["lint"].append("pre-commit run --all-files")
    return found


def _makefile(root: Path, found: Manifests) -> None:
    for name in ("GNUmakefile", "Makefile", "makefile"):
        if text := _text(root / name, found):
            targets = set(re.findall(r"^([\w-]+)[ \t]*:(?!=)", text, re.MULTILINE))
            for purpose, names in _PURPOSES.items():
                found.commands[purpose] += [f"make {target}" for target in names if target in targets]
            return


def _python(root: Path, found: Manifests) -> None:
    content = _toml(root / "pyproject.toml", found)
    project, tool = _section(content, "project"), _section(content, "tool")
    poetry = _section(tool, "poetry")
    _describe(found, project or poetry)
    prefix = ""
    if (root / "uv.lock").is_file():
        prefix = "uv run "
        found.commands["set up"].append("uv sync")
    elif poetry or (root / "poetry.lock").is_file():
        prefix = "poetry run "
        found.commands["set up"].append("poetry install")
    elif project or "build-system" in content or (root / "setup.py").is_file():
        found.commands["set up"].append("pip install -e .")
    elif (root / "requirements.txt").is_file():
        found.commands["set up"].append("pip install -r requirements.txt")
    if "ruff" in tool or any((root / name).is_file() for name in ("ruff.toml", ".ruff.toml")):
        found.commands["lint"].append(f"{prefix}ruff check .")
        found.commands["format"].append(f"{prefix}ruff format .")
    if (root / ".flake8").is_file():
        found.commands["lint"].append(f"{prefix}flake8")
    if "mypy" in tool or (root / "mypy.ini").is_file():
        names_files = {"files", "packages", "modules"} & _section(tool, "mypy").keys()
        found.commands["lint"].append(f"{prefix}mypy" if names_files else f"{prefix}mypy .")
    if "black" in tool:
        found.commands["format"].append(f"{prefix}black .")


def _node(root: Path, found: Manifests) -> None:
    if not (text := _text(root / "package.json", found)):
        return
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        found.unread.append(f"package.json: {error}")
        return
    if not isinstance(content, dict):
        found.unread.append("package.json: it is no mapping")
        return
    _describe(found, content)
    manager = next((manager for lock, manager in _NODE_LOCKS.items() if (root / lock).is_file()), "npm")
    found.commands["set up"].append(f"{manager} install")
    for purpose, names in _PURPOSES.items():
        if purpose != "set up":
            scripts = _section(content, "scripts")
            found.commands[purpose] += [f"{manager} run {script}" for script in names if script in scripts]


def _rust(root: Path, found: Manifests) -> None:
    if content := _toml(root / "Cargo.toml", found):
        _describe(found, _section(content, "package"))
        for purpose, command in (("build", "cargo build"), ("lint", "cargo clippy"), ("format", "cargo fmt")):
            found.commands[purpose].append(command)


def _go(root: Path, found: Manifests) -> None:
    if module := re.search(r"^module[ \t]+(\S+)", _text(root / "go.mod", found), re.MULTILINE):
        _describe(found, {"name": module[1].rpartition("/")[2]})
        for purpose, command in (("build", "go build ./..."), ("lint", "go vet ./..."), ("format", "gofmt -w .")):
            found.commands[purpose].append(command)


def _describe(found: Manifests, content: Mapping[str, Any]) -> None:
    """The name and description, where they are texts; the first file that has a description gives both."""
    if found.description:
        return
    for key in ("name", "description"):
        if isinstance(text := content.get(key), str) and text.strip():
            setattr(found, key, " ".join(text.split()))


def _section(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = content.get(name)
    return section if isinstance(section, dict) else {}


def _toml(path: Path, found: Manifests) -> Mapping[str, Any]:
    try:
        return tomllib.loads(_text(path, found))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        found.unread.append(f"{path.name}: {error}")
        return {}


def _text(path: Path, found: Manifests) -> str:
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            return file.read(_LARGEST).decode("utf-8-sig")
    except UnicodeDecodeError:
        found.unread.append(f"{path.name}: it is not UTF-8 text")
    except OSError as error:
        found.unread.append(f"{path.name}: {error.strerror or error}")
    return ""
