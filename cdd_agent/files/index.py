"""The names of all files and folders of a project in memory, to be found by a few
letters while somebody types.
"""

from __future__ import annotations

import asyncio
import re
import time
from bisect import bisect
from collections.abc import Callable, Iterator
from itertools import accumulate, islice
from pathlib import Path
from typing import NamedTuple

from cdd_agent.files.walk import WalkEntry, walk
from cdd_agent.threads import in_thread

_TOGETHER = 4_000
"""Paths that are searched at once; after each such part, the time is looked at."""
_ENOUGH = 2_000
"""Paths that fit and are ranked: with more, the letters say too little to go by."""
_MOST = 300_000
"""Paths that are held: of a larger project the first ones."""
_FRESH = 5.0
"""Seconds for which an index counts as up to date."""


class _Part(NamedTuple):
    """Some of the paths, as one text that is searched at once."""

    paths: tuple[str, ...]
    """A folder's ends in `/`."""
    names: str
    """Their last names, each after a line end, in one case."""
    name_ends: tuple[int, ...]
    """Where each of them ends."""
    folded: str
    """The whole paths, likewise."""
    path_ends: tuple[int, ...]

    @classmethod
    def of(cls, paths: tuple[str, ...]) -> _Part:
        folded = [path.casefold() for path in paths]
        names = [f"\n{path.removesuffix('/').rpartition('/')[2]}" for path in folded]
        whole = [f"\n{path}" for path in folded]
        return cls(
            paths,
            "".join(names),
            tuple(accumulate(map(len, names))),
            "".join(whole),
            tuple(accumulate(map(len, whole))),
        )


class FileIndex:
    """Built in a thread, when it is first asked for and then again as it ages; until
    then the older one is searched.
    """

    def __init__(
        self, root: Path, is_wanted: Callable[[WalkEntry], bool] = lambda entry: True
    ) -> None:
        self.root = root
        self._is_wanted = is_wanted
        self._parts: tuple[_Part, ...] = ()
        self._built_at: float | None = None
        self._building: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return sum(len(part.paths) for part in self._parts)

    @property
    def is_building(self) -> bool:
        return self._building is not None and not self._building.done()

    def freshen(self, then: Callable[[], None]) -> None:
        """See that there is an index of now, soon; if there is a newer one, `then` is
        called in the event loop.
        """
        if not self.is_building and (
            self._built_at is None or time.monotonic() - self._built_at > _FRESH
        ):
            self._building = asyncio.get_running_loop().create_task(
                self._build_aside(then)
            )

    async def _build_aside(self, then: Callable[[], None]) -> None:
        await in_thread(self.build, name="files")
        then()

    def build(self) -> None:
        """Walk through the project."""
        wanted = (entry for entry in walk(self.root) if self._is_wanted(entry))
        paths = (
            entry.text + "/" * (entry.kind == "folder")
            for entry in islice(wanted, _MOST)
        )
        parts = list[_Part]()
        while some := tuple(islice(paths, _TOGETHER)):
            parts.append(_Part.of(some))
        self._parts, self._built_at = tuple(parts), time.monotonic()

    def find(self, typed: str, most: int, seconds: float) -> list[str]:
        """The paths that fit best: by the beginning of their last name, by a part of
        it, and where there are none, by the letters in their order anywhere in the
        path. As far as there is time.
        """
        until = time.monotonic() + seconds
        typed = typed.casefold()
        text = re.escape(typed)
        letters = "".join(
            rf"[^{re.escape(letter)}\n]*+{re.escape(letter)}" for letter in typed
        )
        if "/" in typed:
            found = dict.fromkeys(_ranked(self._in_paths(text, until), most))
        else:
            begin = _ranked(self._in_names(rf"\n{text}", until), most)
            found = dict.fromkeys([*begin, *_ranked(self._in_names(text, until), most)])
        if not found:
            found = dict.fromkeys(_ranked(self._in_names(rf"\n{letters}", until), most))
        if not found:
            found = dict.fromkeys(_ranked(self._in_paths(rf"\n{letters}", until), most))
        return list(found)[:most]

    def _in_names(self, pattern: str, until: float) -> Iterator[str]:
        for part in self._in_time(until):
            yield from _lines(pattern, part.names, part.name_ends, part.paths)

    def _in_paths(self, pattern: str, until: float) -> Iterator[str]:
        for part in self._in_time(until):
            yield from _lines(pattern, part.folded, part.path_ends, part.paths)

    def _in_time(self, until: float) -> Iterator[_Part]:
        for part in self._parts:
            if time.monotonic() > until:
                return
            yield part


def _lines(
    pattern: str, text: str, ends: tuple[int, ...], paths: tuple[str, ...]
) -> Iterator[str]:
    """The paths whose line has the pattern, each once."""
    search, at = re.compile(pattern).search, 0
    while found := search(text, at):
        line = bisect(ends, found.end() - 1)
        yield paths[line]
        at = ends[line]


def _ranked(paths: Iterator[str], most: int) -> list[str]:
    """The least deep ones first, and of those the shortest."""
    return sorted(
        islice(paths, _ENOUGH), key=lambda path: (path.count("/"), len(path), path)
    )[:most]
