"""A worker's store of a project: a bare repository that keeps all received objects, and
separate copies for runs. Several processes of one machine can use it at once, because
git locks it. It is only a cache: it can be removed while nothing runs.
"""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Sequence
from pathlib import Path

from filelock import FileLock, Timeout
from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.errors import BadInput
from cdd_agent.git.command import CONFIG, Git
from cdd_agent.settings.user_folders import worker_cache_folder

_KNOWN = "refs/cdd/have"
_MOST_KNOWN = 200
_TOLD = 50
"""Number of known commits that are reported to the client: one near commit is enough.
"""
_SECONDS = 3600.0
_LOOK = 0.1


def cache_folder() -> Path:
    """Return the folder of all projects' caches on this machine.

    Raises `BadInput` for a worker without a home folder.
    """
    folder = worker_cache_folder()
    if folder is None:
        raise BadInput(
            f"The worker on {platform.node()} has no home folder for its cache",
            hint="Set XDG_CACHE_HOME in the worker's environment to a folder.",
        )
    return folder


class Cache(Struct, frozen=True):
    """Of one project."""

    folder: Path
    git: Git

    @classmethod
    async def open(cls, project: str) -> Cache:
        """Raises `BadInput`, `GitUnusable`."""
        folder = cache_folder() / f"{project}.git"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o700)
        except OSError as error:
            raise BadInput(
                f"{folder} could not be created: {error.strerror or error}"
            ) from error
        settings = (
            "core.fsync=none",
            "fetch.fsckObjects=true",
            "gc.autoDetach=false",
            "gc.pruneExpire=2.weeks.ago",
        )
        git = Git(
            folder, {"GIT_DIR": str(folder)}, (*CONFIG, *settings), seconds=_SECONDS
        )
        form = "sha256" if project.endswith("-sha256") else "sha1"
        lock = FileLock(folder.with_suffix(".lock"), blocking=False, thread_local=False)
        while not (folder / "ready").exists():
            try:
                with lock:
                    await git(
                        "init",
                        "--quiet",
                        "--bare",
                        "--template=",
                        f"--object-format={form}",
                        str(folder),
                    )
                    (folder / "ready").touch()
            except Timeout:  # another process makes it
                await asyncio.sleep(_LOOK)
        return cls(folder, git)

    async def known(self) -> tuple[str, ...]:
        """The latest commits that came."""
        how = (
            "--sort=-committerdate",
            f"--count={_TOLD}",
            "--format=%(objectname)",
            _KNOWN,
        )
        return tuple((await self.git("for-each-ref", *how)).stdout.split())

    async def take(self, bundle: Path, reference: str, tip: str) -> None:
        """Take in what a bundle has under a reference. Raises `GitUnusable`, also for
        another commit than `tip`.
        """
        git = replace(self.git, env={**self.git.env, "GIT_ALLOW_PROTOCOL": "file"})
        how = (
            "--no-tags",
            "--no-write-fetch-head",
            "--no-auto-maintenance",
            "--refmap=",
        )
        await git(
            "fetch", "--quiet", *how, "--", str(bundle), f"{reference}:{_KNOWN}/{tip}"
        )
        found = (
            await git("rev-parse", "--verify", f"{_KNOWN}/{tip}^{{commit}}")
        ).stdout.strip()
        if found != tip:
            raise BadInput(f"Received the run as {found}, expected {tip}")

    async def know(self, commits: Sequence[str]) -> None:
        """Remember commits that are in it, as something that a bundle can build on."""
        for commit in commits:
            await self.git("update-ref", f"{_KNOWN}/{commit}", commit)

    async def copy(
        self, place: Path, commit: str, branch: str, author: tuple[str, str]
    ) -> None:
        """Make a repository that shares the objects, on a new branch that is at a
        commit, with its files.
        """
        git, name = Git(place), f"refs/heads/{branch}"
        await git(
            "init",
            "--quiet",
            "--template=",
            f"--object-format={await self._form()}",
            str(place),
        )
        alternates = place / ".git" / "objects" / "info" / "alternates"
        alternates.parent.mkdir(parents=True, exist_ok=True)
        alternates.write_text(f"{self.folder / 'objects'}\n")
        with (place / ".git" / "config").open("a") as file:
            file.write("[commit]\n\tgpgSign = false\n[user]\n")
            for key, value in zip(("name", "email"), author, strict=True):
                escaped = (
                    value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
                )
                file.write(f'\t{key} = "{escaped}"\n')
        await git("update-ref", name, commit)
        await git("symbolic-ref", "HEAD", name)
        await git("reset", "--quiet", "--hard")

    async def tidy(self) -> None:
        """Forget commits that came long ago, and let git pack what has become much."""
        how = ("--sort=-committerdate", "--format=delete %(refname)", _KNOWN)
        old = (await self.git("for-each-ref", *how)).stdout.splitlines()[_MOST_KNOWN:]
        for line in old:
            await self.git("update-ref", "-d", line.removeprefix("delete "))
        await self.git("gc", "--auto", "--quiet", codes=(0, 1, 128))

    async def _form(self) -> str:
        return (await self.git("rev-parse", "--show-object-format")).stdout.strip()
