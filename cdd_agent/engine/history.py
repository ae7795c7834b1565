"""The changes of each attempt, commands' effects included: to be shown, restored and
done again.

A checkpoint is taken just before an attempt's files are written, and one when its check
is over. What differs between the two is the attempt's doing; what somebody edits before
or after is not. One more is taken whenever a command is over: of an attempt that is
interrupted, what differs until then is its doing; it begins with another one when it
goes on. What somebody edits in just that time cannot be told from the doings of a
command. So the engine by itself takes back only files that a reply wrote
(`journal.py`), and this is for when a person asks.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.engine.attempt import Attempt, AttemptCheckpoints
from cdd_agent.engine.net_changes import Between, NetChanges, Segment, fold
from cdd_agent.engine.record import RunRecord
from cdd_agent.errors import BadInput
from cdd_agent.files.json_file import stamp
from cdd_agent.git.checkpoint import Checkpoint, Checkpoints
from cdd_agent.git.diff import Change, TreeEntry
from cdd_agent.git.restore import CheckpointGone, RestoreResult, is_there
from cdd_agent.project.tree_needs import SHARED
from cdd_agent.verification.lost_tests import Versions

STORE = "checkpoints.git"
OpenCheckpoints = Callable[[Path, Path, str, Sequence[str]], Awaitable[Checkpoints]]
"""Opens the checkpoints of a project, as `Checkpoints.open` does."""


def no_part(root: Path, own: Iterable[str]) -> tuple[str, ...]:
    """Patterns of what is in no checkpoint of a project: the runs' own files,
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


