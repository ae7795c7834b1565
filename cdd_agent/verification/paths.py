"""Paths in commands and test reports, relative to a project's root."""

from collections.abc import Collection, Sequence
from pathlib import Path, PurePath
from posixpath import normpath
from urllib.parse import unquote, urlsplit

from cdd_agent.verification.outcomes import Selection


def paths_and_options(
    words: Sequence[str],
    root: Path,
    plain: Collection[str],
    with_value: Collection[str] = (),
) -> Selection:
    """Return the existing paths that a command names, and its options.

    `plain` options select no tests and are dropped. `with_value` options take the next
    word.
    """
    paths, options = list[str](), list[str]()
    rest = iter(words)
    for word in rest:
        if word in with_value:
            options.append(f"{word} {next(rest, '')}")
        elif not word.startswith("-") and exists(root / word):
            paths.append(from_root(word, root))
        elif word.partition("=")[0] not in plain:
            options.append(word)
    return Selection(tuple(sorted(set(paths))), tuple(options))


def from_root(path: str, root: Path) -> str:
    """Return a path relative to the root. A path outside is unchanged."""
    if path.startswith("file://"):
        plain = unquote(urlsplit(path).path)
    else:
        plain = path.replace("\\", "/")
    for base in dict.fromkeys((root.absolute(), root.resolve())):
        if PurePath(plain).is_relative_to(base):
            return PurePath(plain).relative_to(base).as_posix()
    return normpath(plain)


def exists(path: Path) -> bool:
    """False also for a text that cannot be a path."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False
