"""The folders with a project's code, outer ones first. Excludes hidden and ignored
folders, and those with third-party code.
"""

import os
from collections import deque
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from cdd_agent.files.ignore_lists import READ_NAMES, FolderLists, read_lists_above

_NOT_OWN = frozenset(
    (
        *(
            "node_modules",
            "bower_components",
            "vendor",
            "third_party",
            "third-party",
            "deps",
        ),
        *("external", "__pycache__", "site-packages", "venv", "env"),
        *("target", "dist", "build", "out", "coverage"),
    )
)
_MOST_FOLDERS = 3_000


class SourceFolder(NamedTuple):
    path: str
    """From the project's root; empty for the root."""
    files: frozenset[str]


def source_folders(
    root: Path, depth: int, without: Collection[str] = ()
) -> Iterator[SourceFolder]:
    """Yield the folders of a project down to a depth. `without` are names of further
    folders to exclude. At most `_MOST_FOLDERS` are read.
    """
    remaining = deque([("", 0, read_lists_above(root))])
    count = 0
    while remaining and count < _MOST_FOLDERS:
        path, level, lists = remaining.popleft()
        count += 1
        files, folders = _read(root / path)
        yield SourceFolder(path, files)
        if level == depth:
            continue
        lists = lists.read_folder(READ_NAMES & (files | folders))
        for name in sorted(folders):
            if name in without or not _is_own(name, lists):
                continue
            inner = f"{path}/{name}" if path else name
            remaining.append((inner, level + 1, lists.enter(name)))


def _is_own(name: str, lists: FolderLists) -> bool:
    if name.startswith(".") or name in _NOT_OWN:
        return False
    return lists.find_git_list(name, is_folder=True) is None


def _read(place: Path) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names of files and folders in a folder, without links."""
    files: set[str] = set()
    folders: set[str] = set()
    try:
        with os.scandir(place) as entries:
            for entry in entries:
                if entry.is_file():
                    files.add(entry.name)
                elif entry.is_dir(follow_symlinks=False):
                    folders.add(entry.name)
    except OSError:
        pass  # an unreadable folder has nothing for the caller
    return frozenset(files), frozenset(folders)
