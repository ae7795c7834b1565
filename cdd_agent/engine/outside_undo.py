"""Undo, redo and diff of changes outside of tickets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from msgspec import Struct

from cdd_agent.engine.ledger_undo import carry_out_redo, carry_out_undo, enter_undo
from cdd_agent.engine.named_files import named
from cdd_agent.engine.outside import OutsideChange, OutsideChanges, in_words
from cdd_agent.engine.record import GoingBack
from cdd_agent.engine.restoring import RestorePlan, Restorer
from cdd_agent.errors import BadInput
from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.events.outside_events import (
    OutsideDiff,
    OutsideRedone,
    OutsideUndone,
)
from cdd_agent.events.question_events import UndoProposed
from cdd_agent.events.stream import Emit
from cdd_agent.files.json_file import stamp
from cdd_agent.git.restore import CheckpointGone
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.threads import to_its_end

_STEPS = (1,)
"""A change's step in its record."""
_NOTHING = {
    "undo": "There is nothing more to undo outside of tickets.",
    "redo": (
        "There is nothing to redo outside of tickets, or a later change replaced it."
    ),
    "diff": "There are no changes outside of tickets, or all are undone.",
}


class OutsideUndoing(Struct, frozen=True):
    """One undo or redo at a time."""

    changes: OutsideChanges
    emit: Emit

    async def undo(self, change: OutsideChange | None = None) -> None:
        """Undo a change (default: the last not undone). Raises `CddError`."""
        with self._locked():
            if await self._finish_interrupted(again=False):
                return
            if change is None:
                change = last_standing(self.changes.all())
            else:
                change = OutsideChange.load(change.record)
            if change is None:
                self._report_nothing("undo")
                return
            if change.is_undone:
                text = f"{change.name}, `{change.what}`, is undone already."
                self.emit(Notice(text, kind=NoticeKind.NOT_DONE))
                return
            with _held(change):
                await asyncio.to_thread(_plan_undo, change)
                change.record.save_going_back(GoingBack(id=stamp(), steps=_STEPS))
                await self._finish(change)

    async def redo(self, change: OutsideChange | None = None) -> None:
        """Reverse an undo, by default the last, unless something changed since. Raises
        `CddError`.
        """
        with self._locked():
            if await self._finish_interrupted(again=True):
                return
            if change is None:
                change = last_undone(self.changes.all())
            if change is None or change.last_undo is None:
                self._report_nothing("redo")
                return
            with _held(change):
                undo = change.last_undo.by
                change.record.save_going_back(
                    GoingBack(id=undo, steps=_STEPS, again=True)
                )
                await self._finish(change)

    async def diff(self, change: OutsideChange | None = None) -> None:
        """Show a change (default: the last not undone). Raises `CddError`."""
        change = change or last_standing(self.changes.all())
        if change is None:
            self._report_nothing("diff")
            return
        shown = await change.ledger.diff([change.attempt])
        self.emit(OutsideDiff(change.what, in_words(change.at), shown))
        if change.others:
            text = (
                "Commands changed these files, too; `undo` leaves them"
                f" unchanged: {named(change.others)}"
            )
            self.emit(Notice(text, Tone.WARNING, kind=NoticeKind.LEFT_AS_IS))

    async def finish_interrupted(self, *, again: bool) -> bool:
        """Finish a killed undo or redo. True if it had the requested direction. Raises
        `CddError`.
        """
        with self._locked():
            return await self._finish_interrupted(again=again)

    async def _finish_interrupted(self, *, again: bool) -> bool:
        is_done = False
        for change in self.changes.all():
            going = change.record.going_back
            if going is not None:
                with _held(change):
                    await self._finish(change)
                is_done = is_done or going.again is again
        return is_done

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock of undo and redo, if there are changes."""
        if not self.changes.all():
            yield
            return
        lock = self.changes.take_lock()
        try:
            yield
        finally:
            lock.release()

    async def _finish(self, change: OutsideChange) -> None:
        """Harmless when repeated."""
        going = change.record.going_back
        assert going is not None
        work: Callable[[OutsideChange, str], OutsideUndone | OutsideRedone] = _undo
        if going.again:
            work = _redo
        event = await to_its_end(partial(work, change, going.id), name="undo")
        change.record.settle_going_back()
        self.emit(event)

    def _report_nothing(self, word: str) -> None:
        text = f"{_NOTHING[word]} For the steps of a ticket, add its name:"
        self.emit(Notice(f"{text} `/{word} SLUG`.", kind=NoticeKind.NOT_DONE))


def last_standing(changes: Sequence[OutsideChange]) -> OutsideChange | None:
    standing = [change for change in changes if not change.is_undone]
    return standing[-1] if standing else None


def last_undone(changes: Sequence[OutsideChange]) -> OutsideChange | None:
    """Return the last undone change, if nothing changed since."""
    undone = [change for change in changes if change.is_undone]
    if not undone:
        return None
    last = max(undone, key=lambda change: change.entries[-1].at)
    standing = last_standing(changes)
    if standing is not None and standing.last_change > last.entries[-1].at:
        return None
    return last


def propose_undo(change: OutsideChange) -> UndoProposed:
    """Return what an undo would do now. Raises `BadInput` if a saved content is
    gone.
    """
    plan = _plan_undo(change)
    restored = {file.path for file in plan.changes}
    return UndoProposed(
        change.title,
        restored=tuple(sorted(restored.difference(plan.merged))),
        kept=tuple(plan.kept),
        merged=tuple(plan.merged),
        others=change.others,
        commands=change.commands,
    )


def _undo(change: OutsideChange, undo: str) -> OutsideUndone:
    restorer = _restorer(change)
    entry = enter_undo(restorer, change.attempt.ledger, undo)
    back = carry_out_undo(restorer, entry)
    return OutsideUndone(
        change.what,
        in_words(change.at),
        back.restored,
        back.kept,
        back.merged,
        change.others,
    )


def _redo(change: OutsideChange, undo: str) -> OutsideRedone:
    file = change.attempt.ledger
    back = carry_out_redo(_restorer(change), file, undo)
    at = in_words(change.at)
    return OutsideRedone(change.what, at, back.restored, back.kept, back.merged)


def _restorer(change: OutsideChange) -> Restorer:
    return Restorer(change.record.root, [change.attempt])


def _plan_undo(change: OutsideChange) -> RestorePlan:
    """Raises `BadInput` if a saved content is gone."""
    try:
        return _restorer(change).plan_undo()
    except CheckpointGone as error:
        folder = change.record.folder.relative_to(change.record.root)
        raise BadInput(
            f"`{change.what}` cannot be undone: its saved files are no longer in"
            f" {folder.as_posix()}",
            hint="Delete that folder to undo earlier changes.",
            refusal=Refusal.CANNOT_UNDO,
        ) from error


@contextmanager
def _held(change: OutsideChange) -> Iterator[None]:
    """Raises `TicketTaken` if the work is under way."""
    lock = change.take_lock()
    try:
        yield
    finally:
        lock.release()
