"""Read a file, some of its lines, or the entries of a folder, for users and models.

Large files are read in pieces. Nothing outside the project is opened, and nothing that
could block, such as a pipe.
"""

import stat
from difflib import get_close_matches
from io import BufferedReader, TextIOBase, TextIOWrapper
from itertools import islice
from pathlib import Path, PurePosixPath

from msgspec import Struct

from cdd_agent.errors import CddError
from cdd_agent.files.charsets import Charsets
from cdd_agent.files.hidden_from_models import (
    LARGEST_SEARCHED,
    HiddenFiles,
    secret_in,
)
from cdd_agent.files.notebooks import (
    LARGEST_NOTEBOOK,
    find_hidden_lines,
    is_notebook,
    replace_hidden_lines,
)
from cdd_agent.files.paths import PathRefused, confine
from cdd_agent.files.regular_files import open_file
from cdd_agent.files.text import FileText, decode_file, lines_of
from cdd_agent.files.walk import TOP, walk
from cdd_agent.refusals.kinds import Refusal

_LIMIT = 100_000
"""Characters of a file to show."""
NO_ENTRIES = "(empty, or everything in it is ignored)"
"""The listing of a folder without visible entries."""
_ENTRIES = 1_000
"""Entries of a folder to show."""
LARGEST_DECODED = 5_000_000
"""Bytes of a file to decode in memory. They decide the encoding."""
_SCANNED = 100_000_000
"""Characters to skip before the first line of a range."""
_PIECE = 65_536
"""Characters of a long line to read at once."""
_CANDIDATES = 20_000
"""Entries to search for names similar to a missing file's."""

_NO_FILE = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFLNK: "a link that leads to itself",
}


class SourceUnreadable(CddError):
    """Something in the project cannot, or must not, be shown."""

    refusal = Refusal.UNREADABLE_FILE


class SourceHidden(SourceUnreadable):
    """Models must not see this file or folder."""

    refusal = Refusal.HIDDEN_FILE

    def __init__(self, path: PurePosixPath | str, why: str) -> None:
        super().__init__(f"{path} is not shown: {why}")


class SourceMissing(SourceUnreadable):
    """No file or folder has this name."""


class SourceText(Struct, frozen=True):
    """The shown text of a file, or listing of a folder."""

    path: PurePosixPath
    text: str
    size: int = 0
    """Bytes of the whole file; 0 for a folder."""
    cut: bool = False
    """True if only a part is shown."""
    encoding_note: str = ""
    """A sentence about an encoding other than UTF-8, or empty."""
    replaced: bool = False
    """True if some bytes could not be decoded; `\ufffd` replaces each."""
    is_folder: bool = False
    is_without_outputs: bool = False
    """True for a notebook whose outputs are not shown."""

    @property
    def note(self) -> str:
        """A note for the reader about the text, or empty."""
        notes = []
        if self.cut and self.is_folder:
            notes.append(f"cut: only the first {_ENTRIES:,} entries are shown")
        elif self.cut:
            notes.append(
                f"cut: {len(self.text):,} characters of a file of {self.size:,} bytes;"
                " ask for a range of lines"
            )
        if self.encoding_note:
            notes.append(self.encoding_note)
        if self.is_without_outputs:
            notes.append("outputs and attachments of a notebook are not shown")
        return "; ".join(notes)

    def as_text(self) -> str:
        """Return the text, followed by the note if any."""
        if not self.note:
            return self.text
        line_end = "" if self.text.endswith("\n") else "\n"
        return f"{self.text}{line_end}… ({self.note})\n"


class _Range(Struct, frozen=True):
    """Lines from `start` to `end`, counted from 1; None means the last one."""

    start: int
    end: int | None

    def check(self, path: PurePosixPath) -> None:
        """Raises `SourceUnreadable`."""
        if self.start < 1 or (self.end is not None and self.end < self.start):
            raise SourceUnreadable(
                f"{path}: lines {self.start} to {self.end} are not a range; the first"
                " line is 1"
            )


def locate(root: Path, text: str) -> PurePosixPath:
    """Like `confine`, for reading: the project itself (`.`) is allowed, git's files are
    not.
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
    """Return the path relative to the project with links resolved."""
    return PurePosixPath((root / path).resolve().relative_to(root.resolve()).as_posix())


def file_mode(root: Path, path: PurePosixPath) -> int:
    """Return the mode of a path's target. Raises `SourceMissing` with a hint, or
    `SourceUnreadable`.
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
    charsets: Charsets | None = None,
) -> SourceText:
    """Return a file's text, its lines from `start` to `end` (from 1, both included), or
    a folder's entries. Pass `charsets` to read many files.

    Raises `PathRefused` outside the project, `SourceMissing`, `SourceHidden` for a file
    that models must not see, and `SourceUnreadable` for git's files and for what has no
    text (a binary file, a pipe, a device).
    """
    path = locate(root, text)
    place = _file(root, path)
    if place is None:
        return _list_folder(root, path)
    lines = _Range(1 if start is None else start, end)
    try:
        with open_file(place) as file:
            return _read_file(path, file, lines, limit, charsets or Charsets(root))
    except OSError as error:
        raise _refused_by_disk(path, error) from error


def read_bytes(root: Path, text: str, most: int) -> bytes | None:
    """Return up to `most` bytes of any file; None for a folder. Raises the errors of
    `read_source`.
    """
    path = locate(root, text)
    place = _file(root, path)
    if place is None:
        return None
    try:
        with open_file(place) as file:
            data = file.read(most)
            _expect_no_secret(path, data)
            return data
    except OSError as error:
        raise _refused_by_disk(path, error) from error


