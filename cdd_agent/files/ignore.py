"""The rules of a `.gitignore`, line by line, as git reads them.

One goes down folder by folder here, so a pattern must be about a path itself and not
about what is below it: it is taken apart at its slashes and stars, and pathspec reads
what is between them. No line takes long over a path, either. Lines with a set of
characters that pathspec cannot read are passed over, such as a named class.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from pathspec import GitIgnoreSpec

_MAX_PATTERN = 4096
"""Characters of a line."""
_MARK = b"\xef\xbb\xbf".decode("ascii", "surrogateescape")
"""The beginning that some editors give a file; bytes that are not ASCII stand for
themselves.
"""
_ODD_SET = re.compile(r"\[[!^]?\]?[^\]]*(?:\[|--|&&|\|\||~~)")
"""A set of characters that Python and git read differently, or may one day."""
_SIGN = re.compile(r"\\.|\[[!^]?\]?[^\]]*\]|.", re.DOTALL)
"""A star, or what stands for one character."""
_SPECIAL = re.compile(r"[*?\[\\]")
Matches = Callable[[str], bool]


class IgnoreRules:
    """The rules of one ignore file. The last one about a path decides."""

    def __init__(self, text: str, offset: int, name: str = "") -> None:
        """`offset` is how much of a path, as counted from the repository's top, leads
        to the file's folder. `name` names the file in messages.
        """
        self.name = name
        self._offset = offset
        self._rules = tuple(_rules(text))[::-1]

    def __bool__(self) -> bool:
        return bool(self._rules)

    def verdict(self, path: str, name: str, *, is_folder: bool) -> bool | None:
        """Whether they ignore something; None when no rule is about it."""
        below = path[self._offset :]
        for ignores, folders_only, whole, matches in self._rules:
            if (is_folder or not folders_only) and matches(below if whole else name):
                return ignores
        return None


class _IgnoreRule(NamedTuple):
    ignores: bool
    folders_only: bool
    whole: bool
    """About the path from the ignore file's folder, not only about the last name."""
    matches: Matches


def _rules(text: str) -> Iterator[_IgnoreRule]:
    for line in text.removeprefix(_MARK).split("\n"):
        glob = _without_trailing_spaces(line.removesuffix("\r"))
        if not glob or glob[0] == "#" or len(glob) > _MAX_PATTERN:
            continue
        ignores = glob[0] != "!"
        glob = glob[not ignores :]
        folders_only = glob.endswith("/")
        glob = glob.removesuffix("/")
        whole, glob = "/" in glob, glob.removeprefix("/")
        if not glob:
            continue
        try:
            yield _IgnoreRule(
                ignores,
                folders_only,
                whole,
                _path_matcher(glob) if whole else _name_matcher(glob),
            )
        except ValueError:  # to git it is about nothing
            continue


def _without_trailing_spaces(line: str) -> str:
    """Unless a backslash protects them."""
    bare = line.rstrip(" ")
    escaped = (len(bare) - len(bare.rstrip("\\"))) % 2 == 1
    return bare + " " if escaped and bare != line else bare


def _path_matcher(glob: str) -> Matches:
    if not _SPECIAL.search(glob):
        return glob.__eq__
    return partial(
        fits,
        pattern=[
            None if part == "**" else _name_matcher(part) for part in glob.split("/")
        ],
    )


def fits(path: str, pattern: Sequence[Matches | None]) -> bool:
    """Name by name, None (`**`) for any number of them, at the end for at least one."""
    names = path.split("/")
    places = {0}
    for number, matches in enumerate(pattern, 1):
        if matches is None:
            first = min(places, default=len(names) + 1) + (number == len(pattern))
            places = set(range(first, len(names) + 1))
        else:
            places = {at + 1 for at in places if at < len(names) and matches(names[at])}
    return len(names) in places


def _name_matcher(glob: str) -> Matches:
    """For the pattern of one name. Raises `ValueError` for one that means nothing."""
    pieces: list[list[str]] = [[]]
    for sign in _SIGN.findall(glob):
        if sign == "*":
            pieces.append([])
        else:
            pieces[-1].append(sign)
    (head_length, head), *rest = [
        (len(piece), _piece_matcher(piece)) for piece in pieces
    ]
    if not rest:
        return head
    *middle, (tail_length, tail) = rest
    if (
        not middle
        and not head_length
        and not _SPECIAL.search(ending := "".join(pieces[-1]))
    ):
        return lambda name: name.endswith(ending)  # most patterns are of this kind

    def matches(name: str) -> bool:
        at, end = head_length, len(name) - tail_length
        if at > end or not head(name[:at]) or not tail(name[end:]):
            return False
        for length, piece in middle:
            places = (
                place
                for place in range(at, end - length + 1)
                if piece(name[place : place + length])
            )
            # one further on would leave less for what follows
            if (first := next(places, None)) is None:
                return False
            at = first + length
        return True

    return matches


def _piece_matcher(signs: Sequence[str]) -> Matches:
    """For a pattern without stars, so that all it matches has one length."""
    glob = "".join(signs)
    special = _SPECIAL.search(glob)
    if special is None:
        return glob.__eq__
    begin = glob[: special.start()]
    if "\\" in signs or _ODD_SET.search(glob := glob.replace("[[]", "\\[")):
        raise ValueError(glob)
    try:
        # with an end of its own: spaces there would be taken away
        pattern = GitIgnoreSpec.from_lines([f"/{glob}."])
    except re.error as error:
        raise ValueError(glob) from error
    return lambda text: text.startswith(begin) and pattern.match_file(f"{text}.")
