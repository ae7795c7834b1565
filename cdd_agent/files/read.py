"""Reading one thing in a project for people and models: a file, some lines of it, or
what is in a folder.

Whatever it is, little of it is in memory at a time, nothing outside the project is
opened, and nothing that would make the reader wait.
"""

import stat
from difflib import get_close_matches
from io import BufferedReader
from itertools import islice
from pathlib import Path, PurePosixPath

from msgspec import Struct

from cdd_agent.errors import CddError
from cdd_agent.files.hidden_from_models import (
    LARGEST_SEARCHED,
    HiddenFiles,
    secret_in,
)
from cdd_agent.files.paths import PathRefused, confine
from cdd_agent.files.regular_files import open_file
from cdd_agent.files.walk import TOP, walk

_LIMIT = 100_000
"""Characters of a file that are shown."""
_ENTRIES = 1_000
"""Entries of a folder that are shown."""
_SCANNED = 100_000_000
"""Bytes that are looked through for the first line of a range."""
_PIECE = 65_536
_HEAD = 8_000
"""Bytes in which a binary file shows itself, as for git."""
_CANDIDATES = 20_000
"""Entries among which a missing file's likely names are looked for."""

_NO_FILE = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFLNK: "a link that leads in a circle",
}


class SourceUnreadable(CddError):
    """Something in the project that cannot, or must not, be shown."""


class SourceHidden(SourceUnreadable):
    """A file or folder that is kept from models."""

    def __init__(self, path: PurePosixPath | str, why: str) -> None:
        super().__init__(f"{path} is not shown: {why}")


class SourceMissing(SourceUnreadable):
    """Nothing of this name is there."""


class SourceText(Struct, frozen=True):
    """A file's text or a folder's listing, as far as it is shown."""

    path: PurePosixPath
    text: str
    size: int = 0
    """Bytes of the whole file; 0 for a folder."""
    cut: bool = False
    """There is more than what is shown."""
    replaced: bool = False
    """Some bytes were not UTF-8; each is shown as `\ufffd`."""
    is_folder: bool = False

    @property
    def note(self) -> str:
        """For the reader, besides the text; mostly empty."""
        notes = []
        if self.cut and self.is_folder:
            notes.append(f"cut: only the first {_ENTRIES:,} entries are shown")
        elif self.cut:
            notes.append(
                f"cut: {len(self.text):,} characters of a file of {self.size:,} bytes;"
                " ask for a range of lines"
            )
        if self.replaced:
            notes.append("not UTF-8: what could not be decoded is shown as \ufffd")
        return "; ".join(notes)

    def as_text(self) -> str:
        """The text, and the note below it where there is one."""
        if not self.note:
            return self.text
        return (
            f"{self.text}{'' if self.text.endswith(chr(10)) else chr(10)}…"
            f" ({self.note})\n"
        )


def is_binary(file: BufferedReader) -> bool:
    """Whether a file that is about to be read has no text, judged by its beginning."""
    return b"\0" in file.peek(_HEAD)[:_HEAD]


def locate(root: Path, text: str) -> PurePosixPath:
    """Like `confine`, for what is only looked at: the project itself (`.`) is fine,
    what belongs to git is not.
    """
    try:
        is_root = bool(text) and not PurePosixPath(text.replace("\\", "/")).parts
        path = TOP if is_root else confine(root, text)
    except UnicodeEncodeError as error:
        raise PathRefused(
            f"{text!r} is not a usable path: no file can have that name"
        ) from error
    if ".git" in {
        part.casefold() for part in (*path.parts, *resolved(root, path).parts)
    }:
        raise SourceUnreadable(f"{path} is not shown: it belongs to git")
    return path


def resolved(root: Path, path: PurePosixPath) -> PurePosixPath:
    """Where in the project a path leads, links followed; it is known to stay inside."""
    return PurePosixPath((root / path).resolve().relative_to(root.resolve()).as_posix())


def file_mode(root: Path, path: PurePosixPath) -> int:
    """The mode of what is at a path, links followed. Raises `SourceMissing`, with a
    hint, or `SourceUnreadable`.
    """
    try:
        return (root / path).resolve().lstat().st_mode
    except (FileNotFoundError, NotADirectoryError) as error:
        raise SourceMissing(
            f"{path} does not exist", hint=_alike(root, path)
        ) from error
    except OSError as error:
        raise _refused_by_disk(path, error) from error


