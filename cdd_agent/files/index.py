"""Find a project's files by a few letters of their names, in memory."""

import asyncio
import re
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from cdd_agent.files.spelling import compose
from cdd_agent.files.walk import Kind, WalkEntry, walk
from cdd_agent.threads import in_thread

_BATCH = 4_000
"""Paths between two looks at the clock."""
_MAX_RANKED = 2_000
"""Maximum number of matches to rank. With more, the letters say too little."""
_MAX_PATHS = 300_000
"""Maximum number of paths."""
_FRESH = 5.0
"""Seconds."""


class _IndexedPath(NamedTuple):
    path: str
    """A folder's path ends in `/`."""
    folded: str
    name: str


class FileIndex:
    """An index that a thread builds and renews. During a rebuild, the old one is
    searched.
    """

    def __init__(
        self, root: Path, is_wanted: Callable[[WalkEntry], bool] = lambda entry: True
    ) -> None:
        self.root = root
        self._is_wanted = is_wanted
        self._paths: list[_IndexedPath] = []
        self._built_at: float | None = None
        self._building: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._paths)

    @property
    def is_building(self) -> bool:
        return self._building is not None and not self._building.done()

    def freshen(self, on_built: Callable[[], None]) -> None:
        """Rebuild an old index. `on_built` runs in the event loop."""
        if self.is_building:
            return
        if self._built_at is None or time.monotonic() - self._built_at > _FRESH:
            building = self._build_in_thread(on_built)
            self._building = asyncio.get_running_loop().create_task(building)

    async def _build_in_thread(self, on_built: Callable[[], None]) -> None:
        await in_thread(self.build, name="files")
        on_built()

    def build(self) -> None:
        paths = []
        wanted = (entry for entry in walk(self.root) if self._is_wanted(entry))
        for entry in islice(wanted, _MAX_PATHS):
            path = entry.text
            if entry.kind is Kind.FOLDER:
                path += "/"
            folded = compose(path).casefold()
            name = folded.removesuffix("/").rpartition("/")[2]
            paths.append(_IndexedPath(path, folded, name))
        self._paths, self._built_at = paths, time.monotonic()

    def find(self, typed: str, limit: int, seconds: float) -> list[str]:
        """Return the best matches within the time: names that begin with the text, then
        names that contain it. If there are none: names, or else paths, that have these
        letters in order.
        """
        deadline = time.monotonic() + seconds
        typed = compose(typed).casefold()
        skipping = (f"[^{re.escape(char)}]*+{re.escape(char)}" for char in typed)
        has_letters = re.compile("".join(skipping)).match
        if "/" in typed:
            groups = [self._select(lambda item: typed in item.folded, deadline)]
        else:
            containing = self._select(lambda item: typed in item.name, deadline)
            beginning = [item for item in containing if item.name.startswith(typed)]
            groups = [beginning, containing]
        if not any(groups):
            groups = [self._select(lambda item: has_letters(item.name), deadline)]
        if not any(groups):
            groups = [self._select(lambda item: has_letters(item.folded), deadline)]
        ranked = dict.fromkeys(path for group in groups for path in _rank(group))
        return list(ranked)[:limit]

    def _select(
        self, test: Callable[[_IndexedPath], object], deadline: float
    ) -> list[_IndexedPath]:
        paths = self._paths
        selected = list[_IndexedPath]()
        for start in range(0, len(paths), _BATCH):
            if time.monotonic() > deadline:
                break
            selected += filter(test, paths[start : start + _BATCH])
        return selected


def _rank(group: list[_IndexedPath]) -> list[str]:
    paths = [item.path for item in group[:_MAX_RANKED]]
    return sorted(paths, key=lambda path: (path.count("/"), len(path), path))
