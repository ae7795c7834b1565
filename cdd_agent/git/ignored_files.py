"""The files that git ignores, to tell what a command made of them. No checkpoint has
their contents.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from cdd_agent.git.command import Git, GitUnusable
from cdd_agent.threads import in_thread

_MOST = 2_000_000
"""Characters of the list that are read."""
_SECONDS = 20.0
IgnoredStates = Mapping[str, tuple[int, int]]
"""By path, when a file was changed (in nanoseconds) and its size. A folder of which
everything is ignored ends with a slash.
"""


async def read_ignored(root: Path) -> IgnoredStates:
    """Return the ignored files and folders of a project. Empty where there is no
    repository, or git cannot be asked.
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
    """Return the paths that are new, other ones, or gone."""
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
            found = os.lstat(root / name)
        except (OSError, ValueError):
            continue
        states[name] = (found.st_mtime_ns, found.st_size)
    return states
