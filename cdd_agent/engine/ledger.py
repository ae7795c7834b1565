"""The ledger of a run: what each step changed, and what caused it. Undo, redo, skip,
retry, recovery, commits, diffs and reports go by it, and by nothing else.

1. Before an attempt changes anything, somebody looks at the project (`begin`).
2. The changes of a reply, or of a tool's call, are entered before they are made
   (`writing`): a kill in the middle leaves each file as it was, or as it was to be.
3. When a command or a check is over, somebody looks again (`look_after`). A file that
   differs was changed by it. It belongs to the step if the step declares the file, or
   wrote it; any other change may be a person's, and is kept.

The contents of the changes that belong to a step are saved in the run's own folder, so
the way back needs neither git nor a repository.
"""

from __future__ import annotations

import os
import re
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager
from itertools import product
from pathlib import Path, PurePosixPath

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.edits.changes import ChangeSet, FileChange, changed_meanwhile
from cdd_agent.edits.model import ReplyRefused
from cdd_agent.engine.attempt import Attempt
from cdd_agent.engine.ledger_diff import diff_changes
from cdd_agent.engine.ledger_file import Entry, Kind
from cdd_agent.engine.net_changes import (
    CHANGING,
    NetChanges,
    fold,
    is_same,
    is_same_mode,
    without_withdrawn,
)
from cdd_agent.engine.record import RunRecord
from cdd_agent.errors import BadInput
from cdd_agent.files.json_file import stamp
from cdd_agent.files.paths import without_links
from cdd_agent.git.checkpoint import Checkpoint, Checkpoints
from cdd_agent.git.content_store import ContentStore, hash_content
from cdd_agent.git.diff import LINK, Change, TreeEntry
from cdd_agent.git.merge import merge_texts
from cdd_agent.git.restore import (
    FILE_MODES,
    UNKNOWN,
    CheckpointGone,
    Contents,
    Piece,
    RestoreResult,
    entry_now,
    restore,
)
from cdd_agent.project.tree_needs import SHARED
from cdd_agent.verification.lost_tests import Versions

STORE = "checkpoints.git"
OpenCheckpoints = Callable[[Path, Path, str, Sequence[str]], Awaitable[Checkpoints]]
"""Opens the checkpoints of a project, as `Checkpoints.open` does."""
Owns = Callable[[str], bool]
"""True for a file that a step declares."""
_DIALOGUE = "dialogue"
States = Mapping[str, TreeEntry | None]
"""Files as they were at a moment, by path; None: it was not there."""
LARGEST_SAVED = 50_000_000
"""Bytes of a file whose changes by commands are saved. Those of a larger one are kept
and named, like the changes of others' files.
"""


def no_part(root: Path, own: Iterable[str]) -> tuple[str, ...]:
    """Return patterns of what no checkpoint of a project has: the runs' own files,
    conversations, tickets (they are the person's and the program's), writes in
    progress; links to what tests need, since `node_modules/` ignores a folder and no
    link. `own` are files and folders of this program beside `.cdd`.
    """
    literal = {re.sub(r"([*?\[\\])", r"\\\1", folder) for folder in own}
    links = (name for name in SHARED if (root / name).is_symlink())
    return (
        ".cdd/runs",
        ".cdd/cache",
        ".cdd/conversations",
        *sorted(literal),
        *links,
        "**/.cdd-*.tmp",
    )


_NOT_RUNNING = (Kind.BEGIN, Kind.COMMAND, Kind.CHECK, Kind.RESTORED)
"""Entries after which no command of the attempt is running."""


class RestorePlan(Struct):
    """What is to be restored."""

    changes: list[Change] = field(default_factory=list)
    """Each file from what it will be to what it is now."""
    kept: list[str] = field(default_factory=list)
    """Files that somebody edited since, and that stay as they are."""
    merged: list[str] = field(default_factory=list)
    """Files among the changes that keep a later edit."""
    settled: list[Change] = field(default_factory=list)
    """Files that need no change. A write that was killed may have left temporary files
    or empty folders in their place.
    """


