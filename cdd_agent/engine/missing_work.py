"""Finds work of completed steps that the project's tree lacks: another branch is
checked out, or files were reset, stashed or removed.

The state names each step's files. Ledgers know each file before and after a step,
whoever changed it, and so whether a run left it as it is: a later step, also of another
ticket, may delete or revert it on purpose. Without a record, only existence counts.
Checkpoints are read only for test files that no step changed.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Self

from msgspec import Struct, field

from cdd_agent.engine.accepted import accepted
from cdd_agent.engine.attempt import Attempt
from cdd_agent.engine.ledger import Ledger
from cdd_agent.engine.ledger_entries import changes_by_path, made_changes
from cdd_agent.engine.ledger_file import LedgerFile
from cdd_agent.engine.record import RunRecord
from cdd_agent.errors import CddError
from cdd_agent.git.diff import Change, TreeEntry
from cdd_agent.git.restore import has_content
from cdd_agent.threads import in_thread
from cdd_agent.tickets.plan import ImplementationPlan
from cdd_agent.tickets.slugs import comparable
from cdd_agent.tickets.state import ExecutionState, StepExecution
from cdd_agent.tickets.status import ChangedFiles, MissingWork, StepStatus
from cdd_agent.verification.lost_tests import Versions, compare_tests
from cdd_agent.verification.outcomes import Result, merge_runs
from cdd_agent.verification.test_id import TestId
from cdd_agent.verification.testcode.test_files import CODE

_LARGEST_READ = 5_000_000
"""Larger files, in bytes, count by existence only."""
_MOST_RESULTS = 2_000_000
"""Most test results to read, latest steps first."""
_MOST_COMPARED = 200
"""Most edited test files to compare."""
_MOST_LOOKUPS = 100
"""Most checkpoints to read for the fate of tests."""


async def find_missing_work(
    plan: ImplementationPlan,
    state: ExecutionState,
    record: RunRecord,
    ledger: Ledger,
) -> tuple[MissingWork, ...]:
    """Return steps whose work is not in the record's tree, with files and tests. Raises
    `BadInput` for a damaged record.
    """
    steps = accepted(state)
    if not steps:
        return ()
    attempts = [record.attempt(step.folder, step.attempts) for step in steps]
    work = await in_thread(partial(_Work.read, record, steps, attempts), name="files")
    losses = await in_thread(work.find_losses, name="losses")
    seen = await in_thread(partial(_read_evidence, steps, attempts), name="tests")
    tests = await _find_lost_tests(work, seen, _Looks(ledger, attempts))
    return _by_step(plan, steps, losses, tests)


class FilesSince(Struct, frozen=True):
    """Differences between the steps' files and the run's result."""

    missing: tuple[MissingWork, ...] = ()
    changed: tuple[ChangedFiles, ...] = ()


def compare_files(
    plan: ImplementationPlan, state: ExecutionState, record: RunRecord
) -> FilesSince:
    """Compare files by ledgers and disk, without git and the ticket's lock. Raises
    `BadInput` for a damaged record.
    """
    steps = accepted(state)
    attempts = [record.attempt(step.folder, step.attempts) for step in steps]
    work = _Work.read(record, steps, attempts)
    missing = _by_step(plan, steps, work.find_losses(), ())
    titles = {step.number: step for step in plan.steps}
    paths: dict[int, list[str]] = {}
    for touch in work.find_edits():
        paths.setdefault(steps[touch.position].step_number, []).append(touch.path)
    changed = []
    for number, names in sorted(paths.items()):
        if step := titles.get(number):
            files = tuple(sorted(names))
            changed.append(ChangedFiles(number, step.title, files, step.label))
    return FilesSince(missing, tuple(changed))


def count_changed_files(state: ExecutionState, record: RunRecord) -> int:
    """Count files of steps that are gone or changed. A file whose status on disk is
    unchanged counts as unchanged. Raises `BadInput` for a damaged record.
    """
    steps = accepted(state)
    if not any(_may_have_changed(record.root, step) for step in steps):
        return 0
    attempts = [record.attempt(step.folder, step.attempts) for step in steps]
    work = _Work.read(record, steps, attempts)
    places = {loss.place for loss in work.find_losses()}
    places.update(touch.path for touch in work.find_edits())
    return len(places)


def _may_have_changed(root: Path, step: StepExecution) -> bool:
    if step.completed_at is None:
        return True
    ended = step.completed_at.timestamp()
    for path in (*step.files_created, *step.files_modified):
        try:
            if os.lstat(root / path).st_ctime >= ended:
                return True
        except (OSError, ValueError):
            return True
    return any(os.path.lexists(root / path) for path in step.files_deleted)


# The files that steps made


class _Touch(Struct, frozen=True):
    position: int
    """Position of the step in the order in which steps ended."""
    path: str
    exists: bool
    """False if the step deleted the file."""
    change: Change | None
    """None if there is no record."""


class _Version(Struct, frozen=True):
    """A file now, or as a step found it."""

    exists: bool
    content: bytes | None = None
    """None if it was not read."""
    entry: TreeEntry | None = None
    """The file that a step found, unread."""

    def matches(self, entry: TreeEntry | None) -> bool:
        if entry is None or not self.exists:
            return entry is None and not self.exists
        if self.entry is not None:
            return self.entry.content == entry.content
        if self.content is None:
            return False
        return any(has_content(entry, content) for content in self._spellings())

    def _spellings(self) -> Iterator[bytes]:
        content = self.content or b""
        yield content
        plain = content.replace(b"\r\n", b"\n")
        if plain != content:
            yield plain
        if b"\n" in plain:
            yield plain.replace(b"\n", b"\r\n")


class _Tree(Struct):
    """The current tree. Paths are strings: a run can have thousands."""

    root: Path
    _folders: dict[str, str | None] = field(default_factory=dict)
    _versions: dict[str, _Version] = field(default_factory=dict)

    def without_links(self, path: str) -> str:
        """Resolve links in the file's folder."""
        folder, _, name = path.rpartition("/")
        if folder not in self._folders:
            self._folders[folder] = self._resolve(folder)
        real_folder = self._folders[folder]
        if real_folder is None:
            return path
        return name if real_folder == "." else f"{real_folder}/{name}"

    def _resolve(self, folder: str) -> str | None:
        """Resolve a folder; None if it leads outside, or in a circle."""
        try:
            target, top = (self.root / folder).resolve(), self.root.resolve()
        except (OSError, RuntimeError):
            return None
        return (
            target.relative_to(top).as_posix() if target.is_relative_to(top) else None
        )

    def look(self, path: str) -> _Version:
        """Read a file. An unreadable one counts as existing."""
        if path not in self._versions:
            self._versions[path] = _read(f"{self.root}/{path}")
        return self._versions[path]


