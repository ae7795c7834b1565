"""Restores files by reversing attempts' changes.

The user's later edits are merged if possible without conflicts; otherwise the file is
kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.engine.attempt import Attempt
from cdd_agent.engine.ledger_entries import (
    final_restoring,
    in_order,
    reverse,
    was_cut,
)
from cdd_agent.engine.ledger_file import EntryKind, LedgerEntry
from cdd_agent.engine.net_changes import NetChanges, fold, is_same, is_same_mode
from cdd_agent.engine.saved_contents import (
    find_contents,
    find_replaced,
    read_content,
    save_file,
    store_of,
)
from cdd_agent.git.diff import Change, TreeEntry
from cdd_agent.git.merge import merge_texts
from cdd_agent.git.restore import (
    FILE_MODES,
    UNKNOWN,
    RestoreResult,
    entry_now,
    restore,
)

ShouldSave = Callable[[str], bool]
"""True to save a file's content before discarding it."""


class RestorePlan(Struct):
    changes: list[Change] = field(default_factory=list)
    """Changes to reverse: `before` is the target, `after` the current content."""
    kept: list[str] = field(default_factory=list)
    """Files with later edits that cannot be merged. They stay."""
    merged: list[str] = field(default_factory=list)
    """Files in `changes` that keep a later edit."""
    settled: list[Change] = field(default_factory=list)
    """Files already at their target. A killed write may have left temporary files or
    empty folders there.
    """


class Restorer(Struct, frozen=True):
    """Restores files that these attempts changed."""

    root: Path
    attempts: Sequence[Attempt]

    def restore(self) -> RestoreResult:
        """Reverse attempts that failed, were interrupted or belong to a skipped step.

        Content made only by commands and checks is saved in `kept` first. Harmless when
        repeated.
        """
        if not self.attempts:
            return RestoreResult()
        plan = self.plan_undo()
        net = self._net_changes()
        self._enter(net, plan)
        present = {change.path: change.after for change in plan.changes}
        exact = {
            change.path
            for change in net.all
            if change.is_by_model(present.get(change.path))
            or (
                change.path in plan.merged
                and change.last in (EntryKind.REPLY, EntryKind.TOOL)
            )
        }
        self._add_reported(plan)
        return self.carry_out(plan, lambda path: path not in exact)

    def reinstate(self, restored: Sequence[Change]) -> RestoreResult:
        """Write the attempts' files again after a restoring, except those that the user
        changed. The ledger gets its entry first.
        """
        plan = self.plan(restored, can_merge=False)
        attempt = self.attempts[-1]
        changes = tuple(reverse(plan.changes))
        attempt.ledger.append(
            LedgerEntry(EntryKind.RESTORED, attempt.number, changes=changes)
        )
        return self.carry_out(plan, lambda path: False)

    def plan_undo(self) -> RestorePlan:
        """Plan the reversal of all changes. Raises `CheckpointGone`.

        Nothing is merged if a kill stopped a command or check, whose last changes look
        like the user's.
        """
        changes = []
        for change in self._net_changes().all:
            like = change.before or change.after
            changes.append(change.way_back(entry_now(self.root, change.path, like)))
        can_merge = not any(map(was_cut, self.attempts))
        return self.plan(changes, can_merge=can_merge)

    def plan(self, changes: Iterable[Change], *, can_merge: bool = True) -> RestorePlan:
        """Plan to reverse these changes. Raises `CheckpointGone`."""
        plan = RestorePlan()
        for change in changes:
            self._add_change(plan, change, can_merge=can_merge)
        find_replaced(self.attempts, plan.changes)
        return plan

    def _add_change(
        self, plan: RestorePlan, change: Change, *, can_merge: bool
    ) -> None:
        path = change.path
        current = entry_now(self.root, path, change.before)
        if is_same(current, change.before):
            plan.settled.append(Change(path, current, current))
            return
        if is_same(current, change.after):
            plan.changes.append(Change(path, change.before, current))
            return
        merged = self._merge(change, current) if can_merge else None
        if merged is None:
            plan.kept.append(path)
        elif is_same(current, merged):
            plan.settled.append(Change(path, current, current))
        else:
            plan.changes.append(Change(path, merged, current))
            plan.merged.append(path)

    def _merge(self, change: Change, current: TreeEntry | None) -> TreeEntry | None:
        """Reverse a change in an edited file, and save the result. None if there are
        conflicts, or it is not text.
        """
        before, after = change.before, change.after
        if before is None or after is None or current is None:
            return None
        entries = (current, after, before)
        if any(entry.mode not in FILE_MODES for entry in entries):
            return None
        attempt = self.attempts[0]
        if save_file(self.root, attempt, change.path) != current:
            return None
        contents = find_contents(self.attempts, entries)
        if any(entry.content not in contents.places for entry in entries):
            return None
        versions = [read_content(contents, entry) or b"" for entry in entries]
        merged = merge_texts(*versions)
        if merged is None:
            return None
        # permissions are restored unless edited
        like = before if is_same_mode(current, after) else current
        name = store_of(attempt, change.path).put(merged)
        return replace(like, content=name)

    def carry_out(self, plan: RestorePlan, should_save: ShouldSave) -> RestoreResult:
        """Restore as planned. If `should_save`, the current content goes to the run's
        `kept` folder first. Harmless when repeated.

        Raises `CheckpointGone` before any change, or `BadInput` if the disk refuses.
        """
        contents = find_replaced(self.attempts, plan.changes)
        restored: list[str] = []
        kept_paths = [*plan.kept]
        restore(self.root, plan.settled, contents)
        # removals first: their places may be needed
        for is_removed, is_saved in product((True, False), (False, True)):
            group = [
                change
                for change in plan.changes
                if (change.before is None) is is_removed
                and should_save(change.path) is is_saved
            ]
            if not group:
                continue
            folder = self.attempts[0].kept if is_saved else None
            result = restore(self.root, group, contents, kept=folder)
            restored += result.restored
            kept_paths += result.kept
        return RestoreResult(
            tuple(sorted(set(restored).difference(plan.merged))),
            tuple(sorted(set(kept_paths))),
            tuple(sorted(set(plan.merged).difference(kept_paths))),
        )

    def _net_changes(self) -> NetChanges:
        return fold(in_order(self.attempts))

    def _add_reported(self, plan: RestorePlan) -> None:
        """Add files that the last restoring kept or merged, if nothing followed: a kill
        may have come before the user saw them.
        """
        last = final_restoring(self.attempts)
        if last is None:
            return
        settled = {change.path for change in plan.settled}
        plan.kept += settled.intersection(last.kept)
        plan.merged += settled.intersection(last.merged)

    def _enter(self, net: NetChanges, plan: RestorePlan) -> None:
        targets = {one.path: one.before for one in (*plan.changes, *plan.settled)}
        for path in plan.kept:
            targets[path] = entry_now(self.root, path)
        changes = tuple(
            Change(change.path, change.after, targets[change.path])
            for change in net.all
            if targets[change.path] != UNKNOWN
            and not is_same(change.after, targets[change.path])
        )
        attempt = self.attempts[-1]
        if not changes and not was_cut(attempt):
            return
        entry = LedgerEntry(
            EntryKind.RESTORED,
            attempt.number,
            changes=changes,
            kept=tuple(plan.kept),
            merged=tuple(plan.merged),
        )
        attempt.ledger.append(entry)
