"""The index of a project on disk: which files have a word, and which files past commits
changed.

It is a cache in `.cdd/cache`. A damaged one is rebuilt. One that came with a repository
is not opened: the user's key is in the name.
"""

import os
import sqlite3
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

from cdd_agent.context.terms import TERM_SIGNS, find_only_term, quote_terms
from cdd_agent.errors import BadInput
from cdd_agent.files.user_key import sign

_FOLDER = Path(".cdd") / "cache"
_VERSION = 3
"""The version of tables and terms. A file of another version is rebuilt."""
_BUSY_SECONDS = 10.0
_TABLES = """
CREATE TABLE files (number INTEGER PRIMARY KEY, path TEXT UNIQUE NOT NULL,
    size INTEGER, modified INTEGER, changed INTEGER, inode INTEGER, digest BLOB,
    length INTEGER, imported TEXT);
CREATE TABLE words (word TEXT, term TEXT, PRIMARY KEY (word, term)) WITHOUT ROWID;
CREATE TABLE commits (number INTEGER PRIMARY KEY, paths TEXT);
CREATE TABLE past (term TEXT, part INTEGER, holders BLOB, PRIMARY KEY (term, part))
    WITHOUT ROWID;
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT)"""
_SEARCH = (
    "CREATE VIRTUAL TABLE texts USING fts5(text, content='', columnsize=0, detail=none,"
    f" tokenize=\"ascii tokenchars '{TERM_SIGNS}'\")"
)
_WITHOUT_SEARCH = "CREATE TABLE texts (rowid INTEGER PRIMARY KEY, text TEXT)"
"""For an SQLite without full-text search."""
_TERMS_AT_ONCE = 100
"""Maximum terms per search. SQLite keeps some pages of each in memory."""

Holders = dict[str, "array[int]"]
"""Numbers of the files or commits that have a term, by term."""
Stamp = tuple[int, int, int, int]
"""Size, modification time, change time and inode. Another stamp means that the file may
have changed.
"""


class FileRow(NamedTuple):
    number: int
    path: str
    stamp: Stamp
    digest: bytes
    length: int
    """Bytes plus one; 0 for a file that is not searched."""
    imported: Iterable[str]


