"""Undo, redo and diff of changes outside of tickets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Literal

from msgspec import Struct

from cdd_agent.engine.ledger_undo import carry_out_redo, carry_out_undo, enter_undo
from cdd_agent.engine.named_files import named
from cdd_agent.engine.outside import OutsideChange, OutsideChanges, in_words
from cdd_agent.engine.record import GoingBack
from cdd_agent.engine.restoring import Restorer
from cdd_agent.errors import BadInput
from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.events.outside_events import (
    OutsideDiff,
    OutsideListed,
    OutsideRedone,
    OutsideUndone,
    OutsideView,
)
from cdd_agent.events.stream import Emit
from cdd_agent.files.json_file import stamp
from cdd_agent.git.restore import CheckpointGone
from cdd_agent.threads import to_its_end

Word = Literal["undo", "redo", "diff", "list"]
_SHOWN = 20
"""Changes in the list."""
_STEPS = (1,)
"""The step of a change, as its record has it."""


class OutsideUndoing(Struct, frozen=True):
    """Goes back and forth through the changes outside of tickets, one at a time."""

    changes: OutsideChanges
    emit: Emit

    async def carry_out(self, word: Word) -> None:
        """Do what the user typed. Raises `CddError`."""
        match word:
            case "undo":
                await self.undo()
            case "redo":
                await self.redo()
            case "diff":
                await self.diff()
            case "list":
                await self.list()

    async def undo(self) -> None:
        """Undo the last change that stands. Raises `CddError`."""
        with self._locked():
            if await self._finish_earlier(again=False):
                return
            change = last_standing(self.changes.all())
            if change is None:
                self._tell_nothing("undo")
                return
            with _held(change):
                await asyncio.to_thread(_expect_contents, change)
                change.record.save_going_back(GoingBack(id=stamp(), steps=_STEPS))
                await self._finish(change)

    async def redo(self) -> None:
        """Undo the last undo, unless something was changed since. Raises `CddError`."""
        with self._locked():
            if await self._finish_earlier(again=True):
                return
            change = next_to_redo(self.changes.all())
            if change is None or change.last_undo is None:
                self._tell_nothing("redo")
                return
            with _held(change):
                undo = change.last_undo.by
                change.record.save_going_back(
                    GoingBack(id=undo, steps=_STEPS, again=True)
                )
                await self._finish(change)

    async def diff(self) -> None:
        """Show the last change that stands. Raises `CddError`."""
        change = last_standing(self.changes.all())
        if change is None:
            self._tell_nothing("diff")
            return
        shown = await change.ledger.diff([change.attempt])
        self.emit(OutsideDiff(change.what, in_words(change.at), shown))
        if change.others:
            text = (
                "Commands changed these files, too; `undo` leaves them"
                f" unchanged: {named(change.others)}"
            )
            self.emit(Notice(text, Tone.WARNING, kind=NoticeKind.LEFT_AS_IS))

    async def list(self) -> None:
        """Show the last changes. Raises `CddError`."""
        changes = await asyncio.to_thread(self.changes.all)
        views = [_view(change) for change in reversed(changes[-_SHOWN:])]
        self.emit(OutsideListed(tuple(views)))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock of undo and redo, if there is anything to undo."""
        if not self.changes.all():
            yield
            return
        lock = self.changes.take_lock()
        try:
            yield
        finally:
            lock.release()

    async def _finish_earlier(self, *, again: bool) -> bool:
        """Finish an undo or redo whose process was killed. Returns True if that was all
        that the user asks for.
        """
        is_done = False
        for change in self.changes.all():
            going = change.record.going_back
            if going is not None:
                with _held(change):
                    await self._finish(change)
                is_done = is_done or going.again is again
        return is_done

    async def _finish(self, change: OutsideChange) -> None:
        """Bring an undo or redo to its end. Harmless when repeated."""
        going = change.record.going_back
        assert going is not None
        work: Callable[[OutsideChange, str], OutsideUndone | OutsideRedone] = _undo
        if going.again:
            work = _redo
        event = await to_its_end(partial(work, change, going.id), name="undo")
        change.record.settle_going_back()
        self.emit(event)

    def _tell_nothing(self, word: str) -> None:
        texts = {
            "undo": "There is nothing more to undo outside of tickets.",
            "redo": (
                "There is nothing to redo outside of tickets, or a later change"
                " replaced it."
            ),
            "diff": "There are no changes outside of tickets, or all are undone.",
        }
        text = f"{texts[word]} For the steps of a ticket, add its name: `{word} SLUG`."
        self.emit(Notice(text, kind=NoticeKind.NOT_DONE))


def last_standing(changes: Sequence[OutsideChange]) -> OutsideChange | None:
    """Return the last change that is not undone."""
    standing = [change for change in changes if not change.is_undone]
    return standing[-1] if standing else None


def next_to_redo(changes: Sequence[OutsideChange]) -> OutsideChange | None:
    """Return the change that was undone last, if nothing was changed since."""
    undone = []
    for change in reversed(changes):
        if not change.is_undone:
            break
        undone.append(change)
    return undone[-1] if undone else None


def is_newer(changes: OutsideChanges, moment: str) -> bool:
    """True if something outside of tickets was changed or undone since a moment, in the
    form of `stamp`. Raises `Damaged`.
    """
    return any(change.entries[-1].at > moment for change in changes.all())


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


def _expect_contents(change: OutsideChange) -> None:
    """Raise `BadInput` if a saved content is gone."""
    try:
        _restorer(change).plan_undo()
    except CheckpointGone as error:
        folder = change.record.folder.relative_to(change.record.root)
        raise BadInput(
            f"`{change.what}` cannot be undone: its saved files are no longer in"
            f" {folder.as_posix()}",
            hint="Delete that folder to undo earlier changes.",
        ) from error


@contextmanager
def _held(change: OutsideChange) -> Iterator[None]:
    """Hold a change while it is undone. Raises `TicketTaken` if it is under way."""
    lock = change.take_lock()
    try:
        yield
    finally:
        lock.release()


def _view(change: OutsideChange) -> OutsideView:
    return OutsideView(
        change.what,
        in_words(change.at),
        change.files,
        change.others,
        change.is_undone,
        change.is_under_way,
    )
