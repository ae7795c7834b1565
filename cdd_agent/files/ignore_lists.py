"""The ignore files that apply in a folder: git's, and those that hide files from
models.

Git's are each `.gitignore`, deeper ones first, then the user's lists:
`.git/info/exclude` and `core.excludesFile`. The index is not read, so a tracked file
may count as ignored.
"""

import contextlib
import os
import unicodedata
from collections.abc import Collection
from pathlib import Path, PurePosixPath

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
"""Files that hide others from models, in order of precedence."""
_EMPTY_MEANS_ALL = ".aiexclude"
"""An empty one hides its folder, as its tools define."""
_GITIGNORE = ".gitignore"
_MAX_BYTES = 1_000_000
"""Bytes of an ignore file to read."""
READ_NAMES = frozenset((".git", _GITIGNORE, *MODEL_LISTS))
"""Names that `FolderLists.read_folder` needs."""


class FolderLists(Struct, frozen=True):
    """The rules that apply in a folder. The first list that matches decides."""

    place: str
    path: str = ""
    """The path from the repository's top, one character per byte: empty, or ending in
    `/`.
    """
    path_for_models: str = ""
    """The path in Unicode NFC."""
    git: tuple[IgnoreRules, ...] = ()
    users: tuple[IgnoreRules, ...] = ()
    """The user's own lists, the last ones of `git`."""
    models: tuple[IgnoreRules, ...] = ()

    def enter(self, name: str) -> "FolderLists":
        """Return the lists for a subfolder, without its own ignore files."""
        return replace(
            self,
            place=f"{self.place}/{name}",
            path=f"{self.path}{_as_bytes(name)}/",
            path_for_models=f"{self.path_for_models}{_as_bytes(_compose(name))}/",
        )

    def read_folder(self, names: Collection[str]) -> "FolderLists":
        """Add the folder's own lists. `names` are those of `READ_NAMES` in the folder.
        Git's rules start again in a nested repository.
        """
        lists = self
        if ".git" in names:
            lists = self.read_top() or self
        if _GITIGNORE in names:
            place = Path(self.place, _GITIGNORE)
            rules = _read_rules(place, len(self.path), _GITIGNORE)
            lists = replace(lists, git=rules + lists.git)
        path = self.path_for_models
        shown_path = os.fsdecode(path.encode("ascii", "surrogateescape"))
        for name in reversed(MODEL_LISTS):
            if name in names:
                place = Path(self.place, name)
                rules = _read_rules(
                    place, len(path), shown_path + name, for_models=True
                )
                lists = replace(lists, models=rules + lists.models)
        return lists

    def read_top(self) -> "FolderLists | None":
        """Return the lists of the repository with this top; None for another folder."""
        git = _find_repository(Path(self.place))
        if git is None:
            return None
        # a worktree shares the settings of its repository
        common = read_small(git / "commondir", 4096).strip()
        users: tuple[IgnoreRules, ...] = ()
        with contextlib.suppress(OSError, RuntimeError):
            settings = (git / common).resolve()
            exclude = (settings / "info" / "exclude").resolve()
            users = _read_rules(exclude, len(self.path), ".git/info/exclude")
            if shared := find_excludes_file(settings):
                name = "git's core.excludesFile"
                users += _read_rules(shared.resolve(), len(self.path), name)
        return replace(self, git=users, users=users)

    def find_model_list(self, name: str, *, is_folder: bool) -> IgnoreRules | None:
        """Return the list that hides an entry from models alone."""
        # most folders have none
        if not self.models:
            return None
        name = _as_bytes(_compose(name))
        return _find_list(self.models, self.path_for_models, name, is_folder=is_folder)

    def find_git_list(self, name: str, *, is_folder: bool) -> IgnoreRules | None:
        return _find_list(self.git, self.path, _as_bytes(name), is_folder=is_folder)

    def find_user_list(self, name: str, *, is_folder: bool) -> IgnoreRules | None:
        if not self.users:
            return None
        rules = self.find_git_list(name, is_folder=is_folder)
        return rules if rules in self.users else None

    def is_for_models(self, rules: IgnoreRules) -> bool:
        return rules in self.models or rules in self.users


def read_lists_above(root: Path) -> FolderLists:
    """Return the lists for the project's folder, without its own ignore files."""
    root = root.resolve()
    top = root
    for folder in (root, *root.parents):
        if _find_repository(folder):
            top = folder
            break
    lists = FolderLists(str(top))
    for name in root.relative_to(top).parts:
        lists = lists.read_folder(READ_NAMES).enter(name)
    return lists


def _find_repository(top: Path) -> Path | None:
    """Return the git folder of the repository with this top; None for another
    folder.
    """
    git = git_folder(top)
    return git if git and read_small(git / "HEAD", 1) else None


def is_ignored(root: Path, path: PurePosixPath) -> bool:
    lists = read_lists_above(root)
    for depth, name in enumerate(path.parts, start=1):
        lists = lists.read_folder(READ_NAMES)
        is_folder = depth < len(path.parts) or (root / path).is_dir()
        if lists.find_git_list(name, is_folder=is_folder) is not None:
            return True
        lists = lists.enter(name)
    return False


def _find_list(
    lists: tuple[IgnoreRules, ...], folder: str, name: str, *, is_folder: bool
) -> IgnoreRules | None:
    path = folder + name
    for rules in lists:
        is_ignored = rules.decide(path, name, is_folder=is_folder)
        if is_ignored is not None:
            return rules if is_ignored else None
    return None


def _read_rules(
    place: Path, offset: int, name: str, *, for_models: bool = False
) -> tuple[IgnoreRules, ...]:
    try:
        with open_file(place) as file:
            data = file.read(_MAX_BYTES)
    except OSError:
        return ()
    if for_models:
        data = _compose(data.decode("utf-8", "surrogateescape")).encode(
            "utf-8", "surrogateescape"
        )
        if place.name == _EMPTY_MEANS_ALL and not data.strip():
            data = b"*"
    rules = IgnoreRules(data.decode("ascii", "surrogateescape"), offset, name)
    return (rules,) if rules else ()


def _as_bytes(name: str) -> str:
    """Return one character per byte, because git's `?` is one byte."""
    if name.isascii():
        return name
    return os.fsencode(name).decode("ascii", "surrogateescape")


def _compose(name: str) -> str:
    return name if name.isascii() else unicodedata.normalize("NFC", name)
