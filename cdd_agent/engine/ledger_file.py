"""A step's ledger file, `.cdd/runs/SLUG/step-02/ledger.jsonl`, which is only appended
to.

The first line names the format's version; each other line is a `LedgerEntry` in JSON.
docs/reference/records.md describes it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from enum import StrEnum
from io import FileIO
from pathlib import Path, PurePosixPath

import msgspec
from msgspec import Struct

from cdd_agent.files.atomic import NotWritten, sync_folder, write_atomic
from cdd_agent.files.json_file import Damaged, as_short_json, stamp
from cdd_agent.files.regular_files import open_file
from cdd_agent.git.checkpoint import Checkpoint, name_in_json, path_of_name
from cdd_agent.git.diff import Change
from cdd_agent.pattern import Pattern
from cdd_agent.refusals.kinds import Refusal

VERSION = 1
_CHUNK = 1 << 16
_HEADER = b'{"ledger":%d}\n' % VERSION
_TIME = Pattern(rb'"at":"([0-9]{8}T[0-9]{12})"')
_DATE = len("20261126T")


class EntryKind(StrEnum):
    """What an entry records."""

    BEGIN = "begin"
    """The attempt is about to change files. `tree` is the project before."""
    REPLY = "reply"
    """The reply is about to change the files in `changes`."""
    TOOL = "tool"
    """The call of a tool is about to change the files in `changes`."""
    WITHDRAWN = "withdrawn"
    """The changes of the last `reply` or `tool` were refused and not made."""
    STARTED = "started"
    """A command or a check starts."""
    COMMAND = "command"
    """A command of the model is over; `changes` and `others` are what it changed."""
    CHECK = "check"
    """A check is over; the fields are those of `command`."""
    FOUND = "found"
    """`others` changed since the process of the run was killed, or shortly before."""
    DROPPED = "dropped"
    """The tool calls from `call` on are void: the model made other calls instead."""
    RESTORED = "restored"
    """The step's changes are about to be reversed. `changes` has its files as the
    attempts left them and as they are afterwards.
    """
    UNDONE = "undone"
    """The undo `by` is about to make `changes`, which may be of several steps."""
    REDONE = "redone"
    """The undo `by` was reversed."""


UNDOS = (EntryKind.UNDONE, EntryKind.REDONE)
_WITHIN = (
    EntryKind.REPLY,
    EntryKind.TOOL,
    EntryKind.WITHDRAWN,
    EntryKind.STARTED,
    EntryKind.COMMAND,
    EntryKind.CHECK,
    EntryKind.FOUND,
    EntryKind.DROPPED,
)
"""Entries after their attempt's beginning, in the same ledger."""


class LedgerEntry(Struct, frozen=True, omit_defaults=True):
    kind: EntryKind
    attempt: int = 0
    """0 for undo and redo."""
    at: str = ""
    """UTC, as `20261126T221500123456`: sortable."""
    by: str = ""
    """The command, check or undo's id; outside of tickets also the work or action."""
    conversation: str = ""
    """The conversation whose turn begins. Only outside of tickets."""
    call: int | None = None
    """Number of the tool call within the attempt, from 0."""
    changes: tuple[Change, ...] = ()
    """Changes of the step, with contents in the run's store."""
    others: tuple[Change, ...] = ()
    """Changes to files that the step neither declares nor wrote. They are kept."""
    private: tuple[str, ...] = ()
    """Ignored files that the attempt may change. Contents stay on this computer."""
    kept: tuple[str, ...] = ()
    """Files not restored because they were edited."""
    merged: tuple[str, ...] = ()
    """Files in `changes` that keep a later edit."""
    ignored: tuple[str, ...] = ()
    """Ignored files, outside the ledger, that a command changed."""
    tree: Checkpoint | None = None
    """The project after this entry, if inspected."""


class _Header(Struct, frozen=True):
    """The first line. Later versions may extend it."""

    ledger: int


class LedgerTooNew(Damaged):
    """A later version of this program wrote the ledger."""

    refusal = Refusal.WRITTEN_BY_NEWER