class Ledger(Struct):
    """What the steps of one run changed in one tree of files."""

    record: RunRecord
    leave_out: tuple[str, ...] = ()
    """Patterns of files that do not belong to the project, as git's `:(glob)`."""
    _opened: Checkpoints | None = None
    _told: frozenset[str] = frozenset()
    open_checkpoints: OpenCheckpoints = Checkpoints.open

    async def open(self) -> Checkpoints:
        """Return the checkpoints of the tree. Raises `GitUnusable`, or `BadInput` if
        the disk refuses.
        """
        if self._opened is None:
            record = self.record
            self._opened = await self.open_checkpoints(
                record.root, record.folder / STORE, record.slug, self.leave_out
            )
        return self._opened

    def news_of_uncovered(self) -> tuple[str, ...]:
        """Return what no undo covers, each path once, with the reason."""
        if self._opened is None:
            return ()
        reasons = dict.fromkeys(self._opened.unseen, "it cannot be read")
        reasons |= self._opened.uncovered
        new = {path: why for path, why in reasons.items() if path not in self._told}
        self._told |= new.keys()
        return tuple(f"{path} ({why})" for path, why in sorted(new.items()))

    # Writing

    async def begin(self, attempt: Attempt, paths: Sequence[str]) -> None:
        """Look at the project before the attempt changes anything, also if it continues
        after an interruption. `paths` are files that it may change; ignored ones are
        covered.
        """
        tree = await self._look(attempt, "before", paths)
        # of a new file it is not known whether git ignores it
        new = [path for path in tree.also if path not in tree.saved]
        ignored = await (await self.open()).ignored(tree, new)
        private = tuple(sorted({*tree.saved, *ignored}))
        attempt.ledger.append(
            Entry(Kind.BEGIN, attempt.number, private=private, tree=tree)
        )

    @contextmanager
    def writing(
        self,
        attempt: Attempt,
        changes: ChangeSet,
        ignored: Collection[str],
        call: int | None = None,
        *,
        by: str = "",
    ) -> Iterator[None]:
        """Enter changes that are about to be made, with what they replace. If they are
        refused, none was made, and that is entered too. `ignored` are those of the
        files that git ignores.
        """
        kind = Kind.REPLY if call is None else Kind.TOOL
        entered = tuple(
            self._save_contents(attempt, change, ignored) for change in changes.changes
        )
        number, private = attempt.number, tuple(sorted(ignored))
        by = attempt.redactor.redact(by)
        attempt.ledger.append(
            Entry(kind, number, by=by, call=call, changes=entered, private=private)
        )
        try:
            yield
        except ReplyRefused:
            attempt.ledger.append(Entry(Kind.WITHDRAWN, number))
            raise

    def _save_contents(
        self, attempt: Attempt, change: FileChange, ignored: Collection[str]
    ) -> Change:
        is_private = str(change.path) in ignored
        store = attempt.private if is_private else attempt.versions
        for content in (change.before, change.after):
            if content is not None:
                store.put(content)
        path = without_links(self.record.root, str(change.path))
        return replace(change.by_id(self.record.root), path=path)

    async def find_ignored(
        self, attempt: Attempt, paths: Collection[str]
    ) -> frozenset[str]:
        """Return which of these files git ignores. Raises `GitUnusable`."""
        entries = _current(attempt)
        known = private_paths(attempt)
        tree = last_tree(entries)
        new = [path for path in paths if path not in known]
        if tree is None or not new:
            return frozenset(known.intersection(paths))
        found = await (await self.open()).ignored(tree, new)
        return frozenset((known | found).intersection(paths))

    def start(
        self,
        attempt: Attempt,
        by: str,
        declared: Iterable[str],
        *,
        call: int | None = None,
    ) -> States:
        """Enter that a command or a check starts. Returns the step's files as they are
        now: `look_after` compares with that. After a kill, the command may have changed
        files.
        """
        paths = {*declared, *own_paths(attempt.entries)}
        states = {
            path: entry
            for path in sorted(paths)
            if (entry := self.save_file(attempt, path)) != UNKNOWN
        }
        by = attempt.redactor.redact(by)
        attempt.ledger.append(Entry(Kind.STARTED, attempt.number, by=by, call=call))
        return states

    async def look_after(
        self,
        attempt: Attempt,
        states: States,
        owns: Owns,
        by: str,
        *,
        call: int | None = None,
        ignored: Iterable[str] = (),
    ) -> Entry:
        """Look at the project after a command of a tool's call, or without `call` after
        a check, and enter what it changed since the `states` at its start. `ignored`
        are files that git ignores and that it changed, too. An attempt that began
        without a look at the project has only its own files compared.

        Raises `BadInput` if the record of the attempt was removed meanwhile.
        """
        current = _current(attempt)
        if not current:
            raise BadInput(
                f"{attempt.ledger.path} was removed while the step ran, and with it the"
                " record of what it changed",
                hint="Does the check clean the project? It must leave .cdd/runs alone.",
            )
        kind = Kind.CHECK if call is None else Kind.COMMAND
        base, tree, found = last_tree(current), None, []
        if base is not None:
            tree = await self._look(attempt, kind, states)
            found = [
                change
                for change in await (await self.open()).changes(base, tree)
                if change.path not in states and _is_text(change.path)
            ]
        is_beside = attempt.side is not None
        mine = [one for one in found if is_beside or owns(one.path)]
        saved = await self.save_changes(attempt, mine, private_paths(attempt))
        own = {change.path for change in saved}
        changes = (*self._changes_since(attempt, states), *saved)
        return attempt.ledger.append(
            Entry(
                kind,
                attempt.number,
                by=attempt.redactor.redact(by),
                call=call,
                changes=tuple(sorted(changes, key=lambda change: change.path)),
                others=tuple(one for one in found if one.path not in own),
                ignored=tuple(path for path in ignored if path not in states),
                tree=tree,
            )
        )

    async def look_after_kill(self, attempt: Attempt) -> tuple[str, ...]:
        """Return the files that changed since somebody last looked, besides those that
        the attempt wrote: a command may have changed them, or anybody since.
        """
        entries = _current(attempt)
        base = last_tree(entries)
        if base is None:
            return ()
        own = own_paths(attempt.entries)
        tree = await self._look(attempt, "found", own)
        found = await (await self.open()).changes(base, tree)
        others = tuple(change for change in found if change.path not in own)
        attempt.ledger.append(
            Entry(Kind.FOUND, attempt.number, others=others, tree=tree)
        )
        return tuple(change.path for change in others)

    def drop_calls(self, attempt: Attempt, since: int) -> None:
        """Enter that what the calls from this number on made is not made again: they
        have no answer.
        """
        calls = [entry.call for entry in attempt.all_entries if entry.call is not None]
        if any(call >= since for call in calls):
            attempt.ledger.append(Entry(Kind.DROPPED, attempt.number, call=since))

    def drop_dialogue(self, attempt: Attempt) -> None:
        """Enter that all calls are void: other calls get their numbers."""
        if any(entry.call is not None for entry in attempt.all_entries):
            number, by = attempt.number, _DIALOGUE
            attempt.ledger.append(Entry(Kind.DROPPED, number, by=by, call=0))

    def last_started_call(self, attempt: Attempt) -> int | None:
        """Return the number of the call whose command was started last."""
        started = None
        for entry in attempt.all_entries:
            if entry.kind is Kind.DROPPED and entry.by == _DIALOGUE:
                started = None
            elif entry.kind is Kind.STARTED and entry.call is not None:
                started = entry.call
        return started

    def commands_to_redo(self, attempt: Attempt) -> dict[int, Entry]:
        """Return the commands of the attempt that changed files of the step, by the
        numbers of their calls.
        """
        commands: dict[int, Entry] = {}
        for entry in attempt.all_entries:
            if entry.kind is Kind.DROPPED and entry.call is not None:
                since = entry.call
                commands = {
                    call: known for call, known in commands.items() if call < since
                }
            elif (
                entry.kind is Kind.COMMAND and entry.call is not None and entry.changes
            ):
                commands[entry.call] = entry
        return commands

    def redo_command(self, attempt: Attempt, entry: Entry) -> tuple[Change, ...]:
        """Make once more what a command made of the step's files. Returns the changes.

        Raises `ReplyRefused` if a file is neither as the attempt left it nor as the
        command found it: then nothing was made.
        """
        root = self.record.root
        written = {
            change.path: change.after
            for earlier in _current(attempt)
            if earlier.kind in CHANGING
            for change in earlier.changes
        }
        changes = []
        for change in entry.changes:
            expected = written.get(change.path, change.before)
            if not is_same(entry_now(root, change.path, expected), expected):
                raise changed_meanwhile(PurePosixPath(change.path))
            before = self.save_file(attempt, change.path)
            changes.append(replace(change, before=before))
        again = Entry(
            entry.kind,
            attempt.number,
            by=entry.by,
            call=entry.call,
            changes=tuple(changes),
        )
        reverse = [Change(one.path, one.after, one.before) for one in changes]
        try:
            contents = self._find_contents([attempt], reverse)
        except CheckpointGone as error:
            raise ReplyRefused(
                "What a command made of the step's files is not on this computer."
            ) from error
        attempt.ledger.append(again)
        restore(root, reverse, contents)
        return again.changes

    # Reading

    def read(self, attempt: Attempt, entry: TreeEntry | None) -> bytes | None:
        """Return a content that the ledger has saved. Raises `CheckpointGone`."""
        return _read(self._contents([attempt], [entry]), entry)

    def net(self, attempts: Sequence[Attempt]) -> NetChanges:
        """Return what these attempts, also of several steps, changed together."""
        return fold(in_order(attempts))

    def others(self, attempts: Sequence[Attempt]) -> tuple[str, ...]:
        """Return the files that commands and checks of these attempts changed beside
        the steps' own, and that are still as they left them.
        """
        last: dict[str, Change] = {}
        for entry in in_order(attempts):
            if entry.kind in CHANGING:
                last |= {change.path: change for change in entry.others}
        root = self.record.root
        return tuple(
            path
            for path, change in sorted(last.items())
            if entry_now(root, path, change.after or change.before) == change.after
        )

    def changed_by_commands(self, attempts: Sequence[Attempt]) -> frozenset[str]:
        """Return the files that commands of these attempts changed, and no check."""
        return frozenset(
            change.path
            for entry in in_order(attempts)
            if entry.kind is Kind.COMMAND
            for change in (*entry.changes, *entry.others)
        )

    async def versions(
        self, attempts: Sequence[Attempt], wanted: Callable[[str], bool]
    ) -> tuple[Versions, ...]:
        """Return the wanted files that these attempts changed together, whoever they
        belong to, as they were before and after. Raises `CheckpointGone`.
        """
        net = {change.path: change for change in self.net(attempts).changes}
        contents = self._contents(
            attempts,
            (
                entry
                for change in net.values()
                for entry in (change.before, change.after)
                if wanted(change.path)
            ),
        )
        versions = {
            path: Versions(
                path, _read(contents, change.before), _read(contents, change.after)
            )
            for path, change in net.items()
            if wanted(path)
        }
        others = first_to_last(
            change
            for entry in in_order(attempts)
            for change in entry.others
            if change.path not in net and wanted(change.path)
        )
        if others:
            read = await (await self.open()).read(others)
            for path, (before, after) in read.items():
                versions[path] = Versions(path, before, after)
        return tuple(versions[path] for path in sorted(versions))

    async def files_after(
        self, attempt: Attempt, paths: Collection[str]
    ) -> dict[str, TreeEntry | None]:
        """Return these files as they were when an attempt was over; None for a file
        that the project did not have. Files that nobody could see are left out. Raises
        `CheckpointGone`.
        """
        entries = without_withdrawn(attempt.entries)
        tree = last_tree(entries)
        if tree is None:
            return {}
        files = await (await self.open()).find_files(tree, paths)
        return files | {
            path: entry
            for path, entry in _written_since_look(entries).items()
            if path in paths
        }

    async def read_files(
        self, attempts: Sequence[Attempt], entries: Mapping[str, TreeEntry]
    ) -> dict[str, bytes | None]:
        """Return the contents of files that `files_after` found; of very long ones, the
        beginning. Raises `CheckpointGone`.
        """
        saved = self._contents(attempts, entries.values())
        found: dict[str, bytes | None] = {
            path: _read(saved, entry)
            for path, entry in entries.items()
            if entry.content in saved.places
        }
        rest = [
            Change(path, None, entry)
            for path, entry in entries.items()
            if path not in found
        ]
        if rest:
            read = await (await self.open()).read(rest)
            found |= {path: after for path, (_, after) in read.items()}
        return found

    async def diff(self, attempts: Sequence[Attempt]) -> str:
        """Return what these attempts changed together, as a unified diff."""
        changes = self.net(attempts).changes
        contents = self._contents(
            attempts,
            (entry for change in changes for entry in (change.before, change.after)),
        )
        return await diff_changes(self.record.folder, changes, contents)

    # Restoring

    def plan_back(self, attempts: Sequence[Attempt]) -> RestorePlan:
        """Return what takes the changes of these attempts back. Raises
        `CheckpointGone`.

        Nothing is merged where a kill stopped a command or a check: whatever it made of
        a file in its last moments is no edit of a person, but cannot be told from one.
        """
        net = self.net(attempts)
        root = self.record.root
        changes = [
            change.way_back(entry_now(root, change.path, change.before or change.after))
            for change in net.all
        ]
        can_merge = not any(map(was_cut, attempts))
        return self.plan(attempts, changes, can_merge=can_merge)

    def plan(
        self,
        attempts: Sequence[Attempt],
        changes: Iterable[Change],
        *,
        can_merge: bool = True,
    ) -> RestorePlan:
        """Return what reverses these changes in the files as they are now. A file that
        a person edited since is merged where that is clean; otherwise it is kept.
        Raises `CheckpointGone`.
        """
        plan = RestorePlan()
        for change in changes:
            now = entry_now(self.record.root, change.path, change.before)
            if is_same(now, change.before):
                plan.settled.append(Change(change.path, now, now))
                continue
            if is_same(now, change.after):
                plan.changes.append(Change(change.path, change.before, now))
                continue
            merged = self._merge(attempts, change, now) if can_merge else None
            if merged is None:
                plan.kept.append(change.path)
            elif is_same(now, merged):
                plan.settled.append(Change(change.path, now, now))
            else:
                plan.changes.append(Change(change.path, merged, now))
                plan.merged.append(change.path)
        self._find_contents(attempts, plan.changes)
        return plan

    def _merge(
        self, attempts: Sequence[Attempt], change: Change, now: TreeEntry | None
    ) -> TreeEntry | None:
        """Reverse a change in a file that was edited since, and save the result.
        Returns None where that is not clean, or the file is no text.
        """
        before, after = change.before, change.after
        if before is None or after is None or now is None:
            return None
        entries = (before, after, now)
        if any(entry.mode not in FILE_MODES for entry in entries):
            return None
        path = change.path
        if self.save_file(attempts[0], path) != now:
            return None
        contents = self._contents(attempts, entries)
        if any(entry.content not in contents.places for entry in entries):
            return None
        merged = merge_texts(
            *(_read(contents, entry) or b"" for entry in (now, after, before))
        )
        if merged is None:
            return None
        # permissions as before, unless the edit changed them
        like = before if is_same_mode(now, after) else now
        return replace(like, content=_store(attempts[0], path).put(merged))

    def carry_out(
        self,
        attempts: Sequence[Attempt],
        plan: RestorePlan,
        saved: Callable[[str], bool],
    ) -> RestoreResult:
        """Restore files as planned. The present content of a file is saved in the run's
        folder `kept` first, if the file is to be `saved`. Harmless when repeated.

        Raises `CheckpointGone` before anything changes, or `BadInput` if the disk
        refuses.
        """
        root = self.record.root
        contents = self._find_contents(attempts, plan.changes)
        restored: list[str] = []
        kept = [*plan.kept]
        restore(root, plan.settled, contents)
        # files that are removed come first, because their places may be needed
        for is_removed, is_saved in product((True, False), (False, True)):
            group = [
                change
                for change in plan.changes
                if (change.before is None) is is_removed
                and saved(change.path) is is_saved
            ]
            if not group:
                continue
            folder = attempts[0].kept if is_saved else None
            result = restore(root, group, contents, kept=folder)
            restored += result.restored
            kept += result.kept
        return RestoreResult(
            tuple(sorted(set(restored).difference(plan.merged))),
            tuple(sorted(set(kept))),
            tuple(sorted(set(plan.merged).difference(kept))),
        )

    def restore(self, attempts: Sequence[Attempt]) -> RestoreResult:
        """Reverse the changes of all attempts at a step that may remain, because one
        failed or was interrupted, or the step is skipped. What only commands and checks
        made is saved in `kept` first. Harmless when repeated.
        """
        if not attempts:
            return RestoreResult()
        plan = self.plan_back(attempts)
        net = self.net(attempts)
        self._enter_restoring(attempts[-1], net, plan)
        exact = {
            change.path for change in net.all if change.last in (Kind.REPLY, Kind.TOOL)
        }
        self._add_reported(attempts, plan)
        return self.carry_out(attempts, plan, lambda path: path not in exact)

    def last_restoring(self, attempts: Sequence[Attempt]) -> Entry | None:
        """Return the entry of the last time that these attempts were restored."""
        entries = [one for one in in_order(attempts) if one.kind is Kind.RESTORED]
        return entries[-1] if entries else None

    def put_back(self, attempts: Sequence[Attempt], restoring: Entry) -> RestoreResult:
        """Make the files again what they were before these attempts were restored,
        except those that a person has changed.
        """
        edited = {*restoring.kept, *restoring.merged}
        changes = [one for one in restoring.changes if one.path not in edited]
        plan = self.plan(attempts, changes, can_merge=False)
        return self.carry_out(attempts, plan, lambda path: False)

    def _add_reported(self, attempts: Sequence[Attempt], plan: RestorePlan) -> None:
        """Add the files that the last restoring kept or merged, if nothing was done
        since: a kill may have come before anyone was told of them.
        """
        last = _last_restoring(in_order(attempts))
        if last is None:
            return
        settled = {change.path for change in plan.settled}
        plan.kept += settled.intersection(last.kept)
        plan.merged += settled.intersection(last.merged)

    def _enter_restoring(
        self, attempt: Attempt, net: NetChanges, plan: RestorePlan
    ) -> None:
        """Enter what the files are to be, if that is news."""
        root = self.record.root
        targets = {one.path: one.before for one in (*plan.changes, *plan.settled)}
        targets |= {path: entry_now(root, path) for path in plan.kept}
        changes = tuple(
            Change(change.path, change.after, targets[change.path])
            for change in net.all
            if targets[change.path] != UNKNOWN
            and not is_same(change.after, targets[change.path])
        )
        if changes or was_cut(attempt):
            attempt.ledger.append(
                Entry(
                    Kind.RESTORED,
                    attempt.number,
                    changes=changes,
                    kept=tuple(plan.kept),
                    merged=tuple(plan.merged),
                )
            )

    def _find_contents(
        self, attempts: Sequence[Attempt], changes: Sequence[Change]
    ) -> Contents:
        """Return where the contents are that these changes replaced. Raises
        `CheckpointGone` if one is gone, or is not what was saved.
        """
        wanted = [change.before for change in changes]
        contents = self._contents(attempts, wanted)
        for entry in wanted:
            if entry is not None and not _is_intact(contents, entry.content):
                raise CheckpointGone
        return contents

    def _contents(
        self, attempts: Sequence[Attempt], entries: Iterable[TreeEntry | None]
    ) -> Contents:
        """Return where the contents of these entries are. Those that are gone are left
        out: whoever needs one gets `CheckpointGone`.
        """
        ids = {entry.content for entry in entries if entry is not None}
        places: dict[str, Piece | bytes] = {}
        stores = {store for one in attempts for store in (one.versions, one.private)}
        for store in stores:
            for content in ids:
                if store.has(content):
                    place = store.find(content)
                    places[content] = Piece(place, 0, place.stat().st_size)
        return Contents(places)

    # Looking

    async def _look(
        self, attempt: Attempt, moment: str, paths: Iterable[str]
    ) -> Checkpoint:
        where = attempt.doings.relative_to(self.record.folder).as_posix()
        checkpoints = await self.open()
        return await checkpoints.take(f"{where}/{stamp()}-{moment}", paths)

    def _changes_since(self, attempt: Attempt, states: States) -> Iterator[Change]:
        """Yield how the step's files differ from what they were. Saves what they are
        now.
        """
        for path, before in states.items():
            after = self.save_file(attempt, path)
            if after != UNKNOWN and not is_same(before, after):
                yield Change(path, before, after)

    def save_file(self, attempt: Attempt, path: str) -> TreeEntry | None:
        """Save the content of a file or a link. Returns what a checkpoint would hold:
        None for nothing or a folder, `UNKNOWN` for what cannot be read or is too large.
        """
        root, store = self.record.root, _store(attempt, path)
        place = root / path
        if is_larger(place, LARGEST_SAVED):
            return UNKNOWN
        entry = entry_now(root, path)
        if entry is None or entry == UNKNOWN or store.has(entry.content):
            return entry
        if entry.mode == LINK:
            return replace(entry, content=store.put(os.fsencode(place.readlink())))
        return replace(entry, content=store.put(place))

    async def save_changes(
        self, attempt: Attempt, changes: Sequence[Change], private: Collection[str]
    ) -> list[Change]:
        """Save the contents of changes between two checkpoints. Returns the changes by
        the names that the contents have in the store, without those of files that are
        too large. Contents of `private` files stay on this computer.
        """
        if not changes:
            return []

        def store(path: str) -> ContentStore:
            return attempt.private if path in private else attempt.versions

        reverse = [Change(one.path, one.after, one.before) for one in changes]
        wanted = [change for change in (*changes, *reverse) if change.after is not None]
        checkpoints = await self.open()
        async with checkpoints.contents(wanted) as contents:
            return [
                Change(
                    one.path,
                    _save(store(one.path), contents, one.before),
                    _save(store(one.path), contents, one.after),
                )
                for one in changes
                if _is_small(contents, one.before) and _is_small(contents, one.after)
            ]


