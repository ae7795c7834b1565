"""Patterns for paths, such as `src/**/*.py`, with git's meaning."""

import posixpath
import re
from collections.abc import Callable
from functools import lru_cache
from itertools import takewhile
from pathlib import Path, PurePosixPath

from cdd_agent.errors import BadInput
from cdd_agent.files.paths import confine
from cdd_agent.files.spelling import compose
from cdd_agent.pattern import Pattern
from cdd_agent.refusals.kinds import Refusal

_MAX_ALTERNATIVES = 100
_ALTERNATIVES = Pattern(r"\{([^{}]*,[^{}]*)\}")
_WILDCARD = Pattern(r"[*?\[\\]")
_ITEM = r"\[:[^\]]*:\]|\\.|[^\\]"
"""A class such as `[:space:]`, or a character."""
_SIGN = Pattern(
    rf"\[(?P<negation>[!^]?+)(?P<members>(?>{_ITEM})(?:(?!\])(?>{_ITEM}))*)\]"
    r"|\\(?P<escaped>.)|(?P<plain>[^\\\[])",
    re.DOTALL,
)
_MEMBER = Pattern(
    r"\[:(?P<name>[^\]]*):\]|\\?(?P<first>.)(?:-\\?(?P<last>.))?", re.DOTALL
)
_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": r"\x21-\x7e",
    "lower": "a-z",
    "print": r"\x20-\x7e",
    "punct": r"!-/:-@\[-`{-~",
    "space": r" \t\r\n",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}


class PatternRefused(BadInput):
    """The pattern matches nothing."""

    refusal = Refusal.BAD_PATTERN


def is_glob(path: str) -> bool:
    """True if a path has a `*`, a `?` or alternatives."""
    return "*" in path or "?" in path or _ALTERNATIVES.search(path) is not None


class Glob:
    """A pattern for paths of a project. `{a,b}` are alternatives."""

    def __init__(self, root: Path, pattern: str) -> None:
        """Raises `PatternRefused` or `PathRefused`."""
        paths = [confine(root, text) for text in expand(pattern.replace("\\", "/"))]
        self._patterns = [compile_glob(compose(str(path))) for path in paths]
        is_plain = re.compile(r"[^*?\[]+").fullmatch
        folders = ["/".join(takewhile(is_plain, path.parts[:-1])) for path in paths]
        self.folder = PurePosixPath(posixpath.commonpath(folders))

    def matches(self, path: str) -> bool:
        composed = compose(path)
        return any(matches(composed) for matches in self._patterns)


@lru_cache(4096)
def compile_glob(glob: str) -> Callable[[str], object]:
    """Return a function that is true for matching paths. It is fast for every path.
    Raises `PatternRefused`.

    `**` as a whole name matches any number of names; at the end, at least one.
    """
    if not _WILDCARD.search(glob):
        return glob.__eq__
    # the names before, between and after the `**`
    groups: list[list[str]] = [[]]
    for pieces in _split(glob):
        if len(pieces) > 2 and not any(pieces):
            groups.append([])
        else:
            groups[-1].append(_join_pieces(pieces))
    *groups, names = groups
    regex = "/".join(names)
    if groups:
        first, *inner = ["".join(f"{name}/" for name in group) for group in groups]
        # A group takes its first possible place: a later one leaves less. `(?>` tries
        # no other place, so no path takes long.
        places = "".join(f"(?>(?:[^/]+/)*?{group})" for group in inner)
        regex = f"{first}{places}(?:[^/]+/)*{regex or '[^/]+'}"
    return re.compile(regex, re.DOTALL).fullmatch


def expand(pattern: str) -> list[str]:
    """Return one pattern per alternative. Raises `PatternRefused` for too many."""
    unfinished, finished = [pattern], list[str]()
    while unfinished:
        text = unfinished.pop()
        if group := _ALTERNATIVES.search(text):
            for choice in group[1].split(","):
                unfinished.append(text[: group.start()] + choice + text[group.end() :])
        else:
            finished.append(text)
        if len(unfinished) + len(finished) > _MAX_ALTERNATIVES:
            raise PatternRefused(
                f"{pattern[:60]!r} is not a usable pattern: too many alternatives"
            )
    return finished


def escape_sets(pattern: str) -> str:
    """Escape `[`, which is a literal in paths such as `app/[id]/*.tsx`."""
    return pattern.replace("[", "[[]")


def _split(glob: str) -> list[list[str]]:
    names = [[""]]
    end = 0
    while end < len(glob):
        sign = _SIGN.match(glob, end)
        if sign is None:
            raise PatternRefused(
                f"{glob[:60]!r} is not a usable pattern: a [ has no ], or a \\ is at"
                " the end"
            )
        end = sign.end()
        char = sign["escaped"] or sign["plain"]
        if sign[0] == "*":
            names[-1].append("")
        elif char == "/":
            names.append([""])
        elif sign[0] == "?":
            names[-1][-1] += "[^/]"
        elif char:
            names[-1][-1] += re.escape(char)
        else:
            names[-1][-1] += _translate_set(sign)
    return names


def _join_pieces(pieces: list[str]) -> str:
    first, *rest = pieces
    if not rest:
        return first
    *inner, last = rest
    places = "".join(f"(?>[^/]*?{piece})" for piece in inner)
    return f"{first}{places}[^/]*{last}"


def _translate_set(sign: re.Match[str]) -> str:
    negation = "^" if sign["negation"] else ""
    members = "".join(map(_translate_member, _MEMBER.finditer(sign["members"])))
    # without the NUL the set could be empty
    return rf"(?!/)[{negation}\x00{members}]"


def _translate_member(member: re.Match[str]) -> str:
    if member["first"] is None:
        if member["name"] not in _CLASSES:
            raise PatternRefused(f"{member[0]} is not a class of characters")
        return _CLASSES[member["name"]]
    first = member["first"]
    # git reads a reversed range as its first character
    last = max(first, member["last"] or first)
    return f"{re.escape(first)}-{re.escape(last)}"