class History(Struct):
    """The checkpoints of one ticket's run."""

    record: RunRecord
    leave_out: tuple[str, ...] = ()
    """Patterns of files that are no part of them, as git's `:(glob)` has them."""
    _opened: Checkpoints | None = None
    _told: frozenset[str] = frozenset()
    open_checkpoints: OpenCheckpoints = Checkpoints.open

    async def open(self) -> Checkpoints:
        """Raises `GitUnusable`, or `BadInput` when the disk refuses."""
        if self._opened is None:
            record = self.record
            self._opened = await self.open_checkpoints(
                record.root, record.folder / STORE, record.slug, self.leave_out
            )
        return self._opened

    async def before(self, attempt: Attempt, paths: Sequence[str]) -> None:
        """To be called before the attempt changes anything, also when it goes on after
        an interruption; `paths` are the files that it will write.
        """
        earlier = span.segments(is_interrupted=True) if (span := attempt.span) else ()
        before = await self._take(attempt, "before", paths)
        attempt.save_span(
            AttemptCheckpoints(before=before, paths=tuple(paths), earlier=earlier)
        )

    async def also(self, attempt: Attempt, paths: Sequence[str]) -> tuple[str, ...]:
        """To be called before more files are written than `before` was told. Those that
        its checkpoint misses because git ignores them are returned: then none may be
        written.
        """
        span = attempt.span
        assert span is not None, "an attempt begins with a checkpoint"
        new = [path for path in paths if path not in span.paths]
        missed = await (await self.open()).ignored(span.before, new)
        if new and not missed:
            attempt.save_span(replace(span, paths=(*span.paths, *new)))
        return tuple(sorted(missed))

    async def saw(self, attempt: Attempt) -> None:
        """To be called when a command of the attempt is over: what differs by now is
        the attempt's doing, also when it is interrupted later.
        """
        if (span := attempt.span) is not None and span.after is None:
            attempt.save_span(
                replace(span, seen=await self._take(attempt, "seen", span.paths))
            )

    async def saw_beside(self, attempt: Attempt) -> None:
        """The same in a tree beside the person's: what commands made there of other
        files than the step's own is kept, to be done again in theirs.
        """
        await self.saw(attempt)
        span = attempt.span
        if span is not None and span.seen is not None:
            checkpoints, own = await self.open(), attempt.journal.paths
            found = [
                change
                for change in await checkpoints.changes(span.before, span.seen)
                if change.path not in own
            ]
            async with checkpoints.contents(found) as contents:
                attempt.save_beside(found, contents)

    async def left(self, attempts: Sequence[Attempt]) -> tuple[str, ...]:
        """Files that still are as these attempts made them."""
        changes = (await self.net(attempts)).changes
        root = self.record.root
        still = [
            change.path
            for change in changes
            if await asyncio.to_thread(is_there, root, change.path, change.after)
        ]
        return tuple(still)

    def unseen(self) -> tuple[str, ...]:
        """Files that could not be read, and so are in no checkpoint; each is named
        once.
        """
        opened = self._opened
        unseen = opened.unseen.union(opened.uncovered) if opened else frozenset()
        new, self._told = unseen - self._told, self._told | unseen
        return tuple(sorted(new))

    async def after(self, attempt: Attempt) -> None:
        """To be called when the attempt is over, and its check with it. Keeps the
        difference for people to read.

        Raises `BadInput` when the record was removed meanwhile.
        """
        span = attempt.span
        if span is None:
            raise BadInput(
                f"{attempt.folder} was removed while the step ran, and with it the"
                " record of what it changed",
                hint="Does the check clean the project? It must leave .cdd/runs alone.",
            )
        attempt.save_span(
            replace(span, after=await self._take(attempt, "after", span.paths))
        )
        if attempt.side is None:
            attempt.save_diff(await self.diff([attempt]))

    async def close(self, attempt: Attempt) -> tuple[str, ...]:
        """To be called when an attempt was restored for good. Returns what it changed
        beside the files it wrote.
        """
        span = attempt.span
        if span is None or not span.segments():
            return ()
        left = await self.net([attempt])
        attempt.save_span(
            replace(span, closed=await self._take(attempt, "closed", span.paths))
        )
        return tuple(
            change.path for change in left.changes if change.path not in span.paths
        )

    async def net(
        self, attempts: Sequence[Attempt], until: Checkpoint | None = None
    ) -> NetChanges:
        """The net changes of these attempts, be it of several steps, in the order in
        which it came about (a step that was interrupted may have gone on after another
        one), and what became of that `until` a later checkpoint.

        Raises `CheckpointGone`.
        """
        spans = [span for attempt in attempts if (span := attempt.span) is not None]
        ours = sorted(
            (segment for span in spans for segment in span.settled),
            key=lambda each: each.before.moment,
        )
        if not ours:
            return NetChanges()
        checkpoints, row, last = await self.open(), list[Segment](), ours[0].before
        for segment in ours:
            row += (Between(last, segment.before), segment)
            last = segment.after
        if until is not None:
            row.append(Between(last, until))
        return fold(
            [
                (segment, await checkpoints.changes(segment.before, segment.after))
                for segment in row
            ]
        )

    async def found_by(self, undo: str) -> Checkpoint | None:
        """The project as an undo found it, if that is still known."""
        return await (await self.open()).find(_of_undo(undo))

    async def present(self, undo: str, attempts: Sequence[Attempt]) -> Checkpoint:
        """The same; taken now, where the undo of these attempts only begins."""
        paths = {
            path
            for attempt in attempts
            if (span := attempt.span)
            for path in span.paths
        }
        return await self.found_by(undo) or await (await self.open()).take(
            _of_undo(undo), paths
        )

    async def versions(
        self, attempts: Sequence[Attempt], wanted: Callable[[str], bool]
    ) -> tuple[Versions, ...]:
        """The files that these attempts changed together, as they were before and
        after, of those that are wanted. Where a checkpoint of an earlier one is gone,
        only what the last one changed is known. Raises `CheckpointGone`.
        """
        try:
            net = await self.net(attempts)
        except CheckpointGone:
            if len(attempts) == 1:
                raise
            net = await self.net(attempts[-1:])
        changes = [change for change in net.changes if wanted(change.path)]
        found = await (await self.open()).read(changes)
        return tuple(Versions(change.path, *found[change.path]) for change in changes)

    async def find_files(
        self, attempt: Attempt, paths: Collection[str]
    ) -> dict[str, TreeEntry | None]:
        """Return these files as they were when an attempt was over, see
        `Checkpoints.find_files`. Empty for an attempt without a last checkpoint.
        """
        span = attempt.span
        if span is None or span.after is None:
            return {}
        return await (await self.open()).find_files(span.after, paths)

    async def read_files(
        self, entries: Mapping[str, TreeEntry]
    ) -> dict[str, bytes | None]:
        """Return the contents of files of a checkpoint; of very long ones, the
        beginning. Raises `CheckpointGone`.
        """
        changes = [Change(path, None, entry) for path, entry in entries.items()]
        contents = await (await self.open()).read(changes)
        return {path: after for path, (_, after) in contents.items()}

    async def by_commands(self, attempts: Sequence[Attempt]) -> frozenset[str]:
        """The files that differ since a command of these attempts: their checks came
        later. Of an attempt whose checkpoint is gone, nothing is known.
        """
        spans = [span for attempt in attempts if (span := attempt.span) is not None]
        looks = [
            (segment.before, segment.after)
            for span in spans
            for segment in span.earlier
        ]
        looks += [(span.before, span.seen) for span in spans if span.seen is not None]
        found: set[str] = set()
        for before, seen in looks:
            with suppress(CheckpointGone):
                found |= {
                    change.path
                    for change in await (await self.open()).changes(before, seen)
                }
        return frozenset(found)

    async def expect(self, net: NetChanges) -> None:
        """Raises `CheckpointGone` where it could be neither restored nor done again."""
        checkpoints = await self.open()
        await checkpoints.expect_contents((*net.changes, *net.reverse))

    async def restore(self, net: NetChanges) -> RestoreResult:
        """Make everything as it was before, but for edits of a person."""
        return await (await self.open()).restore(net.changes)

    async def reapply(self, net: NetChanges) -> RestoreResult:
        """The other way round: what was restored, again, but for later edits of a
        person.
        """
        return await (await self.open()).restore(net.reverse)

    async def diff(self, attempts: Sequence[Attempt]) -> str:
        """The net changes of these attempts of a step, as a unified diff."""
        net = await self.net(attempts)
        if net.last is None:
            return ""
        paths: dict[Checkpoint, list[str]] = {}
        for change in net.changes:
            paths.setdefault(net.since[change.path], []).append(change.path)
        checkpoints = await self.open()
        return "".join(
            [
                await checkpoints.diff(since, net.last, changed)
                for since, changed in paths.items()
            ]
        )

    async def changed_since(self, attempt: Attempt) -> tuple[str, ...]:
        """Files that are not as they were when an attempt that was killed was last
        looked at, beside those that it wrote: a command may have changed them, or
        anybody since.
        """
        span = attempt.span
        if span is None or span.after is not None:
            return ()
        now = await self._take(attempt, "found", span.paths)
        changes = await (await self.open()).changes(span.seen or span.before, now)
        return tuple(change.path for change in changes if change.path not in span.paths)

    async def _take(
        self, attempt: Attempt, moment: str, paths: Sequence[str]
    ) -> Checkpoint:
        where = attempt.doings.relative_to(self.record.folder).as_posix()
        return await (await self.open()).take(f"{where}/{stamp()}-{moment}", paths)


def _of_undo(undo: str) -> str:
    return f"undo/{undo}"
