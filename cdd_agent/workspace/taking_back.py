"""Putting files back as a checkpoint had them, without ever touching what somebody else has changed since."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cdd_agent.errors import BadInput
from cdd_agent.workspace.files import put_file, put_link, remove_leftover

_LINK, _EXECUTABLE, _PLAIN = "120000", "100755", "100644"
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Entry:
    """A file in a checkpoint: git's mode, the id of its content, and permissions where they are unusual."""

    mode: str
    content: str
    permissions: int | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Change:
    """One file in two checkpoints; None where it is not there. `path` is relative to the project."""

    path: str
    before: Entry | None
    after: Entry | None


@dataclass(frozen=True)
class TakenBack:
    """What became of files: `restored` are as they were before, `kept` were changed since and left alone."""

    restored: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


@dataclass(frozen=True)
class Contents:
    """The contents of files, read from where git wrote them one after the other."""

    source: Path | None
    places: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By the content's id: where it begins, and how long it is."""

    @classmethod
    def read(cls, source: Path) -> Contents:
        """Of what `git cat-file --batch` wrote: `id blob size`, newline, content, newline."""
        places: dict[str, tuple[int, int]] = {}
        with source.open("rb") as file:
            while head := file.readline():
                name, kind, *size = head.decode().split()
                if kind != "blob" or not size:
                    raise BadInput(
                        f"The content {name} of a checkpoint is no longer there",
                        hint="Was the repository cleaned by hand? `git fsck` looks for what is missing.",
                    )
                places[name] = (file.tell(), int(size[0]))
                file.seek(int(size[0]) + 1, os.SEEK_CUR)
        return cls(source, places)

    def chunks(self, name: str) -> Iterator[bytes]:
        assert self.source is not None
        start, left = self.places[name]
        with self.source.open("rb") as file:
            file.seek(start)
            while left and (data := file.read(min(left, _CHUNK))):
                left -= len(data)
                yield data


def put_back(root: Path, changes: Sequence[Change], contents: Contents) -> TakenBack:
    """Put every file back that still is as it was after; first those that go, as their places may be needed."""
    restored, kept = list[str](), list[str]()
    for change in sorted(changes, key=lambda change: change.before is not None):
        place = root / change.path
        remove_leftover(place, follow=False)
        if _look(root, change.path, change.after) == change.after:
            can_be_done = _restore(root, place, change.before, contents)
            (restored if can_be_done else kept).append(change.path)
        elif _look(root, change.path, change.before) != change.before:
            kept.append(change.path)
    return TakenBack(tuple(sorted(restored)), tuple(sorted(kept)))


def _restore(root: Path, place: Path, entry: Entry | None, contents: Contents) -> bool:
    """Whether it could be done: not where something that was kept is in the way."""
    if entry is None:
        _remove(root, place)
        return True
    if not _parents_are_folders(root, place) or (os.path.lexists(place) and _is_folder(place)):
        return False
    if entry.mode == _LINK:
        put_link(place, os.fsdecode(b"".join(contents.chunks(entry.content))))
    else:
        put_file(place, contents.chunks(entry.content), _permissions(place, entry))
    return True


def _remove(root: Path, place: Path) -> None:
    """Remove a file, and the folders that are empty without it."""
    try:
        place.unlink(missing_ok=True)
    except OSError as error:
        raise BadInput(f"{place} could not be removed: {error.strerror or error}") from error
    for folder in place.parents:
        if folder == root:
            break
        try:
            folder.rmdir()
        except OSError:  # it is not empty
            break


def _permissions(place: Path, entry: Entry) -> int:
    """Those of the checkpoint. Usual ones are those of the file that is there, but for whether it can be run."""
    if entry.permissions is not None:
        return entry.permissions
    is_file = place.is_file() and not place.is_symlink()
    now = stat.S_IMODE(place.lstat().st_mode) if is_file else 0o666 & ~_umask()
    return now | (now & 0o444) >> 2 if entry.mode == _EXECUTABLE else now & ~0o111


def _umask() -> int:
    mask = os.umask(0o077)  # there is no way to ask; in the moment between, new files are private
    os.umask(mask)
    return mask


def _parents_are_folders(root: Path, place: Path) -> bool:
    """Whether a file can be made there: no parent is a link, or anything else that is no folder."""
    inside = [parent for parent in place.parents if parent != root and parent.is_relative_to(root)]
    return all(not os.path.lexists(parent) or _is_folder(parent) for parent in inside)


def _is_folder(place: Path) -> bool:
    return stat.S_ISDIR(place.lstat().st_mode)


def _look(root: Path, path: str, like: Entry | None) -> Entry | None:
    """What is there now, as a checkpoint would hold it; None for nothing. `like` tells how contents are named."""
    place = root / path
    try:
        if not all(_is_folder(parent) for parent in place.parents if parent != root and parent.is_relative_to(root)):
            return None  # what is behind a link has another name
        found = place.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise BadInput(f"{place} cannot be looked at: {error.strerror or error}") from error
    if like is None:
        return Entry("", "")  # something, where there should be nothing
    if stat.S_ISLNK(found.st_mode):
        return Entry(_LINK, _name(like, [os.fsencode(place.readlink())], found.st_size))
    if not stat.S_ISREG(found.st_mode):
        return Entry("", "")
    mode = _EXECUTABLE if found.st_mode & stat.S_IXUSR else _PLAIN
    if os.name == "nt":
        mode = like.mode if like.mode != _LINK else _PLAIN  # no file says there that it can be run
    try:
        with place.open("rb") as file:
            return Entry(mode, _name(like, iter(lambda: file.read(_CHUNK), b""), found.st_size))
    except OSError as error:
        raise BadInput(f"{place} cannot be read: {error.strerror or error}") from error


def _name(like: Entry, chunks: Iterable[bytes], size: int) -> str:
    """The id that git gives to a content: of its length in bytes, and the content."""
    sha = hashlib.new("sha1" if len(like.content) == 40 else "sha256", usedforsecurity=False)
    sha.update(b"blob %d\0" % size)
    for chunk in chunks:
        sha.update(chunk)
    return sha.hexdigest()
