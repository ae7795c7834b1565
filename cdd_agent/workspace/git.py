"""What the shell shows of a git repository, read from its files: starting git for a header line costs too much."""

from pathlib import Path

_REF = "ref: refs/heads/"


def current_branch(root: Path) -> str | None:
    """The branch checked out at `root`, a short commit when HEAD is detached, or None outside a repository."""
    for folder in (root, *root.parents):
        git = folder / ".git"
        if git.exists():
            return _branch(_git_folder(git))
    return None


def _git_folder(git: Path) -> Path:
    """`.git` itself, or where a worktree's or submodule's `.git` file points."""
    if git.is_dir():
        return git
    text = _text(git)
    return (git.parent / text.removeprefix("gitdir:").strip()) if text.startswith("gitdir:") else git


def _branch(git: Path) -> str | None:
    head = _text(git / "HEAD")
    if head.startswith(_REF):
        return head.removeprefix(_REF)
    return head[:8] or None


def _text(path: Path) -> str:
    """Empty when it cannot be read: no branch is then shown, which is all that hangs on it."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
