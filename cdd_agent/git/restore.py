"""Restore files without losing the user's later edits. Checkpoints, the journal of a
step and failed change sets use this module.
"""

from __future__ import annotations

import filecmp
import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum, auto
from itertools import count
from pathlib import Path, PurePosixPath

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.errors import BadInput, CddError
from cdd_agent.files.atomic import (
    NotRead,
    put_file,
    put_link,
    remove,
    remove_leftovers,
)
from cdd_agent.files.regular_files import open_file
from cdd_agent.files.spelling import has_entry
from cdd_agent.git.diff import EXECUTABLE, LINK, PLAIN, Change, TreeEntry
from cdd_agent.git.merge import merge_texts
from cdd_agent.refusals.kinds import Refusal

FILE_MODES = (PLAIN, EXECUTABLE)
"""Git's modes of regular files."""
_CHUNK = 1 << 20
_LONGEST_NAME = 200
"""Bytes of a saved file's name, which leave room for a number."""
USUAL_PERMISSIONS = frozenset((0o644, 0o755, 0o664, 0o775))
"""Permissions that git distinguishes, so that a checkpoint need not record them."""


class CheckpointGone(CddError):
    """A content of a checkpoint is missing in git's store."""

    refusal = Refusal.CANNOT_UNDO

    def __init__(self) -> None:
        super().__init__(
            "A checkpoint of this run is missing: the repository was cleaned or"
            " created again",
            hint=(
                "The files are unchanged. Type `skip keep` to continue from them, or"
                " use `--start-over` to run the plan from the first step."
            ),
        )


UNKNOWN = TreeEntry("", "")
"""Something that no checkpoint holds: a pipe, or an unreadable file."""


class RestoreResult(Struct, frozen=True):
    """The results for the files of some changes, by path."""

    restored: tuple[str, ...] = ()
    """Files with their earlier content again."""
    kept: tuple[str, ...] = ()
    """Files that changed later, left unchanged."""
    merged: tuple[str, ...] = ()
    """Files that changed later: the changes are undone, the later edit stays."""


class ContentPiece(Struct, frozen=True):
    """A part of a file, in bytes."""

    source: Path
    start: int
    size: int


class Contents(Struct, frozen=True):
    """The contents of files, or their places, by id."""

    places: Mapping[str, ContentPiece | bytes] = field(default_factory=dict)

    @classmethod
    def read(cls, source: Path) -> Contents:
        """Parse the output of `git cat-file --batch`: `id blob size`, newline, content,
        newline. A content that git lacks is left out.
        """
        places: dict[str, ContentPiece | bytes] = {}
        with source.open("rb") as file:
            while head := file.readline():
                name, kind, *size = head.decode().split()
                if kind != "blob" or not size:
                    continue
                places[name] = ContentPiece(source, file.tell(), int(size[0]))
                file.seek(int(size[0]) + 1, os.SEEK_CUR)
        return cls(places)

    def chunks(self, name: str) -> Iterator[bytes]:
        piece = self.places[name]
        if isinstance(piece, bytes):
            yield piece
            return
        remaining = piece.size
        with piece.source.open("rb") as file:
            file.seek(piece.start)
            while remaining and (data := file.read(min(remaining, _CHUNK))):
                remaining -= len(data)
                yield data


def held(content: bytes, permissions: int) -> TreeEntry:
    """Return the checkpoint entry of this content. Permissions of 0 mean those of any
    new file.
    """
    return TreeEntry(
        EXECUTABLE if permissions & stat.S_IXUSR else PLAIN,
        _name(TreeEntry(PLAIN, "0" * 40), [content], len(content)),
        None if not permissions or permissions in USUAL_PERMISSIONS else permissions,
    )


def has_content(entry: TreeEntry, content: bytes) -> bool:
    """True if the entry has this content, whatever its permissions."""
    return _name(entry, [content], len(content)) == entry.content


