"""Bringing the index up to date: what has changed since the last time is found by its times, and only that is read."""

import hashlib
import os
import sys
import time
from array import array
from collections import defaultdict
from collections.abc import Collection
from itertools import chain
from json import dumps, loads
from pathlib import Path

from cdd_agent.context.cache import Cache, FileRow, Stamp
from cdd_agent.context.links import last_name
from cdd_agent.context.query import is_in
from cdd_agent.context.source import LARGEST, Handwritten, read_as_source
from cdd_agent.context.words import is_code, words_in, words_of
from cdd_agent.files.read import holds_secrets
from cdd_agent.files.walk import Kind, open_file, read_small, walk
from cdd_agent.process.run import run_command
from cdd_agent.threads import waited_for

_MANY = 500
"""Files that have changed from which on a process of its own reads them."""
_SECONDS = 600.0
_PACKAGE = Path(__file__).resolve().parents[2]
"""The folder that this package is imported from."""
_CHILD = (
    "import sys; sys.path.insert(0, sys.argv[1]); import cdd_agent.context.indexing as i; i.index_aside(sys.argv[2])"
)
_RACY = 1_000_000_000
"""Nanoseconds: a file that was changed just before it is read may change again within the same time stamp."""
_TOGETHER = 2_000
"""Files that are read before what was found is written."""
_NUMBER = "number"
"""The fact that says which number of a file was the last one."""
_ALLOWED_DEAD = 1_000


def bring_up_to_date(root: Path, own: Collection[str], cache: Cache) -> None:
    """See that the cache knows the files of a project as they are now."""
    with cache.writing():
        last, known = int(cache.fact(_NUMBER) or 0), cache.count_files()
        if last - known > known + _ALLOWED_DEAD:  # most that the index holds is of files that are no more
            cache.clear_files()
            cache.set_fact(_NUMBER, "0")
    changed, gone = _compared(root, own, cache)
    if len(changed) > _MANY and cache.place is not None:
        work = dumps([str(root), list(own), str(cache.place)])
        argv = [sys.executable, "-I", "-W", "ignore", "-c", _CHILD, str(_PACKAGE), work]
        waited_for(run_command(argv, cwd=_PACKAGE, limit=_SECONDS))
        changed, gone = _compared(root, own, cache)  # what it could not do is done here
    _take_over(root, changed, gone, cache)


def index_aside(work: str) -> None:
    """The work of a process that is started for many files: this one's memory stays as it is, and nobody waits for the
    interpreter's lock meanwhile."""
    root, own, place = loads(work)
    cache = Cache(Path(place))
    _take_over(Path(root), *_compared(Path(root), own, cache), cache)
    cache.close()


def read_source_file(root: Path, path: str) -> bytes | None:
    """A file's bytes, if it is one that is looked into; of one that is too large the beginning, and a byte too much."""
    try:
        with open_file(root / path) as file:
            return file.read(LARGEST + 1)
    except (OSError, ValueError):
        return None


def _compared(root: Path, own: Collection[str], cache: Cache) -> tuple[dict[str, Stamp], set[str]]:
    """The files that are new or have other times than the cache knows, and those that are no more."""
    known, present = cache.known_files(), _present(root, own)
    changed = {path: stamp for path, stamp in present.items() if path not in known or known[path].stamp != stamp}
    return changed, known.keys() - present.keys()


def _take_over(root: Path, changed: dict[str, Stamp], gone: set[str], cache: Cache) -> None:
    if gone:
        with cache.writing():
            cache.drop(gone)
    known, paths = cache.known_files() if changed else {}, list(changed)
    for begin in range(0, len(paths), _TOGETHER):
        some = {path: changed[path] for path in paths[begin : begin + _TOGETHER]}
        digests = {path: known[path].digest for path in some if path in known}
        _take_in(root, some, digests, cache, apart=not known)


def _present(root: Path, own: Collection[str]) -> dict[str, Stamp]:
    """All files of the project that may be looked into."""
    by_hand, top, found = Handwritten(read_small(root / ".gitattributes", LARGEST)), f"{root}/", {}
    for entry in walk(root):
        path = entry.text
        if not path.isprintable():  # no prompt could name it, and no reply
            continue
        if entry.kind is Kind.FILE and not is_in(path, own) and not holds_secrets(entry.name) and by_hand(path):
            try:
                about = os.lstat(top + path)
            except OSError:  # gone meanwhile
                continue
            found[path] = Stamp(about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_ino)
    return found


def _take_in(
    root: Path,
    stamps: dict[str, Stamp],
    digests: dict[str, bytes],
    cache: Cache,
    *,
    apart: bool,
) -> None:
    """Read files, and put what they hold into the cache. Those that have only new times are left as they are there."""
    read: list[FileRow] = []
    having: defaultdict[bytes, list[int]] = defaultdict(list)  # an identifier is taken apart once for many files
    holders: defaultdict[str, list[int]] = defaultdict(list)
    restamped: dict[str, Stamp] = {}
    now = time.time_ns()
    with cache.writing():  # these numbers are ours now
        number = before = int(cache.fact(_NUMBER) or 0)
        cache.set_fact(_NUMBER, str(number + len(stamps)))
    for path, stamp in stamps.items():
        data = read_source_file(root, path) or b""
        digest = hashlib.sha1(data, usedforsecurity=False).digest()
        if max(stamp.modified, stamp.changed) > now - _RACY:
            stamp = stamp._replace(size=-1)  # noqa: PLW2901  # no file has it: this one is read again the next time
        if digests.get(path) == digest:
            restamped[path] = stamp
            continue
        source = read_as_source(path, data)
        number += 1
        if source is None:
            read.append(FileRow(number, path, stamp, digest, 0, ()))
            continue
        marked = {f"/{word}" for word in words_in(path)}
        marked |= {f"={word}" for name in source.defined for word in (*words_of(name), name)}
        marked |= {f"<{last_name(name)}" for name in source.imported}
        for identifier in source.identifiers:
            having[identifier].append(number)
        for word in marked:
            holders[word].append(number)
        read.append(FileRow(number, path, stamp, digest, len(data) + 1, sorted(source.imported)))
    words: defaultdict[str, set[int]] = defaultdict(set)
    for identifier, numbers in having.items():
        name = identifier.decode("utf-8", "replace")
        for word in (*words_of(name), name) if is_code(name) and not name.isdecimal() else words_of(name):
            words[word].update(numbers)
    with cache.writing():
        cache.put(read)
        cache.restamp(restamped)
        held = {word: array("I", sorted(numbers)) for word, numbers in chain(holders.items(), words.items())}
        cache.add_words(held, part=before + 1 if apart else 0)
