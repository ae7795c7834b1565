"""What is in a project: its files, folders and links, without what git ignores.

Judged by the project's own files, the way git judges what it does not track: each `.gitignore` from the top of the
repository down, the deeper one first, then `.git/info/exclude`. Two things that git knows are not asked: a person's own
list for all repositories, so that a project looks the same to everybody, and the index, so that a tracked file that a
pattern names is left out.

The patterns are read here rather than by pathspec: its regular expressions take minutes over one name when a pattern
has a handful of stars, and they do not tell `build/` from what is below it, so that `!build/keep` after `build/**`
would be lost.
"""

import contextlib
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from cdd_agent.harmless import harmless

_MAX_IGNORE_FILE = 1_000_000
"""Bytes of an ignore file that are read."""
_MAX_PATTERN = 4096
"""Characters of a pattern: no path is longer."""


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


class Entry(NamedTuple):
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
        return harmless(self.text) + ("/" if self.kind in (Kind.FOLDER, Kind.UNREADABLE) else "")

    @property
    def shown_name(self) -> str:
        """The name alone, with what one cannot see from it."""
        return harmless(self.name) + _ENDINGS[self.kind]


def walk(root: Path, under: PurePosixPath = TOP, *, deep: bool = True) -> Iterator[Entry]:
    """What is in the folder `under` of a project, sorted by name, each folder followed by what is in it.

    `under` is confined already; it is walked when it is asked for, even if it is ignored itself. Entries come as they
    are found, so that a caller who has enough just stops. Without `deep` only the folder's own entries come.
    """
    if ".git" in under.parts or under.parts[:2] == (".cdd", "runs"):
        return
    folder = _start(root, under)
    listing = folder.listing()
    if listing is None:
        if (root / under).is_dir():
            yield Entry(str(under), Kind.UNREADABLE)
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
                yield Entry(found.text, Kind.UNREADABLE)
                continue
            yield found
            stack.append((inner.ruled(listing), iter(listing)))
            break
        else:
            stack.pop()


def git_folder(top: Path) -> Path | None:
    """The `.git` of a working tree whose top this is, or where a worktree's or submodule's `.git` file points."""
    git = top / ".git"
    if git.is_dir():
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


def wildmatch(glob: str) -> Callable[[str], object]:
    """What a pattern matches, as git reads it: `*` and `?` within a name, `**` across folders, `[a-z]`, backslash.

    Never slow, whoever wrote the pattern: between two stars the first match is as good as any later one, so it is
    taken and never given back (atomic groups). Only what follows the last star is tried at every place. Raises
    `ValueError` for a pattern that is not well formed; for git it matches nothing.
    """
    special = _SPECIAL.search(glob)
    if special is None:
        return glob.__eq__
    return re.compile(_expression(_pieces(glob, special.start())), re.DOTALL).fullmatch


_SPECIAL = re.compile(r"[*?\[\\]")
_CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r" \t\n\r",
    "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
}


class _Wild(StrEnum):
    """Pieces of a pattern that stand for more than one character, and what ends a name."""

    STAR = "*"
    FOLDERS = "**/"
    REST = "**"
    SLASH = "/"


def _pieces(glob: str, plain: int) -> Iterator[str]:
    """The pattern's pieces: members of `_Wild`, and regular expressions for one character each.

    git sets the first `plain` characters aside, so that stars right behind them are the start of a name for it, too.
    """
    at = 0
    while at < len(glob):
        char = glob[at]
        if char == "*":
            end = at + len(glob[at:]) - len(glob[at:].lstrip("*"))
            whole_name = end - at > 1 and (glob[at - 1 : at] in ("", "/") or at == plain)
            if whole_name and end == len(glob):
                yield _Wild.REST
            elif whole_name and glob[end] == "/":
                yield _Wild.FOLDERS
                end += 1
            else:
                yield _Wild.STAR
            at = end
        elif char == "[":
            expression, at = _bracket(glob, at + 1)
            yield expression
        else:
            if char == "\\":
                at += 1
                if at == len(glob):
                    raise ValueError("a backslash at the end")
            yield _Wild.SLASH if glob[at] == "/" else "[^/]" if char == "?" else re.escape(glob[at])
            at += 1