class LedgerFile(Struct, frozen=True):
    """The ledger of a step, or of an attempt in a separate tree."""

    path: Path

    def append(self, entry: LedgerEntry) -> LedgerEntry:
        """Add an entry, which survives a power cut. Returns it with its time. Raises
        `NotWritten`.
        """
        entry = msgspec.structs.replace(entry, at=entry.at or self._next_time(entry))
        try:
            self._append(_encode(entry))
        except OSError as error:
            raise NotWritten(self.path, error) from error
        return entry

    def _next_time(self, entry: LedgerEntry) -> str:
        """Return a new entry's time. Beginnings and restorings come after everything in
        the run's ledgers, even if the clock was set back.
        """
        now = stamp()
        if entry.kind in _WITHIN:
            return now
        folder = self.path.parent.parent
        places = [*folder.glob("step-*/ledger.jsonl")]
        places += folder.glob("step-*/attempt-*/beside.jsonl")
        times = [time for place in places for time in _times(place)]
        return max([now, *times])

    def write(self, entries: Iterable[LedgerEntry]) -> None:
        """Replace the file by entries that have times. Raises `NotWritten`."""
        write_atomic(self.path, encode_ledger(entries))

    def _append(self, line: bytes) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        is_new = not self.path.exists()
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
        with FileIO(os.open(self.path, flags, 0o600), "r+") as file:
            _remove_torn_line(file)
            if file.tell() == 0:
                line = _HEADER + line
            if (file.write(line) or 0) < len(line):
                raise OSError("only a part of the line was written")
            os.fsync(file.fileno())
        if is_new:
            sync_folder(self.path.parent)

    def entries(self) -> tuple[LedgerEntry, ...]:
        """Return all entries, without a last line that a killed process left
        unfinished. Raises `Damaged` or `LedgerTooNew`.
        """
        lines = read_ledger(self.path).split(b"\n")[:-1]
        return tuple(self._read(lines))

    def _read(self, lines: Iterable[bytes]) -> Iterator[LedgerEntry]:
        last = ""
        for number, line in enumerate(lines, 1):
            if number == 1:
                self._expect_version(line)
                continue
            try:
                entry = _decode(line)
            except (ValueError, RecursionError) as error:
                raise Damaged(self.path, f"line {number}: {error}") from error
            # a clock that was set back does not change the order
            last = max(last, entry.at)
            yield msgspec.structs.replace(entry, at=last)

    def _expect_version(self, line: bytes) -> None:
        try:
            version = msgspec.json.decode(line, type=_Header).ledger
        except (ValueError, RecursionError) as error:
            raise Damaged(self.path, "line 1 does not name its version") from error
        if version > VERSION:
            raise LedgerTooNew(
                self.path,
                f"it has version {version} of the format, and this program reads"
                f" version {VERSION}",
            )


def encode_ledger(entries: Iterable[LedgerEntry]) -> bytes:
    lines = (_encode(entry) for entry in entries)
    return _HEADER + b"".join(lines)


def _encode(entry: LedgerEntry) -> bytes:
    others = tuple(
        msgspec.structs.replace(change, path=name_in_json(change.path))
        for change in entry.others
    )
    return as_short_json(msgspec.structs.replace(entry, others=others)) + b"\n"


def _decode(line: bytes) -> LedgerEntry:
    """Raises `ValueError` if the line is no entry."""
    entry = msgspec.json.decode(line, type=LedgerEntry)
    others = tuple(
        msgspec.structs.replace(change, path=path_of_name(change.path))
        for change in entry.others
    )
    expect_inside(change.path for change in (*entry.changes, *others))
    return msgspec.structs.replace(entry, others=others)


def _times(place: Path) -> Iterator[str]:
    times = [match.decode() for match in _TIME.findall(read_ledger(place))]
    if times:
        last = max(times)
        yield f"{last[:_DATE]}{int(last[_DATE:]) + 1:012}"


def read_ledger(place: Path) -> bytes:
    """Return the content; empty if there is no file. Raises `Damaged` if it is
    unreadable or not a regular file.
    """
    try:
        with open_file(place) as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except OSError as error:
        raise Damaged(place, str(error.strerror or error)) from error


def expect_inside(paths: Iterable[str]) -> None:
    """Raise `ValueError` for paths outside the project, or of git or a run: a ledger
    may come from another computer.
    """
    for path in map(PurePosixPath, paths):
        parts = tuple(part.lower() for part in path.parts)
        is_own = ".git" in parts or parts[:2] == (".cdd", "runs")
        is_name = parts and "\0" not in str(path)
        if not is_name or path.is_absolute() or ".." in parts or is_own:
            raise ValueError(f"{str(path)!r} is no file of the project")


def _remove_torn_line(file: FileIO) -> None:
    size = file.seek(0, os.SEEK_END)
    end = size
    while end:
        start = max(0, end - _CHUNK)
        file.seek(start)
        place = file.read(end - start).rfind(b"\n")
        if place >= 0:
            end = start + place + 1
            break
        end = start
    if end < size:
        file.truncate(end)
    file.seek(end)
