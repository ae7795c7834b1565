"""Search for code in a project, from any thread."""

from collections.abc import Collection, Sequence
from functools import cached_property
from pathlib import Path
from threading import Lock, Timer

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.context.places import CodePlace, RankedFile
from cdd_agent.context.project_map import ProjectMap
from cdd_agent.context.query import Query
from cdd_agent.context.traces import frames
from cdd_agent.errors import CddError
from cdd_agent.files.read import read_source

_IDLE_SECONDS = 30.0
"""Seconds after a search until the map releases its memory."""
_MOST_FRAMES = 12
"""Lines of a traceback to show."""
_AROUND_FRAME = 12
"""Lines to show before and after a line of a traceback."""
_USE_OF_FRAME = 1e9
"""Ranks before every other place."""
_TRACED = "in the traceback"
_MOST_REASONS = 3
_MOST_PLACES = 4
_LONGEST_FIRST_LINE = 100
"""Characters of a place's first line."""


class CodeFinder:
    """Finds the code that a text is about. The first search builds the map of the
    project, and each search updates it. This is slow: use a thread.
    """

    def __init__(self, root: Path, own: Collection[str] = ()) -> None:
        """`own` are cdd's files and folders, which do not belong to the project."""
        self._map = ProjectMap(root, own)
        self._lock = Lock()
        self._idle: Timer | None = None

    def rank(self, query: Query, most: int = 100) -> list[RankedFile]:
        """Return the files that the query is about, most likely first."""
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
        return self._map.imported(path)

    def outline(self, path: str) -> str:
        """Return a file's definitions with their line numbers."""
        return self._map.outline(path)


class CodeSearch(Struct, frozen=True, dict=True):
    """The search for the code that a text is about. It runs at the first use."""

    finder: CodeFinder | None
    query: Query

    @cached_property
    def ranked(self) -> Sequence[RankedFile]:
        return self.finder.rank(self.query) if self.finder else ()

    def find_file(self, path: str) -> RankedFile | None:
        for file in self.ranked:
            if file.path == path:
                return file
        return None

    def outline(self, path: str) -> str:
        return self.finder.outline(path) if self.finder else ""

    def rank_failure(
        self,
        root: Path,
        failure: str,
        missed: Collection[str],
        files: Collection[str],
        shown_whole: Collection[str],
    ) -> list[RankedFile]:
        """Return those of `files` that a failure leads to: first the lines of its
        traceback, then the files that these, or the `missed` ones, import, unless they
        are `shown_whole`.
        """
        traced: dict[str, list[CodePlace]] = {}
        for path, line in frames(failure, files, root)[:_MOST_FRAMES]:
            first, last = max(1, line - _AROUND_FRAME), line + _AROUND_FRAME
            place = CodePlace(first, last, "", _TRACED, use=_USE_OF_FRAME)
            traced.setdefault(path, []).append(place)
        ranked = []
        for path, places in traced.items():
            ranked.append(RankedFile(path, (_TRACED,), True, tuple(places)))
        if self.finder is None:
            return ranked
        imported: set[str] = set()
        for path in (*traced, *missed):
            imported.update(self.finder.imported(path))
        imported.intersection_update(files)
        imported.difference_update(traced, shown_whole)
        if imported:
            query = replace(self.query, text="", failure=failure)
            for file in self.finder.rank(query):
                if file.path in imported:
                    ranked.append(file)
        return ranked


def in_words(root: Path, ranked: Sequence[RankedFile]) -> str:
    """Return a list of files with their reasons and places: lines, name, reason, first
    line.
    """
    lines: list[str] = []
    for file in ranked:
        lines.append(f"{file.path}: {'; '.join(file.reasons[:_MOST_REASONS])}")
        for place in file.places[:_MOST_PLACES]:
            try:
                text = read_source(root, file.path, place.first, place.last).text
            except CddError:
                # it was deleted
                continue
            begin = text.strip().partition("\n")[0].strip()[:_LONGEST_FIRST_LINE]
            name = f" {place.name}" if place.name else ""
            where = f"  lines {place.first}-{place.last}{name}"
            lines.append(f"{where} ({place.why}): {begin}")
    return "\n".join(lines)
