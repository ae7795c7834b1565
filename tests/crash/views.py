"""A project from outside: files, state, what git thinks of it, and what should not be
there.
"""

import hashlib
import json
import stat
from collections.abc import Iterable, Iterator
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
_COMMITTED = (
    "symbolic-ref HEAD",
    "for-each-ref --format=%(refname) refs/heads refs/tags refs/stash",
    "log --format=%B --name-status",
    "diff --cached --name-status",
    "stash list",
    "submodule foreach --quiet git symbolic-ref HEAD",
    "submodule foreach --quiet git log --format=%B --name-status",
    "submodule foreach --quiet git status --porcelain --untracked-files=all",
)
"""The same where each step is committed, at the end: commits have other ids then."""
_LEDGERS = ("../ledger.jsonl", "beside.jsonl")
"""Of the step, and of an attempt in a tree of its own; from the attempt's folder."""
_NEVER_IN_COMMITS = ("symbolic-ref HEAD", "stash list")


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


def saved_answers(root: Path) -> int:
    """How many answers of the model, and of a person, are on the disk."""
    rounds = sum(
        message["role"] == "assistant"
        for attempt in _attempts(root)
        for message in _dialogue(attempt)
    )
    names = ("reply.md", "answer-*.json")
    return rounds + sum(
        len([*attempt.glob(name)]) for attempt in _attempts(root) for name in names
    )


def cut_commands(root: Path) -> int:
    """How many commands were started that the model has no answer for."""
    return sum(
        max(_started_calls(attempt), default=-1)
        >= sum(message["role"] == "tool" for message in _dialogue(attempt))
        for attempt in _attempts(root)
    )


def was_cut(root: Path) -> bool:
    """True if a command or a check of the run was started and its end not entered."""
    return any(
        _last_process(_entries(attempt, name)) == "started"
        for attempt in _attempts(root)
        for name in _LEDGERS
    )


def is_in_ledger(root: Path, path: str) -> bool:
    """True if a step is known to have changed a file."""
    return any(
        change["path"] == path
        for attempt in _attempts(root)
        for name in _LEDGERS
        for entry in _entries(attempt, name)
        for change in entry.get("changes", ())
    )


def restore_kept_files(root: Path) -> None:
    """Make the files that the last restoring kept what they were before their step, as
    a user does who finds nothing of theirs in them.
    """
    versions = root / ".cdd/runs" / SLUG / "versions"
    restored = [
        (entry, attempt)
        for attempt in _attempts(root)
        for entry in _entries(attempt, _LEDGERS[0])
        if entry["kind"] == "restored"
    ]
    last, attempt = max(restored, key=lambda one: one[0]["at"])
    for path in last.get("kept", ()):
        before = next(
            change["before"]
            for entry in _entries(attempt, _LEDGERS[0])
            for change in entry.get("changes", ())
            if change["path"] == path
        )
        if before is None:
            (root / path).unlink()
        else:
            (root / path).write_bytes((versions / before["content"]).read_bytes())


def _last_process(entries: Iterable[dict[str, Any]]) -> str:
    """The kind of the last entry that tells whether a command is running."""
    kinds = [entry["kind"] for entry in entries]
    telling = ("started", "begin", "command", "check", "restored")
    return next((kind for kind in reversed(kinds) if kind in telling), "")


def _attempts(root: Path) -> list[Path]:
    return [*(root / ".cdd/runs" / SLUG).glob("step-*/attempt-*")]


def _dialogue(attempt: Path) -> list[dict[str, Any]]:
    file = attempt / "dialogue.json"
    if not file.exists():
        return []
    messages: list[dict[str, Any]] = json.loads(file.read_bytes())["messages"]
    return messages


def _started_calls(attempt: Path) -> Iterator[int]:
    for name in _LEDGERS:
        for entry in _entries(attempt, name):
            if entry["kind"] == "started":
                yield entry.get("call", -1)


def _entries(attempt: Path, ledger: str) -> list[dict[str, Any]]:
    """The whole entries of an attempt in a ledger."""
    file = attempt / ledger
    lines = file.read_bytes().split(b"\n")[1:-1] if file.exists() else []
    number = int(attempt.name.removeprefix("attempt-"))
    return [entry for entry in map(json.loads, lines) if entry.get("attempt") == number]


def git_view(root: Path) -> dict[str, str]:
    """The user's own: branch, commits, index, stash; and what git thinks of the working
    tree.
    """
    if not (root / ".git").exists():
        return {}
    questions = _COMMITTED if _is_committed(root) else NEVER_CHANGED
    return {
        words: git(root, *words.split())
        for words in (*questions, "status --porcelain --untracked-files=all")
    }


def never_changed(root: Path) -> tuple[str, ...]:
    """Questions to git whose answers are the same at any moment."""
    if not (root / ".git").exists():
        return ()
    return _NEVER_IN_COMMITS if _is_committed(root) else NEVER_CHANGED


def _is_committed(root: Path) -> bool:
    return "commit: step" in (root / ".cdd/config.yaml").read_text()


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
