"""Ignored files, to detect what a command changed in them. No checkpoint has their
contents.
"""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path

from cdd_agent.git.command import Git, GitUnusable
from cdd_agent.threads import in_thread

_MOST = 2_000_000
"""Characters of the list to read."""
_SECONDS = 20.0
IgnoredStates = Mapping[str, tuple[int, int]]
"""Modification time (in nanoseconds) and size, by path. A fully ignored folder ends
with a slash and has the latest time and the total size of its entries.
"""
_MOST_ENTRIES = 1_000
"""Maximum number of entries of an ignored folder to examine. Some have hundreds of
thousands.
"""


async def read_ignored(root: Path) -> IgnoredStates:
    """Return the ignored files and folders of a project, or nothing if git cannot list
    them.
    """
    git = Git(root, seconds=_SECONDS)
    words = ("--others", "--ignored", "--exclude-standard", "--directory", "-z")
    try:
        listed = await git("ls-files", *words, most=_MOST)
    except GitUnusable:
        return {}
    names = listed.stdout.split("\0")[:-1]
    return await in_thread(lambda: _read_states(root, names), name="ignored")


def changed(before: IgnoredStates, after: IgnoredStates) -> tuple[str, ...]:
    return tuple(
        path
        for path in sorted(before.keys() | after.keys())
        if before.get(path) != after.get(path)
    )


def _read_states(root: Path, names: list[str]) -> dict[str, tuple[int, int]]:
    states = {}
    for name in names:
        if name.partition("/")[0] == ".cdd":
            continue
        try:
            states[name] = _read_state(root / name)
        except (OSError, ValueError):
            continue
    return states


def _read_state(place: Path) -> tuple[int, int]:
    status = os.lstat(place)
    last, size = status.st_mtime_ns, status.st_size
    if stat.S_ISDIR(status.st_mode):
        for inner in islice(_stats_below(place), _MOST_ENTRIES):
            last, size = max(last, inner.st_mtime_ns), size + inner.st_size
    return last, size


def _stats_below(folder: Path) -> Iterator[os.stat_result]:
    """Yield the entries below a folder, without following links."""
    folders = deque([str(folder)])
    while folders:
        with suppress(OSError), os.scandir(folders.popleft()) as items:
            for item in items:
                with suppress(OSError):
                    yield item.stat(follow_symlinks=False)
                    if item.is_dir(follow_symlinks=False):
                        folders.append(item.path)
