"""The current files of a project as git lists them, to copy them and to find ignored
ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from msgspec import Struct

from cdd_agent.git.command import Git
from cdd_agent.git.diff import REPOSITORY
from cdd_agent.git.repository import Repository, Unreadable, inner_repository
from cdd_agent.git.snapshot import names_in

_IN_REPOSITORY = ("--exclude-standard", "-z")


class ProjectFiles(Struct, frozen=True):
    """The files of a folder and its nested repositories, relative to the folder."""

    tracked: tuple[str, ...]
    untracked: tuple[str, ...]
    """Files and links that are neither tracked nor ignored."""
    ignored: tuple[str, ...]
    """Ignored files and folders. A folder ends with a slash, and its files are not
    listed.
    """
    submodules: tuple[str, ...]

    @property
    def files(self) -> tuple[str, ...]:
        return self.tracked + self.untracked


async def list_project_files(
    top: Path,
    scratch: Path,
    repository: Repository | None,
    asked: Iterable[str] = (),
) -> ProjectFiles:
    """List the files of `top` and its nested repositories. Raises `GitUnusable`.

    `top` is the top folder of `repository`. Without one, the ignore files alone decide.
    `scratch` is a folder for git's output. An ignored repository is listed if it
    contains one of the `asked` files.
    """
    allowed = [top, *([repository.shared.resolve()] if repository else [])]
    listing = _Listing(top, scratch, allowed)
    await listing.add("", repository)
    for folder in sorted(_repositories_with(top, asked)):
        await listing.add_inner(folder)
    return ProjectFiles(
        tuple(dict.fromkeys(listing.tracked)),
        tuple(listing.untracked),
        tuple(listing.ignored),
        tuple(listing.submodules),
    )


class _Listing:
    def __init__(self, top: Path, scratch: Path, allowed: Sequence[Path]) -> None:
        self.tracked: list[str] = []
        self.untracked: list[str] = []
        self.ignored: list[str] = []
        self.submodules: list[str] = []
        self._top, self._scratch, self._allowed = top, scratch, allowed
        self._seen: set[str] = set()

    async def add(self, folder: str, repository: Repository | None) -> None:
        self._seen.add(folder)
        git = repository.git if repository else await self._without_repository(folder)
        tracked = ("ls-files", "--stage", "--others", *_IN_REPOSITORY)
        ignored = ("--others", "--ignored", "--directory", *_IN_REPOSITORY)
        listed, left_out = self._scratch / "listed", self._scratch / "ignored"
        await asyncio.gather(
            git(*tracked, stdout=listed), git("ls-files", *ignored, stdout=left_out)
        )
        prefix = f"{folder}/" if folder else ""
        self.ignored += [prefix + name for name in names_in(left_out)]
        inner: dict[str, bool] = {}
        for line in names_in(listed):
            head, is_tracked, path = line.partition("\t")
            if not is_tracked and line.endswith("/"):
                inner[prefix + line.removesuffix("/")] = False
            elif not is_tracked:
                self.untracked.append(prefix + line)
            elif head.startswith(REPOSITORY):
                inner[prefix + path] = True
            else:
                self.tracked.append(prefix + path)
        for inner_path, is_submodule in inner.items():
            if await self.add_inner(inner_path) and is_submodule:
                self.submodules.append(inner_path)

    async def add_inner(self, folder: str) -> bool:
        """Add a nested repository. If git cannot read it, its ignore files decide.
        False if it is not checked out.
        """
        place = self._top / folder
        if place.is_symlink() or not (place / ".git").exists():
            return False
        if folder not in self._seen:
            try:
                repository = await inner_repository(place, self._allowed)
            except Unreadable:
                repository = None
            await self.add(folder, repository)
        return True

    async def _without_repository(self, folder: str) -> Git:
        bare = self._scratch / "listing.git"
        if not bare.exists():
            words = ("init", "--quiet", "--bare", "--template=", str(bare))
            await Git(self._scratch)(*words)
        place = self._top / folder
        return Git(place, {"GIT_DIR": str(bare), "GIT_WORK_TREE": str(place)})


def _repositories_with(top: Path, asked: Iterable[str]) -> set[str]:
    repositories = set()
    for path in asked:
        for parent in PurePosixPath(path).parents:
            is_below = parent.parts and ".." not in parent.parts
            if is_below and (top / parent / ".git").exists():
                repositories.add(str(parent))
    return repositories
