"""Converts the records of runs that version 0.1 began into ledgers.

Version 0.1 kept an attempt's changes in several files of `step-02/attempt-1/`:

    span.json                    the checkpoints around it
    changes.json  before-0 …     its journal: files that the reply wrote, with their
                                 previous content; removed when restored
    call-4.json  call-4-0 …      what a call's command made of these files
    beside.json  beside-0 …      what commands made of other files in a side tree

When such a run is opened, each step gets its ledger first. As in version 0.1, all that
differs between an attempt's checkpoints belongs to it. A step's ledger is written last
and at once, so that a kill loses nothing: the next start repeats it. The old files
stay.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from cdd_agent.engine.attempt import Attempt
from cdd_agent.engine.ledger import Ledger
from cdd_agent.engine.ledger_entries import first_to_last, last_tree
from cdd_agent.engine.ledger_file import EntryKind, LedgerEntry, expect_inside
from cdd_agent.engine.net_changes import fold, is_same
from cdd_agent.engine.record import RunRecord
from cdd_agent.engine.restoring import Restorer
from cdd_agent.errors import BadInput, CddError
from cdd_agent.files.atomic import read_bytes
from cdd_agent.files.json_file import Damaged, JsonFile, stamp
from cdd_agent.files.paths import without_links
from cdd_agent.git.checkpoint import Checkpoint
from cdd_agent.git.content_store import ContentStore
from cdd_agent.git.diff import Change
from cdd_agent.git.restore import CheckpointGone, RestoreResult, entry_now, held
from cdd_agent.pattern import Pattern
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.tickets.state import ExecutionState, StepExecution
from cdd_agent.tools.acting import ExecuteCommandTool

OLD_FILES = Pattern(
    r"(span|changes|beside)\.json|before-[0-9]+|beside-[0-9]+"
    r"|call-[0-9]+\.json|call-[0-9]+-[0-9]+"
)
"""Version 0.1's files in an attempt's folder."""
_CALL = Pattern(r"call-([0-9]+)\.json")


class OldRecordUnreadable(BadInput):
    """A step of version 0.1 whose record cannot be converted."""

    refusal = Refusal.STATE_UNREADABLE

    def __init__(self, label: str, why: CddError) -> None:
        super().__init__(
            f"Step {label} was started by version 0.1 of cdd, and its record"
            f" cannot be read: {why.message}. Nothing was changed",
            hint="Your files stay unchanged. Type `skip keep` to continue with"
            " them, or start from scratch with `--start-over`.",
        )


class _Segment(JsonFile, frozen=True):
    before: Checkpoint
    after: Checkpoint
    own: tuple[str, ...] = ()


class _Span(JsonFile, frozen=True):
    before: Checkpoint
    after: Checkpoint | None = None
    """None for an interrupted attempt."""
    seen: Checkpoint | None = None
    """After its last command."""
    earlier: tuple[_Segment, ...] = ()
    closed: Checkpoint | None = None
    paths: tuple[str, ...] = ()
    """Files that its reply wrote."""

    def __post_init__(self) -> None:
        expect_inside(self.paths)
        for segment in self.earlier:
            expect_inside(segment.own)

    def checkpoints(self) -> Iterator[Checkpoint]:
        for one in (self.before, self.after, self.seen, self.closed):
            if one is not None:
                yield one
        for segment in self.earlier:
            yield from (segment.before, segment.after)


class _Journal(JsonFile, frozen=True):
    files: tuple[Change, ...]
    """The previous content of the N-th is in `before-N`. `before` is a file's first
    state.
    """

    def __post_init__(self) -> None:
        expect_inside(change.path for change in self.files)


class _Copy(JsonFile, frozen=True):
    name: Annotated[str, Meta(pattern=r"^call-[0-9]+-[0-9]+\Z")]
    permissions: int


class _Copies(JsonFile, frozen=True):
    files: dict[str, _Copy | None]

    def __post_init__(self) -> None:
        expect_inside(self.files)


class _Beside(JsonFile, frozen=True):
    changes: tuple[Change, ...]
    """The new content of the N-th is in `beside-N`."""

    def __post_init__(self) -> None:
        expect_inside(change.path for change in self.changes)


class _OldAttempt(Struct, frozen=True):
    """The folder of an attempt of version 0.1. Raises `Damaged` if a file in it is
    wrong.
    """

    attempt: Attempt
    private: frozenset[str] | None = None
    """Ignored files, whose contents stay on this computer. None if unknown: no file of
    the step travels.
    """

    @property
    def folder(self) -> Path:
        return self.attempt.folder

    @property
    def number(self) -> int:
        return self.attempt.number

    @property
    def span(self) -> _Span | None:
        return _Span.load(self.folder / "span.json")

    @property
    def journal(self) -> tuple[Change, ...]:
        saved = _Journal.load(self.folder / "changes.json")
        return saved.files if saved else ()

    @property
    def beside(self) -> tuple[Change, ...]:
        saved = _Beside.load(self.folder / "beside.json")
        return saved.changes if saved else ()

    @property
    def calls(self) -> dict[int, _Copies]:
        calls = {}
        for place in self.folder.glob("call-*.json"):
            name = _CALL.fullmatch(place.name)
            saved = _Copies.load(place) if name else None
            if name and saved:
                calls[int(name[1])] = saved
        return calls

    def _store(self, path: str) -> ContentStore:
        is_private = self.private is None or path in self.private
        return self.attempt.private if is_private else self.attempt.versions

    def take_journal(self) -> LedgerEntry:
        changes = []
        for index, change in enumerate(self.journal):
            content = read_bytes(self.folder / f"before-{index}")
            if content is not None:
                self._store(change.path).put(content)
            changes.append(
                replace(change, path=without_links(self.attempt.root, change.path))
            )
        stores = (self.attempt.versions, self.attempt.private)
        for change in changes:
            before = change.before
            is_known = before is None or any(one.has(before.content) for one in stores)
            if not is_known:
                raise Damaged(
                    self.folder / "changes.json",
                    f"the content of {change.path} before the step is gone",
                )
        return LedgerEntry(EntryKind.REPLY, self.number, changes=tuple(changes))

    def take_commands(self, others: Iterable[Change]) -> Iterator[LedgerEntry]:
        """Yield commands' changes, to repeat with the saved dialogue. `others` are
        changes to files that the step did not write.
        """
        by_call = dict[int, list[Change]]()
        for call, copies in self.calls.items():
            changes = by_call.setdefault(call, [])
            for path, copy in copies.files.items():
                if copy is None:
                    changes.append(Change(path, None, None))
                    continue
                content = self._content(copy.name)
                self._store(path).put(content)
                changes.append(Change(path, None, held(content, copy.permissions)))
        other_changes = []
        for index, change in enumerate(self.beside):
            after = change.after
            if after is not None:
                content = self._content(f"beside-{index}")
                content_id = self.attempt.versions.put(content)
                after = replace(after, content=content_id)
            other_changes.append(replace(change, after=after))
        last = self._last_command()
        if last is not None:
            by_call.setdefault(last, []).extend(
                first_to_last((*other_changes, *others))
            )
        for call, changes in sorted(by_call.items()):
            yield LedgerEntry(
                EntryKind.COMMAND,
                self.number,
                at=stamp(),
                call=call,
                changes=tuple(changes),
            )

    def _content(self, name: str) -> bytes:
        content = read_bytes(self.folder / name)
        if content is None:
            raise Damaged(self.folder / name, "what a command made of a file is gone")
        return content

    def _last_command(self) -> int | None:
        messages = self.attempt.dialogue
        calls = [call for message in messages for call in message.tool_calls]
        for number in reversed(range(len(calls))):
            if calls[number].name == ExecuteCommandTool.name:
                return number
        return None


class _Taken(Struct):
    attempts: list[Attempt]
    entries: list[LedgerEntry]
    commands: dict[int, list[LedgerEntry]]
    """Attempt number → commands' changes to repeat."""

    def save(self) -> None:
        for attempt in self.attempts:
            commands = self.commands.get(attempt.number)
            if commands:
                attempt.ledger_beside.write(commands)
        self.attempts[0].ledger.write(self.entries)


