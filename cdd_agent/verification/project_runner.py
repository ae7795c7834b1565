"""A test runner that a project's files declare, and the folder that declares it."""

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from msgspec import Struct

from cdd_agent.files.manifests import Manifests
from cdd_agent.project.source_folders import SourceFolder

TEST_DEPTH = 8
"""Levels of folders that are searched for test files."""
MOST_TEST_FILES = 200
"""Files of a folder that are searched for tests."""
_LONGEST_START = 1_000_000


class ProjectRunner(Struct, frozen=True):
    """The command that runs the tests of one language in one folder."""

    language: str
    argv: tuple[str, ...]
    """The words that a user would type."""
    reason: str
    """The evidence, as a clause, such as "declared in requirements.txt"."""
    covers: Callable[[str], bool] = lambda path: True
    """True if it also runs the tests of a folder below that has a runner of the same
    language. The path is relative to its own folder.
    """


class ProjectFolder(Struct, frozen=True):
    """A folder of a project that may have a runner."""

    root: Path
    path: str
    """From the root; empty for the root."""
    files: frozenset[str]
    below: Sequence[SourceFolder] = ()
    """The folders inside it that are searched for manifests."""

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
        """True if the name of a file in it matches one of the patterns."""
        return any(
            fnmatchcase(name, pattern) for name in self.files for pattern in patterns
        )


def project_folders(root: Path, folders: Sequence[SourceFolder]) -> list[ProjectFolder]:
    """Return the folders with those that are inside each."""
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
    """Return the beginning of a file; empty if it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(_LONGEST_START)
    except OSError:
        return b""
