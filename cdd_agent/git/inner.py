"""The repositories below a project: submodules, clones, linked worktrees.

Each gets snapshots in its own store. They are found through git's listings: links to
repositories in the index, folders that git does not enter, and the parents of files
that were asked for.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.errors import CddError
from cdd_agent.git.command import GitUnusable
from cdd_agent.git.repository import Unreadable, inner_repository
from cdd_agent.git.snapshot import Snapshot, Snapshots
from cdd_agent.text.sanitize import sanitize_for_display

_AT_ONCE = 4
"""Maximum number of repositories that git reads at the same time."""


def find_owner(path: str, folders: Collection[str]) -> str:
    """Return the innermost of these folders that contains a path; empty for the
    project's own repository.
    """
    if len(folders) > 1 or "" not in folders:
        for parent in map(str, PurePosixPath(path).parents):
            if parent in folders:
                return parent
    return ""


class InnerRepositories(Struct):
    """The snapshots of the repositories below a project, by folder."""

    outer: Snapshots
    """The project's own repository."""
    allowed: Sequence[Path]
    """Folders that may hold the data of a repository."""
    parts: dict[str, Snapshots] = field(default_factory=dict)
    uncovered: dict[str, str] = field(default_factory=dict)
    """The reason why a repository is not covered, by folder."""
    _few_at_once: asyncio.Semaphore = field(
        default_factory=lambda: asyncio.Semaphore(_AT_ONCE)
    )

    @property
    def all_parts(self) -> dict[str, Snapshots]:
        """The snapshots of all repositories; the project's own has an empty name."""
        return {"": self.outer, **self.parts}

    async def find_all(self) -> None:
        """Find the repositories below at any depth. Raises `GitUnusable`."""
        unread = [""]
        while unread:
            folder = unread.pop()
            part = self.all_parts[folder]
            for inner_folder in sorted(await part.find_inner()):
                whole = f"{folder}/{inner_folder}" if folder else inner_folder
                if await self._open(whole):
                    unread.append(whole)

    async def take(self, name: str, also: Iterable[str]) -> dict[str, Snapshot]:
        """Take a snapshot of every repository, by folder. Raises `GitUnusable` or
        `BadInput`.
        """
        asked = set(also)
        self._close_removed()
        for folder in sorted(_folders_of(asked)):
            if self._may_be_top(folder):
                await self._open(folder)
        try:
            parts = {"": await self._take_part("", name, asked)}
        except GitUnusable:
            await self._refuse_damaged()
            parts = {"": await self._take_part("", name, asked)}
        while unread := sorted(await self._find_new(parts)):
            looks = [self._take_inner(folder, name, asked) for folder in unread]
            for folder, snapshot in zip(
                unread, await asyncio.gather(*looks), strict=True
            ):
                if snapshot is not None:
                    parts[folder] = snapshot
        return parts

    async def _find_new(self, known_folders: Collection[str]) -> set[str]:
        for folder in known_folders:
            for folder_inside in self.all_parts[folder].inner_repositories:
                whole = f"{folder}/{folder_inside}" if folder else folder_inside
                await self._open(whole)
        return self.parts.keys() - known_folders

    async def _take_part(
        self, folder: str, name: str, asked: Collection[str]
    ) -> Snapshot:
        folders = self.all_parts
        paths_of_part = {path for path in asked if find_owner(path, folders) == folder}
        short = {path[len(folder) + 1 :] if folder else path for path in paths_of_part}
        return await folders[folder].take(name, short)

    async def _take_inner(
        self, folder: str, name: str, asked: Collection[str]
    ) -> Snapshot | None:
        """Take a snapshot of a nested repository; None if git cannot read it."""
        async with self._few_at_once:
            part = self.parts[folder]
            try:
                return await self._take_part(folder, name, asked)
            except CddError as error:
                await self._refuse_damaged()
                if folder in self.parts and not part.was_taken:
                    self._refuse(folder, sanitize_for_display(error.message))
            if folder not in self.parts:
                return None
            return await self._take_part(folder, name, asked)

    async def _refuse_damaged(self) -> None:
        for folder in list(self.parts):
            if not await self._is_sound(folder):
                self._refuse(folder, "it was damaged since the run began")
        await self.find_all()

    async def _is_sound(self, folder: str) -> bool:
        try:
            place = self.outer.root / folder
            return await inner_repository(place, self.allowed) is not None
        except (GitUnusable, Unreadable):
            return False

    async def _open(self, folder: str) -> bool:
        """Open the snapshots of a repository. False if there is none, or if it is
        open.
        """
        if folder in self.parts or folder in self.uncovered:
            return False
        place = self.outer.root / folder
        if self.outer.is_left_out(folder, is_folder=True):
            return False
        try:
            repository = await inner_repository(place, self.allowed)
            if repository is None:
                return False
            digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]
            store = replace(self.outer.store, object_format=repository.object_format)
            self.parts[folder] = await Snapshots.open(
                place,
                self.outer.folder / "inner" / digest,
                store,
                tuple(_patterns_below(folder, self.outer.leave_out)),
                repository,
                name=f"inner:{folder}",
            )
        except Unreadable as error:
            self._refuse(folder, str(error))
            return False
        except GitUnusable as error:
            self._refuse(folder, sanitize_for_display(error.message))
            return False
        return True

    def _refuse(self, folder: str, why: str) -> None:
        self.uncovered[folder] = why
        self.parts.pop(folder, None)
        for parent in (*map(str, PurePosixPath(folder).parents), ""):
            part = self.all_parts.get(parent)
            if part is not None:
                part.refused.add(folder[len(parent) + 1 :] if parent else folder)
                return

    def _close_removed(self) -> None:
        for folder in list(self.parts):
            if not os.path.lexists(self.outer.root / folder / ".git"):
                del self.parts[folder]

    def _may_be_top(self, folder: str) -> bool:
        place = self.outer.root / folder
        if not os.path.lexists(place / ".git"):
            return False
        try:
            return place.resolve() == place
        except (OSError, RuntimeError):
            return False


def _folders_of(paths: Iterable[str]) -> set[str]:
    folders = set[str]()
    for path in paths:
        if ".." not in PurePosixPath(path).parts and not path.startswith("/"):
            folders.update(map(str, PurePosixPath(path).parents))
    return folders - {"."}


def _patterns_below(folder: str, patterns: Iterable[str]) -> Iterator[str]:
    for pattern in patterns:
        if pattern.startswith("**/"):
            yield pattern
        elif pattern.startswith(f"{folder}/"):
            yield pattern.removeprefix(f"{folder}/")
