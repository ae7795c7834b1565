"""Contents that must not enter git, in a private folder of this machine: ignored files
that a step asks for, and files that a reply overwrites.
"""

from __future__ import annotations

import hashlib
import io
import re
import stat
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from msgspec import Struct

from cdd_agent.errors import CddError
from cdd_agent.files.atomic import NotRead, NotWritten, put_file
from cdd_agent.files.regular_files import open_file
from cdd_agent.refusals.kinds import Refusal

_CHUNK = 1 << 20
_LARGEST_IN_MEMORY = 8 << 20
_ID_LENGTHS = {"sha1": 40, "sha256": 64}
"""Hex digits of an id, by git's object format."""


class ContentGone(CddError):
    refusal = Refusal.CANNOT_UNDO

    def __init__(self, content_id: str) -> None:
        super().__init__(
            f"The saved content {content_id[:12]} of a file is missing",
            hint="The file stays unchanged.",
        )


def hash_content(chunks: Iterable[bytes], size: int, object_format: str) -> str:
    """Return git's id of a file's content."""
    digest = hashlib.new(object_format, usedforsecurity=False)
    digest.update(b"blob %d\0" % size)
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()


class ContentStore(Struct, frozen=True):
    """A folder with one file for each content, named by git's id. Only the user can
    read it. A content is written completely or not at all, and survives a power cut
    once `put` has returned. Several processes can use it.
    """

    folder: Path
    object_format: str = "sha1"
    """`sha1` or `sha256`, as in the project's repository."""

    def put(self, source: bytes | Path) -> str:
        """Save a content, or that of a regular file, and return its id. Raises
        `NotWritten` or `NotRead` (both `BadInput`).
        """
        self._make_folder()
        if isinstance(source, bytes):
            return self._save(io.BytesIO(source), len(source))
        with tempfile.SpooledTemporaryFile(
            _LARGEST_IN_MEMORY, dir=str(self.folder)
        ) as copy:
            # the file may change during reading; the copy cannot
            for chunk in _read_chunks(source):
                try:
                    copy.write(chunk)
                except OSError as error:
                    raise NotWritten(self.folder, error) from error
            return self._save(copy, copy.tell())

    def has(self, content_id: str) -> bool:
        return self._is_id(content_id) and (self.folder / content_id).is_file()

    def find(self, content_id: str) -> Path:
        if not self.has(content_id):
            raise ContentGone(content_id)
        return self.folder / content_id

    def chunks(self, content_id: str) -> Iterator[bytes]:
        """Yield the content in pieces. Raises `ContentGone` or `NotRead`."""
        return _read_chunks(self.find(content_id))

    def read(self, content_id: str) -> bytes:
        """Return the whole content. Raises `ContentGone` or `NotRead`."""
        return b"".join(self.chunks(content_id))

    def _save(self, copy: IO[bytes], size: int) -> str:
        content_id = hash_content(_chunks_of(copy), size, self.object_format)
        if not self.has(content_id):
            put_file(self.folder / content_id, _chunks_of(copy), 0o600)
        return content_id

    def _make_folder(self) -> None:
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if stat.S_IMODE(self.folder.stat().st_mode) != 0o700:
                self.folder.chmod(0o700)
        except OSError as error:
            raise NotWritten(self.folder, error) from error

    def _is_id(self, text: str) -> bool:
        """True if the text is an id, and so cannot name a file outside the folder."""
        length = _ID_LENGTHS[self.object_format]
        return re.fullmatch(f"[0-9a-f]{{{length}}}", text) is not None


def _read_chunks(place: Path) -> Iterator[bytes]:
    try:
        with open_file(place) as file:
            yield from iter(lambda: file.read(_CHUNK), b"")
    except OSError as error:
        raise NotRead(place, error) from error


def _chunks_of(copy: IO[bytes]) -> Iterator[bytes]:
    copy.seek(0)
    yield from iter(lambda: copy.read(_CHUNK), b"")
