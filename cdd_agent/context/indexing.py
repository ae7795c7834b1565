"""Bringing the index up to date: what has changed since the last time is found by its
times, and only that is read.
"""

import os
import sys
from collections.abc import Collection
from json import dump
from pathlib import Path
from tempfile import TemporaryDirectory

from cdd_agent.context.cache import Cache, Stamp
from cdd_agent.context.intake import NUMBER, take_over
from cdd_agent.context.source import LARGEST, Handwritten
from cdd_agent.files.hidden_from_models import is_secret_path
from cdd_agent.files.regular_files import read_small
from cdd_agent.files.walk import Kind, walk
from cdd_agent.process.run import run_command
from cdd_agent.threads import stop_if_left, waited_for

_MANY = 500
"""Files that have changed from which on a process of its own reads them."""
_SECONDS = 600.0
_PACKAGE = Path(__file__).resolve().parents[2]
"""The folder that this package is imported from."""
_CHILD = (
    "import sys; sys.path.insert(0, sys.argv[1]); from cdd_agent.context.intake import"
    " take_over_aside as t; t()"
)
_ALLOWED_DEAD = 1_000


def bring_up_to_date(root: Path, own: Collection[str], cache: Cache) -> None:
    """See that the cache knows the files of a project as they are now."""
    with cache.writing():
        last, known = int(cache.fact(NUMBER) or 0), cache.count_files()
        # most that the index holds is of files that are no more
        if last - known > known + _ALLOWED_DEAD:
            cache.clear_files()
            cache.set_fact(NUMBER, "0")
    changed, gone = _compared(root, own, cache)
    if len(changed) > _MANY and cache.place is not None:
        if _is_taken_over_aside(root, changed, gone, cache.place):
            return
        changed, gone = _compared(root, own, cache)  # what it could not do is done here
    take_over(root, changed, gone, cache, stop_if_left)


def _is_taken_over_aside(
    root: Path, changed: dict[str, Stamp], gone: set[str], place: Path
) -> bool:
    """Whether a process of its own could do it."""
    argv = [sys.executable, "-I", "-W", "ignore", "-c", _CHILD, str(_PACKAGE)]
    try:
        with TemporaryDirectory() as folder:
            work = Path(folder, "work.json")
            with work.open("w") as file:
                dump([str(root), str(place), changed, list(gone)], file)
            return (
                waited_for(
                    run_command(argv, cwd=_PACKAGE, limit=_SECONDS, stdin=work)
                ).return_code
                == 0
            )
    except OSError:  # there is no room for what it would be told
        return False


def _compared(
    root: Path, own: Collection[str], cache: Cache
) -> tuple[dict[str, Stamp], set[str]]:
    """The files that are new or have other times than the cache knows, and those that
    are no more.
    """
    known, present = cache.stamps(), _present(root, own)
    changed = {
        path: stamp for path, stamp in present.items() if known.get(path) != stamp
    }
    return changed, known.keys() - present.keys()


def _present(root: Path, own: Collection[str]) -> dict[str, Stamp]:
    """All files of the project that may be looked into."""
    by_hand, top, found = (
        Handwritten(read_small(root / ".gitattributes", LARGEST)),
        f"{root}/",
        dict[str, Stamp](),
    )
    others = tuple(f"{place.rstrip('/')}/" for place in own)
    for entry in walk(root):
        stop_if_left()
        path = entry.text
        if not path.isprintable():  # no prompt could name it, and no reply
            continue
        if (
            entry.kind is Kind.FILE
            and not f"{path}/".startswith(others)
            and not is_secret_path(path)
            and by_hand(path)
        ):
            try:
                about = os.lstat(top + path)
            except OSError:  # gone meanwhile
                continue
            found[path] = (
                about.st_size,
                about.st_mtime_ns,
                about.st_ctime_ns,
                about.st_ino,
            )
    return found
