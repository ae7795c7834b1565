"""Reading and writing files so that a crash never leaves a half-written one."""

import contextlib
import errno
import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import psutil

from cdd_agent.errors import BadInput

_IGNORE = (
    "# Runs are this machine's own; the config and the templates are shared.\nruns/\n"
)
_LEFTOVER = re.compile(r"\.cdd-[0-9a-f]{12}-([0-9]+)-[0-9a-f]{8}\.tmp")
_being_written = set[Path]()
"""The temporary files of this process, in whichever thread."""


class NotWritten(BadInput):
    """A file that the disk does not take; the `OSError` is its cause."""

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(
            f"{path} could not be written: {error.strerror or error}",
            hint="Check that the folder is writable and that the disk has space.",
        )
        self.path = path


class NotRead(BadInput):
    """A file that is there and cannot be read; the `OSError` is its cause."""

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(f"{path} could not be read: {error.strerror or error}")
        self.path = path


def write_atomic(path: Path, data: bytes) -> None:
    """Write `data` whole or not at all: temporary file beside it, fsync, rename, fsync
    of the folder.

    Missing parent folders are made, an existing file keeps its mode, and a link is
    followed to its target. Of several that write the same file at once, the last one's
    data is what stays. Raises `BadInput` when the disk refuses (read-only, full, a
    folder in the way); then nothing has changed.
    """
    target = path.resolve()
    with _written_beside(target, (data,), path) as temporary:
        if target.exists():
            temporary.chmod(target.stat().st_mode & 0o7777)
        temporary.replace(target)


def create_exclusive(path: Path, data: bytes, permissions: int | None = None) -> None:
    """Write a file that must not be there yet, whole or not at all. Of several that
    create it at once, one does.

    It has these permissions, or those of any new file.

    Raises `FileExistsError` where there is something, be it a link that leads nowhere;
    otherwise as `write_atomic`.
    """
    target = path.parent.resolve() / path.name
    with _written_beside(target, (data,), path) as temporary:
        if permissions is not None:
            temporary.chmod(permissions)
        is_free = True
        try:
            try:
                os.link(temporary, target)
            except FileExistsError:
                raise
            except OSError:
                # a disk without hard links: whoever reads at this moment sees a part
                _write_synced(target, (data,))
        except FileExistsError:
            is_free = False
    if not is_free:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))


def put_file(place: Path, chunks: Iterable[bytes], permissions: int) -> None:
    """Write a file in exactly this place, whole or not at all: a link that is there is
    replaced, not followed.

    Nobody can read it meanwhile whom `permissions` would not let. Raises `BadInput`
    when the disk refuses.
    """
    with _written_beside(place, chunks, place, 0o600) as temporary:
        temporary.chmod(permissions)
        temporary.replace(place)


def put_link(place: Path, leads_to: str) -> None:
    """Make a symbolic link in exactly this place, or replace what is there by it.
    Raises `BadInput`.
    """
    with _put_beside(place, place) as temporary:
        temporary.symlink_to(leads_to)
        temporary.replace(place)


def respell(old: Path, new: Path, data: bytes | None = None) -> None:
    """Rename a file where the disk takes both names for one, and give it new content if
    there is `data`. The file keeps its permissions.

    A process that is killed meanwhile leaves the old file, the new one or neither; in
    the last case a temporary file has the content. Raises `BadInput` when the disk
    refuses.
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
    with _written_beside(new, (data,), new) as temporary:
        temporary.chmod(permissions)
        old.unlink()
        temporary.rename(new)


def append_line(path: Path, line: bytes, permissions: int = 0o666) -> None:
    """Add a line, which has its end, to a file in one write; one that a killed process
    left unfinished is ended first.

    Missing folders are made; a new file has these permissions at most, whatever the
    folder. Raises `BadInput`.
    """
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, flags, permissions)
        try:
            if os.lseek(descriptor, 0, os.SEEK_END):
                os.lseek(descriptor, -1, os.SEEK_END)
                line = line if os.read(descriptor, 1) == b"\n" else b"\n" + line
            if os.write(descriptor, line) < len(line):
                raise OSError("only a part of the line was written")
        finally:
            os.close(descriptor)
    except OSError as error:
        raise NotWritten(path, error) from error


def sync_all() -> None:
    """See that all that was written stays, also after a cut of power; for many files at
    once. Windows cannot.
    """
    if hasattr(os, "sync"):
        os.sync()


def sync_folder(folder: Path) -> None:
    """See that the names in a folder stay, also after a cut of power.

    Where the system can: Windows and some network disks cannot, and the file itself is
    in its place by now.
    """
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def remove(path: Path) -> None:
    """Remove a file, if it is there. Raises `BadInput` when the disk refuses."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise BadInput(
            f"{path} could not be removed: {error.strerror or error}"
        ) from error


