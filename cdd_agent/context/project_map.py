"""The map of a project: its index, its history, and the ranking of its files."""

import sqlite3
import threading
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TypeVar

from cdd_agent.context.cache import Cache, is_busy
from cdd_agent.context.definitions import definitions
from cdd_agent.context.history import read_past
from cdd_agent.context.indexing import bring_up_to_date, read_source_file
from cdd_agent.context.links import Links
from cdd_agent.context.places import RankedFile
from cdd_agent.context.query import Query
from cdd_agent.context.ranking import Ranking, Searched, Text
from cdd_agent.context.source import read_as_source
from cdd_agent.context.words import Vocabulary
from cdd_agent.files.charsets import Charsets
from cdd_agent.pattern import Pattern
from cdd_agent.threads import stop_if_left, waited_for

T = TypeVar("T")
_MOST_KEPT = 8_000_000
"""Bytes of texts to keep between two queries."""
_WIDTH = 160
"""Characters of a line in an outline."""
_COMMENT = Pattern(
    rb"^\s*[rbuRBU]?(?:\"\"\"|'''|///?|//!|\*|/\*\*?|#)\s*(.*?)\s*(?:\"\"\"|'''"
    rb"|\*/)?\s*$"
)


class ProjectMap:
    """The map of a project. Its methods are slow: use a thread.

    If the cache fails, because it is damaged or the disk is full, it is rebuilt once,
    and after that kept in memory.
    """

    def __init__(self, root: Path, own: Collection[str] = ()) -> None:
        """`own` are cdd's files and folders, which do not belong to the project."""
        self._root = root
        self._own = (*own, ".cdd")
        self._lock = threading.Lock()
        self._cache: Cache | None = None
        self._searched: Searched | None = None
        self._texts: dict[str, Text] = {}
        self._vocabulary = Vocabulary()

    def update(self) -> None:
        with self._lock:
            self._with_cache(self._update)

    def rank(self, query: Query, most: int = 100) -> list[RankedFile]:
        """Return the files that a query is about, most likely first, by the last
        update.
        """
        with self._lock:
            return self._with_cache(lambda cache: self._rank(cache, query, most))

    def imported(self, path: str) -> list[str]:
        source = read_as_source(path, self._read_data(path))
        if source is None:
            return []
        with self._lock:
            searched = self._searched or self._with_cache(self._update)
        files: dict[str, None] = {}
        for name in sorted(source.imported):
            files.update(dict.fromkeys(searched.links.imported(name, path)))
        return list(files)

    def outline(self, path: str) -> str:
        """Return a file's definitions, each with its line number and the first line of
        its comment.
        """
        with self._lock:
            text = self._read(path)
        lines = text.data.split(b"\n")
        shown = []
        for each in text.definitions:
            line = lines[each.head - 1].decode("utf-8", "replace").rstrip()[:_WIDTH]
            below = lines[each.head : each.head + 2]
            above = lines[each.head - 2 : each.head - 1]
            comment = _find_comment(below) or _find_comment(above)
            if comment:
                line += f"  # {comment}"
            shown.append(f"{each.head:>5}  {line}\n")
        return "".join(shown)

    def close(self) -> None:
        """Release all memory. The next call opens the map again."""
        with self._lock:
            self._release()

    def _release(self) -> None:
        if self._cache is not None:
            self._cache.close()
        self._cache = None
        self._searched = None
        self._texts.clear()
        self._vocabulary.clear()

    def _with_cache(self, work: Callable[[Cache], T]) -> T:
        for _ in range(2):
            try:
                if self._cache is None:
                    self._cache = Cache.open(self._root)
                return work(self._cache)
            except (sqlite3.Error, ValueError, TypeError) as error:
                # a damaged cache may hold anything; a bug would appear again
                if self._cache is not None and not is_busy(error):
                    self._cache.remove()
                self._release()
        self._cache = Cache(None)
        return work(self._cache)

    def _update(self, cache: Cache) -> Searched:
        bring_up_to_date(self._root, self._own, cache)
        waited_for(read_past(self._root, cache))
        rows = cache.searched_files()
        numbers = {path: number for path, number, _ in rows}
        lengths = {path: length for path, _, length in rows}
        paths = {number: path for path, number, _ in rows}
        old = self._searched
        # a changed file has another number
        for path in list(self._texts):
            if old is None or numbers.get(path, -1) != old.numbers.get(path):
                del self._texts[path]
        if old is not None and old.numbers.keys() == numbers.keys():
            links = old.links
        else:
            links = Links(numbers)
        self._searched = Searched(numbers, lengths, paths, links, self._root)
        return self._searched

    def _rank(self, cache: Cache, query: Query, most: int) -> list[RankedFile]:
        searched = self._searched or self._update(cache)
        return Ranking(query, cache, searched, self._read, self._vocabulary).files(most)

    def _read_data(self, path: str) -> bytes:
        return read_source_file(self._root, path, Charsets(self._root)) or b""

    def _read(self, path: str) -> Text:
        """Return a file's parsed text, cached until the file changes."""
        if path not in self._texts:
            stop_if_left()
            if sum(len(text.data) for text in self._texts.values()) > _MOST_KEPT:
                self._texts.clear()
            data = self._read_data(path)
            self._texts[path] = Text(data, definitions(path, data))
        return self._texts[path]


def _find_comment(lines: list[bytes]) -> str:
    for line in lines:
        match = _COMMENT.match(line)
        if match and match[1]:
            return match[1].decode("utf-8", "replace")[:_WIDTH]
    return ""