def entry_now(root: Path, path: str, like: TreeEntry | None = None) -> TreeEntry | None:
    """Return the current content of a path, with unusual permissions; None for nothing
    or a folder, `UNKNOWN` for an unreadable file. `like` determines the hash of ids.
    """
    entry = _look(root, path, like or TreeEntry(PLAIN, "0" * 40))
    if entry is None or entry.mode in ("", LINK):
        return entry
    try:
        permissions = stat.S_IMODE((root / path).lstat().st_mode)
    except OSError:
        return None
    if permissions in USUAL_PERMISSIONS:
        return entry
    return replace(entry, permissions=permissions)


def is_there(root: Path, path: str, entry: TreeEntry | None) -> bool:
    """True if a path holds exactly this content (None: no file)."""
    return _look(root, path, entry) == entry


def restore(
    root: Path,
    changes: Sequence[Change],
    contents: Contents,
    *,
    kept: Path | None = None,
    should_merge: bool = False,
) -> RestoreResult:
    """Restore every file to its content before the changes, unless it changed later.
    Removals come first, because other files may need their places.

    `kept` is a folder that receives each file's current content before it is replaced
    or removed: as `kept/<path>`, with a number if that exists. With `should_merge`, a
    text that changed later keeps that edit if git can merge it. Then `contents` must
    have both versions of such a file, see `find_edited`.
    """
    for folder in {(root / change.path).parent for change in changes}:
        if _is_reached(root, folder):
            remove_leftovers(folder)
    restorer = _Restorer(root, contents, kept, should_merge)
    fates = dict[str, _Fate]()
    for change in sorted(changes, key=lambda change: change.before is not None):
        fates[change.path] = restorer.restore(change)

    def those(fate: _Fate) -> tuple[str, ...]:
        return tuple(sorted(path for path in fates if fates[path] is fate))

    return RestoreResult(those(_Fate.RESTORED), those(_Fate.KEPT), those(_Fate.MERGED))


def find_edited(root: Path, changes: Iterable[Change]) -> list[Change]:
    """Return the changes whose file was edited later and may be merged: regular files
    that exist before, after and now.
    """
    edited = []
    for change in changes:
        if not _is_mergeable(change):
            continue
        current = _look(root, change.path, change.after)
        if current in (None, change.before, change.after):
            continue
        if current.mode in (PLAIN, EXECUTABLE):
            edited.append(change)
    return edited


class _Fate(Enum):
    RESTORED = auto()
    KEPT = auto()
    MERGED = auto()
    WAS_SO = auto()
    """It already had the earlier content."""


