"""Walking through a project: its files, folders and links, without what git ignores
and without what is kept from models (`ignore_lists.py`).
"""

import os
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from msgspec import Struct

from cdd_agent.files.hidden_from_models import (
    BY_NAME,
    HiddenFile,
    HiddenFiles,
    is_secret_path,
    listed_in,
)
from cdd_agent.files.ignore import IgnoreRules
from cdd_agent.files.ignore_lists import READ_NAMES, FolderLists, lists_from_top
from cdd_agent.sanitize import sanitize_for_display


class Kind(StrEnum):
    FILE = "file"
    FOLDER = "folder"
    LINK = "link"
    """Never followed, wherever it leads."""
    UNREADABLE = "unreadable"
    """A folder that cannot be looked into."""


_OWN = (".cdd/runs", ".cdd/cache")
"""Folders that this program leaves in a project, and nobody looks for."""
TOP = PurePosixPath()
"""The project itself, as a path in it."""
_ENDINGS = {
    Kind.FILE: "",
    Kind.FOLDER: "/",
    Kind.LINK: " (link)",
    Kind.UNREADABLE: "/ (cannot be looked into)",
}


class WalkEntry(NamedTuple):
    """Something in a project. Pipes, sockets and devices are not counted as part of
    one.
    """

    text: str
    """Its path from the root, `/` between names, as the system gives it: maybe with
    line ends, or not Unicode.
    """
    kind: Kind

    @property
    def path(self) -> PurePosixPath:
        return PurePosixPath(self.text)

    @property
    def name(self) -> str:
        return self.text.rpartition("/")[2]

    @property
    def shown(self) -> str:
        """The path for people and models: one line, whatever is in the name; a folder
        ends in `/`.
        """
        return sanitize_for_display(self.text) + (
            "/" if self.kind in (Kind.FOLDER, Kind.UNREADABLE) else ""
        )

    @property
    def shown_name(self) -> str:
        """The name alone, with what one cannot see from it."""
        return sanitize_for_display(self.name) + _ENDINGS[self.kind]


def walk(
    root: Path,
    under: PurePosixPath = TOP,
    *,
    deep: bool = True,
    on_hidden: Callable[[HiddenFile], None] | None = None,
) -> Iterator[WalkEntry]:
    """All that is in the folder `under` of a project, sorted by name, each folder
    followed by what is in it.

    `under` is confined already; it is walked when it is asked for, even if git ignores
    it. Entries come as they are found, so that a caller who has enough just stops.
    Without `deep` only the folder's own entries come. `on_hidden` receives what is left
    out because it is hidden from models.
    """
    if (
        ".git" in under.parts
        or str(PurePosixPath(*under.parts[:2])) in _OWN
        or not _is_folder(root / under)
    ):
        return
    if under.parts and HiddenFiles(root).why_by_name(str(under)):
        return
    folder = _start(root, under, on_hidden)
    listing = folder.listing()
    if listing is None:
        yield WalkEntry(str(under), Kind.UNREADABLE)
        return
    stack = [(folder.ruled(listing), iter(listing))]
    while stack:
        folder, rest = stack[-1]
        for item in rest:
            found = folder.entry(item)
            if found is None:
                continue
            if found.kind is not Kind.FOLDER or not deep:
                yield found
                continue
            inner = folder.inner(item.name)
            listing = inner.listing()
            if listing is None:
                yield WalkEntry(found.text, Kind.UNREADABLE)
                continue
            yield found
            stack.append((inner.ruled(listing), iter(listing)))
            break
        else:
            stack.pop()


class _WalkedFolder(Struct, frozen=True):
    """A folder on the way, and the ignore files that count in it."""

    lists: FolderLists
    text: str
    """Its path from the root, as the beginning of its entries' paths: empty, or ending
    in `/`.
    """
    on_hidden: Callable[[HiddenFile], None] | None

    def listing(self) -> "list[os.DirEntry[str]] | None":
        """Everything in it, sorted; None when it cannot be looked into."""
        try:
            with os.scandir(self.lists.place) as items:
                return sorted(items, key=lambda item: item.name)
        except OSError:
            return None

    def inner(self, name: str) -> "_WalkedFolder":
        return _WalkedFolder(
            self.lists.inner(name), f"{self.text}{name}/", self.on_hidden
        )

    def ruled(self, listing: "Sequence[os.DirEntry[str]]") -> "_WalkedFolder":
        """With its own rules."""
        names = READ_NAMES.intersection(item.name for item in listing)
        if not names:
            return self
        return _WalkedFolder(self.lists.with_own(names), self.text, self.on_hidden)

    def entry(self, item: "os.DirEntry[str]") -> WalkEntry | None:
        """An item as part of the project; None when it is ignored, or is nothing that
        belongs to one.
        """
        text = self.text + item.name
        kind = _kind(item)
        if kind is None or item.name == ".git" or text in _OWN:
            return None
        is_folder = kind is Kind.FOLDER
        lists = self.lists
        found = None
        # this is asked for each entry, and most folders have no lists for models
        if lists.models:
            found = lists.list_for_models(item.name, is_folder=is_folder)
        found = found or lists.list_of_git(item.name, is_folder=is_folder)
        if found is None:
            return WalkEntry(text, kind)
        if self.on_hidden:
            self._report(text, found, is_folder=is_folder)
        return None

    def _report(self, text: str, found: IgnoreRules, *, is_folder: bool) -> None:
        """Report an entry that a list leaves out, if it is hidden from models."""
        assert self.on_hidden is not None
        if self.lists.is_for_models(found):
            self.on_hidden(HiddenFile(text, listed_in(found.name)))
        elif not is_folder and is_secret_path(text):
            self.on_hidden(HiddenFile(text, BY_NAME))


def _start(
    root: Path,
    under: PurePosixPath,
    on_hidden: Callable[[HiddenFile], None] | None,
) -> _WalkedFolder:
    """The folder to begin in, with all rules from above it; its own are not read
    yet.
    """
    lists = lists_from_top(root)
    for name in under.parts:
        lists = lists.with_own(READ_NAMES).inner(name)
    text = "" if under == TOP else f"{under}/"
    return _WalkedFolder(lists, text, on_hidden)


def _is_folder(place: Path) -> bool:
    """Also where one may not ask: no."""
    try:
        return place.is_dir()
    except OSError:
        return False


def _kind(item: "os.DirEntry[str]") -> Kind | None:
    try:
        if item.is_file(follow_symlinks=False):
            return Kind.FILE
        # A junction is Windows' other kind of link; Python tells it from a folder from
        # 3.12 on.
        if item.is_symlink() or getattr(item, "is_junction", bool)():
            return Kind.LINK
        return Kind.FOLDER if item.is_dir(follow_symlinks=False) else None
    except OSError:  # gone meanwhile
        return None
