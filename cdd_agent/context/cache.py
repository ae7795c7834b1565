"""The index of a project on the disk: which file holds which word, and which past
commit changed which file.

It is a cache in `.cdd/cache`. One that is damaged is made anew, and one that came along
with a repository is not even opened: the name of this person's own is a secret's.
"""

import os
import sqlite3
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, Self

from cdd_agent.context.terms import IN_TERMS, taken_apart, term_of
from cdd_agent.errors import BadInput
from cdd_agent.user_key import sign

_FOLDER = Path(".cdd") / "cache"
_VERSION = 2
"""Of the tables, and of how words are read: a file of another version is made anew."""
_BUSY_SECONDS = 10.0
_TABLES = """
CREATE TABLE files (number INTEGER PRIMARY KEY, path TEXT UNIQUE NOT NULL,
    size INTEGER, modified INTEGER, changed INTEGER, inode INTEGER, digest BLOB,
    length INTEGER, imported TEXT);
CREATE TABLE words (word TEXT PRIMARY KEY, terms TEXT);
CREATE TABLE commits (number INTEGER PRIMARY KEY, paths TEXT);
CREATE TABLE past (word TEXT, part INTEGER, holders BLOB, PRIMARY KEY (word, part));
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT)"""
_SEARCH = """
CREATE VIRTUAL TABLE texts USING
    fts5(text, content='', columnsize=0, detail=none, tokenize="ascii tokenchars '@'");
INSERT INTO texts (texts, rank) VALUES ('hashsize', 8000000);
CREATE VIRTUAL TABLE terms USING fts5vocab(texts, row)""".replace("@", IN_TERMS)
"""SQLite's full-text search takes a tenth of the time of what Python could do in its
place.
"""
_WITHOUT_SEARCH = """
CREATE TABLE texts (word TEXT, part INTEGER, holders BLOB, PRIMARY KEY (word, part));
CREATE VIEW terms AS SELECT DISTINCT word AS term FROM texts"""
"""For an SQLite that was built without it."""
_AT_ONCE = 100
"""Terms that are looked for together: of each some pages are held in memory."""

Holders = dict[str, "array[int]"]
"""For each word the numbers of the files, or commits, that hold it."""


Stamp = tuple[int, int, int, int]
"""By which one sees that a file has not changed: its size, its two times, modified and
changed, and its inode.
"""


class FileRow(NamedTuple):
    """A file as it is put in."""

    number: int
    path: str
    stamp: Stamp
    digest: bytes
    length: int
    """In bytes, and one more; 0 for one that is not searched."""
    imported: Iterable[str]


