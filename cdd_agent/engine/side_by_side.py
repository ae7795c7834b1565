"""Steps side by side: those run at once whose dependencies are done, whose declared
files are apart, and whose texts name no file that another of them declares.

How it works, and why nothing else of the engine has to know:

1. A step that can run beside others is attempted in a tree of its own (`side_tree.py`),
   made from the run's checkpoint: asked, applied, checked, and asked again after a
   failure, by the same `StepRunner`. All that was paid for (requests, replies,
   dialogues, failures, answers of a person) is kept in the attempt's own folder at
   once. What is done to files there (journal, checkpoints) is kept beside the tree, and
   goes with it.
2. What comes of it is brought into the person's tree by `Engine.run_step`, one step
   after the other, the first in the plan's order of those that are there: to the engine
   it is an interrupted step that goes on from its saved reply. So it is a transaction
   as any other, with its checkpoints, its journal and its check, now on top of all
   others.
3. A reply is used again only where every file that the model was shown, or that it has
   read or written with tools, is still what it was. Where another step or a person has
   changed one, the step is made anew on what is there now: once more beside the others,
   the next time in the person's tree. A check that fails there is followed by the next
   attempt there. So the files are in the end as if the steps had been run one after the
   other, in the order in which they were completed.
4. In the state, steps that are under way here are `in_progress`. After a kill they are
   found as interrupted ones that have not touched the person's files, and go on from
   their saved replies, side by side or not.

A step that names no files could touch any: it runs alone, at its place in the plan, in
the person's tree. So does one beside which nothing else can run.

A step whose attempts all failed does not stop those beside it. What it wrote last comes
into the person's tree when they are done, for a last check and to be looked at; where
others were completed meanwhile, it has all its attempts once more. Of several such
steps that is the first; the others are failed, and leave nothing in the tree.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.engine.attempt import AttemptFailure, AttemptOutcome
from cdd_agent.engine.known_before import KnownBefore
from cdd_agent.engine.ledger_entries import tree_after
from cdd_agent.engine.named_files import named
from cdd_agent.engine.restoring import Restorer
from cdd_agent.engine.side_claim import SideClaim
from cdd_agent.engine.side_tree import NoSideTrees, SideTree, SideTrees, remove_all
from cdd_agent.engine.steering import Steering
from cdd_agent.engine.step import StepRunner
from cdd_agent.errors import CddError
from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.events.step_events import AttemptFailed, StepStarted
from cdd_agent.events.stream import Emit, Event
from cdd_agent.frontend import OneAtATime
from cdd_agent.git.checkpoint import Checkpoint
from cdd_agent.process.policy import Permission
from cdd_agent.tickets.plan import PlanStep
from cdd_agent.tickets.status import Evidence, StepStatus
from cdd_agent.work_clock import WorkClock

if TYPE_CHECKING:
    from cdd_agent.engine.engine import Engine


class Failed(Struct, frozen=True):
    """The last attempt at a step, which failed."""

    reason: str
    failure: AttemptFailure
    evidence: Evidence | None
    base: Checkpoint | None = None
    """From which its tree was made, if it was in one."""


class SideBySide(Struct):
    """Carries out what is left of a plan, several steps at once."""

    engine: Engine
    jobs: int
    attempts: int
    trees: SideTrees
    base: Checkpoint | None = None
    """From which trees are made: after the step that was completed last. None at the
    beginning.
    """
    _beside: dict[asyncio.Task[None], int] = field(default_factory=dict)
    """Steps that are attempted in trees of their own."""
    _joining: dict[asyncio.Task[None], int] = field(default_factory=dict)
    """The step that is carried out in the person's tree, if there is one."""
    _waiting: set[int] = field(default_factory=set)
    """Steps that are to be brought into the person's tree."""
    _failed: dict[int, Failed] = field(default_factory=dict)
    """Steps whose attempts all failed, and that are to be seen once more in the
    person's tree.
    """
    _overlapped: set[int] = field(default_factory=set)
    """Steps that were made once more because of others."""
    _left: dict[int, int] = field(default_factory=dict)
    """Attempts that are left to steps."""
    _sweeping: set[asyncio.Task[None]] = field(default_factory=set)
    """Trees that are removed."""
    _is_stopping: bool = False
    """No other step begins."""
    _stopped_by: CddError | None = None
    _taking: asyncio.Lock = field(default_factory=asyncio.Lock)
    _quiet: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by whoever works in the person's tree, or asks them something."""

    @classmethod
    async def of(cls, engine: Engine, jobs: int, attempts: int) -> SideBySide | None:
        """None where steps can only be run one after the other. Raises `GitUnusable`,
        or `BadInput`.
        """
        run = engine.run
        try:
            trees = await SideTrees.of(run.ledger, engine.runner.commands.env)
        except NoSideTrees as reason:
            text = f"Steps run one after the other: {reason}."
            run.emit(Notice(text, Tone.WARNING, kind=NoticeKind.SIDE_BY_SIDE))
            return None
        return cls(engine, jobs, attempts, trees)

    async def carry_out(self) -> None:
        """Run to the end, or until nothing can go on beside a step that failed, or that
        ended the run.
        """
        try:
            while True:
                self._begin()
                if not (tasks := {**self._beside, **self._joining}):
                    break
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    self._beside.pop(task, None)
                    self._joining.pop(task, None)
                    task.result()
        finally:
            await self._end()
        self.engine.stopped_by = self._stopped_by

    def _begin(self) -> None:
        """Begin all that can begin now."""
        order = [step.number for step in self.engine.run.plan.order()]
        if self._waiting and not self._joining:
            number = min(self._waiting, key=order.index)
            self._waiting.discard(number)
            self._join(number)
        is_idle = not (self._beside or self._joining)
        if not self._is_stopping:
            if is_idle and not self._failed:
                self.engine.reread()
            # else that has to wait for what is under way
            if self.engine.is_plan_unchanged:
                self._begin_steps()
        if not (self._beside or self._joining) and self._failed:
            self._join(min(self._failed, key=order.index))

    def _begin_steps(self) -> None:
        run = self.engine.run
        under_way = {
            *self._beside.values(),
            *self._joining.values(),
            *self._waiting,
            *self._failed,
        }
        chosen = list[PlanStep]()
        claimed = list[SideClaim]()
        for step in run.plan.order():
            if run.state.step(step.number).status.is_over:
                continue
            claim = SideClaim.of_step(run.record.root, step)
            is_free = step.number not in under_way and all(
                run.state.step(n).status.is_over for n in step.dependencies
            )
            if not claim.files:
                if is_free and not (under_way or chosen):
                    self._join(step.number)
                    return
                break  # what comes later may need what it does
            if is_free and not any(map(claim.collides, claimed)):
                chosen.append(step)
            claimed.append(claim)
        if len(chosen) == 1 and not under_way:
            self._join(chosen[0].number)
            return
        for step in chosen[
            : max(0, self.jobs - len(self._beside) - len(self._joining))
        ]:
            self._beside[asyncio.create_task(self._make_beside(step))] = step.number

    # --------------------------------------------------------------------------
    # in a tree of its own

    async def _make_beside(self, step: PlanStep) -> None:
        """Attempt a step until one attempt passes its check, or all are used up; then
        it waits for its turn.
        """
        run, tree = self.engine.run, None
        try:
            base = await self._known_base()
            tree = await self.trees.make(run.state.step(step.number).folder, base)
            await self._attempts(step, tree, base)
        except CddError as error:
            if error is run.recorder.refused:
                raise
            self.engine.end_by(step, error)
            self._stop(error)
        finally:
            if tree is not None:
                self._sweeping.add(asyncio.create_task(self._sweep(tree)))

    async def _sweep(self, tree: SideTree) -> None:
        # in the end all that are left are removed, and then it is told
        with suppress(CddError):
            await self.trees.remove(tree)

    async def _known_base(self) -> Checkpoint:
        """Nothing is done in the person's tree before there is one."""
        async with self._taking:
            if self.base is None:
                changed = (
                    step.files for step in self.engine.run.state.all_steps.values()
                )
                self.base = await self.trees.base(
                    {path for one in changed for path in (*one.created, *one.modified)}
                )
            return self.base

    async def _attempts(self, step: PlanStep, tree: SideTree, base: Checkpoint) -> None:
        run, tell = self.engine.run, self._teller(step)
        runner, made = self._runner(tree, tell), list[int]()
        number, also_show = (
            self.engine.first_attempt(step, "", tree.root),
            self.engine.edited.get(step.number, frozenset()),
        )
        left = self._left.get(step.number, self.attempts)
        while True:
            outcome = await self._attempt(step, number, tree, runner, also_show, made)
            if outcome.verification is not None:
                self._waiting.add(step.number)
                break
            left -= not outcome.is_by_person
            tell(
                AttemptFailed(
                    step.number,
                    number,
                    outcome.reason,
                    will_retry=left > 0,
                    label=step.label,
                )
            )
            if left <= 0:
                self._failed[step.number] = Failed(
                    outcome.reason, outcome.failure, outcome.evidence, base
                )
                self._stop()
                break
            attempt = run.attempt(step.number, number, tree.record)
            attempt.save_failure(outcome.failure)
            Restorer(tree.record.root, [attempt]).restore()
            made.append(number)
            number += 1
        self._left[step.number] = max(left, 1)

    async def _attempt(
        self,
        step: PlanStep,
        number: int,
        tree: SideTree,
        runner: StepRunner,
        also_show: frozenset[str],
        made: Iterable[int],
    ) -> AttemptOutcome:
        run = self.engine.run
        attempt = run.attempt(step.number, number, tree.record)
        if number != run.state.step(step.number).last_attempt:
            attempt.begin("")
        run.begin_step(step)
        run.save(run.state.started(step, self.engine.clock(), attempt=number))
        runner.emit(
            StepStarted(
                step.number, step.title, number, side_tree=True, label=step.label
            )
        )
        run.recorder.check()
        earlier = [run.attempt(step.number, other, tree.record) for other in made]
        prompt = partial(run.prompt, step, number, also_show, root=tree.root)
        known_before = asyncio.to_thread(self.engine.known_before, step)
        async with KnownBefore(known_before, None, runner.emit) as known:
            outcome = await runner.attempt(
                step, prompt, attempt, known, tree.ledger, earlier
            )
        run.recorder.check()
        return outcome

    def _runner(self, tree: SideTree, tell: Emit) -> StepRunner:
        main, root = self.engine.runner, tree.root

        async def permit(command: str, reason: str) -> Permission:
            async with self._quiet:
                return await main.commands.permit(command, reason)

        def protected(place: Path) -> bool:
            return main.protected(
                main.root / place.relative_to(root)
                if place.is_relative_to(root)
                else place
            )

        return replace(
            main,
            root=root,
            approval=main.approval and main.approval.one_at_a_time(self._quiet),
            user=OneAtATime(main.user, self._quiet),
            protected=protected,
            commands=replace(
                main.commands,
                root=root,
                permit=permit,
                clock=WorkClock(),
                env=tree.packages.env(root, main.commands.env),
            ),
            emit=tell,
            steering=Steering(),
        )

    def _teller(self, step: PlanStep) -> Emit:
        emit = self.engine.run.teller()

        def tell(event: Event) -> None:
            emit(
                replace(event, step=step.number) if isinstance(event, Notice) else event
            )

        return tell

    # --------------------------------------------------------------------------
    # in the person's tree

    def _join(self, number: int) -> None:
        self._joining[asyncio.create_task(self._carry_out(number))] = number

    async def _carry_out(self, number: int) -> None:
        """Carry a step out in the person's tree; from its saved reply, if it was
        attempted beside others.
        """
        run, engine = self.engine.run, self.engine
        step = next(step for step in run.plan.steps if step.number == number)
        failed = self._failed.pop(number, None)
        is_last_word = failed is not None
        # what it lacked may be there by now
        if failed is not None and failed.base not in (
            None,
            self.base,
        ):
            self._left[number] = self.attempts
        async with self._quiet:
            if not (
                is_last_word or self._is_stopping or number in self._overlapped
            ) and (files := run.overlap(step)):
                self._overlapped.add(number)
                text = (
                    "Changed since it was made, by you or by another step:"
                    f" {named(files)}. It is made once more."
                )
                run.emit(Notice(text, kind=NoticeKind.SIDE_BY_SIDE, step=number))
                run.save(run.state.restore(number))
                self.base = None
                await self._known_base()
                return
            await engine.run_step(step, attempts=self._left.get(number, self.attempts))
            status = run.state.step(number).status
            if status.is_over:
                attempt = run.attempt(number, run.state.step(number).attempts)
                self.base = tree_after(attempt)
            if engine.stopped_by is not None:
                self._stop(engine.stopped_by)
            elif status is StepStatus.FAILED:
                self._stop()
                if not is_last_word and (self._beside or self._waiting or self._failed):
                    self._set_apart(step)
            elif is_last_word and not self._failed:
                self._is_stopping = self._stopped_by is not None
            if is_last_word and not status.is_over:
                for other, failure in self._failed.items():
                    engine.fail_side_step(other, failure)
                self._failed.clear()

    def _set_apart(self, step: PlanStep) -> None:
        """A step has failed in the person's tree, and makes room for those that are to
        come there.
        """
        run, number = self.engine.run, step.number
        now = run.state.step(number)
        attempt = run.attempt(number, now.attempts)
        text = (
            "What it wrote is restored until the steps beside it are done; then it is"
            " checked once more."
        )
        run.emit(Notice(text, kind=NoticeKind.SIDE_BY_SIDE, step=number))
        run.restore(number)
        self._failed[number] = Failed(
            now.error or "", attempt.failure or AttemptFailure(detail=""), now.evidence
        )
        attempt.forget_failure()
        run.save(run.state.restore(number))
        self._left[number] = 1

    def _stop(self, error: CddError | None = None) -> None:
        self._is_stopping = True
        self._stopped_by = self._stopped_by or error

    async def _end(self) -> None:
        """Stop what is under way, and put the steps in order: none of them has touched
        the person's tree.
        """
        run, stopped = self.engine.run, False
        for task in (*self._beside, *self._joining):
            task.cancel()
        while left := [
            task
            for task in (*self._beside, *self._joining, *self._sweeping)
            if not task.done()
        ]:
            try:
                await asyncio.wait(left)
            except asyncio.CancelledError:
                # once more; it is passed on when all is in order
                stopped = True
        for number, step in run.state.step_executions.items():
            if step.status is StepStatus.IN_PROGRESS:
                run.interrupt(number)
        try:
            await remove_all(run.ledger)
        except CddError as error:  # it is tried again when the run is opened next
            run.emit(
                Notice(f"{error.message} (it is not needed any more)", Tone.WARNING)
            )
        if stopped:
            raise asyncio.CancelledError