def find_old_steps(
    record: RunRecord, state: ExecutionState
) -> dict[int, list[Attempt]]:
    """Return folder → attempts of version 0.1 that are not converted yet."""
    attempts_by_folder = {}
    for folder, count in _attempts_of(state).items():
        attempts = [record.attempt(folder, number + 1) for number in range(count)]
        if attempts and any(map(is_old, attempts)):
            attempts_by_folder[folder] = attempts
    return attempts_by_folder


def _attempts_of(state: ExecutionState) -> dict[int, int]:
    """Return folder → number of attempts."""
    undone = (step for undo in state.undone for step in undo.steps)
    counts: dict[int, int] = {}
    for step in (*state.all_steps.values(), *undone):
        counts[step.folder] = max(counts.get(step.folder, 0), step.attempts)
    return counts


def is_old(attempt: Attempt) -> bool:
    """True if version 0.1 made the attempt, and it is not converted."""
    if attempt.ledger.path.exists() or not attempt.folder.is_dir():
        return False
    return any(OLD_FILES.fullmatch(place.name) for place in attempt.folder.iterdir())


def expect_readable(attempt: Attempt, checkpoints: Mapping[str, str]) -> None:
    """Raise `Damaged` or `ValueError` if an attempt's old files are unreadable, or name
    a checkpoint that is not in `checkpoints` (name → id).
    """
    old = _OldAttempt(attempt)
    _ = old.journal, old.beside, old.calls
    span = old.span
    for one in span.checkpoints() if span else ():
        if checkpoints.get(one.name) != one.id:
            raise ValueError(f"the checkpoint {one.name!r} is not part of it")


