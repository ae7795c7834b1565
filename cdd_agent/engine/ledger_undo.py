"""Undo and redo of attempts, entered in a ledger before files change, so that both
survive a kill and can be repeated.
"""

from cdd_agent.engine.ledger_entries import reverse
from cdd_agent.engine.ledger_file import EntryKind, LedgerEntry, LedgerFile
from cdd_agent.engine.restoring import RestorePlan, Restorer
from cdd_agent.engine.saved_contents import save_files
from cdd_agent.git.restore import RestoreResult


def enter_undo(restorer: Restorer, file: LedgerFile, undo: str) -> LedgerEntry:
    """Return the entry of a new or begun undo. Raises `CheckpointGone`."""
    entry = _find_undo(file, undo)
    if entry is not None:
        return entry
    plan = restorer.plan_undo()
    changes = tuple(reverse(plan.changes))
    # a skipped step may have no attempt
    if changes:
        paths = [change.path for change in changes]
        save_files(restorer.root, restorer.attempts[0], paths)
    return file.append(
        LedgerEntry(
            EntryKind.UNDONE,
            by=undo,
            changes=changes,
            kept=tuple(plan.kept),
            merged=tuple(plan.merged),
        )
    )


def carry_out_undo(restorer: Restorer, entry: LedgerEntry) -> RestoreResult:
    """Change files as entered. Raises `CheckpointGone`, or `BadInput` if the disk
    refuses.
    """
    plan = RestorePlan(reverse(entry.changes), [*entry.kept], [*entry.merged])
    return restorer.carry_out(plan, lambda path: True)


def carry_out_redo(restorer: Restorer, file: LedgerFile, undo: str) -> RestoreResult:
    """Reverse an undo, and enter that. Raises `CheckpointGone`, or `BadInput` if the
    disk refuses.
    """
    entry = _find_undo(file, undo)
    plan = restorer.plan(entry.changes if entry else ())
    result = restorer.carry_out(plan, lambda path: True)
    file.append(
        LedgerEntry(EntryKind.REDONE, by=undo, kept=result.kept, merged=result.merged)
    )
    return result


def _find_undo(file: LedgerFile, undo: str) -> LedgerEntry | None:
    for entry in file.entries():
        if entry.kind is EntryKind.UNDONE and entry.by == undo:
            return entry
    return None
