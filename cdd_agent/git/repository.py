"""The user's repositories for checkpoints: the project's, and those below it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.files.atomic import read_bytes
from cdd_agent.files.regular_files import git_folder, read_small
from cdd_agent.git.command import Git
from cdd_agent.process.run import CommandResult
from cdd_agent.text.sanitize import sanitize_for_display


class Repository(Struct, frozen=True):
    top: Path
    folder: Path
    """Its `.git`, or the private folder of a linked worktree."""
    git: Git
    """Uses the user's index and settings, except settings that run something."""
    object_format: str
    settings: tuple[str, ...]
    """The user's settings that affect checkpoints, as `name=value`."""

    @property
    def objects(self) -> Path:
        return self.shared / "objects"

    @property
    def exclude(self) -> bytes:
        """The repository's ignore rules in `info/exclude`."""
        return read_bytes(self.shared / "info" / "exclude") or b""

    async def tracked_though_ignored(
        self, folder: Path, where: Sequence[str], target: Path
    ) -> None:
        """List tracked files that git would ignore, each ended by a NUL. `where` are
        pathspecs relative to `folder`.
        """
        git = replace(self.git, folder=folder)
        await git(
            "ls-files", "-ci", "-z", "--exclude-standard", "--", *where, stdout=target
        )

    async def head(self) -> str | None:
        """Return the commit that is checked out, if any."""
        result = await self.git(
            "rev-parse", "--verify", "--quiet", "HEAD^{commit}", codes=(0, 1, 128)
        )
        return result.stdout.strip() or None

    @property
    def worktree(self) -> str:
        """The name of a linked worktree; empty for the main one."""
        return self.folder.name if self.folder.parent.name == "worktrees" else ""

    @property
    def shared(self) -> Path:
        """The `.git` that all worktrees share."""
        return _shared(self.folder)


async def repository_of(root: Path) -> Repository | None:
    """Return the repository that contains a project, unless it ignores the project."""
    for top in (root, *root.parents):
        folder = git_folder(top)
        if folder is not None:
            break
    else:
        return None
    repository = await _read(top, folder)
    if repository is None or root == top:
        return repository
    words = ("check-ignore", "--quiet", "--", str(root))
    answer = await repository.git(*words, codes=(0, 1))
    is_ignored = answer.return_code == 0
    return None if is_ignored else repository


class Unreadable(Exception):
    """Checkpoints cannot cover a repository below the project. The text is the reason,
    without its folder.
    """


async def inner_repository(place: Path, allowed: Sequence[Path]) -> Repository | None:
    """Return the repository with its top here, or None.

    Its data must be in one of the `allowed` folders, because a `.git` file may point
    anywhere. Raises `Unreadable`.
    """
    folder = git_folder(place)
    if folder is None:
        return None
    try:
        folder = folder.resolve(strict=True)
    except (OSError, RuntimeError):
        return None
    for data in (folder, _shared(folder).resolve()):
        if not any(data.is_relative_to(parent) for parent in allowed):
            raise Unreadable("its repository is outside the project")
    # the user's git decides whether it trusts the owner
    git = Git(place, {"GIT_CEILING_DIRECTORIES": str(place.parent)})
    answer = await git.run("rev-parse", "--show-object-format")
    if answer.return_code or answer.timed_out:
        if "not a git repository" in answer.stderr:
            return None
        raise Unreadable(_reason(answer))
    repository = await _read(place, folder)
    if repository is None:
        raise Unreadable("git cannot read it")
    return repository


def _shared(folder: Path) -> Path:
    return folder / read_small(folder / "commondir", 4096).strip()


def _reason(answer: CommandResult) -> str:
    _, _, why = answer.stderr.rpartition("fatal: ")
    first = why.strip().partition("\n")[0]
    return f"git cannot read it: {sanitize_for_display(first)}"


async def _read(top: Path, folder: Path) -> Repository | None:
    git = Git(top, {"GIT_DIR": str(folder), "GIT_WORK_TREE": str(top)})
    # settings for ignored files and for permissions of stored objects
    settings = (
        "--null",
        "--type=path",
        "--get-regexp",
        r"^core\.(excludesfile|sharedrepository)$",
    )
    answer, configured = await asyncio.gather(
        git("rev-parse", "--show-object-format", codes=(0, 128)),
        git("config", *settings, codes=(0, 1, 128)),
    )
    if answer.return_code:
        return None
    values = tuple(
        line.replace("\n", "=", 1)
        for line in configured.stdout.split("\0")
        if "\n" in line
    )
    return Repository(top, folder, git, answer.stdout.strip(), values)
