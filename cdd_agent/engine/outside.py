"""Changes outside of tickets: by `cdd apply`, `cdd run` and chat turns.

Each piece of work with changes has a numbered folder with a ledger like a step's. The
parent's name begins with a dot, so no ticket can have it.

    .cdd/runs/.changes/
      lock  holder.json         during an undo
      looking.git/  looking     shared checkpoints of inspections, and their lock
      0007/                     a piece of work, such as `cdd apply reply.md`
        lock  holder.json       during the work; left behind by a kill
        running-xxxx            while a command runs
        going-back.json         during its undo
        step-01/ledger.jsonl    its changes; versions/ has the contents
        kept/                   what an undo discarded
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from filelock import FileLock, Timeout
from msgspec import Struct

from cdd_agent.engine.attempt import Attempt
from cdd_agent.engine.ledger import Ledger
from cdd_agent.engine.ledger_entries import find_commands
from cdd_agent.engine.ledger_file import UNDOS, EntryKind, LedgerEntry
from cdd_agent.engine.lock import TicketLock, is_at_work
from cdd_agent.engine.net_changes import is_same
from cdd_agent.engine.record import RunRecord
from cdd_agent.errors import CddError
from cdd_agent.files.atomic import NotWritten, remove, remove_folder
from cdd_agent.files.json_file import STAMP
from cdd_agent.git.restore import entry_now
from cdd_agent.pattern import Pattern
from cdd_agent.text.redaction import Redactor
from cdd_agent.tickets.slugs import name_change

FOLDER = ".changes"
MOST = 100
"""Changes to keep; older ones are removed."""
CHAT = "chat: "
"""Prefix of `what` for a chat turn; the user's line follows."""
_NUMBER = Pattern(r"\d{4,}")
INSPECTION, INSPECTION_LOCK = "looking.git", "looking"
"""Shared checkpoints of inspections, and their lock."""


class OutsideChange(Struct, frozen=True):
    """The changes of one piece of work."""

    record: RunRecord
    entries: tuple[LedgerEntry, ...]
    new: tuple[Path, ...] = ()
    """Folders made for its record, innermost first."""

    @classmethod
    def load(cls, record: RunRecord) -> Self | None:
        """None if nothing was entered. Raises `Damaged`."""
        entries = record.attempt(1, 1).ledger.entries()
        return cls(record, entries) if entries else None

    @property
    def attempt(self) -> Attempt:
        return self.record.attempt(1, 1)

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.record)

    @property
    def what(self) -> str:
        """The cause, such as `cdd apply reply.md`."""
        return self.entries[0].by

    @property
    def name(self) -> str:
        """As the user types it. No ticket has such a name."""
        return name_change(int(self.record.slug))

    @property
    def title(self) -> str:
        if self.what.startswith(CHAT):
            return f'the chat turn "{self.what.removeprefix(CHAT)}"'
        return f"`{self.what}`"

    @property
    def conversation(self) -> str:
        """The conversation's name in chat; empty for other work."""
        return self.entries[0].conversation

    @property
    def commands(self) -> tuple[str, ...]:
        return find_commands([self.attempt])

    @property
    def last_change(self) -> str:
        """Time of the last entry except undo and redo."""
        return max(entry.at for entry in self.entries if entry.kind not in UNDOS)

    @property
    def at(self) -> str:
        """Time of the first entry, as `stamp` formats it."""
        return self.entries[0].at

    @property
    def last_undo(self) -> LedgerEntry | None:
        undos = [entry for entry in self.entries if entry.kind in UNDOS]
        return undos[-1] if undos else None

    @property
    def is_undone(self) -> bool:
        last = self.last_undo
        return last is not None and last.kind is EntryKind.UNDONE

    @property
    def is_under_way(self) -> bool:
        return is_at_work(self.record.folder)

    @property
    def files(self) -> tuple[str, ...]:
        """Files that an undo restores."""
        return tuple(sorted(self.ledger.net([self.attempt]).paths))

    @property
    def others(self) -> tuple[str, ...]:
        """Files that commands changed and an undo leaves."""
        others = {*self.ledger.others([self.attempt])}
        for entry in self.entries:
            others.update(entry.ignored)
        return tuple(sorted(others.difference(self.files)))

    @property
    def has_effect(self) -> bool:
        """True if a file differs from before. Ignored files changed only by commands do
        not count: most are caches.
        """
        root, ledger = self.record.root, self.ledger
        for change in ledger.net([self.attempt]).changes:
            if not is_same(entry_now(root, change.path, change.before), change.before):
                return True
        return bool(ledger.others([self.attempt]))

    def take_lock(self) -> TicketLock:
        """Take the lock, and end commands of a killed process. Raises `TicketTaken`
        while the work is under way.
        """
        return TicketLock.take(self.record.folder, f"`{self.what}`", _now())


