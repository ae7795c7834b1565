"""The moments at which a process changes the world, found by watching it, and its end
at one of them.

Python announces each change of a file and each start of a program to audit hooks
(https://docs.python.org/3/library/audit_events.html), so a new kind of write is a new
point without being listed anywhere. Of what is not announced, `os.fsync` and the moment
after a program's start are added here.
"""

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

MODEL_CALLED = "tests.crash.model_called"
MODEL_HALFWAY = "tests.crash.model_halfway"

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_NO_FOLDER = -1


class Death(StrEnum):
    """How a process ends."""

    KILL = "kill"
    """A kill: all that it wrote stays, and all that it started goes on."""
    POWER_CUT = "power-cut"
    """Of what it wrote and did not sync, half is lost, and so is a file's new name in a
    folder that was not synced; what it started ends too.
    """


@dataclass(frozen=True)
class Point:
    """Just before one change of the world. `path` is relative to the project."""

    number: int
    kind: str
    path: str

    @property
    def death(self) -> Death:
        """Each point has one: where data is synced that is the loss of it, elsewhere it
        is one or the other.
        """
        return (
            Death.POWER_CUT if self.kind == "fsync" or self.number % 2 else Death.KILL
        )

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> Self:
        return cls(**entry)


@dataclass(frozen=True)
class _Named:
    """A file that got a name, in a folder that was not synced since."""

    kind: str
    source: str
    target: str
    before: bytes | None
    """The object that had that name."""

    def restore(self) -> None:
        """As if it had never happened. What is not as it left it was changed once more,
        or did not happen.
        """
        with contextlib.suppress(FileNotFoundError):
            if self.kind == "link":
                Path(self.target).unlink()
            elif not os.path.lexists(self.source):
                Path(self.target).rename(self.source)
                if self.before is not None:
                    Path(self.target).write_bytes(self.before)


