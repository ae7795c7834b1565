"""The files by which a project is declared: pyproject.toml, package.json, Cargo.toml,
go.mod, a Makefile.
"""

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from cdd_agent.errors import BadInput

_LARGEST = 1_000_000


class ManifestUnreadable(BadInput):
    """A manifest that is there and does not say anything that can be read."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(
            f"{name} cannot be read: {why}",
            hint="Correct it, or set `test_command` in .cdd/config.yaml.",
        )
        self.name, self.why = name, why


class Manifests(Struct, frozen=True):
    """Those of a project, or of a folder in it. What is not there is empty."""

    root: Path

    def has(self, *names: str) -> bool:
        """Whether one of these files is there."""
        return any((self.root / name).is_file() for name in names)

    def data(self, name: str) -> bytes:
        """Raises `ManifestUnreadable`."""
        try:
            if not self.has(name):
                return b""
            with (self.root / name).open("rb") as file:
                return file.read(_LARGEST)
        except OSError as error:
            raise ManifestUnreadable(name, error.strerror or str(error)) from error

    def text(self, name: str) -> str:
        """Raises `ManifestUnreadable`."""
        try:
            return self.data(name).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ManifestUnreadable(name, "it is not UTF-8 text") from error

    def content(self, name: str) -> Mapping[str, Any]:
        """Of a file of TOML or JSON. Raises `ManifestUnreadable`."""
        return parsed(name, self.text(name))

    @property
    def targets(self) -> set[str]:
        """Of the Makefile. Raises `ManifestUnreadable`."""
        name = next(filter(self.has, ("GNUmakefile", "Makefile", "makefile")), "")
        text = self.data(name).decode("utf-8", errors="replace") if name else ""
        return set(re.findall(r"^([\w-]+)[ \t]*:(?!=)", text, re.MULTILINE))


def parsed(name: str, text: str) -> Mapping[str, Any]:
    """The content of a manifest of TOML or, by its name, of JSON. Raises
    `ManifestUnreadable`.
    """
    try:
        content = (
            json.loads(text or "{}") if name.endswith(".json") else tomllib.loads(text)
        )
    except (ValueError, RecursionError) as error:
        raise ManifestUnreadable(name, str(error)) from error
    if not isinstance(content, dict):
        raise ManifestUnreadable(name, "it is no mapping")
    return content


def section(content: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """The mapping that is found by these names; empty where something else is there, or
    nothing.
    """
    for name in names:
        inner = content.get(name)
        content = inner if isinstance(inner, dict) else {}
    return content
