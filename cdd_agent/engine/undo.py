"""Undo and redo of steps, by the ledger. A killed undo is finished at the next
start.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from msgspec import Struct

from cdd_agent.engine.ledger_entries import find_commands
from cdd_agent.engine.ledger_file import LedgerFile
from cdd_agent.engine.ledger_undo import carry_out_redo, carry_out_undo, enter_undo
from cdd_agent.engine.named_files import named
from cdd_agent.engine.record import GoingBack
from cdd_agent.engine.run import Run
from cdd_agent.errors import BadInput, CddError
from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.events.step_events import StepDiff, StepsRedone, StepsUndone, UndoPreview
from cdd_agent.files.json_file import stamp
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.threads import to_its_end
from cdd_agent.tickets.state import NO_FILES, StepExecution, Undo, match_state


class NotCarriedOut(BadInput):
    """The step was never carried out."""

    refusal = Refusal.CANNOT_UNDO

    def __init__(self, step: int, label: str, hint: str) -> None:
        super().__init__(f"Step {label} has not run", hint=hint)
        self.step = step


class ChangesUnknown(BadInput):
    """The step's record is not on this computer. Nothing was undone."""

    refusal = Refusal.CANNOT_UNDO

    def __init__(self, step: int, label: str) -> None:
        super().__init__(
            f"Step {label} cannot be undone: the record of its changes is missing here",
            hint="Records are in .cdd/runs on the machine where the step ran.",
        )
        self.step = step


class Undoing(Struct, frozen=True):
    """Undo, redo and diff of a recovered run (`Engine.recover`) without an undo under
    way.
    """

    run: Run

    async def undo(self, number: int | None = None) -> None:
        """See `Engine.undo`."""
        run = self.run
        run.lock.check()
        if not run.state.ended_steps():
            run.emit(Notice("No step has run yet.", kind=NoticeKind.NOT_DONE))
            return
        steps = self._steps_from(number)
        await asyncio.to_thread(run.restorer(*steps).plan_undo)
        undo = stamp()
        run.record.save_going_back(
            GoingBack(id=undo, steps=tuple(step.folder for step in steps))
        )
        await self.finish()

    def _steps_from(self, number: int | None) -> Sequence[StepExecution]:
        """Return this step, or the last, and all later ones. Raises `NotCarriedOut` or
        `ChangesUnknown`.
        """
        ended = self.run.state.ended_steps()
        steps = ended[ended.index(self._carried_out(number, ended)) :]
        for step in steps:
            if self._is_unknown(step):
                raise ChangesUnknown(step.step_number, self._label(step))
        return steps

    async def preview(self, number: int) -> UndoPreview:
        """Return what an undo would do now. Raises as `undo`."""
        run = self.run
        steps = self._steps_from(number)
        restorer = run.restorer(*steps)
        net = run.ledger.net(restorer.attempts)
        plan = await asyncio.to_thread(restorer.plan_undo)
        restored = {change.path for change in plan.changes}
        kept_paths = {*plan.kept, *(net.edited - net.paths)}
        return UndoPreview(
            tuple(step.step_number for step in steps),
            tuple(sorted(restored - net.edited.union(plan.merged))),
            tuple(sorted(kept_paths)),
            tuple(sorted(net.edited & net.paths - kept_paths)),
            tuple(plan.merged),
            others=await asyncio.to_thread(run.ledger.others, restorer.attempts),
            commits=tuple(name for step in steps for name in step.commits),
            commands=find_commands(restorer.attempts),
            labels=self._labels(steps),
        )

    async def redo(self) -> None:
        """See `Engine.redo`."""
        run = self.run
        run.lock.check()
        if not run.state.undone:
            run.emit(
                Notice(
                    "There is nothing to redo: nothing was undone, or another"
                    " step has run since."
                )
            )
            return
        undo = run.state.undone[-1]
        match_state(run.state.redo(), run.plan)
        steps = tuple(step.folder for step in undo.steps)
        run.record.save_going_back(GoingBack(id=undo.id, steps=steps, again=True))
        await self.finish()

    async def diff(self, number: int | None = None) -> None:
        """Show the changes of a step (default: the last). Raises `BadInput` if it did
        not run.
        """
        ended = self.run.state.ended_steps()
        if number is None and not ended:
            self.run.emit(Notice("No step has run yet.", kind=NoticeKind.NOT_DONE))
            return
        step = self._carried_out(number, ended)
        if self._is_unknown(step):
            text = (
                f"The changes of step {self._label(step)} are unknown, because"
                " its record is missing."
            )
            self.run.emit(Notice(text, Tone.WARNING))
            return
        shown = await self.run.ledger.diff(self.run.remaining_attempts(step))
        self.run.emit(
            StepDiff(step.step_number, step.title or "", shown, label=self._label(step))
        )

    async def finish(self) -> None:
        """Finish the recorded undo or redo, if any. Harmless when repeated after a
        kill.
        """
        run = self.run
        noted = run.record.going_back
        if noted is None:
            return
        event: StepsUndone | StepsRedone | None = None
        undone = next((undo for undo in run.state.undone if undo.id == noted.id), None)
        steps = [step for step in run.state.ended_steps() if step.folder in noted.steps]
        if noted.again and undone is not None:
            event = await self._redo(undone)
        elif not noted.again and undone is None and steps:
            event = await self._undo(noted.id, steps)
        run.record.settle_going_back()
        if event is not None:
            run.emit(event)

    async def _undo(self, undo: str, steps: Sequence[StepExecution]) -> StepsUndone:
        run = self.run
        restorer = run.restorer(*steps)
        attempts, file = restorer.attempts, self._ledger_of(steps)
        entry = await to_its_end(partial(enter_undo, restorer, file, undo), name="undo")
        back = await to_its_end(partial(carry_out_undo, restorer, entry), name="undo")
        run.save(run.state.undo(steps, undo))
        # name files that the user edited: they were kept, or an undo stops at the edit
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
            ticket_slug=run.ticket.slug,
            labels=self._labels(steps),
        )

    def _ledger_of(self, steps: Sequence[StepExecution]) -> LedgerFile:
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

    async def report_other_changes(self, step: StepExecution) -> None:
        """Report other files that changed while a restored step's commands and checks
        ran: they may be the user's. Errors are ignored, because nothing depends on it.
        """
        others: tuple[str, ...] = ()
        with suppress(CddError):
            attempts = self.run.remaining_attempts(step)
            others = await asyncio.to_thread(self.run.ledger.others, attempts)
        if others:
            text = (
                f"Changed while step {self._label(step)} ran, left unchanged:"
                f" {named(others)}"
            )
            self.run.emit(Notice(text, Tone.WARNING, kind=NoticeKind.LEFT_AS_IS))

    def _carried_out(
        self, number: int | None, ended: Sequence[StepExecution]
    ) -> StepExecution:
        """Return the step of this number, or the last one. `ended` are the steps that
        ran, in order.
        """
        if number is None:
            return ended[-1]
        for step in ended:
            if step.step_number == number:
                return step
        labels = ", ".join(map(self._label, ended))
        hint = f"Steps that have run, in this order: {labels}." if labels else ""
        raise NotCarriedOut(number, self.run.plan.label_of(number), hint)

    def _label(self, step: StepExecution) -> str:
        return self.run.plan.label_of(step.step_number)

    def _labels(self, steps: Sequence[StepExecution]) -> tuple[str, ...]:
        return tuple(map(self._label, steps))

    def _is_unknown(self, step: StepExecution) -> bool:
        attempts = self.run.remaining_attempts(step)
        is_known = any(attempt.entries for attempt in attempts)
        return not is_known and step.files != NO_FILES
