"""Functions on ledger entries, without access to the project."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from cdd_agent.engine.attempt import Attempt
from cdd_agent.engine.ledger_file import EntryKind, LedgerEntry
from cdd_agent.engine.net_changes import CHANGING, fold, without_withdrawn
from cdd_agent.git.checkpoint import Checkpoint
from cdd_agent.git.diff import Change, TreeEntry

DIALOGUE = "dialogue"
"""Cause of an entry that drops all calls of an attempt."""
_NOT_RUNNING = (EntryKind.BEGIN, EntryKind.COMMAND, EntryKind.CHECK, EntryKind.RESTORED)
"""After these, no command of the attempt runs."""


# Entries


def in_order(attempts: Iterable[Attempt]) -> list[LedgerEntry]:
    """Return the valid entries, sorted by time."""
    entries = [entry for attempt in attempts for entry in attempt.entries]
    return without_withdrawn(sorted(entries, key=lambda entry: entry.at))


def current_entries(attempt: Attempt) -> list[LedgerEntry]:
    """Return valid entries since the attempt began, or last continued."""
    entries = attempt.entries
    begins = [
        place for place, entry in enumerate(entries) if entry.kind is EntryKind.BEGIN
    ]
    if not begins:
        return []
    return without_withdrawn(entries[begins[-1] :])


def last_restoring(attempts: Iterable[Attempt]) -> LedgerEntry | None:
    entries = [
        entry for entry in in_order(attempts) if entry.kind is EntryKind.RESTORED
    ]
    return entries[-1] if entries else None


def final_restoring(attempts: Iterable[Attempt]) -> LedgerEntry | None:
    """Return the last restoring. None if an attempt began or changed a file after
    it.
    """
    for entry in reversed(in_order(attempts)):
        if entry.kind is EntryKind.RESTORED:
            return entry
        if entry.kind is EntryKind.BEGIN or entry.kind in CHANGING:
            return None
    return None


def find_commands(attempts: Iterable[Attempt]) -> tuple[str, ...]:
    """Return distinct commands of the model that were started."""
    commands: dict[str, None] = {}
    for entry in in_order(attempts):
        # a check has no call
        is_started = entry.kind is EntryKind.STARTED and entry.call is not None
        if is_started or entry.kind is EntryKind.COMMAND:
            commands[entry.by] = None
    return tuple(commands)


# Paths


def own_paths(entries: Iterable[LedgerEntry]) -> frozenset[str]:
    """Return files that belong to a step because it changed them."""
    return frozenset(
        change.path
        for entry in without_withdrawn(entries)
        if entry.kind in CHANGING
        for change in entry.changes
    )


def private_paths(attempt: Attempt) -> frozenset[str]:
    """Return files whose contents stay on this computer."""
    return frozenset(path for entry in attempt.entries for path in entry.private)


# Changes


def changes_by_path(attempt: Attempt) -> dict[str, Change]:
    """Return each file's change during an attempt, by anyone. Its last content may be
    its first again.
    """
    entries = in_order([attempt])
    others = first_to_last(
        change for entry in entries if entry.kind in CHANGING for change in entry.others
    )
    changes = {change.path: change for change in others}
    for net in fold(entries).all:
        changes[net.path] = Change(net.path, net.before, net.after)
    return changes


def changed_by_commands(attempts: Iterable[Attempt]) -> frozenset[str]:
    """Return files changed by commands, not checks."""
    return frozenset(
        change.path
        for entry in in_order(attempts)
        if entry.kind is EntryKind.COMMAND
        for change in (*entry.changes, *entry.others)
    )


def made_changes(entries: Iterable[LedgerEntry]) -> Iterator[tuple[str, Change]]:
    """Yield the time and change of each file that a run changed, restored, undid or
    redid.
    """
    undos: dict[str, tuple[Change, ...]] = {}
    for entry in without_withdrawn(entries):
        changes: Iterable[Change] = ()
        if entry.kind in CHANGING:
            changes = (*entry.changes, *entry.others)
        elif entry.kind is EntryKind.RESTORED:
            changes = entry.changes
        elif entry.kind is EntryKind.UNDONE:
            undos[entry.by] = entry.changes
            changes = entry.changes
        elif entry.kind is EntryKind.REDONE:
            changes = reverse(undos.get(entry.by, ()))
        for change in changes:
            yield entry.at, change


def first_to_last(changes: Iterable[Change]) -> list[Change]:
    """Merge changes to one for each path, from first to last state."""
    joined: dict[str, Change] = {}
    for change in changes:
        first = joined.get(change.path, change)
        joined[change.path] = replace(change, before=first.before)
    return list(joined.values())


def reverse(changes: Iterable[Change]) -> list[Change]:
    return [Change(change.path, change.after, change.before) for change in changes]


# Commands


def was_cut(attempt: Attempt) -> bool:
    """True if a kill stopped a command or check."""
    is_running = False
    for entry in attempt.entries:
        if entry.kind is EntryKind.STARTED:
            is_running = True
        elif entry.kind in _NOT_RUNNING:
            is_running = False
    return is_running


def last_started_call(attempt: Attempt) -> int | None:
    """Return the number of the last call whose command was started."""
    started = None
    for entry in attempt.all_entries:
        if entry.kind is EntryKind.DROPPED and entry.by == DIALOGUE:
            started = None
        elif entry.kind is EntryKind.STARTED and entry.call is not None:
            started = entry.call
    return started


def commands_to_redo(attempt: Attempt) -> dict[int, LedgerEntry]:
    """Return call number → command that changed files of the step."""
    commands: dict[int, LedgerEntry] = {}
    for entry in attempt.all_entries:
        if entry.call is None:
            continue
        if entry.kind is EntryKind.DROPPED:
            dropped = [call for call in commands if call >= entry.call]
            for call in dropped:
                del commands[call]
        elif entry.kind is EntryKind.COMMAND and entry.changes:
            commands[entry.call] = entry
    return commands


# Checkpoints


def last_tree(entries: Sequence[LedgerEntry]) -> Checkpoint | None:
    trees = [entry.tree for entry in entries if entry.tree is not None]
    return trees[-1] if trees else None


def tree_after(attempt: Attempt) -> Checkpoint | None:
    """Return the attempt's last checkpoint. None if files were written after it."""
    entries = without_withdrawn(attempt.entries)
    if written_since_tree(entries):
        return None
    return last_tree(entries)


def written_since_tree(entries: Iterable[LedgerEntry]) -> dict[str, TreeEntry | None]:
    """Return files that the step wrote after the last checkpoint."""
    written: dict[str, TreeEntry | None] = {}
    for entry in entries:
        if entry.tree is not None:
            written.clear()
        elif entry.kind in CHANGING or entry.kind is EntryKind.RESTORED:
            written |= {change.path: change.after for change in entry.changes}
    return written
