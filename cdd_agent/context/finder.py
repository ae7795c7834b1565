"""The map of a project for everybody who asks, from whichever thread."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from threading import Lock, Timer

from cdd_agent.context.places import RankedFile
from cdd_agent.context.project_map import ProjectMap
from cdd_agent.context.query import Query
from cdd_agent.errors import CddError
from cdd_agent.files.read import read_source

_IDLE_SECONDS = 30.0
"""After a question, until what the map holds is given back."""
_MOST_REASONS = 3
_MOST_PLACES = 4
_LONGEST_FIRST_LINE = 100
"""Characters of a place's first line."""


class CodeFinder:
    """Finds the code that a text is about. The map is made when it is first asked, and
    brought up to date by each question; that takes its time: to be asked in a thread.
    What it holds is given back when nobody asks any more.
    """

    def __init__(self, root: Path, own: Collection[str] = ()) -> None:
        """`own` are this program's files and folders, which are no part of the
        project.
        """
        self._root, self._own = root, own
        self._made: ProjectMap | None = None
        self._making, self._lock = Lock(), Lock()
        self._idle: Timer | None = None

    @property
    def _map(self) -> ProjectMap:
        with self._making:
            self._made = self._made or ProjectMap(self._root, self._own)
            return self._made

    def rank(self, query: Query, most: int = 100) -> list[RankedFile]:
        """The files that the query is about, the most likely first."""
        with self._lock:
            try:
                self._map.update()
                return self._map.rank(query, most)
            finally:
                if self._idle is not None:
                    self._idle.cancel()
                self._idle = Timer(_IDLE_SECONDS, self._map.close)
                self._idle.daemon = True
                self._idle.start()

    def imported(self, path: str) -> list[str]:
        """The files that a file is likely to import."""
        return self._map.imported(path)

    def outline(self, path: str) -> str:
        """A file's definitions, each with its line's number."""
        return self._map.outline(path)


def in_words(root: Path, ranked: Sequence[RankedFile]) -> str:
    """Files with their reasons, and below each its places: lines, name, reason, first
    line. Empty for none.
    """
    lines: list[str] = []
    for file in ranked:
        lines.append(f"{file.path}: {'; '.join(file.reasons[:_MOST_REASONS])}")
        for place in file.places[:_MOST_PLACES]:
            try:
                text = read_source(root, file.path, place.first, place.last).text
            except CddError:  # it is gone by now
                continue
            first = next(
                (line.strip() for line in text.splitlines() if line.strip()), ""
            )[:_LONGEST_FIRST_LINE]
            name = f" {place.name}" if place.name else ""
            lines.append(
                f"  lines {place.first}-{place.last}{name} ({place.why}): {first}"
            )
    return "\n".join(lines)
