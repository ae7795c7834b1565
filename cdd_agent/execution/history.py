"""What each attempt changed, commands' effects included: to be shown, taken back and done again.

A checkpoint is taken just before an attempt's files are written, and one when its check is over. What differs between
the two is the attempt's doing; what somebody edits before or after is not. What they edit in just that time cannot be
told from the doings of a command. So the engine by itself takes back only files that a reply wrote (`record.py`), and
this is for when a person asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from cdd_agent.execution.record import Attempt, RunRecord, Span, stamp
from cdd_agent.workspace.checkpoints import Checkpoint, Checkpoints
from cdd_agent.workspace.taking_back import Change, TakenBack

_STORE = "checkpoints.git"


@dataclass
class History:
    """The checkpoints of one ticket's run."""

    record: RunRecord
    leave_out: tuple[str, ...] = ()
    """Patterns of files that are no part of them, as git's `:(glob)` has them."""
    _opened: Checkpoints | None = field(default=None, repr=False)

    async def open(self) -> Checkpoints:
        """Raises `GitUnusable`, or `BadInput` when the disk refuses."""
        if self._opened is None:
            record = self.record
            self._opened = await Checkpoints.open(record.root, record.folder / _STORE, record.slug, self.leave_out)
        return self._opened

    async def before(self, attempt: Attempt, paths: Sequence[str]) -> None:
        """To be called before the attempt changes anything; `paths` are the files that it will write."""
        attempt.save_span(Span(before=await self._take(attempt, "before", paths), paths=tuple(paths)))

    async def after(self, attempt: Attempt) -> None:
        """To be called when the attempt is over, and its check with it. Keeps the difference for people to read."""
        span = attempt.span
        assert span is not None
        span = span.model_copy(update={"after": await self._take(attempt, "after", span.paths)})
        attempt.save_span(span)
        attempt.save_diff(await self.diff([attempt]))

    async def take_back(self, attempts: Sequence[Attempt]) -> TakenBack:
        """Make everything that these attempts of a step changed as it was before, but for later edits of a person."""
        return await self._put_back(await self._net(attempts))

    async def do_again(self, attempts: Sequence[Attempt]) -> TakenBack:
        """The other way round: what was taken back, again, but for later edits of a person."""
        net = await self._net(attempts)
        return await self._put_back([replace(change, before=change.after, after=change.before) for change in net])

    async def diff(self, attempts: Sequence[Attempt]) -> str:
        """What these attempts of a step changed together, as a unified diff."""
        spans = _over(attempts)
        paths = [change.path for change in await self._net(attempts)]
        return await (await self.open()).diff(spans[0][0], spans[-1][1], paths) if paths else ""

    async def changed_since(self, attempt: Attempt) -> tuple[str, ...]:
        """What is not as it was before an attempt that was killed, beside the files that it wrote."""
        span = attempt.span
        if span is None or span.after is not None:
            return ()
        now = await self._take(attempt, "found", span.paths)
        changes = await (await self.open()).changes(span.before, now)
        return tuple(change.path for change in changes if change.path not in span.paths)

    async def _take(self, attempt: Attempt, moment: str, paths: Sequence[str]) -> Checkpoint:
        where = attempt.folder.relative_to(self.record.folder).as_posix()
        return await (await self.open()).take(f"{where}/{stamp()}-{moment}", paths)

    async def _net(self, attempts: Sequence[Attempt]) -> tuple[Change, ...]:
        """From before the first attempt that touched a file to after the last attempt.

        In between somebody may have edited other files: those are none of the attempts' doing.
        """
        spans = _over(attempts)
        if not spans:
            return ()
        checkpoints, last = await self.open(), spans[-1][1]
        net: dict[str, Change | None] = {}
        for before, after in spans:
            changes = await checkpoints.changes(before, after)
            touched = [change.path for change in changes if change.path not in net]
            if touched and after != last:
                changes = await checkpoints.changes(before, last)
            at_last = {change.path: change for change in changes}
            net |= {path: at_last.get(path) for path in touched}
        return tuple(change for change in net.values() if change is not None)

    async def _put_back(self, changes: Sequence[Change]) -> TakenBack:
        return await (await self.open()).put_back(changes) if changes else TakenBack()


def _over(attempts: Sequence[Attempt]) -> list[tuple[Checkpoint, Checkpoint]]:
    """The two checkpoints of each attempt that came to its end."""
    spans = (attempt.span for attempt in attempts)
    return [(span.before, span.after) for span in spans if span is not None and span.after is not None]
