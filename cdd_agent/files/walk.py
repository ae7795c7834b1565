"""What is in a project: its files, folders and links, without what git ignores.

Judged by the project's own files, the way git judges what it does not track: each `.gitignore` from the top of the
repository down, the deeper one first, then `.git/info/exclude`. Two things that git knows are not asked: a person's own
list for all repositories, so that a project looks the same to everybody, and the index, so that a tracked file that a
pattern names is left out.

Lines that pathspec cannot read, or would take minutes over one path for, are passed over: those with a named class of
characters, and those with `**` more than twice.
"""

import contextlib
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from cdd_agent.sanitize import sanitize_for_display

_MAX_IGNORE_FILE = 1_000_000
"""Bytes of an ignore file that are read."""
_MAX_PATTERN, _MAX_JUMPS = 4096, 2
"""Characters of a line, and how often it may jump over any number of folders."""
_MARK = b"\xef\xbb\xbf".decode("ascii", "surrogateescape")
"""What some editors begin a file with; bytes that are not ASCII stand for themselves."""
_ODD_SET = re.compile(r"\[[!^]?\]?[^\]]*(?:\[|--|&&|\|\||~~)")
"""A set of characters that Python and git read differently, or may one day."""
_TWO_STARS = re.compile(r"\[\^/\]\*((?:[^/]|(?<=\[\^)/(?=\]))*?)(?=\[\^/\]\*)")
"""In an expression by pathspec, a star and what is between it and another one in the same name."""


class Kind(StrEnum):
    FILE = "file"
    FOLDER = "folder"
    LINK = "link"
    """Never followed, wherever it leads."""
    UNREADABLE = "unreadable"
    """A folder that cannot be looked into."""


TOP = PurePosixPath()
"""The project itself, as a path in it."""
_ENDINGS = {Kind.FILE: "", Kind.FOLDER: "/", Kind.LINK: " (link)", Kind.UNREADABLE: "/ (cannot be looked into)"}


class WalkEntry(NamedTuple):
    """Something in a project. Pipes, sockets and devices are not counted as part of one."""

    text: str
    """Its path from the root, `/` between names, as the system gives it: maybe with line ends, or not Unicode."""
    kind: Kind

    @property
    def path(self) -> PurePosixPath:
        return PurePosixPath(self.text)

    @property
    def name(self) -> str:
        return self.text.rpartition("/")[2]

    @property
    def shown(self) -> str:
        """The path for people and models: one line, whatever is in the name; a folder ends in `/`."""
        return sanitize_for_display(self.text) + ("/" if self.kind in (Kind.FOLDER, Kind.UNREADABLE) else "")

    @property
    def shown_name(self) -> str:
        """The name alone, with what one cannot see from it."""
        return sanitize_for_display(self.name) + _ENDINGS[self.kind]


def walk(root: Path, under: PurePosixPath = TOP, *, deep: bool = True) -> Iterator[WalkEntry]:
    """What is in the folder `under` of a project, sorted by name, each folder followed by what is in it.

    `under` is confined already; it is walked when it is asked for, even if it is ignored itself. Entries come as they
    are found, so that a caller who has enough just stops. Without `deep` only the folder's own entries come.
    """
    if ".git" in under.parts or under.parts[:2] == (".cdd", "runs") or not _is_folder(root / under):
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


def git_folder(top: Path) -> Path | None:
    """The `.git` of a working tree whose top this is, or where a worktree's or submodule's `.git` file points."""
    git = top / ".git"
    if _is_folder(git):
        return git
    text = read_small(git, 4096).strip()
    return top / text.removeprefix("gitdir:").strip() if text.startswith("gitdir:") else None


def open_file(place: Path) -> BufferedReader:
    """Open a regular file for reading, or raise `OSError`: no link is followed, and no pipe or device is touched."""
    if not stat.S_ISREG(place.lstat().st_mode):
        raise OSError("not a regular file")
    flags = os.O_RDONLY
    for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):  # whichever this system has
        flags |= getattr(os, name, 0)
    descriptor = os.open(place, flags)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):  # exchanged meanwhile
        os.close(descriptor)
        raise OSError("not a regular file")
    return os.fdopen(descriptor, "rb")


def read_small(place: Path, limit: int) -> str:
    """The beginning of a small text file of git's; empty when it cannot be read."""
    try:
        with open_file(place.resolve()) as file:
            return file.read(limit).decode("utf-8", errors="replace")
    except (OSError, RuntimeError):  # also links in a circle
        return ""


class _IgnoreRule(NamedTuple):
    """A line of an ignore file."""

    ignores: bool
    folders_only: bool
    whole: bool
    """About the path from the ignore file's folder, not only about the last name."""
    matches: Callable[[str], object]


class _Rules:
    """The rules of one ignore file."""

    def __init__(self, offset: int, rules: Iterable[_IgnoreRule]) -> None:
        """`offset` is how much of a path, as counted from the repository's top, leads to the file's folder.

        The last rule about a path decides.
        """
        self._offset = offset
        self._rules = tuple(rules)[::-1]

    def verdict(self, path: str, name: str, *, is_folder: bool) -> bool | None:
        """Whether they ignore something; None when no rule is about it."""
        below = path[self._offset :]
        for ignores, folders_only, whole, matches in self._rules:
            if (is_folder or not folders_only) and matches(below if whole else name):
                return ignores
        return None


