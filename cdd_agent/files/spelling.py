"""Finds the name of a file as the disk spells it.

`é` can be one character or two, and both look the same. Some disks also find a file if
its name is given in another normal form or case. A name that may be spelled differently
is therefore looked up in the listing of the folder.
"""

import os
import unicodedata
from collections.abc import Collection, Iterable
from functools import cache
from pathlib import Path, PurePosixPath

from cdd_agent.files.atomic import NotRead, read_bytes

SIGNS_OF_TWO_FORMS = frozenset("K;`")
"""The signs of ASCII to which Unicode normalisation turns another sign, such as the one
for Kelvin. No other ASCII name can be equal to the name of another entry.
"""


def find_names(folder: Path, name: str, ignored: Collection[str] = ()) -> list[str]:
    """Return the names of the entries that a name means in a folder.

    An entry with exactly this name comes first. Next is the entry that the disk finds
    under this name, then every entry whose name is equal after Unicode normalisation,
    both without `ignored` names. Raises `OSError` if the folder cannot be entered.
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
    """Return the names of the entry that the disk finds under a name. Names of the same
    letters come before others, which may be hard links of the entry.
    """
    folded = spell_for_any_disk(name)
    similar = [entry for entry in names if spell_for_any_disk(entry) == folded]
    # Windows also finds an entry under a short name, such as `README~1.MD`
    candidates = similar or names
    return [entry for entry in candidates if _identify(folder / entry) == identity]


def has_entry(root: Path, path: PurePosixPath | str) -> bool:
    """True if the disk has an entry of exactly this name, in folders of exactly these
    names, whatever else the disk finds under the path. Raises `OSError`.
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
    """Return the content of the file of exactly this name; None if there is no such
    file. Raises `BadInput` if it cannot be read.
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
    """True if the disk finds an entry of the folder under another case or normal form
    of its name. Raises `OSError`.
    """
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
    """Return the name in the normal form in which names are compared (NFC)."""
    return unicodedata.normalize("NFC", name)


def spell_for_any_disk(path: PurePosixPath | str) -> str:
    """Return a text that is equal for paths that some disk takes for one file."""
    return compose(compose(str(path)).casefold())


def _list_names(folder: Path) -> list[str]:
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries]


def _identify(place: Path) -> tuple[int, int] | None:
    """Return the identity of an entry, no link followed; None if there is no entry.
    Raises `OSError`.
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
