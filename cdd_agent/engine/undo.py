"""Going back: steps are undone, and done again, as their checkpoints know what they changed; a kill in between is made
good by whoever comes next.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from cdd_agent.engine.net_changes import NetChanges
from cdd_agent.engine.record import GoingBack
from cdd_agent.engine.run import Run, named
from cdd_agent.errors import BadInput, CddError
from cdd_agent.events import About, Notice, StepDiff, StepsRedone, StepsUndone, Tone
from cdd_agent.files.json_file import stamp
from cdd_agent.git.restore import CheckpointGone, RestoreResult
from cdd_agent.tickets.state import StepExecution, Undo, of_plan


class NotCarriedOut(BadInput):
    """A step to be undone, or to be shown, that nobody carried out."""

    def __init__(self, step: int, hint: str) -> None:
        super().__init__(f"Step {step} was not carried out", hint=hint)
        self.step = step


class ChangesUnknown(BadInput):
    """A step to be undone whose record is not on this machine; nothing was undone."""

    def __init__(self, step: int) -> None:
        super().__init__(
            f"What step {step} changed is not known here: its record is gone. Nothing was undone",
            hint="Records are in .cdd/runs, on the machine that a step was carried out on.",
        )
        self.step = step


@dataclass(frozen=True)
class Undoing:
    """Undo, redo and diff of a run that is in order (`Engine.recover`), with no other undo under way."""

    run: Run

    async def undo(self, number: int | None = None) -> None:
        """Go back to before a step, or before the last one: it and those after it are pending again. A step that was
        interrupted is the last one where its commands left something, and begins anew then.

        Raises `BadInput` for a step that was not carried out, `CheckpointGone` where what it changed cannot be known
        any more; then nothing was changed.
        """
        self.run.lock.check()
        known = (*self.run.state.settled(), *await self._left_something())
        if not known:
            self.run.emit(Notice("Nothing was carried out yet.", about=About.NOTHING_TO_UNDO))
            return
        first = known.index(self._carried_out(number, known))
        for step in known[first:]:
            if self._unknown(step):
                raise ChangesUnknown(step.step_number)
        undo = stamp()
        await self.run.history.expect(await self._to_be_undone(undo, known[first:]))
        steps = tuple(step.folder for step in known[first:])
        self.run.record.save_going_back(GoingBack(id=undo, steps=steps))
        await self.finish()

    async def redo(self) -> None:
        """Undo the last undo. Not any more when another step was run or skipped since.

        Raises `BadInput` where the plan is another one by now, or `CheckpointGone`.
        """
        self.run.lock.check()
        if not self.run.state.undone:
            self.run.emit(Notice("There is no undo to be undone, or another step has been run since."))
            return
        undo = self.run.state.undone[-1]
        of_plan(self.run.state.redo(), self.run.plan)
        await self.run.history.expect(await self._undone(undo))
        steps = tuple(step.folder for step in undo.steps)
        self.run.record.save_going_back(GoingBack(id=undo.id, steps=steps, again=True))
        await self.finish()

    async def diff(self, number: int | None = None) -> None:
        """Show what a step, or the last one, changed. Raises `BadInput` for a step that was not carried out."""
        if number is None and not self.run.state.settled():
            self.run.emit(Notice("Nothing was carried out yet.", about=About.NOTHING_TO_UNDO))
            return
        step = self._carried_out(number, self.run.state.settled())
        if self._unknown(step):
            text = f"What step {step.step_number} changed is not known: its record is gone."
            self.run.emit(Notice(text, Tone.WARNING))
            return
        shown = await self.run.history.diff(self.run.standing(step))
        self.run.emit(StepDiff(step.step_number, step.title or "", shown))

    async def finish(self) -> None:
        """An undo or a redo that was begun; after a kill perhaps a second time, which does no harm."""
        going = self.run.record.going_back
        if going is None:
            return
        told: StepsUndone | StepsRedone | None = None
        undone = next((undo for undo in self.run.state.undone if undo.id == going.id), None)
        known = (*self.run.state.settled(), *self.run.state.interrupted())
        steps = [step for step in known if step.folder in going.steps]
        if going.again and undone is not None:
            back = await self.run.history.reapply(await self._undone(undone))
            self.run.save(self.run.state.redo())
            told = StepsRedone(_numbers(undone.steps), back.restored, back.kept)
        elif not going.again and undone is None and steps:
            net = await self._to_be_undone(going.id, steps)
            back = await self.run.history.restore(net)
            self.run.save(self.run.state.undo(steps, going.id))
            told = _told(steps, net, back)
        self.run.record.settle_going_back()
        if told is not None:
            self.run.emit(told)

    async def close_step(self, step: StepExecution) -> None:
        """Tell what is left of a step whose last attempt was restored, and name it: it may be yours."""
        if not step.standing:
            return
        attempt = self.run.standing(step)[-1]
        try:
            left = await self.run.history.close(attempt)
        except CheckpointGone:
            return
        if left:
            text = f"Changed while step {step.step_number} ran, and left as it is: {named(left)}"
            self.run.emit(Notice(f"{text} (`undo` restores it)", about=About.LEFT_AS_IS))

    async def tell_what_is_left(self, number: int) -> None:
        """Tell what commands of an interrupted step made besides. Where that cannot be known, nothing hangs on it."""
        with suppress(CddError):
            if left := await self.run.history.left(self.run.standing(self.run.state.of(number))):
                text = f"What commands of step {number} made besides is left as it is: {named(left)}"
                self.run.emit(Notice(f"{text} (`undo` restores it)", about=About.LEFT_AS_IS))

    async def _to_be_undone(self, undo: str, steps: Sequence[StepExecution]) -> NetChanges:
        attempts = self.run.standing(*steps)
        return await self.run.history.net(attempts, await self.run.history.present(undo, attempts))

    async def _undone(self, undo: Undo) -> NetChanges:
        """What an undo restored."""
        return await self.run.history.net(self.run.standing(*undo.steps), await self.run.history.found_by(undo.id))

    async def _left_something(self) -> tuple[StepExecution, ...]:
        """The interrupted steps of which something is still there."""
        steps = self.run.state.interrupted()
        return tuple([step for step in steps if await self.run.history.left(self.run.standing(step))])

    def _carried_out(self, number: int | None, known: Sequence[StepExecution]) -> StepExecution:
        """The step of this number, or the last one, of those that were carried out, in this order."""
        if number is None:
            return known[-1]
        for step in known:
            if step.step_number == number:
                return step
        numbers = ", ".join(str(step.step_number) for step in known)
        hint = f"Those that were, in this order: {numbers}." if numbers else ""
        raise NotCarriedOut(number, hint)

    def _unknown(self, step: StepExecution) -> tuple[str, ...]:
        """The files of a step of which no checkpoint tells what they were before."""
        spans = (attempt.span for attempt in self.run.standing(step))
        is_known = any(span is not None and span.after is not None for span in spans)
        return () if is_known else (*step.files_created, *step.files_modified, *step.files_deleted)


def _told(steps: Sequence[StepExecution], net: NetChanges, back: RestoreResult) -> StepsUndone:
    """What a person edited is named: it was left alone, or is what an undo cannot go beyond."""
    changed = {change.path for change in net.changes}
    kept = tuple(sorted({*back.kept, *(net.edited - changed)}))
    edited = tuple(path for path in sorted(net.edited & changed) if path not in back.kept)
    restored = tuple(path for path in back.restored if path not in edited)
    commits = tuple(step.commit for step in steps if step.commit)
    return StepsUndone(_numbers(steps), restored, kept, commits, edited)


def _numbers(steps: Sequence[StepExecution]) -> tuple[int, ...]:
    return tuple(step.step_number for step in steps)
