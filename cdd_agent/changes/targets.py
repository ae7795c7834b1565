"""Which files a reply or an action may write, and which not."""

import os
import stat
import unicodedata
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath

from cdd_agent.changes.model import ReplyRefused
from cdd_agent.files.paths import PathRefused, confine
from cdd_agent.git.index import read_tracked_files

Protected = Callable[[Path], bool]
"""Tells of a resolved place that no reply and no action may touch it."""

_LARGEST = 50_000_000
"""Bytes of a file that may be edited."""


def writable_path(root: Path, text: str, protected: Protected) -> PurePosixPath:
    """A path text of a reply or an action as a file that it may write. Raises
    `PathRefused`.

    Judged by where the path leads, whatever links it goes through.
    """
    path = confine(root, text)
    place = (root / path).resolve()
    names = [
        _as_any_disk_reads(part) for part in place.relative_to(root.resolve()).parts
    ]
    if {".git", "git~1"} & set(names) or names[0] == ".cdd" or protected(place):
        raise PathRefused(
            f"{path} belongs to git or to the program itself; it must not be written"
        )
    return path


def _as_any_disk_reads(name: str) -> str:
    """Windows drops dots and spaces at the end and what follows a colon, macOS case and
    characters without width.
    """
    seen = "".join(char for char in name if unicodedata.category(char) != "Cf")
    return seen.partition(":")[0].rstrip(". ").casefold()


def refuse_unwritable(root: Path, path: PurePosixPath) -> None:
    """Raise `ReplyRefused` if a reply or an action cannot write the file. Blocks while
    git runs, if there is no such file on the disk.
    """
    found = look_at(root, path)
    mode = found.st_mode if found else 0
    if stat.S_ISLNK(mode):
        raise ReplyRefused(f"{path} is a link; write the file that it leads to.")
    if stat.S_ISDIR(mode):
        raise ReplyRefused(f"{path} is a folder.")
    if found and (not stat.S_ISREG(mode) or found.st_size > _LARGEST):
        raise ReplyRefused(
            f"{path} is not a file to be changed here: it is a device, or over"
            f" {_LARGEST:,} bytes."
        )
    if found is None:
        _refuse_absent(root, path)
    # the last is the project itself
    blocker = next(parent for parent in path.parents if look_at(root, parent))
    if not (root / blocker).is_dir():
        raise ReplyRefused(
            f"{path} cannot be written: {blocker} is a file, not a folder."
        )
    if not os.access(root / (path if found else blocker), os.W_OK):
        raise ReplyRefused(f"{path} cannot be written: it is read-only.")


def _refuse_absent(root: Path, path: PurePosixPath) -> None:
    """Raise `ReplyRefused` for a tracked file that is not checked out: a new file would
    replace content that no one was shown.
    """
    if why := read_tracked_files(root).explain_absence(str(path)):
        raise ReplyRefused(
            f"{path} must not be written: {why}.",
            hint="Leave it alone. Only the user can check it out.",
        )


def look_at(root: Path, path: PurePosixPath) -> os.stat_result | None:
    """The entry at a path, no link followed; None where nothing is. Raises
    `PathRefused` where nobody may look.
    """
    try:
        return (root / path).lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise PathRefused(
            f"{path} cannot be looked at: {error.strerror or error}"
        ) from error


def collisions(paths: Iterable[PurePosixPath]) -> list[str]:
    """A reply cannot make one path both a file and a folder, nor write one file under
    two spellings.
    """
    found: list[str] = []
    known: dict[str, PurePosixPath] = {}
    for path in paths:
        twin = known.setdefault(_on_any_disk(path), path)
        if twin is not path:
            found.append(f"{path} and {twin} are the same file on some disks.")
    for path in known.values():
        found += [
            f"{parent} would be both a file and a folder: the reply gives"
            f" {known[_on_any_disk(parent)]} and {path}."
            for parent in path.parents
            if _on_any_disk(parent) in known
        ]
    return found


def _on_any_disk(path: PurePosixPath) -> str:
    """Some disks know no case, and some write a letter with its accent in one way
    only.
    """
    return unicodedata.normalize(
        "NFC", unicodedata.normalize("NFC", str(path)).casefold()
    )
