"""What histories put in the place of a model, of programs and of a kill."""

import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cdd_agent.llm.port import FREE, Done, OnEvent, Price, Request, TextDelta, Usage
from cdd_agent.llm.scripted_reply import ScriptedReply
from cdd_agent.process.run import CommandResult
from tests.engine.histories_project import Variant
from tests.engine.histories_tree import UNFINISHED

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

    async def reply(self, request: Request, on_event: OnEvent) -> Done:
        scripted = await self.answer(request)
        if scripted.error is not None:
            raise scripted.error
        if scripted.text:
            on_event(TextDelta(scripted.text))
        for call in scripted.tool_calls:
            on_event(call)
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
class Unsynced:
    """What the process wrote, and what a power cut would lose of it: half of each file
    that was not synced, and names in folders that were not synced.
    """

    sizes: dict[str, int] = field(default_factory=dict)
    """By path, how much of it is known to be on the disk."""
    names: list[tuple[str, str, bytes | None]] = field(default_factory=list)
    """Files that were renamed, from and to, with what had the name before."""

    def open(self, path: str, flags: int) -> None:
        is_new = flags & os.O_TRUNC or not os.path.lexists(path)
        self.sizes[path] = 0 if is_new else Path(path).stat().st_size

    def rename(self, source: str, target: str) -> None:
        if source in self.sizes:
            self.sizes[target] = self.sizes.pop(source)
        if Path(source).is_file():
            known = Path(target).read_bytes() if Path(target).is_file() else None
            self.names.append((source, target, known))

    def sync(self, path: str) -> None:
        if path in self.sizes:
            self.sizes[path] = Path(path).stat().st_size
        self.names = [one for one in self.names if str(Path(one[1]).parent) != path]

    def forget(self, path: str) -> None:
        """Somebody else changed the file, and it is on the disk."""
        self.sizes.pop(path, None)
        self.names = [one for one in self.names if one[1] != path]

    def lose(self) -> None:
        for path, safe in self.sizes.items():
            if Path(path).is_file() and (size := Path(path).stat().st_size) > safe:
                os.truncate(path, safe + (size - safe) // 2)
        for source, target, known in reversed(self.names):
            if os.path.lexists(source) or not os.path.lexists(target):
                continue
            Path(target).rename(source)
            if known is not None:
                Path(target).write_bytes(known)


@dataclass
class Killer:
    """Ends the work just before one of the points at which it changes the disk."""

    place: str
    """Only changes below this folder count."""
    save: Callable[[], Path]
    """Saves all that is on the disk."""
    saved: Path | None = None
    unsynced: Unsynced | None = None
    """None: whatever was written stays."""
    _armed: Unsynced | None = None
    _remaining: int = 0
    _is_off: bool = False
    _is_busy: bool = False
    """What happens now is this object's own doing."""
    _fsync: Callable[[int], None] | None = None

    def arm(self, at: int, *, cuts_power: bool = False) -> None:
        self.saved, self._remaining = None, at
        _WATCHERS[:] = [self]
        if cuts_power:
            self.unsynced = self._armed = Unsynced()
            self._fsync, os.fsync = os.fsync, self._sync  # type: ignore[assignment]

    def disarm(self) -> None:
        self._remaining = 0
        _WATCHERS.clear()
        if self._fsync is not None:
            os.fsync = self._fsync  # type: ignore[assignment]
        self.unsynced = self._armed = self._fsync = None

    def _sync(self, file: Any) -> None:
        assert self._fsync is not None
        number = file if isinstance(file, int) else file.fileno()
        self._fsync(number)
        if self.unsynced is not None:
            self.unsynced.sync(str(Path(f"/proc/self/fd/{number}").readlink()))

    @contextmanager
    def paused(self) -> Iterator[None]:
        """What changes here is no point, and is on the disk at once."""
        was_off, self._is_off = self._is_off, True
        try:
            yield
        finally:
            self._is_off = was_off

    @contextmanager
    def writing_at_once(self) -> Iterator[None]:
        """What a program changes here is on the disk at once."""
        unsynced, self.unsynced = self.unsynced, None
        try:
            yield
        finally:
            self.unsynced = unsynced

    @property
    def has_killed(self) -> bool:
        return self.saved is not None

    def kill(self) -> None:
        """End the work here. Raises `Killed`."""
        if self.saved is None:
            self._is_busy = True
            if self._armed is not None:
                self._armed.lose()
            self.saved = self.save()
            self._is_busy = False
        raise Killed

    def watch(self, event: str, args: tuple[Any, ...]) -> None:
        if not self._remaining or self._is_busy or not self._is_point(event, args):
            return
        if self._armed is not None and (self._is_off or self.unsynced is None):
            self._armed.forget(str(args[0]))
        if self._is_off:
            return
        self._remaining -= 1
        if not self._remaining:
            self.kill()
        if self.unsynced is not None:
            self._is_busy = True
            if event == "open":
                self.unsynced.open(os.fsdecode(args[0]), args[2])
            elif event == "os.rename":
                self.unsynced.rename(*map(os.fsdecode, args[:2]))
            self._is_busy = False

    def _is_point(self, event: str, args: tuple[Any, ...]) -> bool:
        if event == "subprocess.Popen":
            return True
        if event not in _CHANGES or not isinstance(args[0], str | bytes | Path):
            return False
        if event == "open" and not args[2] & _WRITES:
            return False
        path = os.fsdecode(args[0])
        # a write that ends here would never be over for this process, which lives on
        is_end_of_write = event == "os.remove" and f"/{UNFINISHED}" in path
        return path.startswith(self.place) and not is_end_of_write


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
    places += [place for place in (common / "refs/heads").iterdir() if place.is_file()]
    found = {}
    for place in places:
        with suppress(FileNotFoundError):
            found[place.name] = place.read_bytes()
    if (common / "packed-refs").is_file():
        lines = (common / "packed-refs").read_bytes().splitlines()
        kept = [line for line in lines if b"refs/cdd/" not in line]
        found["packed-refs"] = b"\n".join(kept)
    return found
