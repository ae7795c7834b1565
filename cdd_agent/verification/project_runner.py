"""A test runner declared by a project's files, and its folder."""

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from msgspec import Struct

from cdd_agent.files.manifests import Manifests
from cdd_agent.project.source_folders import SourceFolder

TEST_DEPTH = 8
"""Depth of the search for test files."""
MOST_TEST_FILES = 200
"""Most files of a folder to search for tests."""
_LONGEST_START = 1_000_000


class ProjectRunner(Struct, frozen=True):
    """The command for one language's tests in one folder."""

    language: str
    argv: tuple[str, ...]
    """As a user would type them."""
    reason: str
    """A clause such as "declared in requirements.txt"."""
    covers: Callable[[str], bool] = lambda path: True
    """True if it also runs the tests of an inner folder with a runner of the same
    language. Takes a relative path.
    """


class ProjectFolder(Struct, frozen=True):
    root: Path
    path: str
    """Relative to the root; empty for the root."""
    files: frozenset[str]
    below: Sequence[SourceFolder] = ()
    """Inner folders that are searched for manifests."""

    @property
    def place(self) -> Path:
        return self.root / self.path

    @property
    def is_root(self) -> bool:
        return not self.path

    @property
    def manifests(self) -> Manifests:
        return Manifests(self.place)

    def has(self, *patterns: str) -> bool:
        """True if a file name matches a pattern."""
        return any(
            fnmatchcase(name, pattern) for name in self.files for pattern in patterns
        )


def project_folders(root: Path, folders: Sequence[SourceFolder]) -> list[ProjectFolder]:
    folders_of_project = []
    for folder in folders:
        inside = f"{folder.path}/" if folder.path else ""
        below = [
            other
            for other in folders
            if other.path != folder.path and other.path.startswith(inside)
        ]
        folders_of_project.append(ProjectFolder(root, folder.path, folder.files, below))
    return folders_of_project


def read_start(path: Path) -> bytes:
    """Return a file's beginning; empty if unreadable."""
    try:
        with path.open("rb") as file:
            return file.read(_LONGEST_START)
    except OSError:
        return b""