class _Restorer(Struct, frozen=True):
    """Restores one file at a time. The fields are those of `restore`."""

    root: Path
    contents: Contents
    kept: Path | None
    should_merge: bool

    def restore(self, change: Change) -> _Fate:
        root, place = self.root, self.root / change.path
        before, after = change.before, change.after
        if _look(root, change.path, after) != after or before is after is None:
            return self._restore_edited(change)
        if before is None:
            self._save(change.path)
            remove(place)
            _remove_empty_parents(root, place)
        elif before == after:  # but for permissions that git does not know
            return _restore_permissions(place, before, after)
        elif not _is_reached(root, place.parent) or not _make_room(root, change.path):
            return _Fate.KEPT  # something that was kept is in the way
        elif before.mode == LINK:
            self._save(change.path)
            target = b"".join(self.contents.chunks(before.content))
            put_link(place, os.fsdecode(target))
        else:
            if after is None or after.content != before.content:
                self._save(change.path)
            permissions = _permissions(place, before)
            put_file(place, self.contents.chunks(before.content), permissions)
        return _Fate.RESTORED

    def _restore_edited(self, change: Change) -> _Fate:
        root, place, before = self.root, self.root / change.path, change.before
        if (
            before is None
            and not os.path.lexists(place)
            and _is_reached(root, place.parent)
        ):
            # a killed write may have created them
            _remove_empty_parents(root, place)
        if _look(root, change.path, before) == before:
            return _Fate.WAS_SO
        if self.should_merge and find_edited(root, [change]):
            return self._merge(change)
        return _Fate.KEPT

    def _merge(self, change: Change) -> _Fate:
        before, after = change.before, change.after
        assert before is not None
        assert after is not None
        place = self.root / change.path
        current = b"".join(_read_chunks(place))
        merged = merge_texts(
            current,
            b"".join(self.contents.chunks(after.content)),
            b"".join(self.contents.chunks(before.content)),
        )
        if merged is None or b"".join(_read_chunks(place)) != current:
            return _Fate.KEPT
        old = stat.S_IMODE(place.lstat().st_mode)
        has_mode_of_step = _is_like(old, after) and (
            bool(old & stat.S_IXUSR) == (after.mode == EXECUTABLE)
        )
        new = _permissions(place, before) if has_mode_of_step else old
        if (merged, new) == (current, old):
            return _Fate.WAS_SO
        if merged != current:
            self._save(change.path)
        put_file(place, [merged], new)
        return _Fate.MERGED

    def _save(self, path: str) -> None:
        """Copy the current content of a path to `kept`. A link becomes a file with its
        target, because a link could lead out of that folder.
        """
        place = self.root / path
        if self.kept is None or not os.path.lexists(place):
            return
        mode = place.lstat().st_mode
        if stat.S_ISLNK(mode):
            content = os.fsencode(place.readlink())
            target = _find_place_to_save(
                self.kept, path, lambda saved: saved.read_bytes() == content
            )
            if target:
                put_file(target, [content], 0o600)
        elif stat.S_ISREG(mode):
            target = _find_place_to_save(
                self.kept, path, lambda saved: filecmp.cmp(saved, place, shallow=False)
            )
            if target:
                put_file(target, _read_chunks(place), mode & stat.S_IRWXU | 0o600)


def _find_place_to_save(
    folder: Path, path: str, is_same: Callable[[Path], bool]
) -> Path | None:
    """Return a free path for a file below a folder, or None if an interrupted run has
    already saved the content there.
    """
    *above, name = PurePosixPath(path).parts
    for part in above:
        folder = next(
            place
            for place in _numbered(folder, part)
            if not os.path.lexists(place) or _is_folder(place)
        )
    remove_leftovers(folder)
    for place in _numbered(folder, name):
        if not os.path.lexists(place):
            return place
        if place.is_file() and is_same(place):
            return None
    raise AssertionError("numbers have no limit")


def _numbered(folder: Path, name: str) -> Iterator[Path]:
    yield folder / name
    short = os.fsencode(name)[:_LONGEST_NAME].decode("utf-8", "ignore")
    for number in count(1):
        yield folder / f"{short}.{number}"


def _read_chunks(place: Path) -> Iterator[bytes]:
    try:
        with open_file(place) as file:
            yield from iter(lambda: file.read(_CHUNK), b"")
    except OSError as error:
        raise NotRead(place, error) from error


def _is_mergeable(change: Change) -> bool:
    entries = (change.before, change.after)
    return all(entry and entry.mode in (PLAIN, EXECUTABLE) for entry in entries)


def _restore_permissions(place: Path, before: TreeEntry, after: TreeEntry) -> _Fate:
    current = stat.S_IMODE(place.lstat().st_mode)
    if _is_like(current, before):
        return _Fate.WAS_SO
    if not _is_like(current, after):
        return _Fate.KEPT
    try:
        place.chmod(_permissions(place, before))
    except OSError as error:
        raise BadInput(
            f"{place} cannot be changed: {error.strerror or error}",
            refusal=Refusal.DISK,
        ) from error
    return _Fate.RESTORED


def _is_like(permissions: int, entry: TreeEntry) -> bool:
    if entry.permissions is None:
        return permissions in USUAL_PERMISSIONS
    return permissions == entry.permissions