def _store(attempt: Attempt, path: str) -> ContentStore:
    """Return where the contents of a file are saved."""
    is_private = path in private_paths(attempt)
    return attempt.private if is_private else attempt.versions


def private_paths(attempt: Attempt) -> frozenset[str]:
    """Return the files of an attempt whose contents stay on this computer."""
    return frozenset(path for entry in attempt.entries for path in entry.private)


def _save(
    store: ContentStore, contents: Contents, entry: TreeEntry | None
) -> TreeEntry | None:
    if entry is None:
        return None
    data = b"".join(contents.chunks(entry.content))
    return replace(entry, content=store.put(data))


def _is_small(contents: Contents, entry: TreeEntry | None) -> bool:
    if entry is None:
        return True
    place = contents.places[entry.content]
    return (place.size if isinstance(place, Piece) else len(place)) <= LARGEST_SAVED


def in_order(attempts: Iterable[Attempt]) -> list[Entry]:
    """Return the valid entries of these attempts, in the order of time."""
    entries = [entry for attempt in attempts for entry in attempt.entries]
    return without_withdrawn(sorted(entries, key=lambda entry: entry.at))


def own_paths(entries: Iterable[Entry]) -> frozenset[str]:
    """Return the files that belong to a step because it changed them."""
    return frozenset(
        change.path
        for entry in without_withdrawn(entries)
        if entry.kind in CHANGING
        for change in entry.changes
    )


