"""How the disk spells the name of a file.

`é` can be one character or two, and both look the same. Some disks also find a file if
its name is given in another normal form or in other case. So the name that a text gives
is looked up in the folder's listing wherever it may not be the entry's own.
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

    It is the entry with exactly this name, or the entry that the disk finds under this
    name, or else every entry whose name is equal after Unicode normalisation. Of the
    last two, none that is `ignored`. Raises `OSError` if the folder cannot be entered.
    """
    found = _identify(folder / name)
    if found and not _is_found_in_another_spelling(folder, name, found):
        return [name]
    if found is None and name.isascii() and SIGNS_OF_TWO_FORMS.isdisjoint(name):
        return []
    try:
        names = _list_names(folder)
    except OSError:
        return [name]
    if name in names:
        return [name]
    if found:
        names = _find_spellings(folder, name, names, found)
    else:
        names = [other for other in names if compose(other) == compose(name)]
    return [other for other in names if other not in ignored]


def _find_spellings(
    folder: Path, name: str, names: list[str], found: tuple[int, int]
) -> list[str]:
    """Return the names of the entry that the disk finds under a name. Names of the same
    letters come before others, which may be hard links of the entry.
    """
    folded = spell_for_any_disk(name)
    similar = [other for other in names if spell_for_any_disk(other) == folded]
    # Windows also finds an entry under a short name, such as `README~1.MD`
    candidates = similar or names
    return [other for other in candidates if _identify(folder / other) == found]


def has_entry(root: Path, path: PurePosixPath | str) -> bool:
    """True if the disk has an entry of exactly this name, in folders of exactly these
    names, whatever else the disk finds under the path. Raises `OSError`.
    """
    folder = root
    for name in PurePosixPath(path).parts:
        found = _identify(folder / name)
        if found is None:
            return False
        is_ambiguous = _is_found_in_another_spelling(folder, name, found)
        if is_ambiguous and name not in _list_names(folder):
            return False
        folder /= name
    return True


def read_entry(root: Path, path: PurePosixPath) -> bytes | None:
    """Return the content of the file of exactly this name; None if there is no such
    file. Raises `BadInput` if it cannot be read.
    """
    try:
        is_there = has_entry(root, path)
    except OSError as error:
        raise NotRead(root / path, error) from error
    return read_bytes(root / path) if is_there else None


def is_same_entry(one: Path, other: Path) -> bool:
    """True if the disk finds the same entry under both paths. Raises `OSError`."""
    found = _identify(one)
    return found is not None and found == _identify(other)


def ignores_spelling(folder: Path) -> bool:
    """True if the disk finds an entry of the folder under another case or normal form
    of its name. Raises `OSError`.
    """
    for name in _list_names(folder):
        found = _identify(folder / name)
        if found and _is_found_in_another_spelling(folder, name, found):
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
    """Return what tells an entry from all others, no link followed; None if there is no
    entry. Raises `OSError`.
    """
    try:
        found = place.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


def _is_found_in_another_spelling(
    folder: Path, name: str, found: tuple[int, int]
) -> bool:
    """True if the disk finds the same entry when the name is spelled in another way."""
    spellings = {
        "".join(map(_swap_case, name)),
        "".join(_swap_case(sign) if sign.isascii() else sign for sign in name),
        compose(name),
        unicodedata.normalize("NFD", name),
    }
    spellings.discard(name)
    return any(_identify(folder / spelling) == found for spelling in spellings)


def _swap_case(sign: str) -> str:
    swapped = sign.swapcase()
    return swapped if len(swapped) == 1 else sign
