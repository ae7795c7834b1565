"""Going back: steps are undone, and done again, as their checkpoints know what they
changed; a kill in between is made good by whoever comes next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from msgspec import Struct

from cdd_agent.engine.net_changes import NetChanges
from cdd_agent.engine.record import GoingBack
from cdd_agent.engine.run import Run, named
from cdd_agent.errors import BadInput, CddError
from cdd_agent.events import (
    About,
    Notice,
    StepDiff,
    StepsRedone,
    StepsUndone,
    Tone,
    UndoPreview,
)
from cdd_agent.files.json_file import stamp
from cdd_agent.git.restore import CheckpointGone, is_there
from cdd_agent.tickets.state import NO_FILES, StepExecution, Undo, match_state


class NotCarriedOut(BadInput):
    """A step to be undone, or to be shown, that nobody carried out."""

    def __init__(self, step: int, label: str, hint: str) -> None:
        super().__init__(f"Step {label} was not carried out", hint=hint)
        self.step = step


class ChangesUnknown(BadInput):
    """A step to be undone whose record is not on this machine; nothing was undone."""

    def __init__(self, step: int, label: str) -> None:
        super().__init__(
            f"What step {label} changed is not known here: its record is gone. Nothing"
            " was undone",
            hint=(
                "Records are in .cdd/runs, on the machine that a step was carried"
                " out on."
            ),
        )
        self.step = step


class Undoing(Struct, frozen=True):
    """Undo, redo and diff of a run that is in order (`Engine.recover`), with no other
    undo under way.
    """

    run: Run

    async def undo(self, number: int | None = None) -> None:
        """See `Engine.undo`. A step that was interrupted is the last one where its
        commands left something, and begins anew then.
        """
        run, history = self.run, self.run.history
        run.lock.check()
        left = [
            step
            for step in run.state.interrupted_steps()
            if await history.left(run.standing(step))
        ]
        known = (*run.state.ended_steps(), *left)
        if not known:
            run.emit(
                Notice("Nothing was carried out yet.", about=About.NOTHING_TO_UNDO)
            )
            return
        steps = known[known.index(self._carried_out(number, known)) :]
        for step in steps:
            if self._is_unknown(step):
                raise ChangesUnknown(step.step_number, self._label(step))
        undo = stamp()
        await history.expect(await self._to_be_undone(undo, steps))
        run.record.save_going_back(
            GoingBack(id=undo, steps=tuple(step.folder for step in steps))
        )
        await self.finish()

    async def preview(self, number: int) -> UndoPreview:
        """The effect that `undo` of this step would have now; nothing is changed.
        Raises as it does.
        """
        run = self.run
        known = run.state.ended_steps()
        steps = known[known.index(self._carried_out(number, known)) :]
        for step in steps:
            if self._is_unknown(step):
                raise ChangesUnknown(step.step_number, self._label(step))
        net = await run.history.net(run.standing(*steps))
        changed = {change.path for change in net.changes}
        root, restored, kept = run.record.root, set[str](), set(net.edited - changed)
        for change in net.changes:
            if await asyncio.to_thread(is_there, root, change.path, change.after):
                restored.add(change.path)
            elif not await asyncio.to_thread(
                is_there, root, change.path, change.before
            ):
                # else there is nothing to do
                kept.add(change.path)
        return UndoPreview(
            tuple(step.step_number for step in steps),
            tuple(sorted(restored - net.edited)),
            tuple(sorted(kept)),
            tuple(sorted(net.edited & changed - kept)),
            labels=self._labels(steps),
        )

    async def redo(self) -> None:
        """See `Engine.redo`."""
        run = self.run
        run.lock.check()
        if not run.state.undone:
            run.emit(
                Notice(
                    "There is no undo to be undone, or another step has been run since."
                )
            )
            return
        undo = run.state.undone[-1]
        match_state(run.state.redo(), run.plan)
        await run.history.expect(await self._undone(undo))
        steps = tuple(step.folder for step in undo.steps)
        run.record.save_going_back(GoingBack(id=undo.id, steps=steps, again=True))
        await self.finish()

    async def diff(self, number: int | None = None) -> None:
        """Show what a step, or the last one, changed. Raises `BadInput` for a step that
        was not carried out.
        """
        known = self.run.state.ended_steps()
        if number is None and not known:
            self.run.emit(
                Notice("Nothing was carried out yet.", about=About.NOTHING_TO_UNDO)
            )
            return
        step = self._carried_out(number, known)
        if self._is_unknown(step):
            text = (
                f"What step {self._label(step)} changed is not known: its record is"
                " gone."
            )
            self.run.emit(Notice(text, Tone.WARNING))
            return
        shown = await self.run.history.diff(self.run.standing(step))
        self.run.emit(
            StepDiff(step.step_number, step.title or "", shown, label=self._label(step))
        )

    async def finish(self) -> None:
        """An undo or a redo that was begun; after a kill perhaps a second time, which
        does no harm.
        """
        run = self.run
        going = run.record.going_back
        if going is None:
            return
        told: StepsUndone | StepsRedone | None = None
        undone = next((undo for undo in run.state.undone if undo.id == going.id), None)
        known = (*run.state.ended_steps(), *run.state.interrupted_steps())
        steps = [step for step in known if step.folder in going.steps]
        if going.again and undone is not None:
            back = await run.history.reapply(await self._undone(undone))
            run.save(run.state.redo())
            told = StepsRedone(
                tuple(step.step_number for step in undone.steps),
                back.restored,
                back.kept,
                labels=self._labels(undone.steps),
            )
        elif not going.again and undone is None and steps:
            net = await self._to_be_undone(going.id, steps)
            back = await run.history.restore(net)
            run.save(run.state.undo(steps, going.id))
            # What a person edited is named: it was left alone, or is what an undo
            # cannot go beyond.
            changed = {change.path for change in net.changes}
            edited = tuple(
                path for path in sorted(net.edited & changed) if path not in back.kept
            )
            told = StepsUndone(
                tuple(step.step_number for step in steps),
                tuple(path for path in back.restored if path not in edited),
                tuple(sorted({*back.kept, *(net.edited - changed)})),
                tuple(step.commit for step in steps if step.commit),
                edited,
                labels=self._labels(steps),
            )
        run.record.settle_going_back()
        if told is not None:
            run.emit(told)

    async def close_step(self, step: StepExecution) -> None:
        """Tell what is left of a step whose last attempt was restored, and name it: it
        may be yours.
        """
        if not step.remaining_attempts:
            return
        # a later attempt without a reply may have changed nothing
        attempt = next(
            (one for one in reversed(self.run.standing(step)) if one.span is not None),
            self.run.standing(step)[-1],
        )
        try:
            left = await self.run.history.close(attempt)
        except CheckpointGone:
            return
        if left:
            text = (
                f"Changed while step {self._label(step)} ran, and left as it is:"
                f" {named(left)}"
            )
            self.run.emit(
                Notice(f"{text} (`undo` restores it)", about=About.LEFT_AS_IS)
            )

    async def tell_what_is_left(self, number: int) -> None:
        """Tell what commands of an interrupted step made besides. Where that cannot be
        known, nothing hangs on it.
        """
        with suppress(CddError):
            if left := await self.run.history.left(
                self.run.standing(self.run.state.step(number))
            ):
                text = (
                    f"What commands of step {self.run.plan.label_of(number)} made"
                    f" besides is left as it is: {named(left)}"
                )
                self.run.emit(
                    Notice(f"{text} (`undo` restores it)", about=About.LEFT_AS_IS)
                )

    async def _to_be_undone(
        self, undo: str, steps: Sequence[StepExecution]
    ) -> NetChanges:
        attempts = self.run.standing(*steps)
        return await self.run.history.net(
            attempts, await self.run.history.present(undo, attempts)
        )

    async def _undone(self, undo: Undo) -> NetChanges:
        """The changes that an undo restored."""
        return await self.run.history.net(
            self.run.standing(*undo.steps), await self.run.history.found_by(undo.id)
        )

    def _carried_out(
        self, number: int | None, known: Sequence[StepExecution]
    ) -> StepExecution:
        """The step of this number, or the last one, of those that were carried out, in
        this order.
        """
        if number is None:
            return known[-1]
        for step in known:
            if step.step_number == number:
                return step
        labels = ", ".join(map(self._label, known))
        hint = f"Those that were, in this order: {labels}." if labels else ""
        raise NotCarriedOut(number, self.run.plan.label_of(number), hint)

    def _label(self, step: StepExecution) -> str:
        return self.run.plan.label_of(step.step_number)

    def _labels(self, steps: Sequence[StepExecution]) -> tuple[str, ...]:
        return tuple(map(self._label, steps))

    def _is_unknown(self, step: StepExecution) -> bool:
        """Whether it changed files of which no checkpoint tells what they were
        before.
        """
        spans = (attempt.span for attempt in self.run.standing(step))
        is_known = any(span is not None and span.after is not None for span in spans)
        return not is_known and step.files != NO_FILES