def _file(root: Path, path: PurePosixPath) -> Path | None:
    """Return the resolved place of a file; None for a folder. Raises `SourceHidden` or
    `SourceUnreadable`.
    """
    place = (root / path).resolve()
    mode = file_mode(root, path)
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


def _list_folder(root: Path, path: PurePosixPath) -> SourceText:
    entries = list(islice(walk(root, path, deep=False), _ENTRIES + 1))
    if [entry.path for entry in entries] == [path]:
        raise SourceUnreadable(
            f"{path} could not be read: no permission to open this folder"
        )
    names = [entry.shown_name for entry in entries[:_ENTRIES]]
    if not names:
        names = [NO_ENTRIES]
    listing = "\n".join(names) + "\n"
    return SourceText(path, listing, cut=len(entries) > _ENTRIES, is_folder=True)


def _read_file(
    path: PurePosixPath,
    file: BufferedReader,
    lines: _Range,
    limit: int,
    charsets: Charsets,
) -> SourceText:
    size = file.seek(0, 2)
    file.seek(0)
    largest = LARGEST_NOTEBOOK if is_notebook(path) else LARGEST_DECODED
    head = file.read(largest)
    if is_notebook(path) and len(head) < size:
        raise SourceUnreadable(
            f"{path} is not shown: it is a notebook of {size:,} bytes"
        )
    decoded = decode_file(path, head, charsets, is_cut=len(head) < size)
    if decoded.is_binary:
        raise _binary(path, size)
    _expect_no_secret(path, head[:LARGEST_SEARCHED])
    lines.check(path)
    hidden = find_hidden_lines(path, decoded.text)
    if len(head) == size:
        text = _take_lines(path, decoded.text, lines)
    else:
        with _decoding(file, decoded) as stream:
            _skip_lines(path, stream, lines.start - 1)
            text = _read_lines(stream, lines, limit + 1)
        if lines.start > 1 and not text:
            raise _too_few_lines(path, lines.start - 1)
    if "\0" in text[: limit + 1]:
        raise _binary(path, size)
    _expect_no_secret(path, text.encode("utf-8", "surrogateescape"))
    visible = replace_hidden_lines(text, lines.start, hidden) if hidden else text
    shown = FileText(visible[:limit], decoded.encoding)
    return SourceText(
        path,
        shown.shown,
        size,
        cut=len(visible) > limit,
        encoding_note=shown.note,
        replaced=shown.shown != shown.text,
        is_without_outputs=visible != text,
    )


def _take_lines(path: PurePosixPath, text: str, lines: _Range) -> str:
    if lines.start == 1 and lines.end is None:
        return text
    all_lines = lines_of(text)
    if lines.start > max(len(all_lines), 1):
        raise _too_few_lines(path, len(all_lines))
    return "".join(all_lines[lines.start - 1 : lines.end])


def _decoding(file: BufferedReader, beginning: FileText) -> TextIOBase:
    codec = beginning.encoding.codec
    errors = "replace"
    if codec in ("ascii", "utf-8"):
        codec, errors = "utf-8", "surrogateescape"
    file.seek(len(beginning.encoding.mark))
    return TextIOWrapper(file, codec, errors, newline="")


def _skip_lines(path: PurePosixPath, stream: TextIOBase, count: int) -> None:
    """Raises `SourceUnreadable`."""
    skipped = scanned = 0
    piece = ""
    while skipped < count:
        is_in_line = bool(piece) and not _ends_line(piece, _PIECE)
        piece = stream.readline(_PIECE)
        if not piece:
            raise _too_few_lines(path, skipped + is_in_line)
        scanned += len(piece)
        skipped += _ends_line(piece, _PIECE)
        if scanned > _SCANNED:
            raise SourceUnreadable(
                f"{path}: line {count + 1} is too far into the file to be searched for"
            )


def _read_lines(stream: TextIOBase, lines: _Range, most: int) -> str:
    if lines.end is None:
        return stream.read(most)
    pieces: list[str] = []
    missing = lines.end - lines.start + 1
    while missing and most and (piece := stream.readline(most)):
        pieces.append(piece)
        missing -= _ends_line(piece, most)
        most -= len(piece)
    return "".join(pieces)


def _ends_line(piece: str, most: int) -> bool:
    """True if a piece of at most `most` characters ends its line. After a carriage
    return in the last place, a line feed may follow.
    """
    return piece.endswith("\n") or (piece.endswith("\r") and len(piece) < most)


def _expect_no_secret(path: PurePosixPath, data: bytes) -> None:
    if why := secret_in(str(path), data):
        raise SourceHidden(path, why)


def _too_few_lines(path: PurePosixPath, count: int) -> SourceUnreadable:
    plural = "" if count == 1 else "s"
    return SourceUnreadable(f"{path} has only {count} line{plural}")


def _binary(path: PurePosixPath, size: int) -> SourceUnreadable:
    return SourceUnreadable(
        f"{path} is not shown: it is a binary file of {size:,} bytes"
    )


def _refused_by_disk(path: PurePosixPath, error: OSError) -> SourceUnreadable:
    return SourceUnreadable(f"{path} could not be read: {error.strerror or error}")


def _alike(root: Path, path: PurePosixPath) -> str:
    entries = list(islice(walk(root), _CANDIDATES))
    names = {entry.name for entry in entries}
    close = {name for name in names if name.casefold() == path.name.casefold()}
    close = close or set(get_close_matches(path.name, names, cutoff=0.7))
    paths = [entry.shown for entry in entries if entry.name in close][:_ENTRIES]
    nearest = get_close_matches(str(path), paths, cutoff=0)
    return f"Did you mean {' or '.join(nearest)}?" if nearest else ""