class Cache:
    """The tables. Any method may raise `sqlite3.Error`, and `ValueError` or `TypeError`
    for what nobody would have put in: then the cache is of no use any more, unless it
    `is_busy`.
    """

    def __init__(self, place: Path | None) -> None:
        """Without a `place` it is in memory."""
        self.place = place
        self._db = sqlite3.connect(
            ":memory:" if place is None else place,
            _BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            for setting in (
                "trusted_schema = OFF",
                "synchronous = NORMAL",
                "cache_size = -4000",
            ):
                self._db.execute(f"PRAGMA {setting}")
            try:
                self._db.execute("PRAGMA journal_mode = WAL")
            except sqlite3.Error as error:
                # it does not wait for somebody else who is doing just that
                if not is_busy(error):
                    raise
            with self.writing():
                if self._version() == 0:
                    self._make()
            if self._version() != _VERSION:
                raise sqlite3.DatabaseError("the tables are of another version")
            made = self._db.execute(
                "SELECT sql FROM sqlite_master WHERE name = 'texts'"
            ).fetchone()
            self._has_search = made is not None and "fts5" in made[0]
        except BaseException:
            self._db.close()
            raise

    @classmethod
    def of(cls, root: Path) -> Self:
        """The project's; in memory where it has no `.cdd`, or where nothing can be
        written.
        """
        place = _place(root)
        for _ in range(2):
            if place is not None:
                try:
                    return cls(place)
                except sqlite3.Error as error:
                    if not is_busy(error):
                        _remove(place)
        return cls(None)

    def remove(self) -> None:
        """Take it away: it is damaged."""
        self.close()
        if self.place is not None:
            _remove(self.place)

    def close(self) -> None:
        self._db.close()

    def settle(self) -> None:
        """Put what was written where it stays, so that others who have it open leave no
        second file as large.
        """
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """All that is written is there as a whole, or not at all; nobody else writes
        meanwhile.
        """
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def fact(self, name: str) -> str:
        row = self._db.execute(
            "SELECT value FROM facts WHERE name = ?", (name,)
        ).fetchone()
        return row[0] if row else ""

    def set_fact(self, name: str, value: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))

    def count_files(self) -> int:
        return int(self._db.execute("SELECT count(*) FROM files").fetchone()[0])

    def stamps(self) -> dict[str, Stamp]:
        """Of all files, by their paths."""
        rows = self._db.execute(
            "SELECT path, size, modified, changed, inode FROM files"
        )
        return {row[0]: row[1:] for row in rows}

    def digest(self, path: str) -> bytes | None:
        row = self._db.execute(
            "SELECT digest FROM files WHERE path = ?", (path,)
        ).fetchone()
        return row[0] if row else None

    def searched(self) -> list[tuple[str, int, int]]:
        """The path, the number and the length of each file that is searched."""
        return self._db.execute(
            "SELECT path, number, length FROM files WHERE length > 0"
        ).fetchall()

    def imported(self, number: int) -> list[str]:
        row = self._db.execute(
            "SELECT imported FROM files WHERE number = ?", (number,)
        ).fetchone()
        return row[0].split("\n") if row and row[0] else []

    def put(self, rows: Iterable[FileRow]) -> None:
        self._db.executemany(
            "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                (number, path, *stamp, digest, length, "\n".join(imported))
                for number, path, stamp, digest, length, imported in rows
            ),
        )

    def restamp(self, stamps: Mapping[str, Stamp]) -> None:
        """These files have new times, and what they had in them."""
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
        self._db.execute(
            "INSERT INTO texts (texts) VALUES ('delete-all')"
            if self._has_search
            else "DELETE FROM texts"
        )
        self._db.execute("DELETE FROM words")

    def add_texts(self, texts: Mapping[int, str]) -> None:
        """Add the terms of files, by their numbers. Words are found in them when they
        are `learned`.
        """
        if self._has_search:
            self._db.executemany(
                "INSERT INTO texts (rowid, text) VALUES (?, ?)", texts.items()
            )
        elif texts:
            holders: Holders = defaultdict(lambda: array("I"))
            for number, text in texts.items():
                for term in set(text.split(" ")):
                    holders[term].append(number)
            self._add("texts", holders, part=min(texts))

    def learn(self, texts: Iterable[str]) -> None:
        """Take in the words of the terms of these texts."""
        meant = defaultdict[str, set[str]](set)
        for word, term in taken_apart(
            {term for text in texts for term in text.split(" ")}
        ):
            meant[word].add(term)
        for word, terms in meant.items():
            known = self._terms(word)
            if not terms.issubset(known):
                joined = " ".join(terms.union(known))
                self._db.execute(
                    "INSERT OR REPLACE INTO words VALUES (?, ?)", (word, joined)
                )

    def learn_anew(self) -> None:
        """Take in the words of all terms that there are."""
        meant = defaultdict[str, list[str]](list)
        for word, term in taken_apart(
            term for (term,) in self._db.execute("SELECT term FROM terms")
        ):
            meant[word].append(term)
        self._db.execute("DELETE FROM words")
        rows = ((word, " ".join(dict.fromkeys(terms))) for word, terms in meant.items())
        self._db.executemany("INSERT INTO words VALUES (?, ?)", rows)

    def holders(self, words: Iterable[str]) -> Holders:
        """The files that hold each of these words; also those that are there no
        more.
        """
        found: Holders = {}
        for word in dict.fromkeys(words):
            term = term_of(word)
            terms = self._terms(word) if term is None else [term]
            numbers = set[int]()
            if self._has_search:
                for begin in range(0, len(terms), _AT_ONCE):
                    asked = " OR ".join(
                        f'"{each}"' for each in terms[begin : begin + _AT_ONCE]
                    )
                    rows = self._db.execute(
                        "SELECT rowid FROM texts WHERE texts MATCH ?", (asked,)
                    )
                    numbers.update(number for (number,) in rows)
            else:
                numbers.update(*self._holders("texts", terms).values())
            if term is None and terms and not numbers:
                raise ValueError(f"the terms of {word!r} are in no file")
            if numbers:
                found[word] = array("I", sorted(numbers))
        return found

    def add_commits(self, paths: Mapping[int, Sequence[str]], holders: Holders) -> None:
        self._db.executemany(
            "INSERT INTO commits VALUES (?, ?)",
            ((number, "\0".join(named)) for number, named in paths.items()),
        )
        self._add("past", holders, part=min(paths, default=0))

    def last_commit(self) -> int:
        return int(
            self._db.execute("SELECT coalesce(max(number), 0) FROM commits").fetchone()[
                0
            ]
        )

    def clear_commits(self) -> None:
        self._db.execute("DELETE FROM commits")
        self._db.execute("DELETE FROM past")

    def commits(self, words: Iterable[str]) -> Holders:
        """The commits whose messages hold each of these words; those that changed a
        file, for its path after `@`.
        """
        return self._holders("past", words)

    def changed_in(self, commit: int) -> list[str]:
        row = self._db.execute(
            "SELECT paths FROM commits WHERE number = ?", (commit,)
        ).fetchone()
        return row[0].split("\0") if row and row[0] else []

    def _version(self) -> int:
        return int(self._db.execute("PRAGMA user_version").fetchone()[0])

    def _make(self) -> None:
        for statement in _TABLES.split(";"):
            self._db.execute(statement)
        for tables in (_SEARCH, _WITHOUT_SEARCH):
            try:
                for statement in tables.split(";"):
                    self._db.execute(statement)
                break
            except sqlite3.OperationalError as error:
                if tables is _WITHOUT_SEARCH or "no such module" not in str(error):
                    raise
        self._db.execute(f"PRAGMA user_version = {_VERSION}")

    def _terms(self, word: str) -> list[str]:
        """The terms that have a word in them."""
        row = self._db.execute(
            "SELECT terms FROM words WHERE word = ?", (_stored(word),)
        ).fetchone()
        if row and not isinstance(row[0], str):
            raise ValueError(f"the terms of {word!r} are no text")
        return row[0].split(" ") if row else []

    def _add(self, table: str, holders: Holders, part: int) -> None:
        self._db.executemany(
            # both are this module's own
            f"INSERT INTO {table} VALUES (?, {part}, ?)",  # noqa: S608
            ((_stored(word), numbers.tobytes()) for word, numbers in holders.items()),
        )

    def _holders(self, table: str, words: Iterable[str]) -> Holders:
        found: Holders = {}
        for word in dict.fromkeys(words):
            for (data,) in self._db.execute(
                # the table is one of this module's own
                f"SELECT holders FROM {table} WHERE word = ?",  # noqa: S608
                (_stored(word),),
            ):
                found.setdefault(word, array("I")).frombytes(data)
        return found


def _stored(word: str) -> str:
    return word.encode("utf-8", "replace").decode()


def is_busy(error: Exception) -> bool:
    """Whether the cache is well, and somebody else has been writing to it for too
    long.
    """
    return getattr(error, "sqlite_errorname", "").startswith(
        ("SQLITE_BUSY", "SQLITE_LOCKED")
    )


def _place(root: Path) -> Path | None:
    """Where this person's cache of the project is; None where there cannot be one."""
    folder = root.resolve() / _FOLDER
    try:
        if (
            not folder.parent.is_dir()
            or folder.parent.is_symlink()
            or folder.is_symlink()
        ):
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
