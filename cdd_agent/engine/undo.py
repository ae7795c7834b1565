"""Going back: steps are undone, and done again, by what the ledger says. A kill in
between is made good by whoever comes next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from msgspec import Struct

from cdd_agent.engine.ledger_file import LedgerFile
from cdd_agent.engine.ledger_undo import carry_out_redo, carry_out_undo, enter_undo
from cdd_agent.engine.named_files import named
from cdd_agent.engine.record import GoingBack
from cdd_agent.engine.run import Run
from cdd_agent.errors import BadInput, CddError
from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.events.step_events import StepDiff, StepsRedone, StepsUndone, UndoPreview
from cdd_agent.files.json_file import stamp
from cdd_agent.threads import to_its_end
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
        """See `Engine.undo`."""
        run = self.run
        run.lock.check()
        known = run.state.ended_steps()
        if not known:
            run.emit(Notice("Nothing was carried out yet.", kind=NoticeKind.NOT_DONE))
            return
        steps = known[known.index(self._carried_out(number, known)) :]
        for step in steps:
            if self._is_unknown(step):
                raise ChangesUnknown(step.step_number, self._label(step))
        await asyncio.to_thread(run.restorer(*steps).plan_undo)
        undo = stamp()
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
        restorer = run.restorer(*steps)
        net = run.ledger.net(restorer.attempts)
        plan = await asyncio.to_thread(restorer.plan_undo)
        restored = {change.path for change in plan.changes}
        kept = {*plan.kept, *(net.edited - net.paths)}
        return UndoPreview(
            tuple(step.step_number for step in steps),
            tuple(sorted(restored - net.edited.union(plan.merged))),
            tuple(sorted(kept)),
            tuple(sorted(net.edited & net.paths - kept)),
            tuple(plan.merged),
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
                Notice("Nothing was carried out yet.", kind=NoticeKind.NOT_DONE)
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
        shown = await self.run.ledger.diff(self.run.standing(step))
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
        known = run.state.ended_steps()
        steps = [step for step in known if step.folder in going.steps]
        if going.again and undone is not None:
            told = await self._redo(undone)
        elif not going.again and undone is None and steps:
            told = await self._undo(going.id, steps)
        run.record.settle_going_back()
        if told is not None:
            run.emit(told)

    async def _undo(self, undo: str, steps: Sequence[StepExecution]) -> StepsUndone:
        run = self.run
        restorer = run.restorer(*steps)
        attempts, file = restorer.attempts, self._ledger_of(steps)
        entry = await to_its_end(partial(enter_undo, restorer, file, undo), name="undo")
        back = await to_its_end(partial(carry_out_undo, restorer, entry), name="undo")
        run.save(run.state.undo(steps, undo))
        # What a person edited is named: it was left alone, or is what an undo cannot go
        # beyond.
        net = run.ledger.net(attempts)
        edited = tuple(
            path for path in sorted(net.edited & net.paths) if path not in back.kept
        )
        return StepsUndone(
            tuple(step.step_number for step in steps),
            tuple(path for path in back.restored if path not in edited),
            tuple(sorted({*back.kept, *(net.edited - net.paths)})),
            tuple(name for step in steps for name in step.commits),
            edited,
            merged=back.merged,
            others=run.ledger.others(attempts),
            labels=self._labels(steps),
        )

    def _ledger_of(self, steps: Sequence[StepExecution]) -> LedgerFile:
        """Return the ledger in which an undo of these steps is entered."""
        return self.run.record.attempt(steps[0].folder, 1).ledger

    async def _redo(self, undo: Undo) -> StepsRedone:
        run, file = self.run, self._ledger_of(undo.steps)
        restorer = run.restorer(*undo.steps)
        back = await to_its_end(
            partial(carry_out_redo, restorer, file, undo.id), name="redo"
        )
        run.save(run.state.redo())
        return StepsRedone(
            tuple(step.step_number for step in undo.steps),
            back.restored,
            back.kept,
            merged=back.merged,
            labels=self._labels(undo.steps),
        )

    async def tell_what_is_left(self, step: StepExecution) -> None:
        """Tell which other files changed while commands and checks of a step ran that
        was restored: they may be the person's. Where that cannot be known, nothing
        depends on it.
        """
        with suppress(CddError):
            others = await asyncio.to_thread(
                self.run.ledger.others, self.run.standing(step)
            )
            if others:
                text = (
                    f"Changed while step {self._label(step)} ran, and left as it is:"
                    f" {named(others)}"
                )
                self.run.emit(Notice(text, Tone.WARNING, kind=NoticeKind.LEFT_AS_IS))

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
        """True if it changed files, and no ledger tells what they were before."""
        attempts = self.run.standing(step)
        is_known = any(attempt.entries for attempt in attempts)
        return not is_known and step.files != NO_FILES
