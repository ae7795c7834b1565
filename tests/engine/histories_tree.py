"""The files of a project as histories compare them, and the merge of two changes."""

import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

UNFINISHED = ".cdd-"
"""The name of a file that is being written begins so."""
_NO_PART = frozenset({".git", ".cdd", "tickets"})


class Entry(NamedTuple):
    """A file or a link, with all of its permissions."""

    data: bytes
    """The content; of a link, its target."""
    mode: int | None
    """None for a link."""

    @property
    def is_text(self) -> bool:
        return self.mode is not None and b"\0" not in self.data


Tree = dict[str, Entry]


def read_entry(place: Path) -> Entry | None:
    try:
        found = place.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISLNK(found.st_mode):
        return Entry(os.fsencode(place.readlink()), None)
    if not stat.S_ISREG(found.st_mode):
        return None
    return Entry(place.read_bytes(), stat.S_IMODE(found.st_mode))


def write_entry(place: Path, entry: Entry | None) -> None:
    """Make the path this entry, whatever was there before."""
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    if entry is None:
        place.unlink(missing_ok=True)
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    if entry.mode is None:
        place.unlink(missing_ok=True)
        place.symlink_to(os.fsdecode(entry.data))
        return
    if place.is_symlink():
        place.unlink()
    place.write_bytes(entry.data)
    place.chmod(entry.mode)


def read_tree(root: Path) -> Tree:
    """Return all files and links below a folder, without those of git and of cdd."""
    return {path: entry for path, entry in _walk(root, "") if entry is not None}


def _walk(folder: Path, prefix: str) -> Iterator[tuple[str, Entry | None]]:
    for item in os.scandir(folder):
        if item.name in _NO_PART or item.name.startswith(UNFINISHED):
            continue
        path = prefix + item.name
        if item.is_dir(follow_symlinks=False):
            yield from _walk(Path(item.path), f"{path}/")
        else:
            yield path, read_entry(Path(item.path))


def merge(now: Entry | None, base: Entry | None, other: Entry | None) -> Entry | None:
    """Return `now` with the change from `base` to `other`. Raises `Conflict`."""
    if now == base:
        return other
    if other in (base, now):
        return now
    if now is None or base is None or other is None:
        raise Conflict
    mode = _merge_modes(now.mode, base.mode, other.mode)
    if now.data == base.data:
        return Entry(other.data, mode)
    if other.data in (base.data, now.data):
        return Entry(now.data, mode)
    if not (now.is_text and base.is_text and other.is_text):
        raise Conflict
    return Entry(_merge_texts(now.data, base.data, other.data), mode)


class Conflict(Exception):
    """Two changes of a file cannot be merged."""


def _merge_modes(now: int | None, base: int | None, other: int | None) -> int | None:
    if None in (now, base, other):
        raise Conflict
    if now == base:
        return other
    if base in (other, now) or now == other:
        return now
    raise Conflict


def _merge_texts(now: bytes, base: bytes, other: bytes) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        places = []
        for name, data in (("now", now), ("base", base), ("other", other)):
            places.append(Path(folder, name))
            places[-1].write_bytes(data)
        done = subprocess.run(
            ["git", "merge-file", "-p", "-q", *places], capture_output=True, check=False
        )
    if done.returncode != 0:
        raise Conflict
    return done.stdout