def _rules(text: str) -> Iterator[_IgnoreRule]:
    for line in text.removeprefix(_MARK).split("\n"):
        glob = _without_trailing_spaces(line.removesuffix("\r"))
        if not glob or glob[0] == "#" or len(glob) > _MAX_PATTERN:
            continue
        ignores = glob[0] != "!"
        glob = glob[not ignores :]
        folders_only = glob.endswith("/")
        glob = glob.removesuffix("/")
        matches = _matcher(glob.removeprefix("/"))
        if matches is not None:
            yield _IgnoreRule(ignores, folders_only, "/" in glob, matches)


def _without_trailing_spaces(line: str) -> str:
    """Unless a backslash protects them."""
    bare = line.rstrip(" ")
    escaped = (len(bare) - len(bare.rstrip("\\"))) % 2 == 1
    return bare + " " if escaped and bare != line else bare


def _matcher(glob: str) -> Callable[[str], object] | None:
    """What a pattern is about, read by pathspec; None for a pattern that is passed over.

    One goes down folder by folder here, so it must be about a path itself and not about what is below it. pathspec
    mixes the two, but where a folder above has matched, its expression has a group that says so.
    """
    if not re.search(r"[*?\[\\]", glob):
        return glob.__eq__ if glob else None
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern  # not for the shell's first screen

    if _ODD_SET.search(glob := glob.replace("[[]", "\\[")):
        return None
    with contextlib.suppress(ValueError, re.error):  # to git it is about nothing
        made = GitIgnoreSpecPattern(f"/{glob}").regex
        if made is not None and made.pattern.count(".+") <= _MAX_JUMPS:
            # Between two stars the first match is as good as any other: it is taken and never given back.
            search = re.compile(_TWO_STARS.sub(r"(?>[^/]*?\1)", made.pattern), re.DOTALL).search
            return lambda path: (match := search(path)) is not None and match.lastindex is None
    return None


def _as_bytes(name: str) -> str:
    """A character for each byte: to git, `?` is one byte."""
    return name if name.isascii() else os.fsencode(name).decode("ascii", "surrogateescape")


def _ignore_file(place: Path, offset: int) -> tuple[_Rules, ...]:
    """The rules of one ignore file; none without it."""
    try:
        with open_file(place) as file:
            text = file.read(_MAX_IGNORE_FILE).decode("ascii", errors="surrogateescape")
    except OSError:
        return ()
    rules = tuple(_rules(text))
    return (_Rules(offset, rules),) if rules else ()


@dataclass(frozen=True)
class _WalkedFolder:
    """A folder on the way, and the ignore files that have a say in it."""

    place: str
    text: str
    """Its path from the root, as the beginning of its entries' paths: empty, or ending in `/`."""
    path: str = ""
    """The same from the repository's top, for rules."""
    above: tuple[_Rules, ...] = ()
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
        return _WalkedFolder(f"{self.place}/{name}", f"{self.text}{name}/", path, self.above)

    def ruled(self, listing: "Sequence[os.DirEntry[str]]") -> "_WalkedFolder":
        """With its own rules: its `.gitignore`; and a repository of its own begins anew."""
        names = {item.name for item in listing if item.name in (".git", ".gitignore")}
        here = self.as_top() or self if ".git" in names else self
        return here.with_gitignore() if ".gitignore" in names else here

    def as_top(self) -> "_WalkedFolder | None":
        """With the rules of the repository whose top it is."""
        git = git_folder(Path(self.place))
        if git is None or not read_small(git / "HEAD", 1):
            return None
        common = read_small(git / "commondir", 4096).strip()  # a worktree shares the rest with its repository
        with contextlib.suppress(OSError, RuntimeError):
            exclude = (git / common / "info" / "exclude").resolve()
            return _WalkedFolder(self.place, self.text, self.path, _ignore_file(exclude, len(self.path)))
        return _WalkedFolder(self.place, self.text, self.path)

    def with_gitignore(self) -> "_WalkedFolder":
        own = _ignore_file(Path(self.place, ".gitignore"), len(self.path))
        return _WalkedFolder(self.place, self.text, self.path, own + self.above)

    def entry(self, item: "os.DirEntry[str]") -> WalkEntry | None:
        """What an item is; None when it is ignored, or nothing that belongs to a project."""
        text = self.text + item.name
        kind = _kind(item)
        if kind is None or item.name == ".git" or text == ".cdd/runs":
            return None
        name = _as_bytes(item.name)
        for rules in self.above:
            verdict = rules.verdict(self.path + name, name, is_folder=kind is Kind.FOLDER)
            if verdict is not None:
                return None if verdict else WalkEntry(text, kind)
        return WalkEntry(text, kind)


def _start(root: Path, under: PurePosixPath) -> _WalkedFolder:
    """The folder to begin in, with all rules from above it; its own are not read yet."""
    root = root.resolve()
    top = next((folder for folder in (root, *root.parents) if _WalkedFolder(str(folder), "").as_top()), root)
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
        if item.is_symlink() or _is_junction(item):
            return Kind.LINK
        return Kind.FOLDER if item.is_dir(follow_symlinks=False) else None
    except OSError:  # gone meanwhile
        return None


def _is_junction(item: "os.DirEntry[str]") -> bool:
    """Windows' other kind of link; Python tells it from a folder from 3.12 on."""
    return bool(getattr(item, "is_junction", bool)())
