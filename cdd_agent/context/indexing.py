"""Update the index. Only files with a new stamp are read."""

import hashlib
import os
import time
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath

from cdd_agent.context.cache import Cache, FileRow, Stamp
from cdd_agent.context.source import LARGEST, Handwritten, read_as_source
from cdd_agent.context.terms import TermWriter
from cdd_agent.files.charsets import Charsets
from cdd_agent.files.hidden_from_models import is_secret_path, secret_in
from cdd_agent.files.regular_files import read_beginning, read_small
from cdd_agent.files.text import as_utf8
from cdd_agent.files.walk import Kind, walk
from cdd_agent.threads import stop_if_left

_RACY = 1_000_000_000
"""Nanoseconds. A file that changed just before reading may change again within the same
time stamp.
"""
_MOST_TOGETHER = 2_000
"""Files to read before writing them to the cache."""
_MOST_BYTES = 16_000_000
"""Bytes of these files."""
_NUMBER = "number"
"""The fact in the cache with the highest file number."""
_ALLOWED_DEAD = 1_000
"""Rows of deleted or reread files. With more, the index is rebuilt."""


def bring_up_to_date(root: Path, own: Collection[str], cache: Cache) -> None:
    with cache.writing():
        last = int(cache.fact(_NUMBER) or 0)
        count = cache.count_files()
        if last - count > count + _ALLOWED_DEAD:
            cache.clear_files()
            cache.set_fact(_NUMBER, "0")
    indexed = cache.stamps()
    present = _find_files(root, own)
    gone = indexed.keys() - present.keys()
    if gone:
        with cache.writing():
            cache.drop(gone)
    changed = {
        path: stamp for path, stamp in present.items() if indexed.get(path) != stamp
    }
    writer = TermWriter()
    for some in portions(changed):
        _index(root, some, cache, writer)


def _find_files(root: Path, own: Collection[str]) -> dict[str, Stamp]:
    is_by_hand = Handwritten(read_small(root / ".gitattributes", LARGEST))
    own_folders = tuple(f"{place.rstrip('/')}/" for place in own)
    top = f"{root}/"
    stamps: dict[str, Stamp] = {}
    for entry in walk(root):
        stop_if_left()
        path = entry.text
        # no prompt or reply can name a path that is not printable
        if entry.kind is not Kind.FILE or not path.isprintable():
            continue
        if f"{path}/".startswith(own_folders) or is_secret_path(path):
            continue
        if not is_by_hand(path):
            continue
        try:
            status = os.lstat(top + path)
        except OSError:
            # it was deleted
            continue
        stamps[path] = (
            status.st_size,
            status.st_mtime_ns,
            status.st_ctime_ns,
            status.st_ino,
        )
    return stamps


def portions(changed: dict[str, Stamp]) -> Iterator[dict[str, Stamp]]:
    some: dict[str, Stamp] = {}
    size = 0
    for path, stamp in changed.items():
        size += min(stamp[0], LARGEST)
        if some and (size > _MOST_BYTES or len(some) == _MOST_TOGETHER):
            yield some
            some = {}
            size = min(stamp[0], LARGEST)
        some[path] = stamp
    if some:
        yield some


def read_source_file(root: Path, path: str, charsets: Charsets) -> bytes | None:
    """Return a file's text in UTF-8. Of a file that is too large, return the beginning
    with one byte more than allowed. None if the file is unreadable or its content
    secret.
    """
    try:
        data = read_beginning(f"{root}/{path}", LARGEST + 1)
    except (OSError, ValueError):
        return None
    if secret_in(path, data):
        return None
    if len(data) > LARGEST:
        return data
    return as_utf8(PurePosixPath(path), data, charsets)


def _index(
    root: Path, stamps: dict[str, Stamp], cache: Cache, writer: TermWriter
) -> None:
    """Read files and write their terms to the cache. For unchanged content, only update
    the stamp.
    """
    rows: list[FileRow] = []
    texts: dict[int, str] = {}
    restamped: dict[str, Stamp] = {}
    charsets = Charsets(root)
    now = time.time_ns()
    # reserves these numbers against other processes
    with cache.writing():
        number = int(cache.fact(_NUMBER) or 0)
        cache.set_fact(_NUMBER, str(number + len(stamps)))
    for path, new_stamp in stamps.items():
        stop_if_left()
        data = read_source_file(root, path, charsets) or b""
        digest = hashlib.sha1(data, usedforsecurity=False).digest()
        stamp = new_stamp
        if max(stamp[1:3]) > now - _RACY:
            # no file has this stamp, so the file is read again next time
            stamp = (-1, *stamp[1:])
        if cache.digest(path) == digest:
            restamped[path] = stamp
            continue
        number += 1
        source = read_as_source(path, data)
        if source is None:
            rows.append(FileRow(number, path, stamp, digest, 0, ()))
            continue
        texts[number] = writer.write_terms(path, data, source)
        imported = sorted(source.imported)
        rows.append(FileRow(number, path, stamp, digest, len(data) + 1, imported))
    with cache.writing():
        cache.add_files(rows, texts, writer.take_words())
        cache.restamp(restamped)