def read_source(
    root: Path,
    text: str,
    start: int | None = None,
    end: int | None = None,
    *,
    limit: int = _LIMIT,
) -> SourceText:
    """A file's text, its lines from `start` to `end` (counted from 1, both included),
    or what is in a folder.

    Raises `PathRefused` for what is outside the project, `SourceMissing` where nothing
    is, `SourceHidden` for what is kept from models, and `SourceUnreadable` for what has
    no text to show (binary, a pipe, a device) and for git's own files.
    """
    path = locate(root, text)
    place = _file(root, path)
    if place is None:
        entries = list(islice(walk(root, path, deep=False), _ENTRIES + 1))
        if [entry.path for entry in entries] == [path]:
            raise SourceUnreadable(
                f"{path} could not be read: it is a folder that may not be looked into"
            )
        lines = [entry.shown_name for entry in entries[:_ENTRIES]] or [
            "(empty, or all of it is ignored)"
        ]
        return SourceText(
            path, "\n".join(lines) + "\n", cut=len(entries) > _ENTRIES, is_folder=True
        )
    try:
        with open_file(place) as file:
            return _excerpt(path, file, 1 if start is None else start, end, limit)
    except OSError as error:
        raise _refused_by_disk(path, error) from error


def read_bytes(root: Path, text: str, most: int) -> bytes | None:
    """The beginning of a file, whatever it is, up to `most` bytes; None for a folder.
    Raises as `read_source` does.
    """
    path = locate(root, text)
    place = _file(root, path)
    try:
        if place is None:
            return None
        with open_file(place) as file:
            return _expect_no_secret(path, file.read(most))
    except OSError as error:
        raise _refused_by_disk(path, error) from error


def _file(root: Path, path: PurePosixPath) -> Path | None:
    """Where a file is that may be shown, links followed; None for a folder. Raises
    `SourceHidden` for what is kept from models.
    """
    place, mode = (root / path).resolve(), file_mode(root, path)
    if path.parts and (why := HiddenFiles(root).why_by_name(str(path))):
        raise SourceHidden(path, why)
    if stat.S_ISDIR(mode):
        return None
    if not stat.S_ISREG(mode):
        raise SourceUnreadable(
            f"{path} is not shown: it is"
            f" {_NO_FILE.get(stat.S_IFMT(mode), 'not a file')}"
        )
    return place


def _excerpt(
    path: PurePosixPath, file: BufferedReader, start: int, end: int | None, limit: int
) -> SourceText:
    size = file.seek(0, 2)
    file.seek(0)
    if is_binary(file):
        raise _binary(path, size)
    _expect_no_secret(path, file.read(LARGEST_SEARCHED))
    file.seek(0)
    if start < 1 or (end is not None and end < start):
        raise SourceUnreadable(
            f"{path}: lines {start} to {end} are no range; lines are counted from 1"
        )
    skipped, in_line = 0, False
    while skipped < start - 1 and (piece := file.readline(_PIECE)):
        in_line = not piece.endswith(b"\n")
        skipped += not in_line
        if file.tell() > _SCANNED:
            raise SourceUnreadable(
                f"{path}: line {start} is too far into the file to be looked for"
            )
    if start > 1 and not file.peek(1):
        lines = skipped + in_line
        raise SourceUnreadable(
            f"{path} has only {lines} line{'' if lines == 1 else 's'}"
        )
    most = limit * 4  # bytes of that many characters
    data, lines = bytearray(file.read(most + 1) if end is None else b""), 0
    while (
        end is not None
        and lines <= end - start
        and (piece := file.readline(most + 1 - len(data)))
    ):
        data += piece
        lines += piece.endswith(b"\n")
    if b"\0" in data:
        raise _binary(path, size)
    if start == 1:
        data = data.removeprefix(b"\xef\xbb\xbf")
    _expect_no_secret(path, bytes(data))
    text = data.decode("utf-8", errors="replace")
    shown = text[:limit]
    return SourceText(
        path,
        shown,
        size,
        cut=len(data) > most or len(text) > limit,
        replaced=not data.startswith(shown.encode()),
    )


def _expect_no_secret(path: PurePosixPath, data: bytes) -> bytes:
    """Return this content of a file. Raises `SourceHidden` if it is secret."""
    if why := secret_in(str(path), data):
        raise SourceHidden(path, why)
    return data


def _binary(path: PurePosixPath, size: int) -> SourceUnreadable:
    return SourceUnreadable(
        f"{path} is not shown: it is a binary file of {size:,} bytes"
    )


def _refused_by_disk(path: PurePosixPath, error: OSError) -> SourceUnreadable:
    return SourceUnreadable(f"{path} could not be read: {error.strerror or error}")


def _alike(root: Path, path: PurePosixPath) -> str:
    """A hint at what a missing file was probably meant to be: one of the same name
    elsewhere, or of a similar name.
    """
    entries = list(islice(walk(root), _CANDIDATES))
    names = {entry.name for entry in entries}
    close = {name for name in names if name.casefold() == path.name.casefold()}
    close = close or set(get_close_matches(path.name, names, cutoff=0.7))
    paths = [entry.shown for entry in entries if entry.name in close][:_ENTRIES]
    nearest = get_close_matches(str(path), paths, cutoff=0)
    return f"Did you mean {' or '.join(nearest)}?" if nearest else ""