async def take_over(ledger: Ledger, state: ExecutionState) -> dict[int, CddError]:
    """Write ledgers for all steps of version 0.1. Returns folder → reason for steps
    that cannot be converted; for these, nothing is written.
    """
    refused: dict[int, CddError] = {}
    steps_taken_over: dict[int, _Taken] = {}
    for folder, attempts in find_old_steps(ledger.record, state).items():
        try:
            steps_taken_over[folder] = await _take_step(ledger, attempts)
        except CddError as error:
            refused[folder] = error
    for undo, steps in _undos(ledger.record, state):
        first = steps_taken_over.get(steps[0].folder)
        if first is None or any(step.folder in refused for step in steps):
            continue
        try:
            first.entries.append(
                await _take_undo(ledger, undo, steps, steps_taken_over)
            )
        except CddError as error:
            refused[steps[0].folder] = error
            del steps_taken_over[steps[0].folder]
    for step in steps_taken_over.values():
        step.save()
    return refused


async def _take_step(ledger: Ledger, attempts: list[Attempt]) -> _Taken:
    step_taken_over = _Taken(attempts, [], {})
    for attempt in attempts:
        old = _OldAttempt(attempt, await _find_private(ledger, _OldAttempt(attempt)))
        entries, others = await _take_attempt(ledger, old)
        step_taken_over.entries += entries
        step_taken_over.commands[attempt.number] = [*old.take_commands(others)]
    return step_taken_over


async def _find_private(ledger: Ledger, old: _OldAttempt) -> frozenset[str] | None:
    """Return ignored files of the step; None if unknown."""
    span = old.span
    if span is None:
        return None
    paths = {*span.paths, *(change.path for change in old.journal)}
    try:
        return frozenset(await (await ledger.open()).ignored(span.before, paths))
    except CheckpointGone:
        return None


async def _take_attempt(
    ledger: Ledger, old: _OldAttempt
) -> tuple[list[LedgerEntry], list[Change]]:
    """Return an attempt's entries, and commands' changes to files that the step did not
    write. Raises `CddError`.
    """
    span = old.span
    if span is None:
        if old.journal:
            raise Damaged(old.folder / "span.json", "it is gone")
        return [], []
    number = old.number
    own_paths = {*span.paths, *(change.path for change in old.journal)}
    entries: list[LedgerEntry] = []
    others: list[Change] = []
    for segment in span.earlier:
        changes = await _changes(ledger, old, segment.before, segment.after)
        changes = [change for change in changes if change.path not in segment.own]
        others += changes
        entries += [
            _entry(EntryKind.BEGIN, number, segment.before),
            _entry(EntryKind.COMMAND, number, segment.after, changes),
        ]
    private = tuple(sorted(own_paths if old.private is None else old.private))
    begin = _entry(EntryKind.BEGIN, number, span.before)
    entries.append(replace(begin, private=private))
    written = old.take_journal()
    if written.changes:
        entries.append(replace(written, at=_time_of(span.before)))
    by_commands: list[Change] = []
    if span.seen is not None:
        by_commands = await _changes(ledger, old, span.before, span.seen)
        by_commands = [change for change in by_commands if change.path not in own_paths]
        others += by_commands
    if span.after is not None:
        changes = await _changes(ledger, old, span.before, span.after)
        commanded = {change.path for change in by_commands}
        entries += _of_finished(number, span.after, changes, own_paths, commanded)
    elif span.seen is not None:
        entries.append(_entry(EntryKind.COMMAND, number, span.seen, by_commands))
    return entries, others