def _bracket(glob: str, at: int) -> tuple[str, int]:
    """The expression for a set of characters, and where it ends; `at` is behind the opening bracket."""
    negated = glob[at : at + 1] in ("!", "^")
    at += negated
    items, previous, first = [], "", at
    while at == first or glob[at : at + 1] != "]":
        if at >= len(glob):
            raise ValueError("[ without ]")
        named = glob.find("]", at + 2) if glob.startswith("[:", at) else -1
        if glob[at] == "-" and previous and glob[at + 1 : at + 2] not in ("", "]"):
            at += 2 if glob[at + 1] == "\\" else 1
            if at >= len(glob):
                raise ValueError("[ without ]")
            if previous <= glob[at]:
                items.append(f"{re.escape(previous)}-{re.escape(glob[at])}")
            previous = ""
        elif named > at + 2 and glob[named - 1] == ":":
            if glob[at + 2 : named - 1] not in _CLASSES:
                raise ValueError(f"no such class of characters: {glob[at : named + 1]}")
            items.append(_CLASSES[glob[at + 2 : named - 1]])
            at, previous = named, ""
        else:
            at += glob[at] == "\\"
            if at >= len(glob):
                raise ValueError("[ without ]")
            previous = glob[at]
            items.append(re.escape(previous))
        at += 1
    inside = "".join(items)
    if not inside:
        return ("[^/]" if negated else "(?!)"), at + 1
    return f"(?!/)[{'^' if negated else ''}{inside}]", at + 1


def _expression(pieces: Iterator[str]) -> str:
    """The pattern as a regular expression for the whole text."""
    stretches: list[list[str]] = [[]]
    for piece in pieces:
        if piece is _Wild.FOLDERS:
            stretches.append([])
        else:
            stretches[-1].append(piece)
    first, *others = [_stretch(stretch) for stretch in stretches]
    middle = "".join(f"(?>(?:[^/]*/)*?{stretch})" for stretch in others[:-1])
    return first + middle + "".join(f"(?:[^/]*/)*{stretch}" for stretch in others[-1:])


def _stretch(pieces: Sequence[str]) -> str:
    """The part between two `**/`."""
    expression, fixed, starred = "", "", False
    for piece in pieces:
        if not isinstance(piece, _Wild):
            fixed += piece
        elif piece is _Wild.STAR:
            expression += f"(?>[^/]*?{fixed})" if starred else fixed
            fixed, starred = "", True
        else:
            expression += ("[^/]*" if starred else "") + fixed + (".*" if piece is _Wild.REST else "/")
            fixed, starred = "", False
    return expression + ("[^/]*" if starred else "") + fixed


class _Rule(NamedTuple):
    """A line of an ignore file."""

    glob: str
    ignores: bool
    folders_only: bool
    whole: bool
    """Against the path from the ignore file's folder, not only the last name."""
    matches: Callable[[str], object]


class _Rules:
    """The rules of one ignore file.

    What most lines are, plain names and `*.log`, is looked up together: few paths have a rule that is about them.
    """

    def __init__(self, offset: int, rules: Sequence[_Rule]) -> None:
        """`offset` is how much of a path, as counted from the repository's top, leads to the file's folder."""
        self._offset = offset
        self._rules = rules[::-1]
        plain, endings, others = list[str](), list[str](), list[_Rule]()
        for rule in rules:
            ending = rule.glob.removeprefix("*")
            if rule.whole or _SPECIAL.search(ending):
                others.append(rule)
            else:
                (plain if ending == rule.glob else endings).append(ending)
        self._plain, self._endings, self._others = frozenset(plain), tuple(endings), others

    def verdict(self, path: str, name: str, *, is_folder: bool) -> bool | None:
        """Whether they ignore something; None when no rule is about it."""
        below = path[self._offset :]
        if name not in self._plain and not name.endswith(self._endings):
            for rule in self._others:
                if rule.matches(below if rule.whole else name):
                    break
            else:
                return None
        for rule in self._rules:
            if (is_folder or not rule.folders_only) and rule.matches(below if rule.whole else name):
                return rule.ignores
        return None


