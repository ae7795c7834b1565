"""A project from outside: files, state, what git thinks of it, and what should not be
there.
"""

import hashlib
import json
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.crash.story import git
from tests.support.projects import SLUG

_STATE = Path("tickets") / SLUG / "execution-state.json"
_OWN = (Path(".git"), Path(".cdd/runs"), Path(".cdd/cache"), _STATE)
_PROMISED = (
    "step_number",
    "status",
    "error",
    "files_created",
    "files_modified",
    "verification",
)
"""Keys of a step's state that say the same, however often the run was interrupted."""
NEVER_CHANGED = (
    "rev-parse HEAD",
    "symbolic-ref HEAD",
    "for-each-ref refs/heads refs/tags refs/stash",
    "ls-files --stage",
    "stash list",
)
"""Questions to git about the user's own, which no run touches at any moment."""


@dataclass(frozen=True)
class Ending:
    """The traces of a run that came to its end."""

    tree: dict[str, str]
    state: dict[str, Any]
    git: dict[str, str]
    strays: list[str]


def ending(root: Path) -> Ending:
    return Ending(tree(root), promised_state(root), git_view(root), strays(root))


def contents(root: Path) -> dict[str, str]:
    """The digest of each file of the project, without temporary ones and without what
    is the program's or git's own.
    """
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in _walk(root)
        if path.is_file() and not path.is_symlink()
    }


def tree(root: Path) -> dict[str, str]:
    """Every path of the project with its kind, its mode, and its content or target; see
    `contents`, `strays`.
    """
    seen = {}
    digests = contents(root)
    for path in _walk(root):
        name = path.relative_to(root).as_posix()
        what = f"-> {path.readlink()}" if path.is_symlink() else digests.get(name, "")
        seen[name] = f"{stat.filemode(path.lstat().st_mode)} {what}"
    return seen


def state(root: Path) -> dict[str, Any] | None:
    """The run's state, or None where there is none yet. Raises `ValueError` for one
    that is torn.
    """
    file = root / _STATE
    if not file.exists():
        return None
    content: dict[str, Any] = json.loads(file.read_bytes())
    return content


def promised_state(root: Path) -> dict[str, Any]:
    """The state at the end, without times."""
    content = state(root)
    assert content is not None, "there is no state"
    steps = {
        number: {key: step[key] for key in _PROMISED}
        for number, step in sorted(content["step_executions"].items())
    }
    return {
        "status": content["status"],
        "current_step": content["current_step"],
        "steps": steps,
    }


def completed(root: Path) -> set[int]:
    """The steps that the state on the disk says are done."""
    steps = (state(root) or {"step_executions": {}})["step_executions"].values()
    return {step["step_number"] for step in steps if step["status"] == "completed"}


def saved_replies(root: Path) -> set[tuple[int, int]]:
    """Steps, with the number of the attempt, whose reply is on the disk."""
    files = (root / ".cdd/runs" / SLUG).glob("step-*/attempt-*/reply.md")
    return {
        (
            int(file.parent.parent.name.removeprefix("step-")),
            int(file.parent.name.removeprefix("attempt-")),
        )
        for file in files
    }


def git_view(root: Path) -> dict[str, str]:
    """The user's own: branch, commits, index, stash; and what git thinks of the working
    tree.
    """
    if not (root / ".git").exists():
        return {}
    return {
        words: git(root, *words.split())
        for words in (*NEVER_CHANGED, "status --porcelain --untracked-files=all")
    }


def strays(root: Path) -> list[str]:
    """Temporary and lock files, and the folders of checks, wherever in the project:
    also in git's folder, and in the program's own.
    """
    return sorted(
        path.relative_to(root).as_posix()
        for path in root.rglob("*")
        if _is_stray(path) or _is_tree(path)
    )


def _is_tree(path: Path) -> bool:
    """What is left of a tree beside the person's, or of its checkpoints."""
    return path.parent.name == "worktrees" or (path.name == "side" and path.is_dir())


def _is_stray(path: Path) -> bool:
    return path.suffix in (".tmp", ".lock") or path.name.startswith("check-")


def _walk(root: Path, folder: Path | None = None) -> Iterator[Path]:
    """The files that the user would call the project."""
    for path in sorted((folder or root).iterdir()):
        if path.relative_to(root) in _OWN or _is_stray(path):
            continue
        yield path
        if path.is_dir() and not path.is_symlink():
            yield from _walk(root, path)
