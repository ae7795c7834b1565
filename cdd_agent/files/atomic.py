"""Read and write files. A crash never leaves a half-written file."""

import contextlib
import errno
import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO

import psutil

from cdd_agent.errors import BadInput
from cdd_agent.pattern import Pattern
from cdd_agent.refusals.kinds import Refusal

_IGNORE = (
    "# Runs are this machine's own; the config and the templates are shared.\nruns/\n"
)
_LEFTOVER = Pattern(r"\.cdd-[0-9a-f]{12}-([0-9]+)-[0-9a-f]{8}\.tmp")
_being_written = set[Path]()
"""The temporary files of this process."""


class DiskRefused(BadInput):
    """The disk refused. The `OSError` is the cause."""

    refusal = Refusal.DISK

    done = ""
    advice = ""

    def __init__(self, path: Path, error: OSError) -> None:
        reason = error.strerror or error
        super().__init__(f"{path} could not be {self.done}: {reason}", hint=self.advice)
        self.path = path


class NotWritten(DiskRefused):
    done = "written"
    advice = "Check that the folder is writable and that the disk has space."


class NotRead(DiskRefused):
    done = "read"


class NotRemoved(DiskRefused):
    done = "removed"


def write_atomic(path: Path, data: bytes) -> None:
    """Write a file completely or not at all. An existing file keeps its mode, and a
    link is followed. Raises `NotWritten`.
    """
    target = path.resolve()
    with _temporary_file(target, (data,), path) as temporary:
        if target.exists():
            temporary.chmod(target.stat().st_mode & 0o7777)
        temporary.replace(target)


def create_exclusive(path: Path, data: bytes, permissions: int | None = None) -> None:
    """Create a file completely or not at all. Only one of several writers succeeds.
    Raises `NotWritten`, or `FileExistsError`, also for a broken link.
    """
    target = path.parent.resolve() / path.name
    exists = False
    with _temporary_file(target, (data,), path) as temporary:
        if permissions is not None:
            temporary.chmod(permissions)
        try:
            try:
                os.link(temporary, target)
            except FileExistsError:
                raise
            except OSError:
                # no hard links on this disk: a reader could see a partial file
                _write_synced(target, (data,))
        except FileExistsError:
            exists = True
    # outside the block, which would turn it into a `NotWritten`
    if exists:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))


def put_file(place: Path, chunks: Iterable[bytes], permissions: int) -> None:
    """Write a file completely or not at all, private until it has its `permissions`. A
    link is replaced. Raises `NotWritten`.
    """
    with _temporary_file(place, chunks, place, 0o600) as temporary:
        temporary.chmod(permissions)
        temporary.replace(place)


def put_link(place: Path, target: str) -> None:
    """Make a link or replace a file by it. Raises `NotWritten`."""
    with _temporary_name(place, place) as temporary:
        temporary.symlink_to(target)
        temporary.replace(place)


def respell(old: Path, new: Path, data: bytes | None = None) -> None:
    """Rename a file on a disk where both names mean the same entry, and optionally
    write `data`. Keeps the permissions.

    After a kill, the old file, the new one or a temporary file has the content. Raises
    `NotWritten`.
    """
    try:
        if data is None:
            old.rename(new)
            if any(entry.name == new.name for entry in new.parent.iterdir()):
                sync_folder(new.parent)
                return
            # Linux does not rename an entry to another spelling of its name
            data = old.read_bytes()
        permissions = old.stat().st_mode & 0o7777
    except OSError as error:
        raise NotWritten(new, error) from error
    with _temporary_file(new, (data,), new) as temporary:
        temporary.chmod(permissions)
        old.unlink()
        temporary.rename(new)


def append_line(path: Path, line: bytes, permissions: int = 0o666) -> None:
    """Append a line in one write, after completing an unfinished last line of a killed
    process. Raises `NotWritten`.
    """
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
    with _report(NotWritten, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, flags, permissions)
        try:
            if os.lseek(descriptor, 0, os.SEEK_END):
                os.lseek(descriptor, -1, os.SEEK_END)
                if os.read(descriptor, 1) != b"\n":
                    line = b"\n" + line
            if os.write(descriptor, line) < len(line):
                raise OSError("only a part of the line was written")
        finally:
            os.close(descriptor)


def sync_all() -> None:
    """Make all files survive a power cut, except on Windows."""
    if hasattr(os, "sync"):
        os.sync()


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power cut, where the system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def remove(path: Path) -> None:
    """Remove a file if it exists. Raises `NotRemoved`."""
    with _report(NotRemoved, path):
        path.unlink(missing_ok=True)


