"""The work of completed steps that the project's tree does not have: another branch is
checked out, or files were reset, stashed or removed.

The state names the files of each step. The journals know what each file was before and
after a step, and the checkpoints know whether the run itself left a file so: a later
step may delete or revert it on purpose. Without a record, only the existence of the
files counts.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path, PurePosixPath

from msgspec import Struct, field

from cdd_agent.engine.accepted import accepted
from cdd_agent.engine.attempt import Attempt
from cdd_agent.engine.ledger import Ledger, changes_by_path
from cdd_agent.engine.record import RunRecord
from cdd_agent.errors import CddError
from cdd_agent.git.diff import Change, TreeEntry
from cdd_agent.git.restore import has_content
from cdd_agent.threads import in_thread
from cdd_agent.tickets.plan import ImplementationPlan
from cdd_agent.tickets.slugs import comparable
from cdd_agent.tickets.state import ExecutionState, StepExecution
from cdd_agent.tickets.status import MissingWork, StepStatus
from cdd_agent.verification.lost_tests import Versions, compare_tests
from cdd_agent.verification.outcomes import Result, merge_runs
from cdd_agent.verification.test_id import TestId
from cdd_agent.verification.testcode import CODE

_LARGEST_READ = 5_000_000
"""Bytes of a file that are read. A larger file counts by its existence."""
_MOST_RESULTS = 2_000_000
"""Results of tests that are read, those of the last steps first."""
_MOST_COMPARED = 200
"""Edited test files whose tests are compared."""
_MOST_LOOKUPS = 100
"""Checkpoints that are read to find out why a file is not there."""


async def find_missing_work(
    plan: ImplementationPlan,
    state: ExecutionState,
    record: RunRecord,
    ledger: Ledger,
) -> tuple[MissingWork, ...]:
    """Return the steps of the plan whose work is not in the record's tree, with their
    files and tests. Raises `BadInput` for a record that is damaged.
    """
    steps = accepted(state)
    if not steps:
        return ()
    attempts = [record.attempt(step.folder, step.attempts) for step in steps]
    past = _Past(ledger, attempts)
    tree = _Tree(record.root)
    files = await in_thread(partial(_read_files, steps, attempts, tree), name="files")
    losses = await in_thread(
        partial(_find_losses, tree, files, past.last), name="losses"
    )
    losses = await _without_intended(losses, past)
    seen = await in_thread(partial(_read_evidence, steps, attempts), name="tests")
    deleted = {path for path, touches in files.items() if not touches[-1].exists}
    tests = await _find_lost_tests(tree, seen, deleted, past)
    return _by_step(plan, steps, losses, tests)


# The files that steps made


class _Touch(Struct, frozen=True):
    """The change of one file by one step."""

    position: int
    """Position of the step in the order in which the steps ended."""
    path: str
    exists: bool
    """False if the step deleted the file."""
    change: Change | None
    """The contents before and after; None if there is no record of them."""


class _Version(Struct, frozen=True):
    """A file as the tree has it now, or as a step found it."""

    exists: bool
    content: bytes | None = None
    """None if the content was not read."""
    entry: TreeEntry | None = None
    """What a step found, whose content is not read."""

    def matches(self, entry: TreeEntry | None) -> bool:
        """True if this is the same content, also with other line ends: git converts
        them.
        """
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


def _read_files(
    steps: Sequence[StepExecution], attempts: Sequence[Attempt], tree: _Tree
) -> dict[str, list[_Touch]]:
    """Return the files of the steps by path, each with the steps that changed it."""
    files: dict[str, list[_Touch]] = {}
    for position, (step, attempt) in enumerate(zip(steps, attempts, strict=True)):
        changes = changes_by_path(attempt)
        there = dict.fromkeys((*step.files_created, *step.files_modified), True)
        for path, exists in {
            **there,
            **dict.fromkeys(step.files_deleted, False),
        }.items():
            place = tree.without_links(path)
            touch = _Touch(position, path, exists, changes.get(path))
            files.setdefault(place, []).append(touch)
    return files


class _Tree(Struct):
    """The project's tree as it is now. Paths are texts: a run can have thousands."""

    root: Path
    _folders: dict[str, str | None] = field(default_factory=dict)
    _versions: dict[str, _Version] = field(default_factory=dict)

    def without_links(self, path: str) -> str:
        """Return the path of the file itself if its folder is a link."""
        folder, _, name = path.rpartition("/")
        if folder not in self._folders:
            target, top = (self.root / folder).resolve(), self.root.resolve()
            known = None
            if target.is_relative_to(top):
                known = target.relative_to(top).as_posix()
            self._folders[folder] = known
        known = self._folders[folder]
        if known is None:
            return path
        return name if known == "." else f"{known}/{name}"

    def look(self, path: str) -> _Version:
        """Read a file. A file that cannot be read exists."""
        if path not in self._versions:
            self._versions[path] = _read(f"{self.root}/{path}")
        return self._versions[path]


