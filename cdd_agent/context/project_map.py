"""A project's files, and which of them a text is about: the index, what git knows of
the past, and the ranking.
"""

import re
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
from cdd_agent.threads import stop_if_left, waited_for

T = TypeVar("T")
_TEXTS = 8_000_000
"""Bytes of texts that are kept between two questions."""
_WIDTH = 160
"""Characters of a line in an outline."""
_DOCUMENTED = re.compile(
    rb"^\s*[rbuRBU]?(?:\"\"\"|'''|///?|//!|\*|/\*\*?|#)\s*(.*?)\s*(?:\"\"\"|'''"
    rb"|\*/)?\s*$"
)


class ProjectMap:
    """The index of a project. Its methods take their time: they are to be called in a
    thread.

    Where the cache fails, be it damaged or its disk full, it is made anew once, and in
    memory after that.
    """

    def __init__(self, root: Path, own: Collection[str] = ()) -> None:
        """`own` are this program's files and folders, which are no part of the
        project.
        """
        self._root = root
        self._own = (*own, ".cdd")
        self._lock = threading.Lock()
        self._cache: Cache | None = None
        self._searched: Searched | None = None
        self._texts: dict[str, Text] = {}
        self._vocabulary = Vocabulary()

    def update(self) -> None:
        """Bring the index up to date with the disk."""
        with self._lock:
            self._with_cache(self._update)

    def rank(self, query: Query, most: int = 100) -> list[RankedFile]:
        """The files that a question is about, the most likely first, as of the last
        update.
        """
        with self._lock:
            return self._with_cache(lambda cache: self._rank(cache, query, most))

    def imported(self, path: str) -> list[str]:
        """The files that a file is likely to import."""
        source = read_as_source(path, self._read_data(path))
        with self._lock:
            links = (self._searched or self._with_cache(self._update)).links
        names = sorted(source.imported) if source else ()
        return list(
            dict.fromkeys(
                found for name in names for found in links.imported(name, path)
            )
        )

    def outline(self, path: str) -> str:
        """A file's definitions, each with the number of its line and with one line of
        what is said of it; empty where none are known.
        """
        with self._lock:
            text = self._read(path)
        lines, shown = text.data.split(b"\n"), []
        for each in text.definitions:
            line = lines[each.head - 1].decode("utf-8", "replace").rstrip()[:_WIDTH]
            said = _documented(lines[each.head : each.head + 2]) or _documented(
                lines[each.head - 2 : each.head - 1]
            )
            shown.append(f"{each.head:>5}  {line}{f'  # {said}' if said else ''}\n")
        return "".join(shown)

    def close(self) -> None:
        """Give back what it holds. Whoever asks again opens it again."""
        with self._lock:
            self._forget()

    def _forget(self) -> None:
        if self._cache is not None:
            self._cache.close()
        self._cache, self._searched = None, None
        self._texts.clear()
        self._vocabulary.clear()

    def _with_cache(self, work: Callable[[Cache], T]) -> T:
        for _ in range(2):
            try:
                if self._cache is None:
                    self._cache = Cache.open(self._root)
                return work(self._cache)
            except (sqlite3.Error, ValueError, TypeError) as error:
                # it may hold anything; our own fault comes again
                if self._cache is not None and not is_busy(error):
                    self._cache.remove()
                self._forget()
        self._cache = Cache(None)
        return work(self._cache)

    def _update(self, cache: Cache) -> Searched:
        bring_up_to_date(self._root, self._own, cache)
        waited_for(read_past(self._root, cache))
        rows = cache.searched_files()
        numbers = {path: number for path, number, _ in rows}
        before = self._searched
        self._texts = {
            path: text
            for path, text in self._texts.items()
            if before and path in numbers and numbers[path] == before.numbers.get(path)
        }
        self._searched = Searched(
            numbers,
            {path: length for path, _, length in rows},
            {number: path for path, number, _ in rows},
            (
                before.links
                if before and before.numbers.keys() == numbers.keys()
                else Links(numbers)
            ),
            self._root,
        )
        return self._searched

    def _rank(self, cache: Cache, query: Query, most: int) -> list[RankedFile]:
        searched = self._searched or self._update(cache)
        return Ranking(query, cache, searched, self._read, self._vocabulary).files(most)

    def _read_data(self, path: str) -> bytes:
        return read_source_file(self._root, path, Charsets(self._root)) or b""

    def _read(self, path: str) -> Text:
        """A file's text, parsed; kept while an update finds it as it was."""
        if path not in self._texts:
            stop_if_left()
            if sum(len(text.data) for text in self._texts.values()) > _TEXTS:
                self._texts.clear()
            data = self._read_data(path)
            self._texts[path] = Text(data, definitions(path, data))
        return self._texts[path]


def _documented(lines: list[bytes]) -> str:
    """The first line of a comment or docstring among these."""
    for line in lines:
        if (found := _DOCUMENTED.match(line)) and found[1]:
            return found[1].decode("utf-8", "replace")[:_WIDTH]
    return ""
