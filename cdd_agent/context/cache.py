"""The index of a project on the disk: which file holds which word, and which past commit changed which file.

It is a cache in `.cdd/cache`. One that is damaged is made anew, and one that came along with a repository is not even
opened: the name of this person's own is a secret's.
"""

import hashlib
import hmac
import os
import secrets
import sqlite3
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, Self

from cdd_agent.errors import BadInput
from cdd_agent.files.atomic import create_exclusive
from cdd_agent.files.state_folder import state_folder

_FOLDER = Path(".cdd") / "cache"
_VERSION = 1
"""Of the tables, and of how words are read: a file of another version is made anew."""
_BUSY_SECONDS = 10.0
_TABLES = """
CREATE TABLE files (number INTEGER PRIMARY KEY, path BLOB UNIQUE NOT NULL, size INTEGER, modified INTEGER,
    changed INTEGER, inode INTEGER, digest BLOB, length INTEGER, imported TEXT);
CREATE TABLE words (word TEXT, part INTEGER, holders BLOB, PRIMARY KEY (word, part));
CREATE TABLE commits (number INTEGER PRIMARY KEY, paths TEXT);
CREATE TABLE past (word TEXT, part INTEGER, holders BLOB, PRIMARY KEY (word, part));
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT);
"""

Holders = dict[str, "array[int]"]
"""For each word the numbers of the files, or commits, that hold it."""


class Stamp(NamedTuple):
    """By which one sees that a file has not changed."""

    size: int
    modified: int
    changed: int
    inode: int


