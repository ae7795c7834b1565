"""What histories put in the place of a model, of programs and of a kill."""

import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cdd_agent.llm.port import FREE, Done, Hear, Price, Request, TextDelta, Usage
from cdd_agent.llm.scripted_reply import ScriptedReply
from cdd_agent.process.run import CommandResult
from tests.engine.histories_project import Variant

# --- A model and a runner of commands -------------------------------------------------


@dataclass
class PlayedModel:
    """A model whose replies a history makes when it is asked."""

    answer: Callable[[Request], Awaitable[ScriptedReply]]
    name: str = "played"
    calls_tools: bool = True
    sees: bool | None = True
    window: int | None = None

    @property
    def price(self) -> Price:
        return FREE

    def warm_up(self) -> None:
        """Nothing is slow here."""

    async def check(self, *, connect: bool) -> None:
        """Nothing is missing."""

    async def reply(self, request: Request, hear: Hear) -> Done:
        scripted = await self.answer(request)
        if scripted.error is not None:
            raise scripted.error
        if scripted.text:
            hear(TextDelta(scripted.text))
        for call in scripted.tool_calls:
            hear(call)
        return Done(usage=Usage(1, 1))


@dataclass
class PlayedPrograms:
    """A `RunProgram`: the word after `make` names what is done."""

    run: Callable[[str], Awaitable[int]]

    async def __call__(
        self, argv: Sequence[str], *, cwd: Path, limit: float, **others: Any
    ) -> CommandResult:
        del cwd, others
        code = await self.run(argv[-1])
        return CommandResult("", "", code, 0.0, limit=limit)


# --- Kills ----------------------------------------------------------------------------


class Killed(BaseException):
    """The process is over. What the engine does after this is lost."""


@dataclass
class Killer:
    """Ends the work just before one of the points at which it changes the disk."""

    place: str
    """Only changes below this folder count."""
    save: Callable[[], Path]
    """Saves all that is on the disk."""
    saved: Path | None = None
    _remaining: int = 0
    _is_saving: bool = False

    def arm(self, at: int) -> None:
        self.saved, self._remaining = None, at
        _WATCHERS[:] = [self]

    def disarm(self) -> None:
        self._remaining = 0
        _WATCHERS.clear()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """What changes here is no point."""
        remaining, self._remaining = self._remaining, 0
        try:
            yield
        finally:
            self._remaining = remaining

    @property
    def has_killed(self) -> bool:
        return self.saved is not None

    def kill(self) -> None:
        """End the work here. Raises `Killed`."""
        if self.saved is None:
            self._is_saving = True
            self.saved = self.save()
            self._is_saving = False
        raise Killed

    def watch(self, event: str, args: tuple[Any, ...]) -> None:
        if not self._remaining or self._is_saving or not self._is_point(event, args):
            return
        self._remaining -= 1
        if not self._remaining:
            self.kill()

    def _is_point(self, event: str, args: tuple[Any, ...]) -> bool:
        if event == "subprocess.Popen":
            return True
        if event not in _CHANGES or not isinstance(args[0], str | bytes | Path):
            return False
        if event == "open" and not args[2] & _WRITES:
            return False
        return os.fsdecode(args[0]).startswith(self.place)


_CHANGES = frozenset(
    f"os.{name}" for name in ("rename", "remove", "rmdir", "mkdir", "link", "chmod")
) | {"open", "os.truncate"}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_WATCHERS: list[Killer] = []
_INSTALLED: list[bool] = []


def install_watch() -> None:
    """See changes of the disk from now on: audit hooks cannot be removed."""
    if not _INSTALLED:
        _INSTALLED.append(True)
        sys.addaudithook(_audit)


def _audit(event: str, args: tuple[Any, ...]) -> None:
    for watcher in _WATCHERS:
        watcher.watch(event, args)


# --- Repositories ---------------------------------------------------------------------


@dataclass
class Repositories:
    """HEAD, branches, index and stash of the repositories of a project."""

    place: Path
    variant: Variant
    known: list[dict[str, bytes]] = field(default_factory=list)

    def note(self) -> None:
        """What is there now is as the user has it."""
        self.known = self._read()

    def differences(self) -> list[str]:
        """Return what differs since `note`."""
        found = []
        now = self._read()
        pairs = zip(self.variant.git_folders, self.known, now, strict=True)
        for folder, old, new in pairs:
            for name in sorted(old.keys() | new.keys()):
                if old.get(name) == new.get(name):
                    continue
                if name == "index" and self._have_same_entries(folder, old, new):
                    continue
                found.append(f"{folder}/{name}")
        return found

    def heads(self) -> list[str]:
        """The commit of each repository."""
        return [
            self._git(self.place / folder, "rev-parse", "HEAD").strip()
            for folder in self.variant.repositories
        ]

    def committed(self, heads: Sequence[str]) -> Iterator[tuple[Path, list[str]]]:
        """Each repository that has commits since, with the files in them."""
        folders = self.variant.repositories
        for folder, old, new in zip(folders, heads, self.heads(), strict=True):
            if old != new:
                place = self.place / folder
                words = ("diff", "--name-only", "--no-renames", "-z", old, new)
                yield place, self._git(place, *words).split("\0")[:-1]

    def staged(self, place: Path, paths: Sequence[str]) -> list[str]:
        """Return which of the paths differ between HEAD and index."""
        words = ("diff", "--cached", "--name-only", "-z", "--", *paths)
        return self._git(place, *words).split("\0")[:-1]

    def _git(self, place: Path, *words: str) -> str:
        words = ("git", "--literal-pathspecs", *words)
        done = subprocess.run(words, cwd=place, capture_output=True, check=True)
        return os.fsdecode(done.stdout)

    def _read(self) -> list[dict[str, bytes]]:
        return [_read_git(self.place / folder) for folder in self.variant.git_folders]

    def _have_same_entries(
        self, folder: str, old: dict[str, bytes], new: dict[str, bytes]
    ) -> bool:
        return self._entries(folder, old) == self._entries(folder, new)

    def _entries(self, folder: str, found: dict[str, bytes]) -> bytes:
        index = self.place.parent / "index"
        index.write_bytes(found.get("index", b""))
        environment = {**os.environ, "GIT_INDEX_FILE": str(index)}
        return subprocess.run(
            ["git", "--git-dir", self.place / folder, "ls-files", "-s", "-t"],
            env=environment,
            capture_output=True,
            check=True,
        ).stdout


def _read_git(folder: Path) -> dict[str, bytes]:
    common = folder
    if (folder / "commondir").exists():
        common = folder / (folder / "commondir").read_text().strip()
    places = [folder / "HEAD", folder / "index", folder / "MERGE_HEAD"]
    places += [common / "refs/stash", common / "logs/refs/stash"]
    heads = common / "refs/heads"
    places += [place for place in heads.rglob("*") if place.is_file()]
    found = {place.name: place.read_bytes() for place in places if place.is_file()}
    if (common / "packed-refs").is_file():
        lines = (common / "packed-refs").read_bytes().splitlines()
        kept = [line for line in lines if b"refs/cdd/" not in line]
        found["packed-refs"] = b"\n".join(kept)
    return found
