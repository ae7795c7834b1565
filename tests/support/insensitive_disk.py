"""A fake of a disk that ignores case and normal form of names, like those of macOS and
Windows.
"""

import os
import unicodedata
from pathlib import Path
from typing import Self


class InsensitivePath(type(Path())):  # type: ignore[misc]
    """A path on such a disk. Only name look-up is fake: the files are real, on a disk
    that distinguishes names. Paths made from this one are on the fake disk too, so a
    test passes its root to the code under test.

    Entries keep the names they were created with. Renaming an entry to another spelling
    changes its name, as on macOS and Windows.
    """

    def __fspath__(self) -> str:
        """Return the real path, with the entries' real names."""
        place = "/"
        for name in self.parts[1:]:
            place = os.path.join(place, _find(place, name))
        return place

    def resolve(self, strict: bool = False) -> Self:
        # real disks keep the caller's spelling
        return type(self)(os.path.realpath(str(self)))

    def rename(self, target: str | os.PathLike[str]) -> Self:
        return self.replace(target)

    def replace(self, target: str | os.PathLike[str]) -> Self:
        place = type(self)(target)
        spelled = os.path.join(os.fspath(place.parent), place.name)
        if os.path.lexists(place):
            os.replace(self, place)
            os.rename(place, spelled)
        else:
            os.rename(self, spelled)
        return place


class LinuxInsensitivePath(InsensitivePath):
    """A path on such a disk under Linux: renaming an entry to another spelling of its
    name succeeds without effect, and a replaced entry keeps its name.
    """

    def replace(self, target: str | os.PathLike[str]) -> Self:
        place = type(self)(target)
        os.replace(self, place)
        return place


def _find(folder: str, name: str) -> str:
    """Return the name of the entry that the disk finds under this name."""
    if os.path.lexists(os.path.join(folder, name)):
        return name
    try:
        names = os.listdir(folder)
    except OSError:
        return name
    for other in names:
        if _fold(other) == _fold(name):
            return other
    return name


def _fold(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


DISKS: dict[str, type[Path]] = {
    "tells names apart": type(Path()),
    "does not, as macOS": InsensitivePath,
    "does not, under Linux": LinuxInsensitivePath,
}
"""The kinds of disks, as the type of a path on them."""
