"""The rules of one `.gitignore`, with git's meaning.

A rule is about an entry, not what is below it: the walk asks for each folder. The
library pathspec judges whole paths, and some patterns take it very long.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from cdd_agent.files.globs import PatternRefused, compile_glob

_MAX_LINE = 4096
"""Longer lines are skipped."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf".decode("ascii", "surrogateescape")


class IgnoreRules:
    """The last rule that matches an entry decides."""

    def __init__(self, text: str, offset: int = 0, name: str = "") -> None:
        """`text` has one character per byte. `offset` is the length of the path to the
        file's folder. `name` is for messages.
        """
        self.name = name
        self._offset = offset
        self._rules = tuple(_read_rules(text))[::-1]

    def __bool__(self) -> bool:
        return bool(self._rules)

    def decide(self, path: str, name: str, *, is_folder: bool) -> bool | None:
        """Return true for an ignored entry, None if no rule matches. `path` ends in
        `name`.
        """
        path_in_folder = path[self._offset :]
        for rule in self._rules:
            if rule.folders_only and not is_folder:
                continue
            if rule.matches(path_in_folder if rule.is_path else name):
                return rule.ignores
        return None


class _Rule(NamedTuple):
    ignores: bool
    folders_only: bool
    is_path: bool
    """True if the rule matches the path relative to the file's folder, false for the
    name alone.
    """
    matches: Callable[[str], object]


def _read_rules(text: str) -> Iterator[_Rule]:
    for line in text.removeprefix(_BYTE_ORDER_MARK).split("\n"):
        pattern = _strip_spaces(line.removesuffix("\r"))
        if not pattern or pattern[0] == "#" or len(pattern) > _MAX_LINE:
            continue
        ignores = pattern[0] != "!"
        pattern = pattern.removeprefix("!")
        folders_only = pattern.endswith("/")
        pattern = pattern.removesuffix("/")
        is_path = "/" in pattern
        try:
            matches = compile_glob(pattern.removeprefix("/"))
        except PatternRefused:
            # git skips such a line, too
            continue
        yield _Rule(ignores, folders_only, is_path, matches)


def _strip_spaces(line: str) -> str:
    """Remove spaces at the end, unless a backslash protects them."""
    stripped = line.rstrip(" ")
    backslashes = len(stripped) - len(stripped.rstrip("\\"))
    if stripped != line and backslashes % 2 == 1:
        return f"{stripped} "
    return stripped
