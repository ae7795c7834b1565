"""A run's ledger: what each step changed, and what caused each change. Undo, redo,
skip, retry, recovery, commits, diffs and reports read nothing else.

1. Before an attempt, the ledger takes a checkpoint (`begin`).
2. Changes of a reply or tool call are entered before they are written (`writing`).
   After a kill, each file has its old or new content.
3. After a command or check, the ledger takes another checkpoint
   (`enter_after_command`). Files that differ were changed by the command. Such a change
   belongs to the step if the step declares or wrote the file. Any other may be the
   user's, and is kept.

Contents are saved in the run's folder. Restoring them needs neither git nor a
repository.
"""

from __future__ import annotations

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
from pathlib import Path, PurePosixPath

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.changes.change_set import ChangeSet, FileChange, build_changed_refusal
from cdd_agent.changes.model import ReplyFault, ReplyRefused
from cdd_agent.engine.attempt import Attempt
from cdd_agent.engine.ledger_diff import diff_changes
from cdd_agent.engine.ledger_entries import (
    DIALOGUE,
    current_entries,
    first_to_last,
    in_order,
    last_tree,
    own_paths,
    private_paths,
    reverse,
    written_since_tree,
)
from cdd_agent.engine.ledger_file import EntryKind, LedgerEntry
from cdd_agent.engine.net_changes import (
    CHANGING,
    NetChanges,
    fold,
    is_same,
    without_withdrawn,
)
from cdd_agent.engine.record import RunRecord
from cdd_agent.engine.saved_contents import (
    LARGEST_SAVED,
    find_contents,
    find_replaced,
    read_content,
    save_files,
)
from cdd_agent.errors import BadInput
from cdd_agent.files.charsets import Charsets
from cdd_agent.files.json_file import stamp
from cdd_agent.files.paths import without_links
from cdd_agent.git.checkpoint import Checkpoint, Checkpoints
from cdd_agent.git.content_store import ContentStore
from cdd_agent.git.diff import Change, TreeEntry
from cdd_agent.git.restore import (
    UNKNOWN,
    CheckpointGone,
    ContentPiece,
    Contents,
    entry_now,
    restore,
)
from cdd_agent.project.tree_needs import linked_folders
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.verification.lost_tests import Versions

STORE = "checkpoints.git"
OpenCheckpoints = Callable[[Path, Path, str, Sequence[str]], Awaitable[Checkpoints]]
"""Opens a project's checkpoints, as `Checkpoints.open` does."""
Owns = Callable[[str], bool]
"""True for a file that the step declares."""
States = Mapping[str, TreeEntry | None]
"""Path → state at one time; None for an absent file."""


def no_part(root: Path, own: Iterable[str]) -> tuple[str, ...]:
    """Return patterns of files outside all checkpoints: records of runs, conversations,
    tickets, unfinished writes, and links to installed packages. `own` are this
    program's files outside `.cdd`. Raises `Damaged`.
    """
    return (
        ".cdd/runs",
        ".cdd/cache",
        ".cdd/conversations",
        *sorted(literal_patterns((*own, *linked_folders(root)))),
        "**/.cdd-*.tmp",
    )


def literal_patterns(paths: Iterable[str]) -> set[str]:
    """Return git patterns that match exactly these paths."""
    return {re.sub(r"([*?\[\\])", r"\\\1", path) for path in paths}


class RecordRemoved(BadInput):
    """The record of an attempt was removed while a command or check ran."""

    refusal = Refusal.STATE_UNREADABLE

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} was deleted while the step ran, and with it the record of"
            " earlier steps",
            hint="A check or a command may have cleaned the project. It must not"
            " delete .cdd/runs.",
        )


