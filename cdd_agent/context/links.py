"""Find the project files that an import or a part of a path means."""

import posixpath
import re
from collections.abc import Iterable, Iterator

from cdd_agent.pattern import Pattern

_INDEX = ("__init__", "index", "mod", "lib")
"""Names of files that stand for their folder."""
_SUFFIX = Pattern(r"\.(?:[cm]?[jt]sx?|h|hh|hpp|rb|php|vue|svelte)$")
_AROUND = ("crate", "self", "super")
_MOST = 3
"""Maximum number of files for an import. With more, it is unclear."""


class Links:
    """The files of a project by the names that code uses: without suffix, and
    `a/__init__.py` as `a`.
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
        """Return the files that an import probably means."""

        def without_importer(paths: Iterable[str]) -> list[str]:
            return [path for path in paths if path != importer]

        targets = list(_find_targets(name, importer.rpartition("/")[0]))
        for target in targets:
            exact = without_importer(self._by_key.get(target, ()))
            if exact:
                return exact
        for target in targets:
            similar = without_importer(self.ending(target))
            if 0 < len(similar) <= _MOST:
                return similar
        # a package that is a folder, by the end of its address
        while "/" in name:
            name = name.partition("/")[2]
            if name in self._by_folder:
                return without_importer(self._by_folder[name])
        return []

    def ending(self, target: str) -> list[str]:
        """Return the files whose path without suffix ends with `target`."""
        named = self._by_name.get(target.rpartition("/")[2], ())
        return [path for path in named if f"/{module_of(path)}".endswith(f"/{target}")]


def module_of(path: str) -> str:
    """Return the name that code uses for a file."""
    folder, _, name = path.rpartition("/")
    stem = name.partition(".")[0] or name
    if folder and stem in _INDEX:
        return folder
    return f"{folder}/{stem}".lstrip("/")


def last_name(imported: str) -> str:
    """Return the last part of an import in lower case: a file's name, or a name in
    it.
    """
    bare = _SUFFIX.sub("", imported).rstrip("./:\\*")
    return re.split(r"[/:\\.]+", bare)[-1].lower()


def _find_targets(name: str, folder: str) -> Iterator[str]:
    """Yield the modules that an import from a folder may mean, most exact first."""
    if name.startswith(".") and "/" not in name:
        # Python: each dot after the first is a folder up
        levels = len(name) - len(name.lstrip("."))
        base = posixpath.normpath("/".join([folder or ".", *[".."] * (levels - 1)]))
        parts = name.lstrip(".").split(".")
        for end in range(len(parts), -1, -1):
            yield posixpath.normpath("/".join([base, *parts[:end]]))
    elif "/" in name or _SUFFIX.search(name):
        bare = _SUFFIX.sub("", name)
        yield posixpath.normpath(f"{folder}/{bare}".lstrip("/"))
        if not name.startswith("."):
            yield bare
    else:
        parts = [part for part in re.split(r"::|[.\\]", name) if part]
        parts = [part for part in parts if part not in _AROUND]
        for end in range(len(parts), max(0, len(parts) - 3), -1):
            yield "/".join(parts[:end])
