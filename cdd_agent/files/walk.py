"""Walk through a project without ignored and hidden files."""

import os
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from cdd_agent.files.hidden_from_models import (
    BY_NAME,
    HiddenFile,
    HiddenFiles,
    explain_list,
    is_secret_path,
)
from cdd_agent.files.ignore import IgnoreRules
from cdd_agent.files.ignore_lists import READ_NAMES, FolderLists, read_lists_above
from cdd_agent.text.sanitize import sanitize_for_display


class Kind(StrEnum):
    FILE = "file"
    FOLDER = "folder"
    LINK = "link"
    """Never followed."""
    UNREADABLE = "unreadable"


_PROGRAM_FOLDERS = (".cdd/runs", ".cdd/cache")
"""cdd's own folders."""
TOP = PurePosixPath()
"""The project itself."""
_ENDINGS = {
    Kind.FILE: "",
    Kind.FOLDER: "/",
    Kind.LINK: " (link)",
    Kind.UNREADABLE: "/ (no permission to read)",
}
OnHidden = Callable[[HiddenFile], None]


class WalkEntry(NamedTuple):
    """A file, folder or link. Pipes and devices are skipped."""

    text: str
    """The path from the root. May contain line ends, or bytes that are not Unicode."""
    kind: Kind

    @property
    def path(self) -> PurePosixPath:
        return PurePosixPath(self.text)

    @property
    def name(self) -> str:
        return self.text.rpartition("/")[2]

    @property
    def shown(self) -> str:
        """The path on one line. A folder ends in `/`."""
        is_folder = self.kind in (Kind.FOLDER, Kind.UNREADABLE)
        return sanitize_for_display(self.text) + ("/" if is_folder else "")

    @property
    def shown_name(self) -> str:
        return sanitize_for_display(self.name) + _ENDINGS[self.kind]


def walk(
    root: Path,
    under: PurePosixPath = TOP,
    *,
    deep: bool = True,
    on_hidden: OnHidden | None = None,
) -> Iterator[WalkEntry]:
    """Yield the entries below `under`, sorted by name. A folder's entries follow it and
    are read on demand.

    `under` must be confined, and is walked even if git ignores it. `on_hidden` receives
    entries that are hidden from models.
    """
    if not _is_walkable(root, under):
        return
    lists = read_lists_above(root)
    for name in under.parts:
        lists = lists.read_folder(READ_NAMES).enter(name)
    prefix = "" if under == TOP else f"{under}/"
    top = _open_folder(lists, prefix, on_hidden)
    if top is None:
        yield WalkEntry(str(under), Kind.UNREADABLE)
        return
    # a project may be deeper than Python's call stack
    folders = [top]
    while folders:
        entry = next(folders[-1].entries, None)
        if entry is None:
            folders.pop()
            continue
        if entry.kind is not Kind.FOLDER or not deep:
            yield entry
            continue
        inner_lists = folders[-1].lists.enter(entry.name)
        inner = _open_folder(inner_lists, f"{entry.text}/", on_hidden)
        if inner is None:
            yield WalkEntry(entry.text, Kind.UNREADABLE)
            continue
        yield entry
        folders.append(inner)


def _is_walkable(root: Path, under: PurePosixPath) -> bool:
    if ".git" in under.parts or "/".join(under.parts[:2]) in _PROGRAM_FOLDERS:
        return False
    try:
        if not (root / under).is_dir():
            return False
    except OSError:
        return False
    return not under.parts or not HiddenFiles(root).why_by_name(str(under))


class _OpenFolder(NamedTuple):
    lists: FolderLists
    entries: Iterator[WalkEntry]


def _open_folder(
    lists: FolderLists, prefix: str, on_hidden: OnHidden | None
) -> _OpenFolder | None:
    """List a folder; None if unreadable. `prefix` is its path: empty, or ending in
    `/`.
    """
    try:
        with os.scandir(lists.place) as directory:
            items = sorted(directory, key=lambda item: item.name)
    except OSError:
        return None
    names = READ_NAMES.intersection(item.name for item in items)
    if names:
        lists = lists.read_folder(names)
    return _OpenFolder(lists, _select(items, lists, prefix, on_hidden))


def _select(
    items: "list[os.DirEntry[str]]",
    lists: FolderLists,
    prefix: str,
    on_hidden: OnHidden | None,
) -> Iterator[WalkEntry]:
    for item in items:
        path = prefix + item.name
        kind = _find_kind(item)
        if kind is None or item.name == ".git" or path in _PROGRAM_FOLDERS:
            continue
        is_folder = kind is Kind.FOLDER
        rules = lists.find_model_list(item.name, is_folder=is_folder)
        rules = rules or lists.find_git_list(item.name, is_folder=is_folder)
        if rules is None:
            yield WalkEntry(path, kind)
        elif on_hidden:
            _report_hidden(path, kind, lists, rules, on_hidden)


def _report_hidden(
    path: str, kind: Kind, lists: FolderLists, rules: IgnoreRules, on_hidden: OnHidden
) -> None:
    if lists.is_for_models(rules):
        on_hidden(HiddenFile(path, explain_list(rules.name)))
    elif kind is not Kind.FOLDER and is_secret_path(path):
        on_hidden(HiddenFile(path, BY_NAME))


def _find_kind(item: "os.DirEntry[str]") -> Kind | None:
    try:
        if item.is_file(follow_symlinks=False):
            return Kind.FILE
        # a junction is a kind of link on Windows
        if item.is_symlink() or getattr(item, "is_junction", bool)():
            return Kind.LINK
        return Kind.FOLDER if item.is_dir(follow_symlinks=False) else None
    except OSError:
        # it was just removed
        return None
