"""Bringing the index up to date: what has changed since the last time is found by its times, and only that is read."""

import hashlib
import os
import time
from array import array
from collections import defaultdict
from collections.abc import Collection
from pathlib import Path

from cdd_agent.context.cache import Cache, FileRow, Stamp
from cdd_agent.context.links import last_name
from cdd_agent.context.query import is_in
from cdd_agent.context.source import LARGEST, Handwritten, read_as_source
from cdd_agent.context.words import Vocabulary, words_in, words_of
from cdd_agent.files.read import holds_secrets
from cdd_agent.files.walk import Kind, open_file, read_small, walk

_RACY = 1_000_000_000
"""Nanoseconds: a file that was changed just before it is read may change again within the same time stamp."""
_TOGETHER = 2_000
"""Files that are read before what was found is written."""
_NUMBER, _PARTS = "number", "parts"
"""The facts that say which numbers of files and of parts were the last ones."""
_ALLOWED_DEAD = 1_000


def bring_up_to_date(root: Path, own: Collection[str], cache: Cache) -> None:
    """See that the cache knows the files of a project as they are now."""
    known = cache.known_files()
    present = _present(root, own)
    changed = [path for path, stamp in present.items() if path not in known or known[path].stamp != stamp]
    gone = known.keys() - present.keys()
    last = int(cache.fact(_NUMBER) or 0)
    if last - len(known) > len(known) + _ALLOWED_DEAD:  # most that the index holds is of files that are no more
        with cache.writing():
            cache.clear_files()
        known, changed, gone = {}, list(present), set()
    if gone:
        with cache.writing():
            cache.drop(gone)
    vocabulary = Vocabulary()
    for at, begin in enumerate(range(0, len(changed), _TOGETHER), 1):
        some = {path: present[path] for path in changed[begin : begin + _TOGETHER]}
        digests = {path: known[path].digest for path in some if path in known}
        _take_in(root, some, digests, cache, vocabulary, part=0 if known else at)


def read_source_file(root: Path, path: str) -> bytes | None:
    """A file's bytes, if it is one that is looked into; of one that is too large the beginning, and a byte too much."""
    try:
        with open_file(root / path) as file:
            return file.read(LARGEST + 1)
    except (OSError, ValueError):
        return None


def _present(root: Path, own: Collection[str]) -> dict[str, Stamp]:
    """All files of the project that may be looked into."""
    by_hand, top, found = Handwritten(read_small(root / ".gitattributes", LARGEST)), f"{root}/", {}
    for entry in walk(root):
        path = entry.text
        if entry.kind is Kind.FILE and not is_in(path, own) and not holds_secrets(entry.name) and by_hand(path):
            try:
                about = os.lstat(top + path)
            except OSError:  # gone meanwhile
                continue
            found[path] = Stamp(about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_ino)
    return found


def _take_in(
    root: Path, stamps: dict[str, Stamp], digests: dict[str, bytes], cache: Cache, vocabulary: Vocabulary, part: int
) -> None:
    """Read files, and put what they hold into the cache. Those that have only new times are left as they are there."""
    read: list[FileRow] = []
    holders: defaultdict[str, list[int]] = defaultdict(list)
    restamped: dict[str, Stamp] = {}
    now = time.time_ns()
    for path, stamp in stamps.items():
        data = read_source_file(root, path) or b""
        digest = hashlib.sha1(data, usedforsecurity=False).digest()
        if max(stamp.modified, stamp.changed) > now - _RACY:
            stamp = stamp._replace(size=-1)  # noqa: PLW2901  # no file has it: this one is read again the next time
        if digests.get(path) == digest:
            restamped[path] = stamp
            continue
        source = read_as_source(path, data, vocabulary)
        number = len(read)
        if source is None:
            read.append(FileRow(number, path, stamp, digest, 0, ()))
            continue
        held = {f"/{word}" for word in words_in(path)}
        held |= {f"={word}" for name in source.defined for word in (*words_of(name), name.lower())}
        held |= {f"<{last_name(name)}" for name in source.imported}
        for word in source.words:
            holders[word].append(number)
        for word in held:
            holders[word].append(number)
        read.append(FileRow(number, path, stamp, digest, len(data) + 1, sorted(source.imported)))
    with cache.writing():
        offset = int(cache.fact(_NUMBER) or 0) + 1
        cache.put(row._replace(number=row.number + offset) for row in read)
        cache.restamp(restamped)
        cache.add_words(
            {word: array("I", [offset + number for number in numbers]) for word, numbers in holders.items()}, part
        )
        cache.set_fact(_NUMBER, str(offset + len(read)))