def remove_folder(folder: Path) -> None:
    """Remove a folder with all that is in it, if it is there. Raises `BadInput` when
    the disk refuses.
    """
    try:
        try:
            shutil.rmtree(folder)
        except PermissionError:
            # tests and package managers leave folders that may not be written
            _open_folders(folder)
            shutil.rmtree(folder)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise BadInput(
            f"{folder} could not be removed: {error.strerror or error}"
        ) from error


def _open_folders(top: Path) -> None:
    """Let the owner change everything below a folder. Raises `OSError`."""
    folders = [top]
    while folders:
        folder = folders.pop()
        folder.chmod(0o700)
        with os.scandir(folder) as items:
            folders += [
                folder / item.name
                for item in items
                if item.is_dir(follow_symlinks=False)
            ]


def remove_leftovers(folder: Path) -> None:
    """Remove what writes in a folder left whose process was killed in their middle; one
    that goes on is let be.
    """
    for file in folder.glob(".cdd-*.tmp"):
        found = _LEFTOVER.fullmatch(file.name)
        if found and not _is_being_written(file, int(found[1])):
            # somebody else was faster, or the folder is read-only by now
            with contextlib.suppress(OSError):
                file.unlink()


def read_bytes(path: Path, most: int = -1) -> bytes | None:
    """The content of a file, or the beginning of `most` bytes; None where there is
    none. Raises `BadInput` when it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return file.read(most)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise NotRead(path, error) from error


def read_lines(path: Path, longest: int) -> Iterator[bytes]:
    """The lines of a file, with their ends; none where there is no file. One that is
    longer comes in pieces.

    Raises `BadInput` when it cannot be read.
    """
    try:
        with path.open("rb") as file:
            while line := file.readline(longest):
                yield line
    except FileNotFoundError:
        return
    except OSError as error:
        raise NotRead(path, error) from error


def read_tail(path: Path, most: int) -> list[bytes]:
    """The lines, with their ends, that begin within the last so many bytes of a file;
    none where there is no file.

    Raises `BadInput` when it cannot be read.
    """
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - most, 0))
            lines = file.read(most).splitlines(keepends=True)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise NotRead(path, error) from error
    return lines[1:] if size > most else lines


def ignore_runs(root: Path) -> Path | None:
    """See that git ignores what runs leave; the file that was made for it, or None when
    it is there already.
    """
    file = root / ".cdd" / ".gitignore"
    if file.exists():
        return None
    write_atomic(file, _IGNORE.encode())
    return file


def digest(data: bytes | None) -> str | None:
    """The identity of a content in journals: its SHA-256, or None for a file that is
    not there.
    """
    return None if data is None else hashlib.sha256(data).hexdigest()


@contextlib.contextmanager
def _written_beside(
    target: Path, chunks: Iterable[bytes], shown: Path, mode: int = 0o666
) -> Iterator[Path]:
    """A temporary file with the data, to be put in its place; gone afterwards, whatever
    happens.
    """
    with _put_beside(target, shown) as temporary:
        _write_synced(temporary, chunks, mode)
        yield temporary


@contextlib.contextmanager
def _put_beside(target: Path, shown: Path) -> Iterator[Path]:
    """A temporary name for what is to be put in its place."""
    temporary = _temporary(target)
    _being_written.add(temporary)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        sync_folder(target.parent)
    except OSError as error:
        raise NotWritten(shown, error) from error
    finally:
        # what is told is the first error, not the clean-up's
        with contextlib.suppress(OSError):
            temporary.unlink()
        _being_written.discard(temporary)


def _temporary(target: Path) -> Path:
    """A name that no other write uses, and by which a later process finds what a killed
    one left.
    """
    of = hashlib.sha256(target.name.encode("utf-8", "surrogateescape")).hexdigest()[:12]
    return target.parent / f".cdd-{of}-{os.getpid()}-{os.urandom(4).hex()}.tmp"


def _is_being_written(temporary: Path, pid: int) -> bool:
    """Whether a temporary file belongs to a write that goes on, as far as its process's
    number tells.
    """
    if pid == os.getpid():
        return temporary in _being_written
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:  # it is there, and somebody else's
        return True


def _write_synced(path: Path, chunks: Iterable[bytes], mode: int = 0o666) -> None:
    """Make a file that is not there yet; when that fails, it is not there afterwards
    either.
    """
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
