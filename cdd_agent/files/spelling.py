"""Find how the disk spells a file's name.

`é` can be one character or two, and both look the same. Some disks find a file under
another normal form or case of its name. A name that may have several spellings is
therefore looked up in the folder's listing.
"""

import os
import unicodedata
from collections.abc import Collection, Iterable
from functools import cache
from pathlib import Path, PurePosixPath

from cdd_agent.files.atomic import NotRead, read_bytes

SIGNS_OF_TWO_FORMS = frozenset("K;`")
"""ASCII signs that are the normal form of other signs, such as the Kelvin sign. Other
ASCII names can equal no other entry's name.
"""


def find_names(folder: Path, name: str, ignored: Collection[str] = ()) -> list[str]:
    """Return the names of the entries that a name means in a folder.

    The exact name comes first, then the entry that the disk finds under it, then
    entries whose names are equal after Unicode normalisation, the last two without
    `ignored` names. Raises `OSError` if the folder cannot be entered.
    """
    identity = _identify(folder / name)
    if identity and not _has_several_spellings(folder, name, identity):
        return [name]
    if identity is None and name.isascii() and SIGNS_OF_TWO_FORMS.isdisjoint(name):
        return []
    try:
        names = _list_names(folder)
    except OSError:
        return [name]
    if name in names:
        return [name]
    if identity:
        names = _find_spellings(folder, name, names, identity)
    else:
        names = [entry for entry in names if compose(entry) == compose(name)]
    return [entry for entry in names if entry not in ignored]


def _find_spellings(
    folder: Path, name: str, names: list[str], identity: tuple[int, int]
) -> list[str]:
    """Return the names of the entry that the disk finds under a name. Names with the
    same letters come first; others may be hard links.
    """
    folded = spell_for_any_disk(name)
    similar = [entry for entry in names if spell_for_any_disk(entry) == folded]
    # Windows also finds an entry by its short name, such as `README~1.MD`
    candidates = similar or names
    return [entry for entry in candidates if _identify(folder / entry) == identity]


def has_entry(root: Path, path: PurePosixPath | str) -> bool:
    """True if the disk has an entry of exactly this path, whatever else it finds under
    the path. Raises `OSError`.
    """
    folder = root
    for name in PurePosixPath(path).parts:
        identity = _identify(folder / name)
        if identity is None:
            return False
        is_ambiguous = _has_several_spellings(folder, name, identity)
        if is_ambiguous and name not in _list_names(folder):
            return False
        folder /= name
    return True


def read_entry(root: Path, path: PurePosixPath) -> bytes | None:
    """Return the content of the file of exactly this name, or None. Raises `BadInput`
    if it cannot be read.
    """
    try:
        exists = has_entry(root, path)
    except OSError as error:
        raise NotRead(root / path, error) from error
    return read_bytes(root / path) if exists else None


def is_same_entry(first: Path, second: Path) -> bool:
    """True if the disk finds the same entry under both paths. Raises `OSError`."""
    identity = _identify(first)
    return identity is not None and identity == _identify(second)


def ignores_spelling(folder: Path) -> bool:
    """True if the disk ignores case or normal form in this folder. Raises `OSError`."""
    for name in _list_names(folder):
        identity = _identify(folder / name)
        if identity and _has_several_spellings(folder, name, identity):
            return True
    return False


def find_misspelled(root: Path, paths: Iterable[str]) -> list[str]:
    """Return the paths that the disk finds only under another spelling. Each folder is
    listed once.
    """

    @cache
    def list_folder(folder: str) -> frozenset[str] | None:
        try:
            return frozenset(_list_names(root / folder))
        except OSError:
            return None

    @cache
    def is_spelled(path: str) -> bool:
        folder, _, name = path.rpartition("/")
        names = list_folder(folder)
        if names is not None and name not in names:
            return False
        return not folder or is_spelled(folder)

    return [
        path for path in paths if not is_spelled(path) and os.path.lexists(root / path)
    ]


def compose(name: str) -> str:
    """Return the name in the normal form for comparisons (NFC)."""
    return unicodedata.normalize("NFC", name)


def spell_for_any_disk(path: PurePosixPath | str) -> str:
    """Return a key that is equal for paths that some disk treats as one file."""
    return compose(compose(str(path)).casefold())


def _list_names(folder: Path) -> list[str]:
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries]


def _identify(place: Path) -> tuple[int, int] | None:
    """Return the identity of an entry, without following links, or None. Raises
    `OSError`.
    """
    try:
        status = place.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_dev, status.st_ino


def _has_several_spellings(folder: Path, name: str, identity: tuple[int, int]) -> bool:
    spellings = {
        "".join(map(_swap_case, name)),
        "".join(_swap_case(sign) if sign.isascii() else sign for sign in name),
        compose(name),
        unicodedata.normalize("NFD", name),
    }
    spellings.discard(name)
    return any(_identify(folder / spelling) == identity for spelling in spellings)


def _swap_case(sign: str) -> str:
    swapped = sign.swapcase()
    return swapped if len(swapped) == 1 else sign
