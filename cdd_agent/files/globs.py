"""Patterns for the paths of files, such as `src/**/*.py`."""

import posixpath
import re
from fnmatch import fnmatchcase
from functools import partial
from itertools import takewhile
from pathlib import Path, PurePosixPath

from cdd_agent.errors import BadInput
from cdd_agent.files.ignore import fits
from cdd_agent.files.paths import confine

_MAX_ALTERNATIVES = 100
_ALTERNATIVES = re.compile(r"\{([^{}]*,[^{}]*)\}")


class PatternRefused(BadInput):
    """A regular expression or a file pattern that means nothing."""


class Glob:
    """A pattern for paths from the project's root: `*` and `?` within a name, `**` for
    any folders, `[ab]`, `{a,b}`.
    """

    def __init__(self, root: Path, pattern: str) -> None:
        """Raises `PatternRefused`, or `PathRefused` for a pattern that leaves the
        project.
        """
        paths = [confine(root, text) for text in expand(pattern.replace("\\", "/"))]
        self._patterns = [
            # `fnmatch` is never slow over a name, whatever the stars.
            [
                None if part == "**" else partial(fnmatchcase, pat=part)
                for part in path.parts
            ]
            for path in paths
        ]
        plain = [
            "/".join(takewhile(re.compile(r"[^*?\[]+").fullmatch, path.parts[:-1]))
            for path in paths
        ]
        self.folder = PurePosixPath(posixpath.commonpath(plain))
        """Every path that matches is in it."""

    def matches(self, path: str) -> bool:
        return any(fits(path, pattern) for pattern in self._patterns)


def expand(pattern: str) -> list[str]:
    """Return the pattern once for each alternative in its braces. Raises
    `PatternRefused` if there are too many.
    """
    unfinished, finished = [pattern], list[str]()
    while unfinished:
        text = unfinished.pop()
        if group := _ALTERNATIVES.search(text):
            choices = group[1].split(",")
            unfinished += [
                text[: group.start()] + choice + text[group.end() :]
                for choice in choices
            ]
        else:
            finished.append(text)
        if len(unfinished) + len(finished) > _MAX_ALTERNATIVES:
            raise PatternRefused(
                f"{pattern[:60]!r} is not usable: too many alternatives"
            )
    return finished


def without_sets(pattern: str) -> str:
    """Return the pattern with `[` as a letter of names, as in `app/[id]/*.tsx`."""
    return pattern.replace("[", "[[]")
