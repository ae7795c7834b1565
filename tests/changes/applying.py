"""A reply, and what becomes of a small project by it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cdd_agent.changes.build import change_set
from cdd_agent.changes.parse import parse_reply
from cdd_agent.changes.policy import EditPolicy

CALC = "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return a - b\n"
PROJECT = {
    "src/calc.py": CALC,
    "README.md": "# Calc\n\nIt adds.\n",
    "config.toml": 'name = "calc"\n',
}


@dataclass(frozen=True)
class Refused:
    """The reason that a model gets has this in it."""

    why: str


def write(root: Path, files: Mapping[str, str | bytes]) -> None:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(
            content if isinstance(content, bytes) else content.encode()
        )


def tree(root: Path) -> dict[str, str]:
    """The files of a project, without this program's own."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes().decode(
            "utf-8", "surrogateescape"
        )
        for path in root.rglob("*")
        if path.is_file() and not path.is_relative_to(root / ".cdd")
    }


def apply(root: Path, reply: str, terms: EditPolicy | None = None) -> tuple[str, ...]:
    """Remarks on edits that did not have to be made. Raises `ReplyRefused`."""
    changes = change_set(root, parse_reply(reply).edits, terms or EditPolicy(seen=None))
    changes.apply(root)
    return changes.notes


def expected(
    changed: Mapping[str, str | None], before: Mapping[str, str] = PROJECT
) -> dict[str, str]:
    """The project with these files changed, or with None gone."""
    after = {**before, **changed}
    return {path: content for path, content in after.items() if content is not None}