def _current(attempt: Attempt) -> list[Entry]:
    """Return the entries since the attempt began, or continued."""
    entries = attempt.entries
    begins = [place for place, entry in enumerate(entries) if entry.kind is Kind.BEGIN]
    return without_withdrawn(entries[begins[-1] :]) if begins else []


def _last_restoring(entries: Sequence[Entry]) -> Entry | None:
    """Return the entry of the last restoring, unless an attempt continued since."""
    for entry in reversed(entries):
        if entry.kind is Kind.RESTORED:
            return entry
        if entry.kind is Kind.BEGIN or entry.kind in CHANGING:
            return None
    return None


def changes_by_path(attempt: Attempt) -> dict[str, Change]:
    """Return what became of each file while an attempt ran, whoever changed it. A file
    may be again what it was.
    """
    entries = in_order([attempt])
    others = first_to_last(
        change for entry in entries if entry.kind in CHANGING for change in entry.others
    )
    own = [
        Change(change.path, change.before, change.after) for change in fold(entries).all
    ]
    return {change.path: change for change in (*others, *own)}


def made_changes(entries: Iterable[Entry]) -> Iterator[tuple[str, Change]]:
    """Yield each change that a run made of a file, also by going back, with its
    time.
    """
    undos: dict[str, tuple[Change, ...]] = {}
    for entry in without_withdrawn(entries):
        if entry.kind is Kind.UNDONE:
            undos[entry.by] = entry.changes
        changes = (*entry.changes, *entry.others) if entry.kind in CHANGING else ()
        if entry.kind in (Kind.RESTORED, Kind.UNDONE):
            changes = entry.changes
        if entry.kind is Kind.REDONE:
            undone = undos.get(entry.by, ())
            changes = tuple(Change(one.path, one.after, one.before) for one in undone)
        for change in changes:
            yield entry.at, change