@dataclass
class Watch:
    """Counts the points of this process that are below `root`, and tells of each before
    it happens.
    """

    root: Path
    reached: Callable[[Point], None]
    _count: int = 0
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _safe: dict[str, int] = field(default_factory=dict)
    """How much of each file that was written is known to be on the disk."""
    _unsafe: list[_Named] = field(default_factory=list)
    _children: list[subprocess.Popen[Any]] = field(default_factory=list)

    def begin(self) -> None:
        """From now on, for as long as the process lives: audit hooks cannot be
        removed.
        """
        self._watch_fsync()
        self._watch_starts()
        sys.addaudithook(self._audit)

    def die(self, death: Death) -> None:
        """End this process at once."""
        # what comes now is not the process's own doing
        self.reached = lambda point: None
        if death is Death.POWER_CUT:
            for child in self._children:
                with contextlib.suppress(OSError):
                    child.kill()
            # a copy: other threads still write
            for path, safe in tuple(self._safe.items()):
                size = _size(path)
                if size > safe:
                    os.truncate(path, safe + (size - safe) // 2)
            for named in tuple(reversed(self._unsafe)):
                named.restore()
        os.kill(os.getpid(), signal.SIGKILL)

    def _audit(self, event: str, args: tuple[Any, ...]) -> None:
        kind = event.rpartition(".")[2]
        match event, args:
            case (
                ("open" | "os.truncate" | "os.chmod" | "os.chown" | "os.utime"),
                (int(), *_),
            ):
                pass  # a file that is open already: then that was the point
            case "open", (path, _, flags):
                if flags & _WRITES:
                    self._opened(_absolute(path), flags)
            case (("os.rename" | "os.link"), (source, target, from_folder, to_folder)):
                self._named(
                    kind, _absolute(source, from_folder), _absolute(target, to_folder)
                )
            case (("os.remove" | "os.rmdir"), (path, folder)):
                self._removed(kind, _absolute(path, folder))
            case "os.mkdir", (path, _, folder):
                self._made(_absolute(path, folder))
            case (("os.chmod" | "os.chown" | "os.utime"), (path, *_, folder)):
                self._point(kind, _absolute(path, folder))
            case "os.truncate", (path, _):
                self._point(kind, _absolute(path))
            case "os.symlink", (_, path, folder):
                self._point(kind, _absolute(path, folder))
            case "subprocess.Popen", (_, argv, *_):
                self._point("command", _shown(argv), anywhere=True)
            case (("os.system" | "os.posix_spawn" | "os.exec" | "os.fork"), _):
                self._point(kind, "", anywhere=True)
            case _, (call,) if event in (MODEL_CALLED, MODEL_HALFWAY):
                self._point(kind, f"call {call}", anywhere=True)

    def _opened(self, path: str, flags: int) -> None:
        self._point("open", path)
        if self._is_inside(path):
            self._safe[path] = (
                0
                if flags & os.O_TRUNC
                else min(_size(path), self._safe.get(path, _size(path)))
            )

    def _named(self, kind: str, source: str, target: str) -> None:
        if self._is_inside(source) or self._is_inside(target):
            self._point(kind, target, anywhere=True)
        if source in self._safe:
            self._safe[target] = (
                self._safe[source] if kind == "link" else self._safe.pop(source)
            )
        if self._is_inside(target) and Path(source).is_file():
            before = (
                Path(target).read_bytes()
                if kind == "rename" and Path(target).is_file()
                else None
            )
            self._unsafe.append(_Named(kind, source, target, before))

    def _made(self, path: str) -> None:
        if not os.path.lexists(path):
            self._point("mkdir", path)

    def _removed(self, kind: str, path: str) -> None:
        if os.path.lexists(path):
            self._point(kind, path)
        self._safe.pop(path, None)

    def _point(self, kind: str, path: str, *, anywhere: bool = False) -> None:
        if not (anywhere or self._is_inside(path)):
            return
        with self._lock:
            self._count += 1
            shown = os.path.relpath(path, self.root) if self._is_inside(path) else path
            self.reached(Point(self._count, kind, shown))

    def _is_inside(self, path: str) -> bool:
        return path == str(self.root) or path.startswith(f"{self.root}{os.sep}")

    def _watch_fsync(self) -> None:
        fsync = os.fsync

        def watched(file: Any) -> None:
            path = _path_of(file if isinstance(file, int) else file.fileno())
            self._point("fsync" if Path(path).is_file() else "fsync-folder", path)
            fsync(file)
            if path in self._safe:
                self._safe[path] = _size(path)
            self._unsafe = [
                named
                for named in self._unsafe
                if Path(named.target).parent != Path(path)
            ]

        os.fsync = watched  # type: ignore[assignment]

    def _watch_starts(self) -> None:
        start = subprocess.Popen.__init__

        def watched(process: subprocess.Popen[Any], *args: Any, **how: Any) -> None:
            start(process, *args, **how)
            self._children.append(process)
            self._point("command-runs", _shown(process.args), anywhere=True)

        subprocess.Popen.__init__ = watched  # type: ignore[method-assign, assignment]


def _shown(argv: Any) -> str:
    return (
        os.fsdecode(argv)
        if isinstance(argv, str | bytes | os.PathLike)
        else " ".join(map(os.fsdecode, argv))
    )


def _absolute(path: Any, folder: int = _NO_FOLDER) -> str:
    """A path of an audit event, that may be relative to an open folder; the link itself
    where it is one.
    """
    base = Path.cwd() if folder == _NO_FOLDER else Path(_path_of(folder))
    return os.path.normpath(base / os.fsdecode(path))


def _path_of(descriptor: int) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115 (what is there need not be a path)
    except OSError:
        asked = getattr(fcntl, "F_GETPATH", None)  # macOS has no /proc
        found = fcntl.fcntl(descriptor, asked, bytes(1024)) if asked else b""
        return os.fsdecode(found.rstrip(b"\0"))


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0