def _read(place: str) -> _Version:
    try:
        status = os.lstat(place)
        if stat.S_ISDIR(status.st_mode):
            return _Version(exists=False)
        if stat.S_ISLNK(status.st_mode):
            return _Version(exists=True, content=os.fsencode(Path(place).readlink()))
        if stat.S_ISREG(status.st_mode) and status.st_size <= _LARGEST_READ:
            return _Version(exists=True, content=Path(place).read_bytes())
    except ValueError:
        pass
    except OSError as error:
        # also circular links lead nowhere
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            return _Version(exists=False)
    return _Version(exists=True)


class _Kind(StrEnum):
    MISSING = "missing"
    REVERTED = "reverted"
    RESTORED = "restored"


class _Loss(Struct, frozen=True):
    """A file that differs from what the steps left."""

    kind: _Kind
    place: str
    touches: tuple[_Touch, ...]
    """The lost changes, the last one last."""
    version: _Version
    until: int
    """Position of the last step before the loss was found."""


def _find_losses(
    tree: _Tree, files: Mapping[str, Sequence[_Touch]], last: int
) -> list[_Loss]:
    losses = []
    for place, touches in files.items():
        version = tree.look(place)
        if not touches[-1].exists:
            if version.exists and not _is_respelled(tree.root, place, files):
                last_touches = (touches[-1],)
                losses.append(_Loss(_Kind.RESTORED, place, last_touches, version, last))
            continue
        chain = _since_deletion(touches)
        losses += _losses_between(place, chain)
        lost = _lost_touches(chain, version)
        if lost:
            kind = _Kind.REVERTED if version.exists else _Kind.MISSING
            losses.append(_Loss(kind, place, lost, version, last))
    return losses