def _rules(text: str) -> Iterator[_Rule]:
    for line in text.removeprefix("\xef\xbb\xbf").split("\n"):
        glob = _without_trailing_spaces(line.removesuffix("\r"))
        if not glob or glob[0] == "#" or len(glob) > _MAX_PATTERN:
            continue
        ignores = glob[0] != "!"
        glob = glob[not ignores :]
        folders_only = glob.endswith("/")
        glob = glob.removesuffix("/")
        whole, glob = "/" in glob, glob.removeprefix("/")
        try:
            matches = wildmatch(glob)
        except ValueError:
            continue
        if glob:
            yield _Rule(glob, ignores, folders_only, whole, matches)


def _without_trailing_spaces(line: str) -> str:
    """Unless a backslash protects them."""
    bare = line.rstrip(" ")
    escaped = (len(bare) - len(bare.rstrip("\\"))) % 2 == 1
    return bare + " " if escaped and bare != line else bare


def _ignore_file(place: Path, offset: int) -> tuple[_Rules, ...]:
    """The rules of one ignore file, as bytes in the form of text, because git compares bytes; none without it."""
    try:
        with open_file(place) as file:
            text = file.read(_MAX_IGNORE_FILE).decode("latin-1")
    except OSError:
        return ()
    rules = tuple(_rules(text))
    return (_Rules(offset, rules),) if rules else ()


def _bytes_as_text(name: str) -> str:
    return name if name.isascii() else os.fsencode(name).decode("latin-1")


@dataclass(frozen=True)
class _Folder:
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

    def inner(self, name: str) -> "_Folder":
        path = f"{self.path}{_bytes_as_text(name)}/"
        return _Folder(f"{self.place}/{name}", f"{self.text}{name}/", path, self.above)

    def ruled(self, listing: "Sequence[os.DirEntry[str]]") -> "_Folder":
        """With its own rules: its `.gitignore`; and a repository of its own begins anew."""
        names = {item.name for item in listing if item.name in (".git", ".gitignore")}
        here = self.as_top() or self if ".git" in names else self
        return here.with_gitignore() if ".gitignore" in names else here

    def as_top(self) -> "_Folder | None":
        """With the rules of the repository whose top it is."""
        git = git_folder(Path(self.place))
        if git is None or not (git / "HEAD").exists():
            return None
        common = read_small(git / "commondir", 4096).strip()  # a worktree shares the rest with its repository
        with contextlib.suppress(OSError, RuntimeError):
            exclude = (git / common / "info" / "exclude").resolve()
            return _Folder(self.place, self.text, self.path, _ignore_file(exclude, len(self.path)))
        return _Folder(self.place, self.text, self.path)

    def with_gitignore(self) -> "_Folder":
        own = _ignore_file(Path(self.place, ".gitignore"), len(self.path))
        return _Folder(self.place, self.text, self.path, own + self.above)

    def entry(self, item: "os.DirEntry[str]") -> Entry | None:
        """What an item is; None when it is ignored, or nothing that belongs to a project."""
        text = self.text + item.name
        kind = _kind(item)
        if kind is None or item.name == ".git" or text == ".cdd/runs":
            return None
        name, is_folder = _bytes_as_text(item.name), kind is Kind.FOLDER
        for rules in self.above:
            verdict = rules.verdict(self.path + name, name, is_folder=is_folder)
            if verdict is not None:
                return None if verdict else Entry(text, kind)
        return Entry(text, kind)


def _start(root: Path, under: PurePosixPath) -> _Folder:
    """The folder to begin in, with all rules from above it; its own are not read yet."""
    root = root.resolve()
    top = next((folder for folder in (root, *root.parents) if _Folder(str(folder), "").as_top()), root)
    folder = _Folder(str(top), "")
    for name in (*root.relative_to(top).parts, *under.parts):
        folder = (folder.as_top() or folder).with_gitignore().inner(name)
    text = "" if under == TOP else f"{under}/"
    return _Folder(folder.place, text, folder.path, folder.above)


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