class Cache:
    """The tables. Any method may raise `sqlite3.Error`, and `ValueError` or `TypeError`
    for foreign content. Then the cache is useless, unless it `is_busy`.
    """

    def __init__(self, place: Path | None) -> None:
        """Without `place`, the cache is in memory."""
        self.place = place
        self._db = sqlite3.connect(
            ":memory:" if place is None else place,
            _BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            self._prepare()
        except BaseException:
            self._db.close()
            raise

    @classmethod
    def open(cls, root: Path) -> Self:
        """Open the project's cache. It is in memory if the project has no `.cdd`, or if
        nothing can be written.
        """
        place = _find_place(root)
        for _ in range(2):
            if place is not None:
                try:
                    return cls(place)
                except sqlite3.Error as error:
                    if not is_busy(error):
                        _remove(place)
        return cls(None)

    def remove(self) -> None:
        self.close()
        if self.place is not None:
            _remove(self.place)

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A transaction. No other process writes at the same time."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def fact(self, name: str) -> str:
        row = self._get("SELECT value FROM facts WHERE name = ?", name)
        return row[0] if row else ""

    def set_fact(self, name: str, value: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))

    def count_files(self) -> int:
        return int(self._db.execute("SELECT count(*) FROM files").fetchone()[0])

    def stamps(self) -> dict[str, Stamp]:
        rows = self._db.execute(
            "SELECT path, size, modified, changed, inode FROM files"
        )
        return {row[0]: row[1:] for row in rows}

    def digest(self, path: str) -> bytes | None:
        row = self._get("SELECT digest FROM files WHERE path = ?", path)
        return row[0] if row else None

    def searched_files(self) -> list[tuple[str, int, int]]:
        """Return path, number and length of each searched file."""
        return self._db.execute(
            "SELECT path, number, length FROM files WHERE length > 0"
        ).fetchall()

    def imported(self, number: int) -> list[str]:
        """Return a file's imports, as written in it."""
        row = self._get("SELECT imported FROM files WHERE number = ?", number)
        return row[0].split("\n") if row and row[0] else []

    def add_files(
        self,
        rows: Iterable[FileRow],
        texts: Mapping[int, str],
        words: Iterable[tuple[str, str]],
    ) -> None:
        """Add files with their terms, by number, and words with the terms that contain
        them.
        """
        values = []
        for row in rows:
            imported = "\n".join(row.imported)
            values.append(
                (row.number, row.path, *row.stamp, row.digest, row.length, imported)
            )
        self._db.executemany(
            "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values
        )
        self._db.executemany(
            "INSERT INTO texts (rowid, text) VALUES (?, ?)", texts.items()
        )
        self._db.executemany("INSERT OR IGNORE INTO words VALUES (?, ?)", sorted(words))

    def restamp(self, stamps: Mapping[str, Stamp]) -> None:
        """Set new stamps of unchanged files."""
        self._db.executemany(
            "UPDATE files SET size = ?, modified = ?, changed = ?, inode = ? WHERE"
            " path = ?",
            ((*stamp, path) for path, stamp in stamps.items()),
        )

    def drop(self, paths: Iterable[str]) -> None:
        self._db.executemany(
            "DELETE FROM files WHERE path = ?", ((path,) for path in paths)
        )

    def clear_files(self) -> None:
        self._db.execute("DELETE FROM files")
        self._db.execute("DELETE FROM words")
        self._db.execute("DROP TABLE texts")
        self._make_texts()

    def holders(self, words: Iterable[str]) -> Holders:
        """Return the files that have each of these words. Some may be deleted."""
        holders: Holders = {}
        for word in dict.fromkeys(words):
            term = find_only_term(word)
            terms = [term] if term is not None else self._terms(word)
            numbers = self._search(terms)
            if term is None and terms and not numbers:
                raise ValueError(f"the terms of {word!r} are in no file")
            if numbers:
                holders[word] = array("I", sorted(numbers))
        return holders

    def _terms(self, word: str) -> list[str]:
        rows = self._db.execute(
            "SELECT term FROM words WHERE word = ?", (_make_storable(word),)
        )
        terms = [term for (term,) in rows]
        if not all(isinstance(term, str) for term in terms):
            raise ValueError(f"the terms of {word!r} are no text")
        return terms

    def _search(self, terms: Sequence[str]) -> set[int]:
        numbers: set[int] = set()
        for start in range(0, len(terms), _TERMS_AT_ONCE):
            some = terms[start : start + _TERMS_AT_ONCE]
            if self._has_search:
                query = "SELECT rowid FROM texts WHERE texts MATCH ?"
                rows = self._db.execute(query, (quote_terms(some),)).fetchall()
            else:
                query = "SELECT rowid FROM texts WHERE instr(' ' || text || ' ', ?)"
                rows = []
                for term in some:
                    rows += self._db.execute(query, (f" {term} ",)).fetchall()
            numbers.update(number for (number,) in rows)
        return numbers

    def add_commits(self, paths: Mapping[int, Sequence[str]], holders: Holders) -> None:
        self._db.executemany(
            "INSERT INTO commits VALUES (?, ?)",
            ((number, "\0".join(named)) for number, named in paths.items()),
        )
        part = min(paths, default=0)
        values = []
        for term, numbers in holders.items():
            values.append((_make_storable(term), part, numbers.tobytes()))
        self._db.executemany("INSERT INTO past VALUES (?, ?, ?)", values)

    def last_commit(self) -> int:
        row = self._get("SELECT coalesce(max(number), 0) FROM commits")
        return int(row[0]) if row else 0

    def clear_commits(self) -> None:
        self._db.execute("DELETE FROM commits")
        self._db.execute("DELETE FROM past")

    def commits(self, terms: Iterable[str]) -> Holders:
        """Return the commits whose messages have each of these terms. The term of a
        changed file is `@` and its path.
        """
        query = "SELECT holders FROM past WHERE term = ?"
        commits: Holders = {}
        for term in dict.fromkeys(terms):
            for (data,) in self._db.execute(query, (_make_storable(term),)):
                commits.setdefault(term, array("I")).frombytes(data)
        return commits

    def changed_in(self, commit: int) -> list[str]:
        row = self._get("SELECT paths FROM commits WHERE number = ?", commit)
        return row[0].split("\0") if row and row[0] else []

    def _prepare(self) -> None:
        for setting in (
            "trusted_schema = OFF",
            "synchronous = NORMAL",
            "cache_size = -4000",
        ):
            self._db.execute(f"PRAGMA {setting}")
        try:
            self._db.execute("PRAGMA journal_mode = WAL")
        except sqlite3.Error as error:
            # unlike other statements, this one does not wait for another process
            if not is_busy(error):
                raise
        with self.writing():
            if self._version() == 0:
                for statement in _TABLES.split(";"):
                    self._db.execute(statement)
                self._make_texts()
                self._db.execute(f"PRAGMA user_version = {_VERSION}")
        if self._version() != _VERSION:
            raise sqlite3.DatabaseError("the tables are of another version")
        row = self._get("SELECT sql FROM sqlite_master WHERE name = 'texts'")
        self._has_search = row is not None and "fts5" in row[0]

    def _make_texts(self) -> None:
        try:
            self._db.execute(_SEARCH)
        except sqlite3.OperationalError as error:
            if "no such module" not in str(error):
                raise
            self._db.execute(_WITHOUT_SEARCH)

    def _version(self) -> int:
        return int(self._db.execute("PRAGMA user_version").fetchone()[0])

    def _get(self, query: str, *values: object) -> tuple[Any, ...] | None:
        row: tuple[Any, ...] | None = self._db.execute(query, values).fetchone()
        return row


def _make_storable(term: str) -> str:
    return term.encode("utf-8", "replace").decode()


def is_busy(error: Exception) -> bool:
    """True if another process has written to an intact cache for too long."""
    name = getattr(error, "sqlite_errorname", "")
    return name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


def _find_place(root: Path) -> Path | None:
    """Return the path of the user's cache, or None if there cannot be one."""
    folder = root.resolve() / _FOLDER
    try:
        if not folder.parent.is_dir() or folder.parent.is_symlink():
            return None
        if folder.is_symlink():
            return None
        folder.mkdir(exist_ok=True)
        with suppress(FileExistsError), (folder / ".gitignore").open("x") as ignore:
            ignore.write("*\n")
        signature = sign(os.fsencode(folder))
        if not signature:
            return None
        name = signature[:32]
    except (OSError, BadInput):
        return None
    place = folder / f"map-{name}.sqlite"
    return None if place.is_symlink() else place


def _remove(place: Path) -> None:
    for ending in ("", "-wal", "-shm", "-journal"):
        with suppress(OSError):
            place.with_name(place.name + ending).unlink()