def _since_deletion(touches: Sequence[_Touch]) -> Sequence[_Touch]:
    for number in reversed(range(len(touches))):
        if not touches[number].exists:
            return touches[number + 1 :]
    return touches


def _losses_between(place: str, chain: Sequence[_Touch]) -> Iterator[_Loss]:
    for number, following in enumerate(chain[1:], 1):
        if following.change is None:
            continue
        before = following.change.before
        version = _Version(exists=before is not None, entry=before)
        lost = _lost_touches(chain[:number], version)
        if lost:
            until = following.position - 1
            yield _Loss(_Kind.REVERTED, place, lost, version, until)


def _lost_touches(chain: Sequence[_Touch], version: _Version) -> tuple[_Touch, ...]:
    """Return the changes that a version lacks. A version unlike all earlier contents is
    an edit, and lacks none.
    """
    last = chain[-1].change
    if last is not None and version.matches(last.after):
        return ()
    for number in reversed(range(len(chain))):
        change = chain[number].change
        is_created = change is not None and change.before is None
        if not version.exists and is_created:
            return tuple(chain[number:])
        if version.exists and change is not None and version.matches(change.before):
            return tuple(chain[number:])
    return () if version.exists else tuple(chain)


def _is_respelled(
    root: Path, place: str, files: Mapping[str, Sequence[_Touch]]
) -> bool:
    """True if a deleted file is another spelling of an existing one, on a disk that
    ignores the difference.
    """
    for other, touches in files.items():
        is_like = other != place and comparable(other) == comparable(place)
        if is_like and touches[-1].exists and (root / other).exists():
            return (root / other).samefile(root / place)
    return False


# Changes of files by runs


class _Work(Struct, frozen=True):
    record: RunRecord
    tree: _Tree
    files: dict[str, list[_Touch]]
    """Path → steps that changed it."""
    changes: list[dict[str, Change]]
    """By position: each file's change during the step."""
    ends: list[str]
    """By position: when the step ended; empty if unknown."""

    @classmethod
    def read(
        cls,
        record: RunRecord,
        steps: Sequence[StepExecution],
        attempts: Sequence[Attempt],
    ) -> Self:
        tree = _Tree(record.root)
        files: dict[str, list[_Touch]] = {}
        changes = [changes_by_path(attempt) for attempt in attempts]
        for position, step in enumerate(steps):
            made = dict.fromkeys((*step.files_created, *step.files_modified), True)
            for path, exists in {
                **made,
                **dict.fromkeys(step.files_deleted, False),
            }.items():
                place = tree.without_links(path)
                touch = _Touch(position, path, exists, changes[position].get(place))
                files.setdefault(place, []).append(touch)
        ends = [max((one.at for one in each.entries), default="") for each in attempts]
        return cls(record, tree, files, changes, ends)

    def find_losses(self) -> list[_Loss]:
        """Return losses, except those that a run caused: by a check, a command, or a
        deliberate reversal or deletion.
        """
        last = len(self.changes) - 1
        losses = []
        for loss in _find_losses(self.tree, self.files, last):
            change = self.last_change(loss.place, loss.until)
            if change is None or not loss.version.matches(change.after):
                losses.append(loss)
        if not losses:
            return []
        others = self._later_changes({loss.place for loss in losses})
        return [
            loss
            for loss in losses
            if not self._is_by_others(loss.touches[-1], loss.version, others)
        ]

    def find_edits(self) -> list[_Touch]:
        """Return the last change of each file whose current content no run made, not
        even a failed step, and no step found.
        """
        last = len(self.changes) - 1
        edits: dict[str, _Touch] = {}
        for place, touches in self.files.items():
            touch, version = touches[-1], self.tree.look(place)
            is_known = touch.exists and touch.change is not None
            if not is_known or not version.exists or version.content is None:
                continue
            change = self.last_change(place, last)
            is_left = change is not None and version.matches(change.after)
            if not is_left and not _lost_touches(_since_deletion(touches), version):
                edits[place] = touch
        if not edits:
            return []
        others = self._later_changes(edits.keys(), with_this_run=True)
        return [
            touch
            for place, touch in edits.items()
            if not self._is_by_others(touch, self.tree.look(place), others)
        ]

    def last_change(self, place: str, until: int) -> Change | None:
        """Return a file's last change by steps up to this position."""
        for position in reversed(range(until + 1)):
            if place in self.changes[position]:
                return self.changes[position][place]
        return None

    def was_left(self, place: str, version: _Version, since: int) -> bool:
        changes = (changes.get(place) for changes in self.changes[since + 1 :])
        return any(change and version.matches(change.after) for change in changes)

    def _is_by_others(
        self, touch: _Touch, version: _Version, others: Mapping[str, Sequence[_Later]]
    ) -> bool:
        place, ended = self.tree.without_links(touch.path), self.ends[touch.position]
        later = [one for one in others.get(place, ()) if one.at > ended]
        return bool(later) and version.matches(later[-1].after)

    def _later_changes(
        self, places: Collection[str], *, with_this_run: bool = False
    ) -> dict[str, list[_Later]]:
        """Return by time what other tickets' runs made of these files; `with_this_run`
        adds this run's steps. Unreadable ledgers are skipped.
        """
        later_changes: dict[str, list[_Later]] = {}
        for path in self.record.folder.parent.glob("*/step-*/ledger.jsonl"):
            if self.record.folder in path.parents and not with_this_run:
                continue
            try:
                entries = LedgerFile(path).entries()
            except CddError:
                continue
            for at, change in made_changes(entries):
                if change.path in places:
                    later_changes.setdefault(change.path, []).append(
                        _Later(at, change.after)
                    )
        for changes in later_changes.values():
            changes.sort(key=lambda one: one.at)
        return later_changes