class KnownFile(NamedTuple):
    number: int
    stamp: Stamp
    digest: bytes


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
    """The tables. Any method may raise `sqlite3.Error`, and `ValueError` or `TypeError` for what nobody would have put
    in: then the cache is of no use any more, unless it `is_busy`."""

    def __init__(self, place: Path | None) -> None:
        """Without a `place` it is in memory."""
        self.place = place
        self._db = sqlite3.connect(
            ":memory:" if place is None else place, _BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            for setting in ("trusted_schema = OFF", "synchronous = NORMAL", "cache_size = -4000"):
                self._db.execute(f"PRAGMA {setting}")
            try:
                self._db.execute("PRAGMA journal_mode = WAL")
            except sqlite3.Error as error:  # it does not wait for somebody else who is doing just that
                if not is_busy(error):
                    raise
            with self.writing():
                if self._version() == 0:
                    for statement in _TABLES.split(";"):
                        self._db.execute(statement)
                    self._db.execute(f"PRAGMA user_version = {_VERSION}")
            if self._version() != _VERSION:
                raise sqlite3.DatabaseError("the tables are of another version")
        except BaseException:
            self._db.close()
            raise

    @classmethod
    def of(cls, root: Path) -> Self:
        """The project's; in memory where it has no `.cdd`, or where nothing can be written."""
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

    @contextmanager
    def writing(self) -> Iterator[None]:
        """All that is written is there as a whole, or not at all; nobody else writes meanwhile."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def fact(self, name: str) -> str:
        row = self._db.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return row[0] if row else ""

    def set_fact(self, name: str, value: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))

    def count_files(self) -> int:
        return int(self._db.execute("SELECT count(*) FROM files").fetchone()[0])

    def known_files(self) -> dict[str, KnownFile]:
        rows = self._db.execute("SELECT path, number, size, modified, changed, inode, digest FROM files")
        return {os.fsdecode(path): KnownFile(number, Stamp(*stamp), digest) for path, number, *stamp, digest in rows}

    def searched(self) -> Iterator[tuple[str, int, int]]:
        """The path, the number and the length of each file that is searched."""
        for path, number, length in self._db.execute("SELECT path, number, length FROM files WHERE length > 0"):
            yield os.fsdecode(path), number, length

    def imported(self, number: int) -> list[str]:
        row = self._db.execute("SELECT imported FROM files WHERE number = ?", (number,)).fetchone()
        return row[0].split("\n") if row and row[0] else []

    def put(self, rows: Iterable[FileRow]) -> None:
        self._db.executemany(
            "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                (number, os.fsencode(path), *stamp, digest, length, "\n".join(imported))
                for number, path, stamp, digest, length, imported in rows
            ),
        )

    def restamp(self, stamps: Mapping[str, Stamp]) -> None:
        """These files have new times, and what they had in them."""
        self._db.executemany(
            "UPDATE files SET size = ?, modified = ?, changed = ?, inode = ? WHERE path = ?",
            ((*stamp, os.fsencode(path)) for path, stamp in stamps.items()),
        )

    def drop(self, paths: Iterable[str]) -> None:
        self._db.executemany("DELETE FROM files WHERE path = ?", ((os.fsencode(path),) for path in paths))

    def clear_files(self) -> None:
        self._db.execute("DELETE FROM files")
        self._db.execute("DELETE FROM words")

    def add_words(self, holders: Holders, part: int = 0) -> None:
        """Add to one part of the index. A large one is added as a part of its own, which is fast."""
        self._add("words", holders, part)

    def holders(self, words: Iterable[str]) -> Holders:
        """Those of each of these words; also of files that are there no more."""
        return self._holders("words", words)

    def add_commits(self, paths: Mapping[int, Sequence[str]], holders: Holders) -> None:
        self._db.executemany(
            "INSERT INTO commits VALUES (?, ?)", ((number, "\0".join(named)) for number, named in paths.items())
        )
        self._add("past", holders, 0)

    def last_commit(self) -> int:
        return int(self._db.execute("SELECT coalesce(max(number), 0) FROM commits").fetchone()[0])

    def clear_commits(self) -> None:
        self._db.execute("DELETE FROM commits")
        self._db.execute("DELETE FROM past")

    def commits(self, words: Iterable[str]) -> Holders:
        """The commits whose messages hold each of these words; those that changed a file, for its path after `@`."""
        return self._holders("past", words)

    def changed_in(self, commit: int) -> list[str]:
        row = self._db.execute("SELECT paths FROM commits WHERE number = ?", (commit,)).fetchone()
        return row[0].split("\0") if row and row[0] else []

    def _version(self) -> int:
        return int(self._db.execute("PRAGMA user_version").fetchone()[0])

    def _add(self, table: str, holders: Holders, part: int) -> None:
        if part == 0:
            known = self._holders(table, holders, part=0)
            holders = {word: known.get(word, array("I")) + numbers for word, numbers in holders.items()}
        self._db.executemany(
            f"INSERT OR REPLACE INTO {table} VALUES (?, {part}, ?)",  # noqa: S608  # both are this module's own
            ((word.encode("utf-8", "replace").decode(), numbers.tobytes()) for word, numbers in holders.items()),
        )

    def _holders(self, table: str, words: Iterable[str], part: int | None = None) -> Holders:
        found: Holders = {}
        ask = f"SELECT holders FROM {table} WHERE word = ?" + ("" if part is None else f" AND part = {part}")  # noqa: S608
        for word in dict.fromkeys(words):
            for (data,) in self._db.execute(ask, (word.encode("utf-8", "replace").decode(),)):
                found.setdefault(word, array("I")).frombytes(data)
        return found


def is_busy(error: Exception) -> bool:
    """Whether the cache is well, and somebody else has been writing to it for too long."""
    return getattr(error, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


def _place(root: Path) -> Path | None:
    """Where this person's cache of the project is; None where there cannot be one."""
    folder = root.resolve() / _FOLDER
    try:
        if not folder.parent.is_dir() or folder.parent.is_symlink() or folder.is_symlink():
            return None
        folder.mkdir(exist_ok=True)
        with suppress(FileExistsError), (folder / ".gitignore").open("x") as ignore:
            ignore.write("*\n")
        name = hmac.new(_secret(), os.fsencode(folder), hashlib.sha256).hexdigest()[:32]
    except (OSError, BadInput):
        return None
    place = folder / f"map-{name}.sqlite"
    return None if place.is_symlink() else place


def _secret() -> bytes:
    """This person's own, made when it is first needed. Raises `OSError` or `BadInput`."""
    file = state_folder() / "cache-key"
    if not file.exists():
        with suppress(FileExistsError):
            create_exclusive(file, secrets.token_bytes(32), 0o600)
    return file.read_bytes()


def _remove(place: Path) -> None:
    for ending in ("", "-wal", "-shm", "-journal"):
        with suppress(OSError):
            place.with_name(place.name + ending).unlink()
