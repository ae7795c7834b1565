"""Completion of mentions: `@ap` becomes `@src/app.py`."""

import os
import re
import shlex
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from cdd_agent.completion import Completion
from cdd_agent.files.hidden_from_models import is_secret_path
from cdd_agent.files.index import FileIndex
from cdd_agent.files.mention_reader import find_open_mention, write_mention
from cdd_agent.files.paths import PathRefused, confine_folder
from cdd_agent.files.spelling import compose
from cdd_agent.files.walk import Kind, WalkEntry, walk
from cdd_agent.llm.pictures import is_meant_as_picture
from cdd_agent.sanitize import sanitize_for_display

_CHOICE = re.compile(
    r"(?<!\S)(?P<quote>')?(?P<sign>[+-])(?P<path>(?(quote)[^'\n]*|[^\s'\"]*))\Z"
)
"""The word for a file that is pinned or left out, still being typed."""
_MOST = 50
COMPLETION_TIMEOUT = 0.03
"""Seconds after a key for the named folder, and as many for the index."""


def files_to_mention(root: Path) -> FileIndex:
    """An index of what can be mentioned in a project."""
    return FileIndex(root, lambda entry: _is_offered(entry, hidden=False))


def complete_mention(index: FileIndex, line: str) -> list[Completion]:
    """Return the completions of a line that ends with a mention."""
    mention = find_open_mention(line)
    if mention is None:
        return []
    words = []
    for path in paths_like(index, mention.name):
        if (word := write_mention(path)) is not None:
            words.append((path, word))
    return _completed(index, line, mention.start, words)


def complete_choice(index: FileIndex, line: str) -> list[Completion]:
    """Completions of a line whose last word is a path behind a `+` or `-`."""
    found = _CHOICE.search(line)
    if found is None:
        return []
    paths = [path for path in paths_like(index, found["path"]) if "'" not in path]
    words = ((path, shlex.quote(found["sign"] + path)) for path in paths)
    open_ = (
        (path, word.removesuffix("'") if path.endswith("/") else word)
        for path, word in words
    )
    return _completed(index, line, found.start(), open_)


def _completed(
    index: FileIndex, line: str, start: int, words: Iterable[tuple[str, str]]
) -> list[Completion]:
    """The lines that a line becomes by paths, each with the word for it, that stand at
    its end in the place of what begins at `start`.
    """
    before = line[:start]
    return [
        Completion(before + word, word, _help(index.root, path))
        for path, word in words
        if before + word != line
    ]


def paths_like(index: FileIndex, typed: str) -> list[str]:
    """The paths that somebody may be typing: names that begin so in the folder that is
    named, then what the index has. A folder's ends in `/`.
    """
    folder, _, start = typed.rpartition("/")
    try:
        under = confine_folder(index.root, folder)
    except (PathRefused, UnicodeError):
        return []
    until = time.monotonic() + COMPLETION_TIMEOUT
    begin = compose(start).casefold()
    paths = dict.fromkeys(
        islice(
            (
                entry.text + "/" * (entry.kind is Kind.FOLDER)
                for entry in _in_time(walk(index.root, under, deep=False), until)
                if compose(entry.name).casefold().startswith(begin)
                and _is_offered(entry, hidden=start.startswith("."))
            ),
            _MOST,
        )
    )
    if len(start) > 1:
        paths |= dict.fromkeys(
            index.find(typed, _MOST - len(paths), COMPLETION_TIMEOUT)
        )
    return list(paths)


def _in_time(entries: Iterator[WalkEntry], until: float) -> Iterator[WalkEntry]:
    for entry in entries:
        if time.monotonic() > until:
            return
        yield entry


def _is_offered(entry: WalkEntry, *, hidden: bool) -> bool:
    if entry.kind is Kind.UNREADABLE or (entry.name.startswith(".") and not hidden):
        return False
    return sanitize_for_display(entry.text) == entry.text and not is_secret_path(
        entry.text
    )


def _help(root: Path, path: str) -> str:
    if path.endswith("/"):
        return "folder"
    try:
        size = os.lstat(root / path).st_size
    except OSError:  # it is gone
        return ""
    words = f"{size:,} bytes" if size < 10_000 else f"{size / 1000:,.0f} kB"
    return f"picture, {words}" if is_meant_as_picture(path) else words