def was_cut(attempt: Attempt) -> bool:
    """True if a kill stopped a command or a check of the attempt."""
    is_running = False
    for entry in attempt.entries:
        if entry.kind is Kind.STARTED:
            is_running = True
        elif entry.kind in _NOT_RUNNING:
            is_running = False
    return is_running


def tree_after(attempt: Attempt) -> Checkpoint | None:
    """Return the project as the attempt left it; None if nobody looked since it wrote
    files.
    """
    entries = without_withdrawn(attempt.entries)
    return None if _written_since_look(entries) else last_tree(entries)


def last_tree(entries: Sequence[Entry]) -> Checkpoint | None:
    trees = [entry.tree for entry in entries if entry.tree is not None]
    return trees[-1] if trees else None


def _written_since_look(entries: Sequence[Entry]) -> dict[str, TreeEntry | None]:
    """Return what the reply and the tools made of files since somebody last looked."""
    written: dict[str, TreeEntry | None] = {}
    for entry in entries:
        if entry.tree is not None:
            written.clear()
        elif entry.kind in CHANGING or entry.kind is Kind.RESTORED:
            written |= {change.path: change.after for change in entry.changes}
    return written


def first_to_last(changes: Iterable[Change]) -> list[Change]:
    """Return one change for each path, from its first state to its last."""
    joined: dict[str, Change] = {}
    for change in changes:
        first = joined.get(change.path, change)
        joined[change.path] = replace(change, before=first.before)
    return list(joined.values())


def _read(contents: Contents, entry: TreeEntry | None) -> bytes | None:
    """Raises `CheckpointGone` if the content is gone."""
    if entry is None:
        return None
    if entry.content not in contents.places:
        raise CheckpointGone
    return b"".join(contents.chunks(entry.content))


def is_larger(place: Path, most: int) -> bool:
    """True if a file has more bytes than that."""
    try:
        return place.lstat().st_size > most
    except (OSError, ValueError):
        return False


def _is_intact(contents: Contents, name: str) -> bool:
    """True if the content is there, and is what was saved."""
    piece = contents.places.get(name)
    if not isinstance(piece, Piece):
        return False
    return hash_content(contents.chunks(name), piece.size, "sha1") == name


def _is_text(path: str) -> bool:
    """True if the path is UTF-8. Only such a path can be entered."""
    return path.encode(errors="replace").decode() == path
