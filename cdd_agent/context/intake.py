"""Reading files into the index. It has few imports, so that a process which is started
for many files begins soon.
"""

import gc
import hashlib
import sys
import time
from collections.abc import Callable, Collection, Iterator
from functools import lru_cache
from json import load
from pathlib import Path, PurePosixPath

from cdd_agent.context.cache import Cache, FileRow, Stamp
from cdd_agent.context.links import last_name
from cdd_agent.context.source import LARGEST, read_as_source
from cdd_agent.context.terms import DEFINED, PLACED, as_terms, imported, marked
from cdd_agent.files.charsets import Charsets
from cdd_agent.files.hidden_from_models import secret_in
from cdd_agent.files.regular_files import read_beginning
from cdd_agent.files.text import as_utf8

_FEW = 500
"""Files whose words are learned as they come; of more, all words are learned anew at
the end, which is faster.
"""
_RACY = 1_000_000_000
"""Nanoseconds: a file that was changed just before it is read may change again within
the same time stamp.
"""
_TOGETHER, _BYTES = 2_000, 16_000_000
"""Files that are read before what was found is written, and how large all of them may
be.
"""
NUMBER = "number"
"""The fact that says which number of a file was the last one."""
_UNLEARNED = "unlearned"
"""The fact that says that there are terms whose words are not known yet."""


def take_over(
    root: Path,
    changed: dict[str, Stamp],
    gone: Collection[str],
    cache: Cache,
    go_on: Callable[[], None] = lambda: None,
) -> None:
    """Take what has changed, and what is gone, into the cache. `go_on` is called before
    each file, and stops it by what it raises.
    """
    if gone:
        with cache.writing():
            cache.drop(gone)
    for some in portions(changed):
        _take_in(root, some, cache, go_on, learns=len(changed) <= _FEW)
    if cache.fact(_UNLEARNED):
        with cache.writing():
            cache.learn_anew()
            cache.set_fact(_UNLEARNED, "")


def portions(changed: dict[str, Stamp]) -> Iterator[dict[str, Stamp]]:
    """The files in portions that can be held in memory."""
    some, size = dict[str, Stamp](), 0
    for path, stamp in changed.items():
        size += min(stamp[0], LARGEST)
        if some and (size > _BYTES or len(some) == _TOGETHER):
            yield some
            some, size = {}, min(stamp[0], LARGEST)
        some[path] = stamp
    if some:
        yield some


def take_over_aside() -> None:
    """The work of a process that is started for many files, and told on its stdin
    which: the memory of the one that started it stays as it is, and nobody waits for
    the interpreter's lock meanwhile.
    """
    gc.disable()  # nothing here holds itself
    root, place, changed, gone = load(sys.stdin)
    cache = Cache(Path(place))
    take_over(
        Path(root), {path: tuple(stamp) for path, stamp in changed.items()}, gone, cache
    )
    cache.settle()
    cache.close()


def read_source_file(root: Path, path: str, charsets: Charsets) -> bytes | None:
    """The text of a file in UTF-8; of one that is too large the beginning, with a byte
    too much. None for a file that cannot be read or whose content is secret.
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


def _take_in(
    root: Path,
    stamps: dict[str, Stamp],
    cache: Cache,
    go_on: Callable[[], None],
    *,
    learns: bool,
) -> None:
    """Read files, and put what they hold into the cache. Those that have only new times
    are left as they are there.
    """
    read: list[FileRow] = []
    texts: dict[int, str] = {}
    restamped: dict[str, Stamp] = {}
    now = time.time_ns()
    charsets = Charsets(root)
    with cache.writing():  # these numbers are ours now
        number = int(cache.fact(NUMBER) or 0)
        cache.set_fact(NUMBER, str(number + len(stamps)))
    for path, stamp in stamps.items():
        go_on()
        data = read_source_file(root, path, charsets) or b""
        digest = hashlib.sha1(data, usedforsecurity=False).digest()
        if max(stamp[1:3]) > now - _RACY:
            # no file has it: this one is read again the next time
            stamp = (-1, *stamp[1:])  # noqa: PLW2901
        if cache.digest(path) == digest:
            restamped[path] = stamp
            continue
        source = read_as_source(path, data)
        number += 1
        if source is None:
            read.append(FileRow(number, path, stamp, digest, 0, ()))
            continue
        named = {_import_term(name) for name in source.imported}
        texts[number] = " ".join(
            [
                as_terms(data),
                marked(PLACED, [path]),
                marked(DEFINED, source.defined),
                *named,
            ]
        )
        read.append(
            FileRow(number, path, stamp, digest, len(data) + 1, sorted(source.imported))
        )
    with cache.writing():
        cache.put(read)
        cache.restamp(restamped)
        cache.add_texts(texts)
        if learns:
            cache.learn(texts.values())
        else:
            cache.set_fact(_UNLEARNED, "1")


@lru_cache(maxsize=10_000)
def _import_term(name: str) -> str:
    return imported(last_name(name))
