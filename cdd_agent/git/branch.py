"""The branch that is checked out, read from git's files."""

from pathlib import Path

from cdd_agent.files.regular_files import git_folder, read_small

_REF = "ref: refs/heads/"


def current_branch(root: Path) -> str | None:
    """Return the branch checked out at `root`, a short commit for a detached HEAD, or
    None outside a repository.

    Reads git's files, because starting git for a header line costs too much.
    """
    git = next(filter(None, map(git_folder, (root, *root.parents))), None)
    head = read_small(git / "HEAD", 4096).strip() if git else ""
    return (head.removeprefix(_REF) if head.startswith(_REF) else head[:8]) or None