class _Later(Struct, frozen=True):
    """The state in which a run left a file, other than by completed steps."""

    at: str
    after: TreeEntry | None


class _Looks(Struct):
    """Files after each step, even unchanged ones. What checkpoints do not cover is
    omitted.
    """

    ledger: Ledger
    attempts: Sequence[Attempt]
    """By position of their steps."""
    _count: int = 0

    async def files_after(
        self, position: int, places: Collection[str]
    ) -> Mapping[str, TreeEntry | None]:
        """None for a file that did not exist."""
        if not places or self._count > _MOST_LOOKUPS:
            return {}
        self._count += 1
        try:
            return await self.ledger.files_after(self.attempts[position], places)
        except CddError:
            return {}

    async def read(
        self, entries: Mapping[str, TreeEntry]
    ) -> Mapping[str, bytes | None]:
        try:
            return await self.ledger.read_files(self.attempts, entries)
        except CddError:
            return {}


# The tests that are evidence


class _Seen(Struct, frozen=True):
    first: int
    last: int


class _LostTest(Struct, frozen=True):
    name: str
    position: int
    """Position of the step whose check it passed first."""


def _read_evidence(
    steps: Sequence[StepExecution], attempts: Sequence[Attempt]
) -> dict[str, dict[str, _Seen]]:
    """Return passing tests by file and name, as far as the checks know."""
    evidence: dict[str, _Seen] = {}
    closed: set[str] = set()
    count = 0
    for position in reversed(range(len(steps))):
        if count > _MOST_RESULTS:
            break
        if steps[position].status is not StepStatus.COMPLETED:
            continue
        runs = attempts[position].runs
        if not runs:
            continue
        results = merge_runs(runs).results
        count += len(results)
        for test, result in results.items():
            if result is not Result.PASSED:
                closed.add(test)
            elif test not in closed:
                last = evidence[test].last if test in evidence else position
                evidence[test] = _Seen(position, last)
    by_file: dict[str, dict[str, _Seen]] = {}
    for test, seen in evidence.items():
        file = TestId.parse(test).file
        if _is_path(file):
            by_file.setdefault(file, {})[test] = seen
    return by_file


def _is_path(file: str) -> bool:
    path = PurePosixPath(file)
    return bool(path.name) and not path.is_absolute() and ".." not in path.parts