class Ledger(Struct):
    """The changes of a run's steps in one tree."""

    record: RunRecord
    leave_out: tuple[str, ...] = ()
    """Patterns of files outside the project, as in git's `:(glob)`."""
    _opened: Checkpoints | None = None
    _reported: frozenset[str] = frozenset()
    open_checkpoints: OpenCheckpoints = Checkpoints.open

    async def open(self) -> Checkpoints:
        """Return the tree's checkpoints. Raises `GitUnusable`, or `BadInput` if the
        disk refuses.
        """
        if self._opened is None:
            record = self.record
            self._opened = await self.open_checkpoints(
                record.root, record.folder / STORE, record.slug, self.leave_out
            )
        return self._opened

    def new_uncovered(self) -> tuple[str, ...]:
        """Return paths that no undo covers, with reasons; each only once."""
        if self._opened is None:
            return ()
        reasons = dict.fromkeys(self._opened.unseen, "it cannot be read")
        reasons |= self._opened.uncovered
        new = {path: why for path, why in reasons.items() if path not in self._reported}
        self._reported |= new.keys()
        return tuple(f"{path} ({why})" for path, why in sorted(new.items()))

    # Writing

    async def begin(self, attempt: Attempt, paths: Sequence[str]) -> None:
        """Take the checkpoint before an attempt starts or continues. `paths` are files
        that may change; they are covered even if git ignores them.
        """
        tree = await self._take_checkpoint(attempt, "before", paths)
        # git may ignore a file that does not exist yet
        new = [path for path in tree.also if path not in tree.saved]
        ignored = await (await self.open()).ignored(tree, new)
        private = tuple(sorted({*tree.saved, *ignored}))
        attempt.ledger.append(
            LedgerEntry(EntryKind.BEGIN, attempt.number, private=private, tree=tree)
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
        """Enter changes, with the replaced contents, before the caller writes them. If
        they are refused, nothing was written, and that is entered too. `ignored` are
        the files among them that git ignores.
        """
        kind = EntryKind.REPLY if call is None else EntryKind.TOOL
        entered = tuple(
            self._save_contents(attempt, change, ignored) for change in changes.changes
        )
        number, private = attempt.number, tuple(sorted(ignored))
        by = attempt.redactor.redact(by)
        attempt.ledger.append(
            LedgerEntry(
                kind, number, by=by, call=call, changes=entered, private=private
            )
        )
        try:
            yield
        except ReplyRefused:
            attempt.ledger.append(LedgerEntry(EntryKind.WITHDRAWN, number))
            raise

    def enter_again(self, attempt: Attempt, changes: ChangeSet) -> None:
        """Enter the attempt's changes again after its record was removed. It is unknown
        what git ignores, so no content leaves this computer.
        """
        with self.writing(attempt, changes, changes.touched):
            pass

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
        entries = current_entries(attempt)
        private = private_paths(attempt)
        tree = last_tree(entries)
        new = [path for path in paths if path not in private]
        if tree is None or not new:
            return frozenset(private.intersection(paths))
        ignored = await (await self.open()).ignored(tree, new)
        return frozenset((private | ignored).intersection(paths))

    def start(
        self,
        attempt: Attempt,
        by: str,
        declared: Iterable[str],
        *,
        call: int | None = None,
    ) -> States:
        """Enter the start of a command or check. Returns the states of the step's
        files, for `enter_after_command`.
        """
        paths = sorted({*declared, *own_paths(attempt.entries)})
        saved = save_files(self.record.root, attempt, paths)
        states = {path: entry for path, entry in saved.items() if entry != UNKNOWN}
        by = attempt.redactor.redact(by)
        attempt.ledger.append(
            LedgerEntry(EntryKind.STARTED, attempt.number, by=by, call=call)
        )
        return states

    async def enter_after_command(
        self,
        attempt: Attempt,
        states: States,
        owns: Owns,
        by: str,
        *,
        call: int | None = None,
        ignored: Iterable[str] = (),
    ) -> LedgerEntry:
        """Take a checkpoint after a command or, without `call`, a check, and enter the
        changes since `states`. `ignored` are ignored files that it changed. Without a
        first checkpoint, only the attempt's own files are compared.

        Raises `RecordRemoved` if the attempt's record was removed.
        """
        current = current_entries(attempt)
        if not current:
            raise RecordRemoved(attempt.ledger.path)
        kind = EntryKind.CHECK if call is None else EntryKind.COMMAND
        base, tree, differing = last_tree(current), None, []
        if base is not None:
            tree = await self._take_checkpoint(attempt, kind, states)
            differing = [
                change
                for change in await (await self.open()).changes(base, tree)
                if change.path not in states
            ]
        is_beside = attempt.side is not None
        can_enter = [change for change in differing if _is_text(change.path)]
        mine = [one for one in can_enter if is_beside or owns(one.path)]
        saved = await self.save_changes(attempt, mine, private_paths(attempt))
        own_changes = {change.path for change in saved}
        since = list(self._changes_since(attempt, states))
        changes = [*saved, *(one for one in since if one.after != UNKNOWN)]
        others = [one for one in differing if one.path not in own_changes]
        others += [one for one in since if one.after == UNKNOWN]
        return attempt.ledger.append(
            LedgerEntry(
                kind,
                attempt.number,
                by=attempt.redactor.redact(by),
                call=call,
                changes=tuple(sorted(changes, key=lambda change: change.path)),
                others=tuple(sorted(others, key=lambda change: change.path)),
                ignored=tuple(path for path in ignored if path not in states),
                tree=tree,
            )
        )

    async def enter_after_kill(self, attempt: Attempt) -> tuple[str, ...]:
        """Enter and return files changed since the last checkpoint but not written by
        the attempt: by a command, or the user.
        """
        entries = current_entries(attempt)
        base = last_tree(entries)
        if base is None:
            return ()
        entered = own_paths(attempt.entries)
        tree = await self._take_checkpoint(attempt, "found", entered)
        changes = await (await self.open()).changes(base, tree)
        others = tuple(change for change in changes if change.path not in entered)
        attempt.ledger.append(
            LedgerEntry(EntryKind.FOUND, attempt.number, others=others, tree=tree)
        )
        return tuple(change.path for change in others)

    def drop_calls(self, attempt: Attempt, since: int) -> None:
        """Enter that calls from this number on are unanswered and will be repeated."""
        calls = [entry.call for entry in attempt.all_entries if entry.call is not None]
        if any(call >= since for call in calls):
            attempt.ledger.append(
                LedgerEntry(EntryKind.DROPPED, attempt.number, call=since)
            )

    def drop_dialogue(self, attempt: Attempt) -> None:
        """Enter that all calls are void: their numbers are used again."""
        if any(entry.call is not None for entry in attempt.all_entries):
            number, by = attempt.number, DIALOGUE
            attempt.ledger.append(LedgerEntry(EntryKind.DROPPED, number, by=by, call=0))

    def redo_command(self, attempt: Attempt, entry: LedgerEntry) -> tuple[Change, ...]:
        """Write a command's changes to the step's files again, and return them.

        Raises `ReplyRefused`, before writing, unless each file is what the attempt
        wrote last or, if it wrote nothing, what the command found.
        """
        root = self.record.root
        written = {
            change.path: change.after
            for earlier in current_entries(attempt)
            if earlier.kind in CHANGING
            for change in earlier.changes
        }
        for change in entry.changes:
            expected = written.get(change.path, change.before)
            if not is_same(entry_now(root, change.path, expected), expected):
                raise build_changed_refusal(PurePosixPath(change.path))
        saved = save_files(root, attempt, [change.path for change in entry.changes])
        changes = [replace(one, before=saved[one.path]) for one in entry.changes]
        again = LedgerEntry(
            entry.kind,
            attempt.number,
            by=entry.by,
            call=entry.call,
            changes=tuple(changes),
        )
        wanted = reverse(changes)
        try:
            contents = find_replaced([attempt], wanted)
        except CheckpointGone as error:
            raise ReplyRefused(
                "What a command made of the step's files is not on this computer.",
                fault=ReplyFault.RECORD_DAMAGED,
            ) from error
        attempt.ledger.append(again)
        restore(root, wanted, contents)
        return again.changes

    # Reading

    def read(self, attempt: Attempt, entry: TreeEntry | None) -> bytes | None:
        """Return an entry's content; None for no file. Raises `CheckpointGone`."""
        return read_content(find_contents([attempt], [entry]), entry)

    def net(self, attempts: Sequence[Attempt]) -> NetChanges:
        """Return the net changes of attempts, also of several steps."""
        return fold(in_order(attempts))

    def others(self, attempts: Sequence[Attempt]) -> tuple[str, ...]:
        """Return files that commands and checks changed, that belong to no step, and
        that are unchanged since.
        """
        last: dict[str, Change] = {}
        for entry in in_order(attempts):
            if entry.kind in CHANGING:
                last |= {change.path: change for change in entry.others}
        root = self.record.root
        return tuple(
            path
            for path, change in sorted(last.items())
            if _is_still(change, entry_now(root, path, change.after or change.before))
        )

    async def versions(
        self, attempts: Sequence[Attempt], wanted: Callable[[str], bool]
    ) -> tuple[Versions, ...]:
        """Return the wanted files that changed, before and after these attempts,
        including changes by others. Raises `CheckpointGone`.
        """
        net = {change.path: change for change in self.net(attempts).changes}
        wanted_changes = [change for change in net.values() if wanted(change.path)]
        entries = [entry for one in wanted_changes for entry in (one.before, one.after)]
        contents = find_contents(attempts, entries)
        versions = {}
        for change in wanted_changes:
            before = read_content(contents, change.before)
            after = read_content(contents, change.after)
            versions[change.path] = Versions(change.path, before, after)
        others = first_to_last(
            change
            for entry in in_order(attempts)
            for change in entry.others
            if change.path not in net and wanted(change.path)
            if UNKNOWN not in (change.before, change.after)
        )
        if others:
            read = await (await self.open()).read(others)
            for path, (before, after) in read.items():
                versions[path] = Versions(path, before, after)
        return tuple(versions[path] for path in sorted(versions))

    async def files_after(
        self, attempt: Attempt, paths: Collection[str]
    ) -> dict[str, TreeEntry | None]:
        """Return file states after an attempt; None for absent files. Files outside
        checkpoints are omitted. Raises `CheckpointGone`.
        """
        entries = without_withdrawn(attempt.entries)
        tree = last_tree(entries)
        if tree is None:
            return {}
        files = await (await self.open()).find_files(tree, paths)
        return files | {
            path: entry
            for path, entry in written_since_tree(entries).items()
            if path in paths
        }

    async def read_files(
        self, attempts: Sequence[Attempt], entries: Mapping[str, TreeEntry]
    ) -> dict[str, bytes | None]:
        """Return contents of files from `files_after`; of very long ones only the
        beginning. Raises `CheckpointGone`.
        """
        saved = find_contents(attempts, entries.values())
        contents: dict[str, bytes | None] = {
            path: read_content(saved, entry)
            for path, entry in entries.items()
            if entry.content in saved.places
        }
        rest = [
            Change(path, None, entry)
            for path, entry in entries.items()
            if path not in contents
        ]
        if rest:
            read = await (await self.open()).read(rest)
            contents |= {path: after for path, (_, after) in read.items()}
        return contents

    async def diff(self, attempts: Sequence[Attempt]) -> str:
        """Return the net changes of these attempts as one unified diff."""
        changes = self.net(attempts).changes
        contents = find_contents(
            attempts,
            (entry for change in changes for entry in (change.before, change.after)),
        )
        charsets = Charsets(self.record.root)
        return await diff_changes(self.record.folder, changes, contents, charsets)

    # Checkpoints

    async def _take_checkpoint(
        self, attempt: Attempt, moment: str, paths: Iterable[str]
    ) -> Checkpoint:
        where = attempt.doings.relative_to(self.record.folder).as_posix()
        checkpoints = await self.open()
        return await checkpoints.take(f"{where}/{stamp()}-{moment}", paths)

    def _changes_since(self, attempt: Attempt, states: States) -> Iterator[Change]:
        """Yield changes of the step's files since these states, and save their
        contents. `UNKNOWN` cannot be saved: it is no file, unreadable or too large.
        """
        saved = save_files(self.record.root, attempt, states)
        for path, after in saved.items():
            if not is_same(states[path], after):
                yield Change(path, states[path], after)

    async def save_changes(
        self, attempt: Attempt, changes: Sequence[Change], private: Collection[str]
    ) -> list[Change]:
        """Save contents between two checkpoints. Returns the changes with the names of
        the contents in the store, without files that are too large. `private` contents
        stay on this computer.
        """
        if not changes:
            return []

        def store(path: str) -> ContentStore:
            return attempt.private if path in private else attempt.versions

        both = (*changes, *reverse(changes))
        wanted = [change for change in both if change.after is not None]
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
    size = place.size if isinstance(place, ContentPiece) else len(place)
    return size <= LARGEST_SAVED


def _is_still(change: Change, now: TreeEntry | None) -> bool:
    """True if a file is unchanged since this change. An unsaved content cannot be
    compared: any file but the previous one counts.
    """
    if change.after == UNKNOWN:
        return now is not None and now != change.before
    return now == change.after


def _is_text(path: str) -> bool:
    """True if the path is UTF-8. A run's state cannot have other paths."""
    return path.encode(errors="replace").decode() == path
