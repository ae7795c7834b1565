"""The index of a repository: tracked files that are not checked out, files that git
does not compare, and submodules.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Self

from msgspec import Struct

from cdd_agent.files.regular_files import git_folder
from cdd_agent.git.command import Git, GitUnusable
from cdd_agent.pattern import Pattern
from cdd_agent.text.sanitize import sanitize_for_display
from cdd_agent.threads import waited_for

LIST_INDEX = ("ls-files", "--stage", "-v", "-z")
_SECONDS = 30.0
_ENTRY = Pattern(
    r"(?:\A|(?<=\0))"
    r"(?P<tag>[SMa-z](?= )|[A-Z](?= 160000 ))"
    r" (?P<mode>\d{6}) (?P<id>[0-9a-f]+) (?P<stage>\d)\t(?P<path>[^\0]+)"
)
"""An entry with a flag, a conflict or a submodule."""
_SUBMODULE = "160000"


class IndexView(Struct, frozen=True):
    """The unusual entries of an index, by paths relative to the folder that git
    listed.
    """

    submodules: Mapping[str, str]
    skipped: frozenset[str]
    """Files with the `skip-worktree` flag. In a sparse checkout most are not on
    disk.
    """
    assumed_unchanged: frozenset[str]
    unmerged: frozenset[str]

    @classmethod
    def parse(cls, listing: str) -> Self:
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
    """The files that git tracks in a project, checked out or not."""

    root: Path
    index: IndexView

    @property
    def lacks_any(self) -> bool:
        """True if a tracked file or submodule may not be checked out."""
        return bool(self.index.skipped or self.index.submodules)

    def explain_absence(self, path: str) -> str:
        """Return why a tracked file is not on disk although no one deleted it, or an
        empty text.
        """
        if path in self.index.skipped and not os.path.lexists(self.root / path):
            return "it is tracked, not checked out here"
        if submodule := self.absent_submodule(path):
            return f"the submodule {submodule} is not checked out here"
        return ""

    def describe_checkout(self, path: str) -> str:
        """Return how the user can check the file out. Blocks while git runs."""
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
        for folder in PurePosixPath(path).parents:
            name = str(folder)
            if name in self.index.submodules:
                is_here = os.path.lexists(self.root / name / ".git")
                return "" if is_here else name
        return ""


def quote_path(path: str) -> str:
    """Return a path as an argument of a command line for the user."""
    return shlex.quote(sanitize_for_display(path))


_NO_INDEX = IndexView({}, frozenset(), frozenset(), frozenset())


def read_tracked_files(root: Path) -> TrackedFiles:
    """Read the index of the project's repository. Blocks while git runs, which happens
    only if the index has changed since the last call.
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
