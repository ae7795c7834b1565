"""Completes paths: `@ap` becomes `@src/app.py`, `+ap` becomes `+src/app.py`."""

import shlex
import time
from collections.abc import Iterator
from pathlib import Path

from cdd_agent.files.hidden_from_models import is_secret_path
from cdd_agent.files.index import FileIndex
from cdd_agent.files.mention_reader import find_open_mention, write_mention
from cdd_agent.files.paths import PathRefused, confine_folder
from cdd_agent.files.spelling import compose
from cdd_agent.files.walk import Kind, WalkEntry, walk
from cdd_agent.llm.pictures import is_meant_as_picture
from cdd_agent.pattern import Pattern
from cdd_agent.text.completion import Completion
from cdd_agent.text.sanitize import sanitize_for_display

_CHOICE = Pattern(
    r"(?<!\S)(?P<quote>')?(?P<sign>[+-])(?P<path>(?(quote)[^'\n]*|[^\s'\"]*))\Z"
)
"""A pinned (`+`) or excluded (`-`) file at the end of a line."""
_MOST = 50
COMPLETION_TIMEOUT = 0.03
"""Maximum seconds in the named folder, and again in the index."""


def files_to_mention(root: Path) -> FileIndex:
    return FileIndex(root, lambda entry: _is_offered(entry, hidden=False))


def complete_mention(index: FileIndex, line: str) -> list[Completion]:
    mention = find_open_mention(line)
    if mention is None:
        return []
    completions = []
    for path in _find_paths(index, mention.name):
        if (word := write_mention(path)) is not None:
            completions.append(_complete(index, line[: mention.start], word, path))
    return [each for each in completions if each.line != line]


def complete_choice(index: FileIndex, line: str) -> list[Completion]:
    choice = _CHOICE.search(line)
    if choice is None:
        return []
    completions = []
    for path in _find_paths(index, choice["path"]):
        if "'" in path:
            continue
        word = shlex.quote(choice["sign"] + path)
        if path.endswith("/"):
            # The name of a file in the folder may follow.
            word = word.removesuffix("'")
        completions.append(_complete(index, line[: choice.start()], word, path))
    return [each for each in completions if each.line != line]


def _complete(index: FileIndex, before: str, word: str, path: str) -> Completion:
    return Completion(before + word, word, _describe(index.root, path))


def _find_paths(index: FileIndex, typed: str) -> list[str]:
    """Return the paths that a text may become: matches in its folder, then matches in
    the index. A folder ends in `/`.
    """
    folder, _, start = typed.rpartition("/")
    try:
        place = confine_folder(index.root, folder)
    except (PathRefused, UnicodeError):
        return []
    paths = []
    beginning = compose(start).casefold()
    for entry in _walk_in_time(walk(index.root, place, deep=False)):
        is_match = compose(entry.name).casefold().startswith(beginning)
        if is_match and _is_offered(entry, hidden=start.startswith(".")):
            end = "/" if entry.kind is Kind.FOLDER else ""
            paths.append(entry.text + end)
        if len(paths) == _MOST:
            break
    if len(start) > 1:
        paths += index.find(typed, _MOST - len(paths), COMPLETION_TIMEOUT)
    return list(dict.fromkeys(paths))


def _walk_in_time(entries: Iterator[WalkEntry]) -> Iterator[WalkEntry]:
    deadline = time.monotonic() + COMPLETION_TIMEOUT
    for entry in entries:
        if time.monotonic() > deadline:
            return
        yield entry


def _is_offered(entry: WalkEntry, *, hidden: bool) -> bool:
    """True if a mention may name the entry. Names with control characters are not
    offered, nor hidden ones unless `hidden`.
    """
    if entry.kind is Kind.UNREADABLE or (entry.name.startswith(".") and not hidden):
        return False
    is_plain = sanitize_for_display(entry.text) == entry.text
    return is_plain and not is_secret_path(entry.text)


def _describe(root: Path, path: str) -> str:
    if path.endswith("/"):
        return "folder"
    try:
        size = (root / path).lstat().st_size
    except OSError:
        return ""
    words = f"{size:,} bytes"
    if size >= 10_000:
        words = f"{size / 1000:,.0f} kB"
    return f"picture, {words}" if is_meant_as_picture(path) else words
