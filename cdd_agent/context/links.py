"""Which files of a project are meant by what code imports, and by parts of paths."""

import posixpath
import re
from collections.abc import Iterable

_INDEX = ("__init__", "index", "mod", "lib")
"""Names of files that stand for their folder."""
_SUFFIX = re.compile(r"\.(?:[cm]?[jt]sx?|h|hh|hpp|rb|php|vue|svelte)$")
_AROUND = ("crate", "self", "super")
_MOST = 3
"""Files that an import may mean; of one that would mean more nobody knows which."""


class Links:
    """The files of a project by how code names them: without suffix, `a/__init__.py` as
    `a`.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self._by_name: dict[str, list[str]] = {}
        self._by_key: dict[str, list[str]] = {}
        self._by_folder: dict[str, list[str]] = {}
        for path in paths:
            key = module_of(path)
            self._by_key.setdefault(key, []).append(path)
            self._by_name.setdefault(key.rpartition("/")[2], []).append(path)
            self._by_folder.setdefault(path.rpartition("/")[0], []).append(path)

    def imported(self, name: str, importer: str) -> list[str]:
        """The files that an import is likely to mean."""
        targets = list(_targets(name, importer.rpartition("/")[0]))
        for target in targets:
            if found := [
                path for path in self._by_key.get(target, ()) if path != importer
            ]:
                return found
        for target in targets:
            found = [path for path in self.ending(target) if path != importer]
            if 0 < len(found) <= _MOST:
                return found
        while "/" in name:  # a package that is a folder, by the end of its address
            name = name.partition("/")[2]
            if found := self._by_folder.get(name, []):
                return [path for path in found if path != importer]
        return []

    def ending(self, target: str) -> list[str]:
        """The files whose path, without its suffix, ends like this."""
        named = self._by_name.get(target.rpartition("/")[2], ())
        return [path for path in named if f"/{module_of(path)}".endswith(f"/{target}")]


def module_of(path: str) -> str:
    folder, _, name = path.rpartition("/")
    stem = name.partition(".")[0] or name
    return folder if folder and stem in _INDEX else f"{folder}/{stem}".lstrip("/")


def last_name(imported: str) -> str:
    """The last part of an import, in lower case: a file's name, or that of something in
    it.
    """
    return re.split(r"[/:\\.]+", _SUFFIX.sub("", imported).rstrip("./:\\*"))[-1].lower()


def _targets(name: str, folder: str) -> Iterable[str]:
    """The modules that an import from this folder may mean, the most exact first."""
    if name.startswith(".") and "/" not in name:  # Python's: a dot for each folder up
        up = len(name) - len(name.lstrip("."))
        base = posixpath.normpath("/".join([folder or ".", *[".."] * (up - 1)]))
        rest = name.lstrip(".").split(".")
        for end in range(len(rest), -1, -1):
            yield posixpath.normpath("/".join([base, *rest[:end]]))
    elif "/" in name or _SUFFIX.search(name):
        bare = _SUFFIX.sub("", name)
        yield posixpath.normpath(f"{folder}/{bare}".lstrip("/"))
        if not name.startswith("."):
            yield bare
    else:
        parts = [
            part for part in re.split(r"::|[.\\]", name) if part and part not in _AROUND
        ]
        for end in range(len(parts), max(0, len(parts) - 3), -1):
            yield "/".join(parts[:end])
