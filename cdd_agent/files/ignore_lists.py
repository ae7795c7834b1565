"""The ignore files that count in a folder: git's, and those that keep files from
models.

Git's are the project's `.gitignore` from the top of the repository down, the deeper
one first, then the user's own lists: `.git/info/exclude` and `core.excludesFile`. The
index is not asked, so a tracked file that a pattern names counts as ignored.

The lists for models come in the same order of folders. In one folder `.cddignore` is
asked before the files of other tools.
"""

import contextlib
import os
import unicodedata
from collections.abc import Collection
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.files.git_excludes import find_excludes_file
from cdd_agent.files.ignore import IgnoreRules
from cdd_agent.files.regular_files import git_folder, open_file, read_small

MODEL_LISTS = (
    ".cddignore",
    ".aiderignore",
    ".cursorignore",
    ".geminiignore",
    ".aiexclude",
)
"""Names of the files that keep others from models; the first decides first."""
_EMPTY_MEANS_ALL = ".aiexclude"
"""The file that without a line keeps all of its folder from models, as its tools
define it.
"""
_GITIGNORE = ".gitignore"
_MAX_IGNORE_FILE = 1_000_000
"""Bytes of an ignore file that are read."""
READ_NAMES = frozenset((".git", _GITIGNORE, *MODEL_LISTS))
"""Names of a folder's entries that `with_own` asks about."""


class FolderLists(Struct, frozen=True):
    """A folder on the disk, and the rules that count in it. The list that decides
    first comes first.
    """

    place: str
    path: str = ""
    """From the repository's top, for git's rules: empty, or ending in `/`."""
    path_for_models: str = ""
    """The same with composed letters."""
    git: tuple[IgnoreRules, ...] = ()
    users: tuple[IgnoreRules, ...] = ()
    """The user's own lists among git's, which decide after those of the project."""
    models: tuple[IgnoreRules, ...] = ()

    def inner(self, name: str) -> "FolderLists":
        """Return the same for a folder in it, without that folder's own lists."""
        return replace(
            self,
            place=f"{self.place}/{name}",
            path=f"{self.path}{_as_bytes(name)}/",
            path_for_models=f"{self.path_for_models}{_composed(name)}/",
        )

    def with_own(self, names: Collection[str]) -> "FolderLists":
        """Return the same with the folder's own lists. `names` are those of
        `READ_NAMES` that it has. Git's rules begin again in a repository.
        """
        lists = self
        if ".git" in names:
            lists = self.as_top() or self
        if _GITIGNORE in names:
            own = self._read(_GITIGNORE, len(self.path))
            lists = replace(lists, git=(*own, *lists.git))
        for name in reversed(MODEL_LISTS):
            if name in names:
                own = self._read(name, len(self.path_for_models), for_models=True)
                lists = replace(lists, models=(*own, *lists.models))
        return lists

    def as_top(self) -> "FolderLists | None":
        """Return the same with the user's lists of the repository whose top this is;
        None for another folder.
        """
        git = git_folder(Path(self.place))
        if git is None or not read_small(git / "HEAD", 1):
            return None
        # a worktree shares the rest with its repository
        common = read_small(git / "commondir", 4096).strip()
        users: tuple[IgnoreRules, ...] = ()
        with contextlib.suppress(OSError, RuntimeError):
            shared = (git / common).resolve()
            exclude = (shared / "info" / "exclude").resolve()
            users = _read_rules(exclude, len(self.path), ".git/info/exclude")
            if everywhere := find_excludes_file(shared):
                users += _read_rules(
                    everywhere.resolve(), len(self.path), "git's core.excludesFile"
                )
        return replace(self, git=users, users=users)

    def list_for_models(self, name: str, *, is_folder: bool) -> IgnoreRules | None:
        """Return the list that keeps an entry of the folder from models alone."""
        name = _composed(name)
        path = self.path_for_models + name
        for rules in self.models:
            verdict = rules.verdict(path, name, is_folder=is_folder)
            if verdict is not None:
                return rules if verdict else None
        return None

    def list_of_git(self, name: str, *, is_folder: bool) -> IgnoreRules | None:
        """Return the list by which git ignores an entry of the folder."""
        # this is asked for each entry of a project: no call is made without need
        if not name.isascii():
            name = _as_bytes(name)
        path = self.path + name
        for rules in self.git:
            verdict = rules.verdict(path, name, is_folder=is_folder)
            if verdict is not None:
                return rules if verdict else None
        return None

    def list_of_the_user(self, name: str, *, is_folder: bool) -> IgnoreRules | None:
        """Return the user's own list by which git ignores an entry of the folder."""
        found = self.list_of_git(name, is_folder=is_folder) if self.users else None
        return found if found in self.users else None

    def is_for_models(self, rules: IgnoreRules) -> bool:
        """True if these rules keep files from models, as the user's own lists do."""
        return rules in self.models or rules in self.users

    def _read(
        self, name: str, offset: int, *, for_models: bool = False
    ) -> tuple[IgnoreRules, ...]:
        shown = name
        if for_models:
            shown = _as_text(self.path_for_models) + name
        return _read_rules(
            Path(self.place, name), offset, shown, is_composed=for_models
        )


def lists_from_top(root: Path) -> FolderLists:
    """Return the lists that count in the project's folder, without its own."""
    root = root.resolve()
    top = root
    for folder in (root, *root.parents):
        if FolderLists(str(folder)).as_top():
            top = folder
            break
    lists = FolderLists(str(top))
    for name in root.relative_to(top).parts:
        lists = lists.with_own(READ_NAMES).inner(name)
    return lists


def _read_rules(
    place: Path, offset: int, name: str, *, is_composed: bool = False
) -> tuple[IgnoreRules, ...]:
    """Return the rules of one ignore file; none without it. `is_composed` compares
    letters in their composed form, whatever the file and the disk have.
    """
    try:
        with open_file(place) as file:
            data = file.read(_MAX_IGNORE_FILE)
    except OSError:
        return ()
    if is_composed:
        text = data.decode("utf-8", errors="surrogateescape")
        data = _normalise(text).encode("utf-8", errors="surrogateescape")
        if not data.strip() and place.name == _EMPTY_MEANS_ALL:
            data = b"*"
    rules = IgnoreRules(data.decode("ascii", errors="surrogateescape"), offset, name)
    return (rules,) if rules else ()


def _as_bytes(name: str) -> str:
    """Return a character for each byte: to git, `?` is one byte."""
    if name.isascii():
        return name
    return os.fsencode(name).decode("ascii", "surrogateescape")


def _as_text(path: str) -> str:
    return os.fsdecode(path.encode("ascii", "surrogateescape"))


def _composed(name: str) -> str:
    return name if name.isascii() else _as_bytes(_normalise(name))


def _normalise(text: str) -> str:
    return unicodedata.normalize("NFC", text)
