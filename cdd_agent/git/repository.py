"""The user's repositories, as far as checkpoints need to know them: the one that a
project is a part of, and those below the project.
"""

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
from cdd_agent.sanitize import sanitize_for_display


class Repository(Struct, frozen=True):
    top: Path
    """Of the working tree."""
    folder: Path
    """Its `.git`; of a linked worktree, that worktree's own part of it."""
    git: Git
    """With the user's index and settings, but for those that would run something."""
    object_format: str
    settings: tuple[str, ...]
    """Those of the user's that matter, as `name=value`."""

    @property
    def objects(self) -> Path:
        return self.shared / "objects"

    @property
    def exclude(self) -> bytes:
        """The list of what is ignored in this copy of the repository alone."""
        return read_bytes(self.shared / "info" / "exclude") or b""

    async def tracked_though_ignored(
        self, folder: Path, where: Sequence[str], target: Path
    ) -> None:
        """List the files below a folder, each ended by a NUL; `where` are pathspecs
        from there.
        """
        git = replace(self.git, folder=folder)
        await git(
            "ls-files", "-ci", "-z", "--exclude-standard", "--", *where, stdout=target
        )

    async def head(self) -> str | None:
        """The commit that is checked out; None before the first."""
        found = await self.git(
            "rev-parse", "--verify", "--quiet", "HEAD^{commit}", codes=(0, 1, 128)
        )
        return found.stdout.strip() or None

    @property
    def worktree(self) -> str:
        """The name of a linked worktree; empty for the first one."""
        return self.folder.name if self.folder.parent.name == "worktrees" else ""

    @property
    def shared(self) -> Path:
        """The `.git` that all worktrees have in common."""
        return _shared(self.folder)


async def repository_of(root: Path) -> Repository | None:
    """The repository that a project is a part of; None where there is none, or it
    ignores the project.
    """
    found = (
        (top, place)
        for top in (root, *root.parents)
        if (place := git_folder(top)) is not None
    )
    top, folder = next(found, (root, None))
    if folder is None:
        return None
    repository = await _read(top, folder)
    if repository is None or root == top:
        return repository
    words = ("check-ignore", "--quiet", "--", str(root))
    is_ignored = (await repository.git(*words, codes=(0, 1))).return_code == 0
    return None if is_ignored else repository


class Unreadable(Exception):
    """A repository below the project that checkpoints cannot cover. The text says why,
    without its folder.
    """


async def inner_repository(place: Path, allowed: Sequence[Path]) -> Repository | None:
    """Return the repository whose working tree has its top here; None if there is none.

    Its data must be in one of the `allowed` folders: a `.git` file may point anywhere.
    Raises `Unreadable`.
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
    # As the user's git reads it: also whether it trusts the owner.
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
    """Return the `.git` that all worktrees have in common."""
    return folder / read_small(folder / "commondir", 4096).strip()


def _reason(answer: CommandResult) -> str:
    _, _, why = answer.stderr.rpartition("fatal: ")
    first = why.strip().partition("\n")[0]
    return f"git cannot read it: {sanitize_for_display(first)}"


async def _read(top: Path, folder: Path) -> Repository | None:
    """Read the repository of a working tree; None if the folder is no repository."""
    git = Git(top, {"GIT_DIR": str(folder), "GIT_WORK_TREE": str(top)})
    # What counts for what is ignored, and for who may use the objects that are stored.
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
    known = tuple(
        line.replace("\n", "=", 1)
        for line in configured.stdout.split("\0")
        if "\n" in line
    )
    return Repository(top, folder, git, answer.stdout.strip(), known)
