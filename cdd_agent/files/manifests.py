"""Files that declare a project, such as package.json or a Makefile."""

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from cdd_agent.errors import BadInput
from cdd_agent.refusals.kinds import Refusal

_LARGEST = 1_000_000


class ManifestUnreadable(BadInput):
    refusal = Refusal.UNREADABLE_FILE

    def __init__(self, name: str, why: str) -> None:
        super().__init__(
            f"{name} cannot be read: {why}",
            hint="Fix it, or set `test_command` in .cdd/config.yaml.",
        )
        self.name, self.why = name, why


class Manifests(Struct, frozen=True):
    """The manifests of a folder. A missing file reads as empty."""

    root: Path

    def has(self, *names: str) -> bool:
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
        """Parse TOML or JSON. Raises `ManifestUnreadable`."""
        return parse_manifest(name, self.text(name))

    @property
    def targets(self) -> set[str]:
        """The targets of the Makefile. Raises `ManifestUnreadable`."""
        pattern = r"^([\w-]+)[ \t]*:(?!=)"
        return set(re.findall(pattern, self._makefile, re.MULTILINE))

    def recipe(self, target: str) -> str:
        """Return the commands of a Makefile target. Raises `ManifestUnreadable`."""
        lines = rf"^{re.escape(target)}[ \t]*:(?!=).*\n((?:\t.*(?:\n|\Z))*)"
        recipe = re.search(lines, self._makefile, re.MULTILINE)
        return recipe[1] if recipe else ""

    @property
    def _makefile(self) -> str:
        for name in ("GNUmakefile", "Makefile", "makefile"):
            if self.has(name):
                return self.data(name).decode("utf-8", errors="replace")
        return ""


def parse_manifest(name: str, text: str) -> Mapping[str, Any]:
    """Parse JSON or TOML, by the name. Raises `ManifestUnreadable`."""
    try:
        if name.endswith(".json"):
            content = json.loads(text or "{}")
        else:
            content = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ManifestUnreadable(name, str(error)) from error
    if not isinstance(content, dict):
        raise ManifestUnreadable(name, "it is not a mapping")
    return content


def section(content: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """Return the mapping at a path of keys; empty if missing."""
    for name in names:
        inner = content.get(name)
        content = inner if isinstance(inner, dict) else {}
    return content