class OutsideChanges(Struct, frozen=True):
    record: RunRecord

    @classmethod
    def open(cls, root: Path, redactor: Redactor) -> Self:
        return cls(RunRecord.of(root, FOLDER, redactor))

    def all(self) -> list[OutsideChange]:
        """Return the changes that have an entry, by time of their last change. Raises
        `Damaged`.
        """
        changes = []
        for number in self._numbers():
            change = OutsideChange.load(self._record_of(number))
            if change is not None:
                changes.append(change)
        return sorted(changes, key=lambda change: change.last_change)

    def take_lock(self) -> TicketLock:
        """Return the lock for undo and redo. Raises `TicketTaken` or `BadInput`."""
        return TicketLock.take(
            self.record.folder, "the changes outside of tickets", _now()
        )

    def create(
        self, what: str, conversation: str = ""
    ) -> tuple[OutsideChange, TicketLock]:
        """Begin work in a new folder. Raises `BadInput` if the record cannot be
        written.
        """
        new = tuple(self.record.prepare())
        record = self._record_of(self._create_folder())
        try:
            lock = TicketLock.take(record.folder, f"`{what}`", _now())
            attempt = record.attempt(1, 1)
            by = record.redactor.redact(what)
            begin = LedgerEntry(
                EntryKind.BEGIN, attempt.number, by=by, conversation=conversation
            )
            entry = attempt.ledger.append(begin)
        except CddError:
            self.discard(OutsideChange(record, (), new))
            raise
        self._remove_oldest()
        return OutsideChange(record, (entry,), new), lock

    def discard(self, change: OutsideChange) -> None:
        """Remove the record of work that changed nothing, with its new folders unless
        other work uses them.
        """
        folder = self.record.folder
        with suppress(CddError, OSError, Timeout):
            remove_folder(change.record.folder)
            if folder not in change.new or self._numbers():
                return
            with FileLock(folder / INSPECTION_LOCK, timeout=0):
                remove_folder(folder / INSPECTION)
            for name in (INSPECTION_LOCK, "lock"):
                remove(folder / name)
            folder.rmdir()
            self.record.discard([place for place in change.new if place != folder])

    def find_interrupted(self) -> list[OutsideChange]:
        """Return changes whose process was killed since the last call. Their commands
        are ended, and changes without effect discarded.
        """
        interrupted = []
        for record in map(self._record_of, self._numbers()):
            if not (record.folder / "holder.json").exists():
                continue
            # old faults must not prevent new work
            with suppress(CddError):
                change = OutsideChange.load(record)
                if change is None or change.is_under_way:
                    continue
                change.take_lock().release()
                if change.has_effect:
                    interrupted.append(change)
                else:
                    self.discard(change)
        return interrupted

    def _record_of(self, name: str) -> RunRecord:
        record = self.record
        return RunRecord(record.root, record.folder / name, record.redactor)

    def _numbers(self) -> list[str]:
        try:
            names = [place.name for place in self.record.folder.iterdir()]
        except OSError:
            return []
        return sorted(filter(_NUMBER.fullmatch, names), key=int)

    def _create_folder(self) -> str:
        number = max(map(int, self._numbers()), default=0) + 1
        while True:
            folder = self.record.folder / f"{number:04}"
            try:
                folder.mkdir(0o700)
            except FileExistsError:
                number += 1
            except OSError as error:
                raise NotWritten(folder, error) from error
            else:
                return folder.name

    def _remove_oldest(self) -> None:
        for name in self._numbers()[:-MOST]:
            folder = self.record.folder / name
            if not is_at_work(folder):
                with suppress(CddError):
                    remove_folder(folder)


def in_words(at: str) -> str:
    """Format a ledger's time as local date and time."""
    moment = datetime.strptime(at, STAMP).replace(tzinfo=UTC)
    return f"{moment.astimezone():%Y-%m-%d %H:%M}"


def _now() -> str:
    return datetime.now(UTC).replace(microsecond=0).isoformat()