class _TestFiles(Struct):
    gone: list[str] = field(default_factory=list)
    vanished: list[str] = field(default_factory=list)
    """Files gone before the last step was over."""
    edited: dict[str, TreeEntry] = field(default_factory=dict)
    """Files changed since the last step, with its content."""

    def sort(
        self,
        tree: _Tree,
        files: Iterable[str],
        current: Mapping[str, TreeEntry | None],
    ) -> None:
        """`current` is the state after the last step."""
        for file in files:
            version, entry = tree.look(file), current.get(file)
            if version.exists:
                was_read = version.content is not None
                if entry is not None and was_read and not version.matches(entry):
                    self.edited[file] = entry
            elif entry is None and file in current:
                self.vanished.append(file)
            # Reports may name packages instead of files.
            elif entry is not None or PurePosixPath(file).suffix in CODE:
                self.gone.append(file)


async def _find_lost_tests(
    work: _Work, seen: Mapping[str, Mapping[str, _Seen]], looks: _Looks
) -> list[_LostTest]:
    files = [file for file in seen if not _is_deleted(work.files.get(file, ()))]
    current = await looks.files_after(len(work.changes) - 1, files)
    test_files = _TestFiles()
    await in_thread(partial(test_files.sort, work.tree, files, current), name="files")
    gone = list(test_files.gone)
    for file in test_files.vanished:
        if await _has_vanished(file, seen[file].values(), work, looks):
            gone.append(file)
    lost = {test for file in gone for test in seen[file]}
    lost |= await _find_removed_tests(test_files.edited, work.tree, seen, looks)
    tests = {test: each for file in files for test, each in seen[file].items()}
    return [_LostTest(test, each.first) for test, each in tests.items() if test in lost]


def _is_deleted(touches: Sequence[_Touch]) -> bool:
    return bool(touches) and not touches[-1].exists


async def _has_vanished(
    file: str, seen: Iterable[_Seen], work: _Work, looks: _Looks
) -> bool:
    since = max(each.last for each in seen)
    entry = (await looks.files_after(since, [file])).get(file)
    if entry is None:
        return False
    return not work.was_left(file, _Version(exists=False), since)


async def _find_removed_tests(
    edited: Mapping[str, TreeEntry],
    tree: _Tree,
    seen: Mapping[str, Mapping[str, _Seen]],
    looks: _Looks,
) -> set[str]:
    """Return tests that edited files lack under any name. Unreadable names do not
    count.
    """
    chosen = dict(list(edited.items())[:_MOST_COMPARED])
    before = await looks.read(chosen)
    versions = [
        Versions(file, content, tree.look(file).content)
        for file, content in before.items()
    ]
    removed = await in_thread(lambda: compare_tests(versions).removed, name="compare")
    removed_tests = set()
    for declared in removed:
        for test in seen[declared.file]:
            if _is_declared_as(TestId.parse(test), declared):
                removed_tests.add(test)
    return removed_tests


def _is_declared_as(test: TestId, declared: TestId) -> bool:
    function = test.function
    return (
        function == declared
        or function.ends_with(declared)
        or declared.has_row(function)
    )


def _by_step(
    plan: ImplementationPlan,
    steps: Sequence[StepExecution],
    losses: Iterable[_Loss],
    tests: Iterable[_LostTest],
) -> tuple[MissingWork, ...]:
    """Return losses by step. Of two losses of a file, the current one counts."""
    kinds: dict[int, dict[str, _Kind]] = {}
    for loss in sorted(losses, key=lambda loss: loss.until):
        for touch in loss.touches:
            kinds.setdefault(touch.position, {})[touch.path] = loss.kind
    names: dict[int, list[str]] = {}
    for test in tests:
        names.setdefault(test.position, []).append(test.name)
    positions = {step.step_number: position for position, step in enumerate(steps)}
    losses_of_step = []
    for step in plan.order():
        position = positions.get(step.number)
        if position is None or not (position in kinds or position in names):
            continue
        paths: dict[_Kind, list[str]] = {kind: [] for kind in _Kind}
        for path, kind in sorted(kinds.get(position, {}).items()):
            paths[kind].append(path)
        losses_of_step.append(
            MissingWork(
                step.number,
                step.title,
                missing=tuple(paths[_Kind.MISSING]),
                reverted=tuple(paths[_Kind.REVERTED]),
                restored=tuple(paths[_Kind.RESTORED]),
                tests=tuple(sorted(names.get(position, ()))),
                label=step.label,
            )
        )
    return tuple(losses_of_step)