def _read(place: str) -> _Version:
    try:
        found = os.lstat(place)
        if stat.S_ISDIR(found.st_mode):
            return _Version(exists=False)
        if stat.S_ISLNK(found.st_mode):
            return _Version(exists=True, content=os.fsencode(Path(place).readlink()))
        if stat.S_ISREG(found.st_mode) and found.st_size <= _LARGEST_READ:
            return _Version(exists=True, content=Path(place).read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return _Version(exists=False)
    except (OSError, ValueError):
        pass
    return _Version(exists=True)


class _Kind(StrEnum):
    """The fields of `MissingWork` for files."""

    MISSING = "missing"
    REVERTED = "reverted"
    RESTORED = "restored"


class _Loss(Struct, frozen=True):
    """A file that is not as the steps left it."""

    kind: _Kind
    place: str
    touches: tuple[_Touch, ...]
    """The changes that are lost. The last one is the last that was made."""
    found: _Version
    until: int
    """Position of the last step before it was found so."""


def _find_losses(
    tree: _Tree, files: Mapping[str, Sequence[_Touch]], last: int
) -> list[_Loss]:
    losses = []
    for place, touches in files.items():
        now = tree.look(place)
        if not touches[-1].exists:
            if now.exists and not _is_respelled(tree.root, place, files):
                found = (touches[-1],)
                losses.append(_Loss(_Kind.RESTORED, place, found, now, last))
            continue
        chain = _since_deletion(touches)
        losses += _losses_between(place, chain)
        lost = _lost_touches(chain, now)
        if lost:
            kind = _Kind.REVERTED if now.exists else _Kind.MISSING
            losses.append(_Loss(kind, place, lost, now, last))
    return losses


def _since_deletion(touches: Sequence[_Touch]) -> Sequence[_Touch]:
    """Return the changes of a file since a step deleted it last."""
    for number in reversed(range(len(touches))):
        if not touches[number].exists:
            return touches[number + 1 :]
    return touches


def _losses_between(place: str, chain: Sequence[_Touch]) -> Iterator[_Loss]:
    """Yield what was lost before the next step that changed the file."""
    for number, following in enumerate(chain[1:], 1):
        if following.change is None:
            continue
        before = following.change.before
        found = _Version(exists=before is not None, entry=before)
        lost = _lost_touches(chain[:number], found)
        if lost:
            until = following.position - 1
            yield _Loss(_Kind.REVERTED, place, lost, found, until)


def _lost_touches(chain: Sequence[_Touch], found: _Version) -> tuple[_Touch, ...]:
    """Return the changes of a file that are not in the version that was found.
    Something else than a content from before them is an edit, and has them.
    """
    last = chain[-1].change
    if last is not None and found.matches(last.after):
        return ()
    for number in reversed(range(len(chain))):
        change = chain[number].change
        is_created = change is not None and change.before is None
        if not found.exists and is_created:
            return tuple(chain[number:])
        if found.exists and change is not None and found.matches(change.before):
            return tuple(chain[number:])
    return () if found.exists else tuple(chain)


def _is_respelled(
    root: Path, place: str, files: Mapping[str, Sequence[_Touch]]
) -> bool:
    """True if a deleted file is only another spelling of one that the steps made, on a
    disk that does not tell them apart.
    """
    for other, touches in files.items():
        is_like = other != place and comparable(other) == comparable(place)
        if is_like and touches[-1].exists and (root / other).exists():
            return (root / other).samefile(root / place)
    return False


# Changes that the run itself made


class _Past(Struct):
    """The checkpoints of the steps. What they do not know is left out."""

    ledger: Ledger
    attempts: Sequence[Attempt]
    """By the positions of their steps."""
    _changes: dict[int, Mapping[str, Change]] = field(default_factory=dict)
    _lookups: int = 0

    @property
    def last(self) -> int:
        return len(self.attempts) - 1

    async def files_after(
        self, position: int, places: Collection[str]
    ) -> Mapping[str, TreeEntry | None]:
        """Return the files as they were when a step was over; None for a file that did
        not exist.
        """
        if not places or self._lookups > _MOST_LOOKUPS:
            return {}
        self._lookups += 1
        try:
            return await self.ledger.files_after(self.attempts[position], places)
        except CddError:
            return {}

    async def was_made(
        self, place: str, found: _Version, since: int, until: int
    ) -> bool:
        """True if a step after `since`, up to `until`, left a file so."""
        for position in range(since + 1, until + 1):
            change = (await self._changes_of(position)).get(place)
            if change is not None and found.matches(change.after):
                return True
        return False

    async def _changes_of(self, position: int) -> Mapping[str, Change]:
        if position not in self._changes:
            if self._lookups > _MOST_LOOKUPS:
                return {}
            self._lookups += 1
            try:
                found = changes_by_path(self.attempts[position])
            except CddError:
                found = {}
            self._changes[position] = found
        return self._changes[position]

    async def read(
        self, entries: Mapping[str, TreeEntry]
    ) -> Mapping[str, bytes | None]:
        try:
            return await self.ledger.read_files(self.attempts, entries)
        except CddError:
            return {}


async def _without_intended(losses: Sequence[_Loss], past: _Past) -> list[_Loss]:
    """Return the losses without the files that a step itself left so: by its check, by
    a command, or because the file was reverted or deleted on purpose.
    """
    kept: list[_Loss] = []
    left_so: list[_Loss] = []
    for until, group in _grouped(losses, lambda loss: loss.until).items():
        known = await past.files_after(until, {loss.place for loss in group})
        for loss in group:
            entry = known.get(loss.place)
            is_as_left = loss.place in known and loss.found.matches(entry)
            (left_so if is_as_left else kept).append(loss)
    for since, group in _grouped(left_so, _last_position).items():
        own = await past.files_after(since, {loss.place for loss in group})
        for loss in group:
            if loss.place in own and loss.found.matches(own[loss.place]):
                continue
            if not await past.was_made(loss.place, loss.found, since, loss.until):
                kept.append(loss)
    return kept


def _last_position(loss: _Loss) -> int:
    return loss.touches[-1].position


def _grouped(
    losses: Iterable[_Loss], key: Callable[[_Loss], int]
) -> dict[int, list[_Loss]]:
    groups: dict[int, list[_Loss]] = {}
    for loss in losses:
        groups.setdefault(key(loss), []).append(loss)
    return groups


# The tests that are evidence


class _Seen(Struct, frozen=True):
    """The steps whose checks a test has passed, by position."""

    first: int
    last: int


class _LostTest(Struct, frozen=True):
    name: str
    position: int
    """Of the step whose check it passed first."""


def _read_evidence(
    steps: Sequence[StepExecution], attempts: Sequence[Attempt]
) -> dict[str, dict[str, _Seen]]:
    """Return the tests that pass now as far as the checks of the steps know, by file
    and name.
    """
    found: dict[str, _Seen] = {}
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
                last = found[test].last if test in found else position
                found[test] = _Seen(position, last)
    by_file: dict[str, dict[str, _Seen]] = {}
    for test, seen in found.items():
        file = TestId.parse(test).file
        if _is_path(file):
            by_file.setdefault(file, {})[test] = seen
    return by_file


def _is_path(file: str) -> bool:
    path = PurePosixPath(file)
    return bool(path.name) and not path.is_absolute() and ".." not in path.parts


class _TestFiles(Struct):
    """The files of tests, by what the tree has of them."""

    gone: list[str] = field(default_factory=list)
    vanished: list[str] = field(default_factory=list)
    """Files that were gone before the last step was over."""
    edited: dict[str, TreeEntry] = field(default_factory=dict)
    """Files with another content than the last step left, each with that one."""

    def sort(
        self,
        tree: _Tree,
        files: Iterable[str],
        left: Mapping[str, TreeEntry | None],
    ) -> None:
        """`left` are the files as they were when the last step was over."""
        for file in files:
            now, entry = tree.look(file), left.get(file)
            if now.exists:
                was_read = now.content is not None
                if entry is not None and was_read and not now.matches(entry):
                    self.edited[file] = entry
            elif entry is None and file in left:
                self.vanished.append(file)
            # Reports may name something else than a file, such as a package.
            elif entry is not None or PurePosixPath(file).suffix in CODE:
                self.gone.append(file)


async def _find_lost_tests(
    tree: _Tree,
    seen: Mapping[str, Mapping[str, _Seen]],
    deleted: Collection[str],
    past: _Past,
) -> list[_LostTest]:
    """Return the tests whose file is gone, or no longer has them. `deleted` are the
    files that steps deleted.
    """
    files = [file for file in seen if file not in deleted]
    left = await past.files_after(past.last, files)
    found = _TestFiles()
    await in_thread(partial(found.sort, tree, files, left), name="files")
    gone = list(found.gone)
    for file in found.vanished:
        if await _has_vanished(file, seen[file].values(), past):
            gone.append(file)
    lost = {test for file in gone for test in seen[file]}
    lost |= await _find_removed_tests(found.edited, tree, seen, past)
    tests = {test: each for file in files for test, each in seen[file].items()}
    return [_LostTest(test, each.first) for test, each in tests.items() if test in lost]


async def _has_vanished(file: str, seen: Iterable[_Seen], past: _Past) -> bool:
    """True if a test file is gone since its tests passed, and no step deleted it."""
    since = max(each.last for each in seen)
    entry = (await past.files_after(since, [file])).get(file)
    if entry is None:
        return False
    absent = _Version(exists=False)
    return not await past.was_made(file, absent, since, past.last)


async def _find_removed_tests(
    edited: Mapping[str, TreeEntry],
    tree: _Tree,
    seen: Mapping[str, Mapping[str, _Seen]],
    past: _Past,
) -> set[str]:
    """Return the tests that edited files no longer have, neither under this name nor
    under another one. Names that cannot be read in a file are not missed.
    """
    chosen = dict(list(edited.items())[:_MOST_COMPARED])
    before = await past.read(chosen)
    versions = [
        Versions(file, content, tree.look(file).content)
        for file, content in before.items()
    ]
    removed = await in_thread(lambda: compare_tests(versions).removed, name="compare")
    found = set()
    for declared in removed:
        for test in seen[declared.file]:
            if _is_declared_as(TestId.parse(test), declared):
                found.add(test)
    return found


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
    """Return what is lost, by the steps of the plan. A file that is lost twice counts
    as it is now.
    """
    kinds: dict[int, dict[str, _Kind]] = {}
    for loss in sorted(losses, key=lambda loss: loss.until):
        for touch in loss.touches:
            kinds.setdefault(touch.position, {})[touch.path] = loss.kind
    names: dict[int, list[str]] = {}
    for test in tests:
        names.setdefault(test.position, []).append(test.name)
    positions = {step.step_number: position for position, step in enumerate(steps)}
    found = []
    for step in plan.order():
        position = positions.get(step.number)
        if position is None or not (position in kinds or position in names):
            continue
        paths: dict[_Kind, list[str]] = {kind: [] for kind in _Kind}
        for path, kind in sorted(kinds.get(position, {}).items()):
            paths[kind].append(path)
        found.append(
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
    return tuple(found)
