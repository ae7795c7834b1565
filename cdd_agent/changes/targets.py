"""Rules for files that a reply or an action may write."""

import os
import stat
import unicodedata
from collections.abc import Callable, Collection, Iterable
from pathlib import Path, PurePosixPath

from cdd_agent.changes.model import ReplyFault, ReplyRefused
from cdd_agent.files.paths import PathRefused, confine
from cdd_agent.files.spelling import has_entry, spell_for_any_disk
from cdd_agent.git.index import read_tracked_files

Protected = Callable[[Path], bool]
"""True for a resolved path that must not change."""

_LARGEST = 50_000_000
"""In bytes."""


def writable_path(
    root: Path, text: str, protected: Protected, given_up: Collection[str] = ()
) -> PurePosixPath:
    """Return the file that the text names. Links are resolved for the check.
    `given_up`: see `confine`.

    Raises `PathRefused`.
    """
    path = confine(root, text, given_up)
    place = (root / path).resolve()
    names = []
    for part in place.relative_to(root.resolve()).parts:
        names.append(_read_as_any_disk(part))
    if {".git", "git~1"} & set(names) or names[0] == ".cdd" or protected(place):
        raise PathRefused(
            f"{path} belongs to git or to the program itself; it must not be written"
        )
    return path


def _read_as_any_disk(name: str) -> str:
    """Drop what some disks ignore: Windows drops trailing dots and spaces, and all
    after a colon; macOS drops case and invisible characters.
    """
    visible = "".join(sign for sign in name if unicodedata.category(sign) != "Cf")
    return visible.partition(":")[0].rstrip(". ").casefold()


def refuse_unwritable(root: Path, path: PurePosixPath) -> None:
    """Raise `ReplyRefused` if the file cannot be written. May wait for git if the file
    is absent.
    """
    kind = look_at(root, path)
    mode = kind.st_mode if kind else 0
    if stat.S_ISLNK(mode):
        raise _forbid(
            f"{path} is a link; write the file that it leads to.", "it is a link"
        )
    if stat.S_ISDIR(mode):
        raise _forbid(f"{path} is a folder.", "it is a folder")
    if kind and (not stat.S_ISREG(mode) or kind.st_size > _LARGEST):
        raise _forbid(
            f"{path} is not a file to be changed here: it is a device, or over"
            f" {_LARGEST:,} bytes.",
            "it is a device or too large",
        )
    if kind is None:
        _refuse_absent(root, path)
    # the last parent is the project root
    nearest = next(parent for parent in path.parents if look_at(root, parent))
    if not (root / nearest).is_dir():
        why = f"{nearest} is a file, not a folder"
        raise _forbid(f"{path} cannot be written: {why}.", why)
    if not os.access(root / (path if kind else nearest), os.W_OK):
        raise _forbid(f"{path} cannot be written: it is read-only.", "it is read-only")


def _forbid(message: str, why: str, hint: str = "") -> ReplyRefused:
    return ReplyRefused(message, hint=hint, fault=ReplyFault.FORBIDDEN, detail=why)


def _refuse_absent(root: Path, path: PurePosixPath) -> None:
    """Raise `ReplyRefused` for a tracked file that is not checked out: a new file would
    replace content that no one has seen.
    """
    if why := read_tracked_files(root).explain_absence(str(path)):
        raise _forbid(
            f"{path} must not be written: {why}.",
            why,
            hint="Leave it alone. Only the user can check it out.",
        )


def look_at(root: Path, path: PurePosixPath) -> os.stat_result | None:
    """Return the status of the entry with exactly this name, without following links;
    None if there is none. Raises `PathRefused` if the folder cannot be entered.
    """
    try:
        return (root / path).lstat() if has_entry(root, path) else None
    except OSError as error:
        raise PathRefused(
            f"{path} cannot be looked at: {error.strerror or error}"
        ) from error


def find_collisions(
    written: Iterable[PurePosixPath], deleted: Iterable[PurePosixPath] = ()
) -> list[str]:
    """Return why changes cannot be made on every disk: a path would be both file and
    folder, or two files would be one where case or normal form is ignored. A new
    spelling of a deleted file is a rename.
    """
    reasons: list[str] = []
    files: dict[str, PurePosixPath] = {}
    for path in written:
        twin = files.setdefault(spell_for_any_disk(path), path)
        if twin is not path:
            reasons.append(f"{path} and {twin} are the same file on some disks.")
    for path in deleted:
        files.setdefault(spell_for_any_disk(path), path)
    for path in files.values():
        for parent in path.parents:
            file = files.get(spell_for_any_disk(parent))
            if file is not None:
                reasons.append(
                    f"{parent} would be both a file and a folder: the reply gives"
                    f" {file} and {path}."
                )
    return reasons
