"""A worker's store of a project: a bare repository that keeps all received objects, and
makes trees for runs.

Several processes of one machine can use it at once, because git locks it. It can be
deleted while nothing runs.
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
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.settings.user_folders import worker_cache_folder

_RECEIVED = "refs/cdd/have"
_MOST_RECEIVED = 200
_MOST_REPORTED = 50
"""Commits to report to the client. One nearby commit is enough."""
_SECONDS = 3600.0
_PAUSE = 0.1
_SETTINGS = (
    *CONFIG,
    "core.fsync=none",
    "fetch.fsckObjects=true",
    "gc.autoDetach=false",
    "gc.pruneExpire=2.weeks.ago",
)
_NEWEST_FIRST = "--sort=-committerdate"


def find_folder_of_caches() -> Path:
    """Return the folder of all stores on this machine. Raises `BadInput` if the worker
    has no home folder.
    """
    folder = worker_cache_folder()
    if folder is None:
        raise BadInput(
            f"The worker on {platform.node()} has no home folder for its cache",
            hint="Set XDG_CACHE_HOME in the worker's environment to a folder.",
            refusal=Refusal.WORKER_UNUSABLE,
        )
    return folder


class ProjectCache(Struct, frozen=True):
    folder: Path
    object_format: str
    git: Git

    @classmethod
    async def open(cls, project: str) -> ProjectCache:
        """Open or create the store of the project with this id. Raises `BadInput`,
        `GitUnusable`.
        """
        folder = find_folder_of_caches() / f"{project}.git"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o700)
        except OSError as error:
            raise BadInput(
                f"{folder} could not be created: {error.strerror or error}",
                refusal=Refusal.DISK,
            ) from error
        object_format = "sha256" if project.endswith("-sha256") else "sha1"
        git = Git(folder, {"GIT_DIR": str(folder)}, _SETTINGS, seconds=_SECONDS)
        cache = cls(folder, object_format, git)
        await cache._create()
        return cache

    async def _create(self) -> None:
        lock = FileLock(
            self.folder.with_suffix(".lock"), blocking=False, thread_local=False
        )
        words = ("init", "--quiet", "--bare", "--template=")
        while not (self.folder / "ready").exists():
            try:
                with lock:
                    await self.git(
                        *words,
                        f"--object-format={self.object_format}",
                        str(self.folder),
                    )
                    (self.folder / "ready").touch()
            except Timeout:
                # another process creates it
                await asyncio.sleep(_PAUSE)

    async def received_commits(self) -> tuple[str, ...]:
        listed = await self.git(
            "for-each-ref",
            _NEWEST_FIRST,
            f"--count={_MOST_REPORTED}",
            "--format=%(objectname)",
            _RECEIVED,
        )
        return tuple(listed.stdout.split())

    async def take_in(self, bundle: Path, reference: str, tip: str) -> None:
        """Add the objects of a bundle, in which `reference` names `tip`. Raises
        `GitUnusable`, `BadInput`.
        """
        git = replace(self.git, env={**self.git.env, "GIT_ALLOW_PROTOCOL": "file"})
        options = (
            "--quiet",
            "--no-tags",
            "--no-write-fetch-head",
            "--no-auto-maintenance",
            "--refmap=",
        )
        target = f"{_RECEIVED}/{tip}"
        await git("fetch", *options, "--", str(bundle), f"{reference}:{target}")
        answer = await git("rev-parse", "--verify", f"{target}^{{commit}}")
        received = answer.stdout.strip()
        if received != tip:
            raise BadInput(
                f"Received the run as {received}, expected {tip}",
                refusal=Refusal.WORKER_UNUSABLE,
            )

    async def note_commits(self, commits: Sequence[str]) -> None:
        """Remember commits of the store that later bundles can build on."""
        for commit in commits:
            await self.git("update-ref", f"{_RECEIVED}/{commit}", commit)

    async def check_out(
        self, place: Path, commit: str, branch: str, author: tuple[str, str]
    ) -> None:
        """Make a repository in an empty folder that shares the objects, and check out a
        new branch at a commit. `author` has name and address for commits.
        """
        git, reference = Git(place), f"refs/heads/{branch}"
        object_format = f"--object-format={self.object_format}"
        await git("init", "--quiet", "--template=", object_format, str(place))
        alternates = place / ".git" / "objects" / "info" / "alternates"
        alternates.parent.mkdir(parents=True, exist_ok=True)
        alternates.write_text(f"{self.folder / 'objects'}\n")
        with (place / ".git" / "config").open("a") as file:
            file.write("[commit]\n\tgpgSign = false\n[user]\n")
            for key, value in zip(("name", "email"), author, strict=True):
                file.write(f'\t{key} = "{_escape(value)}"\n')
        await git("update-ref", reference, commit)
        await git("symbolic-ref", "HEAD", reference)
        await git("reset", "--quiet", "--hard")

    async def tidy(self) -> None:
        """Forget commits received long ago, and let git pack objects."""
        listed = await self.git(
            "for-each-ref", _NEWEST_FIRST, "--format=%(refname)", _RECEIVED
        )
        for name in listed.stdout.splitlines()[_MOST_RECEIVED:]:
            await self.git("update-ref", "-d", name)
        await self.git("gc", "--auto", "--quiet", codes=(0, 1, 128))


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