def _remove_empty_parents(root: Path, place: Path) -> None:
    for folder in place.parents:
        if folder == root:
            break
        try:
            folder.rmdir()
        except FileNotFoundError:
            continue
        except OSError:  # it is not empty
            break


def _permissions(place: Path, entry: TreeEntry) -> int:
    """Return the checkpoint's permissions. If they are usual ones, return those of the
    current file, with the checkpoint's executable bit.
    """
    if entry.permissions is not None:
        return entry.permissions
    permissions = (
        stat.S_IMODE(place.lstat().st_mode)
        if place.is_file() and not place.is_symlink()
        else 0
    )
    if permissions not in USUAL_PERMISSIONS:
        # the mask can only be read by setting it; files created meanwhile are private
        mask = os.umask(0o077)
        os.umask(mask)
        permissions = 0o666 & ~mask
    if entry.mode == EXECUTABLE:
        return permissions | (permissions & 0o444) >> 2
    return permissions & ~0o111


def _is_reached(root: Path, folder: Path) -> bool:
    """True if a file can be created in a folder: neither it nor a parent is a link or a
    file.
    """
    inside = [
        place
        for place in (folder, *folder.parents)
        if place != root and place.is_relative_to(root)
    ]
    return all(_is_folder(place) for place in inside if os.path.lexists(place))


def _is_folder(place: Path) -> bool:
    return stat.S_ISDIR(place.lstat().st_mode)


def _is_hollow(folder: Path) -> bool:
    with os.scandir(folder) as items:
        return all(
            item.is_dir(follow_symlinks=False) and _is_hollow(Path(item))
            for item in items
        )


def _make_room(root: Path, path: str) -> bool:
    """Remove an empty folder from the place of a file. True if the file can be written:
    no other folder and no other spelling of its name is there.
    """
    place = root / path
    if not os.path.lexists(place):
        return True
    if not _is_folder(place):
        return has_entry(root, path)
    try:
        if not _is_hollow(place):
            return False
        for folder, _, _ in os.walk(place, topdown=False):
            Path(folder).rmdir()
    except OSError:
        return False
    return True


def _look(root: Path, path: str, like: TreeEntry | None) -> TreeEntry | None:
    """Return the current file as a checkpoint entry; None for nothing or a folder.
    `like` determines the hash of ids.
    """
    place = root / path
    try:
        if not _is_reached(root, place.parent):
            return None  # what is behind a link has another name
        if not has_entry(root, path):
            return None  # the disk may find an entry that is spelled otherwise
        status = place.lstat()
        if stat.S_ISDIR(status.st_mode):
            return None
        return _describe(place, status, like) if like else UNKNOWN
    except (FileNotFoundError, NotADirectoryError):
        return None
    except PermissionError:
        return UNKNOWN
    except OSError as error:
        raise BadInput(
            f"{place} cannot be read: {error.strerror or error}", refusal=Refusal.DISK
        ) from error


def _describe(place: Path, status: os.stat_result, like: TreeEntry) -> TreeEntry:
    if stat.S_ISLNK(status.st_mode):
        target = os.fsencode(place.readlink())
        return TreeEntry(LINK, _name(like, [target], len(target)))
    if not stat.S_ISREG(status.st_mode):
        return UNKNOWN
    mode = EXECUTABLE if status.st_mode & stat.S_IXUSR else PLAIN
    if os.name == "nt":
        # Windows has no executable bit
        mode = like.mode if like.mode != LINK else PLAIN
    with open_file(place) as file:
        return TreeEntry(
            mode, _name(like, iter(lambda: file.read(_CHUNK), b""), status.st_size)
        )


def _name(like: TreeEntry, chunks: Iterable[bytes], size: int) -> str:
    """Return git's id of a content of `size` bytes."""
    sha = hashlib.new(
        "sha1" if len(like.content) == 40 else "sha256", usedforsecurity=False
    )
    sha.update(b"blob %d\0" % size)
    for chunk in chunks:
        sha.update(chunk)
    return sha.hexdigest()