def remove_folder(folder: Path) -> None:
    """Remove a folder if it exists. Raises `NotRemoved`."""
    with _report(NotRemoved, folder):
        while os.path.lexists(folder):
            # another process may remove a file in it
            with contextlib.suppress(FileNotFoundError):
                _remove_all(folder)


def _remove_all(folder: Path) -> None:
    try:
        shutil.rmtree(folder)
    except PermissionError:
        # tests and package managers leave read-only folders
        _make_writable(folder)
        shutil.rmtree(folder)


def _make_writable(top: Path) -> None:
    folders = [top]
    while folders:
        folder = folders.pop()
        folder.chmod(0o700)
        with os.scandir(folder) as items:
            for item in items:
                if item.is_dir(follow_symlinks=False):
                    folders.append(folder / item.name)


def remove_leftovers(folder: Path) -> None:
    """Remove temporary files of killed processes from a folder."""
    for file in folder.glob(".cdd-*.tmp"):
        name = _LEFTOVER.fullmatch(file.name)
        if name and not _is_being_written(file, int(name[1])):
            # already removed, or in a read-only folder
            with contextlib.suppress(OSError):
                file.unlink()


def read_bytes(path: Path, limit: int = -1) -> bytes | None:
    """Return at most `limit` bytes; None without a file. Raises `NotRead`."""
    with _report(NotRead, path), _open_existing(path) as file:
        return file.read(limit) if file else None


def read_lines(path: Path, longest: int) -> Iterator[bytes]:
    """Yield lines with their ends, in pieces of at most `longest` bytes. No file means
    no lines. Raises `NotRead`.
    """
    with _report(NotRead, path), _open_existing(path) as file:
        while file and (line := file.readline(longest)):
            yield line


def read_tail(path: Path, limit: int) -> list[bytes]:
    """Return the lines that begin in the last `limit` bytes. No file means no lines.
    Raises `NotRead`.
    """
    with _report(NotRead, path), _open_existing(path) as file:
        if file is None:
            return []
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - limit, 0))
        lines = file.read(limit).splitlines(keepends=True)
    # the first line began earlier
    return lines[1:] if size > limit else lines


def _open_existing(path: Path) -> AbstractContextManager[BinaryIO | None]:
    try:
        return path.open("rb")
    except (FileNotFoundError, NotADirectoryError):
        return contextlib.nullcontext()


@contextlib.contextmanager
def _report(refusal: type[DiskRefused], path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise refusal(path, error) from error


def ignore_runs(root: Path) -> Path | None:
    """Create the file that makes git ignore runs. None if it exists."""
    file = root / ".cdd" / ".gitignore"
    if file.exists():
        return None
    write_atomic(file, _IGNORE.encode())
    return file


def digest(data: bytes | None) -> str | None:
    """Return the SHA-256 of a content; None for a missing file."""
    return None if data is None else hashlib.sha256(data).hexdigest()


@contextlib.contextmanager
def _temporary_file(
    target: Path, chunks: Iterable[bytes], shown: Path, mode: int = 0o666
) -> Iterator[Path]:
    with _temporary_name(target, shown) as temporary:
        _write_synced(temporary, chunks, mode)
        yield temporary


@contextlib.contextmanager
def _temporary_name(target: Path, shown: Path) -> Iterator[Path]:
    """Yield a name next to `target`. The block's file there is removed at the end."""
    temporary = _temporary(target)
    _being_written.add(temporary)
    try:
        with _report(NotWritten, shown):
            target.parent.mkdir(parents=True, exist_ok=True)
            yield temporary
            sync_folder(target.parent)
    finally:
        # an error here would hide the first one
        with contextlib.suppress(OSError):
            temporary.unlink()
        _being_written.discard(temporary)


def _temporary(target: Path) -> Path:
    """Return a unique name that `remove_leftovers` recognises."""
    name = target.name.encode("utf-8", "surrogateescape")
    identity = hashlib.sha256(name).hexdigest()[:12]
    unique = os.urandom(4).hex()
    return target.parent / f".cdd-{identity}-{os.getpid()}-{unique}.tmp"


def _is_being_written(temporary: Path, pid: int) -> bool:
    if pid == os.getpid():
        return temporary in _being_written
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        # the process belongs to another user
        return True


def _write_synced(path: Path, chunks: Iterable[bytes], mode: int = 0o666) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(chunks)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        with contextlib.suppress(OSError):
            path.unlink()
        raise