def _of_finished(
    number: int,
    after: Checkpoint,
    changes: Sequence[Change],
    own_paths: Collection[str],
    commanded: Collection[str],
) -> list[LedgerEntry]:
    by_kind: dict[EntryKind, list[Change]] = {
        EntryKind.REPLY: [],
        EntryKind.COMMAND: [],
        EntryKind.CHECK: [],
    }
    for change in changes:
        if change.path in own_paths:
            by_kind[EntryKind.REPLY].append(change)
        elif change.path in commanded:
            by_kind[EntryKind.COMMAND].append(change)
        else:
            by_kind[EntryKind.CHECK].append(change)
    return [
        _entry(kind, number, after, group)
        for kind, group in by_kind.items()
        if group or kind is EntryKind.CHECK
    ]


async def _changes(
    ledger: Ledger, old: _OldAttempt, before: Checkpoint, after: Checkpoint
) -> list[Change]:
    changes = await (await ledger.open()).changes(before, after)
    return await ledger.save_changes(old.attempt, changes, old.private or frozenset())


def _entry(
    kind: EntryKind, number: int, tree: Checkpoint, changes: Iterable[Change] = ()
) -> LedgerEntry:
    return LedgerEntry(
        kind, number, at=_time_of(tree), changes=tuple(changes), tree=tree
    )


def _time_of(checkpoint: Checkpoint) -> str:
    return checkpoint.moment.partition("-")[0]


def _undos(
    record: RunRecord, state: ExecutionState
) -> Iterator[tuple[str, Sequence[StepExecution]]]:
    for undo in state.undone:
        if undo.steps:
            yield undo.id, undo.steps
    going = record.going_back
    if going is None or going.again or going.id in {undo.id for undo in state.undone}:
        return
    steps = [step for step in state.ended_steps() if step.folder in going.steps]
    if steps:
        yield going.id, steps


async def _take_undo(
    ledger: Ledger,
    undo: str,
    steps: Sequence[StepExecution],
    steps_taken_over: Mapping[int, _Taken],
) -> LedgerEntry:
    """Raises `CddError`."""
    entries: list[LedgerEntry] = []
    for step in steps:
        step_taken_over = steps_taken_over.get(step.folder)
        all_entries = (
            step_taken_over.entries
            if step_taken_over
            else ledger.record.attempt(step.folder, 1).ledger.entries()
        )
        entries += [
            entry for entry in all_entries if entry.attempt in step.remaining_attempts
        ]
    entries.sort(key=lambda entry: entry.at)
    checkpoints = await ledger.open()
    checkpoint, last = await checkpoints.find(f"undo/{undo}"), last_tree(entries)
    edited: dict[str, Change] = {}
    if checkpoint is not None and last is not None:
        attempt = ledger.record.attempt(steps[0].folder, 1)
        private = frozenset(path for entry in entries for path in entry.private)
        differing = await checkpoints.changes(last, checkpoint)
        later = await ledger.save_changes(attempt, differing, private)
        edited = {change.path: change for change in later}
    restored = []
    for change in fold(entries).all:
        now = edited[change.path].after if change.path in edited else change.after
        back = change.way_back(now)
        if is_same(back.after, now) and not is_same(back.before, now):
            restored.append(Change(change.path, now, back.before))
    return LedgerEntry(EntryKind.UNDONE, at=undo, by=undo, changes=tuple(restored))


def restore_written(attempt: Attempt, record: RunRecord) -> RestoreResult:
    """Restore what an interrupted attempt's reply wrote, by its journal alone. Raises
    `BadInput`.
    """
    changes = [
        change.way_back(
            entry_now(record.root, change.path, change.before or change.after)
        )
        for change in fold([_OldAttempt(attempt).take_journal()]).all
    ]
    restorer = Restorer(record.root, [attempt])
    return restorer.carry_out(restorer.plan(changes), lambda path: False)
