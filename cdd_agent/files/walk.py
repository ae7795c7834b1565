"""Walking through a project: its files, folders and links, without what git ignores.

Judged by the project's own files, the way git judges what it does not track: each
`.gitignore` from the top of the repository down, the deeper one first, then
`.git/info/exclude`. Two things that git knows are not asked: a person's own list for
all repositories, so that a project looks the same to everybody, and the index, so that
a tracked file that a pattern names is left out.
"""

import contextlib
import os
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from msgspec import Struct

from cdd_agent.files.ignore import IgnoreRules
from cdd_agent.files.regular_files import git_folder, open_file, read_small
from cdd_agent.sanitize import sanitize_for_display

_MAX_IGNORE_FILE = 1_000_000
"""Bytes of an ignore file that are read."""


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
    root: Path, under: PurePosixPath = TOP, *, deep: bool = True
) -> Iterator[WalkEntry]:
    """All that is in the folder `under` of a project, sorted by name, each folder
    followed by what is in it.

    `under` is confined already; it is walked when it is asked for, even if it is
    ignored itself. Entries come as they are found, so that a caller who has enough just
    stops. Without `deep` only the folder's own entries come.
    """
    if (
        ".git" in under.parts
        or str(PurePosixPath(*under.parts[:2])) in _OWN
        or not _is_folder(root / under)
    ):
        return
    folder = _start(root, under)
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


def _as_bytes(name: str) -> str:
    """A character for each byte: to git, `?` is one byte."""
    return (
        name if name.isascii() else os.fsencode(name).decode("ascii", "surrogateescape")
    )


def _ignore_file(place: Path, offset: int) -> tuple[IgnoreRules, ...]:
    """The rules of one ignore file; none without it."""
    try:
        with open_file(place) as file:
            rules = IgnoreRules(
                file.read(_MAX_IGNORE_FILE).decode("ascii", errors="surrogateescape"),
                offset,
            )
    except OSError:
        return ()
    return (rules,) if rules else ()


class _WalkedFolder(Struct, frozen=True):
    """A folder on the way, and the ignore files that have a say in it."""

    place: str
    text: str
    """Its path from the root, as the beginning of its entries' paths: empty, or ending
    in `/`.
    """
    path: str = ""
    """The same from the repository's top, for rules."""
    above: tuple[IgnoreRules, ...] = ()
    """The one that decides first comes first."""

    def listing(self) -> "list[os.DirEntry[str]] | None":
        """Everything in it, sorted; None when it cannot be looked into."""
        try:
            with os.scandir(self.place) as items:
                return sorted(items, key=lambda item: item.name)
        except OSError:
            return None

    def inner(self, name: str) -> "_WalkedFolder":
        path = f"{self.path}{_as_bytes(name)}/"
        return _WalkedFolder(
            f"{self.place}/{name}", f"{self.text}{name}/", path, self.above
        )

    def ruled(self, listing: "Sequence[os.DirEntry[str]]") -> "_WalkedFolder":
        """With its own rules: its `.gitignore`; and a repository of its own begins
        anew.
        """
        names = {item.name for item in listing if item.name in (".git", ".gitignore")}
        here = self.as_top() or self if ".git" in names else self
        return here.with_gitignore() if ".gitignore" in names else here

    def as_top(self) -> "_WalkedFolder | None":
        """With the rules of the repository whose top it is."""
        git = git_folder(Path(self.place))
        if git is None or not read_small(git / "HEAD", 1):
            return None
        # a worktree shares the rest with its repository
        common = read_small(git / "commondir", 4096).strip()
        with contextlib.suppress(OSError, RuntimeError):
            exclude = (git / common / "info" / "exclude").resolve()
            return _WalkedFolder(
                self.place, self.text, self.path, _ignore_file(exclude, len(self.path))
            )
        return _WalkedFolder(self.place, self.text, self.path)

    def with_gitignore(self) -> "_WalkedFolder":
        own = _ignore_file(Path(self.place, ".gitignore"), len(self.path))
        return _WalkedFolder(self.place, self.text, self.path, own + self.above)

    def entry(self, item: "os.DirEntry[str]") -> WalkEntry | None:
        """An item as part of the project; None when it is ignored, or is nothing that
        belongs to one.
        """
        text = self.text + item.name
        kind = _kind(item)
        if kind is None or item.name == ".git" or text in _OWN:
            return None
        name = _as_bytes(item.name)
        for rules in self.above:
            verdict = rules.verdict(
                self.path + name, name, is_folder=kind is Kind.FOLDER
            )
            if verdict is not None:
                return None if verdict else WalkEntry(text, kind)
        return WalkEntry(text, kind)


def _start(root: Path, under: PurePosixPath) -> _WalkedFolder:
    """The folder to begin in, with all rules from above it; its own are not read
    yet.
    """
    root = root.resolve()
    top = next(
        (
            folder
            for folder in (root, *root.parents)
            if _WalkedFolder(str(folder), "").as_top()
        ),
        root,
    )
    folder = _WalkedFolder(str(top), "")
    for name in (*root.relative_to(top).parts, *under.parts):
        folder = (folder.as_top() or folder).with_gitignore().inner(name)
    text = "" if under == TOP else f"{under}/"
    return _WalkedFolder(folder.place, text, folder.path, folder.above)


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
