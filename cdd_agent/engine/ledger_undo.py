"""The undo of attempts, and its redo: entered in a ledger before files are changed, so
that each can be killed and repeated.
"""

from collections.abc import Sequence

from cdd_agent.engine.attempt import Attempt
from cdd_agent.engine.ledger import Ledger, RestorePlan
from cdd_agent.engine.ledger_file import Entry, Kind, LedgerFile
from cdd_agent.git.diff import Change
from cdd_agent.git.restore import RestoreResult


def enter_undo(
    ledger: Ledger, attempts: Sequence[Attempt], file: LedgerFile, undo: str
) -> Entry:
    """Return the entry of an undo that is about to be made, or was begun. Raises
    `CheckpointGone`.
    """
    entry = _find_undo(file, undo)
    if entry is not None:
        return entry
    plan = ledger.plan_back(attempts)
    changes = tuple(Change(one.path, one.after, one.before) for one in plan.changes)
    for change in changes:
        ledger.save_file(attempts[0], change.path)
    return file.append(
        Entry(
            Kind.UNDONE,
            by=undo,
            changes=changes,
            kept=tuple(plan.kept),
            merged=tuple(plan.merged),
        )
    )


def carry_out_undo(
    ledger: Ledger, attempts: Sequence[Attempt], entry: Entry
) -> RestoreResult:
    """Change files as an undo was entered. Raises `CheckpointGone`, or `BadInput` if
    the disk refuses.
    """
    changes = [Change(one.path, one.after, one.before) for one in entry.changes]
    plan = RestorePlan(changes, [*entry.kept], [*entry.merged])
    return ledger.carry_out(attempts, plan, lambda path: True)


def carry_out_redo(
    ledger: Ledger, attempts: Sequence[Attempt], file: LedgerFile, undo: str
) -> RestoreResult:
    """Reverse an undo, and enter that. Raises `CheckpointGone`, or `BadInput` if the
    disk refuses.
    """
    entry = _find_undo(file, undo)
    plan = ledger.plan(attempts, entry.changes if entry else ())
    result = ledger.carry_out(attempts, plan, lambda path: True)
    file.append(Entry(Kind.REDONE, by=undo, kept=result.kept, merged=result.merged))
    return result


def _find_undo(file: LedgerFile, undo: str) -> Entry | None:
    for entry in file.entries():
        if entry.kind is Kind.UNDONE and entry.by == undo:
            return entry
    return None
