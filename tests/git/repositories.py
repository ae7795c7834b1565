"""Repositories for tests, and git's answers about them."""

import subprocess
from pathlib import Path

_AUTHOR = (
    *("-c", "user.name=Ann"),
    *("-c", "user.email=ann@example.org"),
    *("-c", "protocol.file.allow=always"),
)
_CONFIG = """\
[core]
	repositoryformatversion = 0
	filemode = true
	bare = false
	logallrefupdates = true
"""
_FOLDERS = ("hooks", "info", "objects/info", "objects/pack", "refs/heads", "refs/tags")


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *_AUTHOR, *arguments],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


def make_repository(root: Path) -> Path:
    """Make an empty repository, as `git init` does but without a process."""
    for name in _FOLDERS:
        (root / ".git" / name).mkdir(parents=True)
    (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (root / ".git" / "config").write_text(_CONFIG)
    return root
