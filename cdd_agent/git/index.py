"""The index of a repository: which tracked files are not checked out, which ones git
does not compare, and which folders are submodules.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Self

from msgspec import Struct

from cdd_agent.files.regular_files import git_folder
from cdd_agent.git.command import Git, GitUnusable
from cdd_agent.text.sanitize import sanitize_for_display
from cdd_agent.threads import waited_for

LIST_INDEX = ("ls-files", "--stage", "-v", "-z")
"""The command whose output `IndexView` reads."""
_SECONDS = 30.0
_ENTRY = re.compile(
    r"(?:\A|(?<=\0))"
    r"(?P<tag>[SMa-z](?= )|[A-Z](?= 160000 ))"
    r" (?P<mode>\d{6}) (?P<id>[0-9a-f]+) (?P<stage>\d)\t(?P<path>[^\0]+)"
)
"""An entry that is not an ordinary file: it has a flag, is unmerged or a submodule."""
_SUBMODULE = "160000"


class IndexView(Struct, frozen=True):
    """The unusual entries of an index. Paths are relative to the folder in which git
    listed them.
    """

    submodules: Mapping[str, str]
    skipped: frozenset[str]
    """Files with the `skip-worktree` flag. In a sparse checkout most of them are not on
    the disk.
    """
    assumed_unchanged: frozenset[str]
    unmerged: frozenset[str]

    @classmethod
    def parse(cls, listing: str) -> Self:
        """Read the output of `LIST_INDEX`."""
        submodules: dict[str, str] = {}
        skipped, assumed, unmerged = set[str](), set[str](), set[str]()
        for entry in _ENTRY.finditer(listing):
            tag, path = entry["tag"], entry["path"]
            if entry["mode"] == _SUBMODULE:
                submodules[path] = entry["id"]
            if tag in "Ss":
                skipped.add(path)
            if tag.islower():
                assumed.add(path)
            if entry["stage"] != "0":
                unmerged.add(path)
        return cls(
            submodules, frozenset(skipped), frozenset(assumed), frozenset(unmerged)
        )


class TrackedFiles(Struct, frozen=True):
    """The files of a project that git tracks, whether they are checked out or not."""

    root: Path
    index: IndexView

    @property
    def lacks_any(self) -> bool:
        """True if some tracked file or submodule may not be checked out."""
        return bool(self.index.skipped or self.index.submodules)

    def explain_absence(self, path: str) -> str:
        """Return why a tracked file is not on the disk although no one deleted it;
        empty if there is no such file.
        """
        if path in self.index.skipped and not os.path.lexists(self.root / path):
            return "it is tracked, not checked out here"
        if submodule := self.absent_submodule(path):
            return f"the submodule {submodule} is not checked out here"
        return ""

    def describe_checkout(self, path: str) -> str:
        """Return how the user checks the file out. Blocks while git runs."""
        if submodule := self.absent_submodule(path):
            place = quote_path(submodule)
            return f"Check it out with `git submodule update --init {place}`."
        words = ("config", "--type=bool", "--get", "core.sparseCheckout")
        answer = waited_for(Git(self.root, seconds=_SECONDS).run(*words))
        if answer.stdout.strip() == "true":
            folder = str(PurePosixPath(path).parent)
            place = quote_path(path if folder == "." else folder)
            return f"Check it out with `git sparse-checkout add {place}`."
        place = quote_path(path)
        return (
            f"Check it out with `git update-index --no-skip-worktree {place}` and `git"
            f" restore {place}`."
        )

    def absent_submodule(self, path: str) -> str:
        """Return the submodule that has this path and that is not checked out."""
        for folder in PurePosixPath(path).parents:
            name = str(folder)
            if name in self.index.submodules:
                is_here = os.path.lexists(self.root / name / ".git")
                return "" if is_here else name
        return ""


def quote_path(path: str) -> str:
    """Return a path as an argument of a command line that is shown to the user."""
    return shlex.quote(sanitize_for_display(path))


_NO_INDEX = IndexView({}, frozenset(), frozenset(), frozenset())


def read_tracked_files(root: Path) -> TrackedFiles:
    """Read the index of the repository that a project is in. Blocks while git runs. Git
    runs only if the index has changed since the last call.
    """
    for top in (root, *root.parents):
        folder = git_folder(top)
        if folder is None:
            continue
        try:
            status = (folder / "index").stat()
        except OSError:
            break
        return _read(root, status.st_ino, status.st_mtime_ns, status.st_size)
    return TrackedFiles(root, _NO_INDEX)


@lru_cache(maxsize=4)
def _read(root: Path, _file: int, _changed: int, _size: int) -> TrackedFiles:
    git = Git(root, seconds=_SECONDS)
    try:
        listing = waited_for(git(*LIST_INDEX)).stdout
    except GitUnusable:
        return TrackedFiles(root, _NO_INDEX)
    return TrackedFiles(root, IndexView.parse(listing))
