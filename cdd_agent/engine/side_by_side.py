"""Runs steps at the same time whose dependencies are completed, and that neither
declare the same files nor name each other's.

1. Each step is attempted in a side tree (`side_tree.py`), made from the run's
   checkpoint, by the same `StepRunner`. Requests, replies, dialogues, failures and
   answers are saved in the attempt's folder at once. The side tree's ledger and
   checkpoints are removed with it.
2. `Engine.run_step` brings results into the user's tree, one at a time in plan order.
   To the engine each is an interrupted step that continues from its saved reply: a
   normal transaction, with its own checkpoints, ledger and check.
3. A reply is reused only if every file that the model saw or wrote is unchanged.
   Otherwise the step is made again from the current files: once more in a side tree,
   then in the user's tree. If a check fails in the user's tree, the next attempt is
   there, too. So the result is the same as if the steps had run in the order of their
   completion.
4. Running steps are `in_progress` in the state. After a kill they are interrupted steps
   without changes in the user's files.

A step that names no files could change any, so it runs alone in the user's tree, at its
place in the plan. So does a step that nothing else can accompany.

A step whose attempts all failed does not stop the others. Afterwards its last attempt
is brought into the user's tree, checked once more, and left there. If other steps were
completed since, it has all its attempts again. Of several such steps, this happens to
the first; the others fail and leave nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.engine.attempt import AttemptFailure, AttemptOutcome
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
from cdd_agent.process.work_clock import WorkClock
from cdd_agent.refusals.kinds import id_of
from cdd_agent.tickets.plan import PlanStep
from cdd_agent.tickets.status import Evidence, StepStatus

if TYPE_CHECKING:
    from cdd_agent.engine.engine import Engine


class Failed(Struct, frozen=True):
    """The last failed attempt at a step."""

    reason: str
    failure: AttemptFailure
    evidence: Evidence | None
    base: Checkpoint | None = None
    refusal: str = ""
    """The id of the kind of failure."""


class SideBySide(Struct):
    """Runs the remaining steps, several at once."""

    engine: Engine
    jobs: int
    attempts: int
    trees: SideTrees
    base: Checkpoint | None = None
    """The checkpoint for new trees, after the last completed step. None at first."""
    _side_tasks: dict[asyncio.Task[None], int] = field(default_factory=dict)
    """Task → number of its step, in a side tree."""
    _joining_tasks: dict[asyncio.Task[None], int] = field(default_factory=dict)
    """Task → number of its step, in the user's tree. At most one."""
    _waiting: set[int] = field(default_factory=set)
    """Steps waiting for the user's tree."""
    _failed: dict[int, Failed] = field(default_factory=dict)
    """Steps whose attempts all failed, to be checked once more in the user's tree."""
    _repeated_steps: set[int] = field(default_factory=set)
    """Steps repeated because another change overlapped."""
    _remaining: dict[int, int] = field(default_factory=dict)
    """Remaining attempts of each step."""
    _removing_tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _is_stopping: bool = False
    """True if no further step begins."""
    _stopped_by: CddError | None = None
    _checkpoint_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _user_tree_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while working in the user's tree or asking the user."""

    @classmethod
    async def of(cls, engine: Engine, jobs: int, attempts: int) -> SideBySide | None:
        """Prepare to run steps at once; None if they can only run in sequence. Raises
        `GitUnusable` or `BadInput`.
        """
        run = engine.run
        try:
            trees = await SideTrees.of(run.ledger, engine.runner.commands.env)
        except NoSideTrees as reason:
            text = f"Steps run one after another: {reason}."
            run.emit(Notice(text, Tone.WARNING, kind=NoticeKind.SIDE_BY_SIDE))
            return None
        return cls(engine, jobs, attempts, trees)

    async def carry_out(self) -> None:
        """Run to the end, or until nothing can continue after a failed step or an
        error.
        """
        try:
            while True:
                self._begin()
                tasks = {**self._side_tasks, **self._joining_tasks}
                if not tasks:
                    break
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    self._side_tasks.pop(task, None)
                    self._joining_tasks.pop(task, None)
                    task.result()
        finally:
            await self._end()
        self.engine.stopped_by = self._stopped_by

    def _begin(self) -> None:
        order = [step.number for step in self.engine.run.plan.order()]
        if self._waiting and not self._joining_tasks:
            number = min(self._waiting, key=order.index)
            self._waiting.discard(number)
            self._join(number)
        is_idle = not (self._side_tasks or self._joining_tasks)
        if not self._is_stopping:
            if is_idle and not self._failed:
                self.engine.reread()
            # steps of an edited plan begin after the running ones
            if self.engine.is_plan_unchanged:
                self._begin_steps()
        if not (self._side_tasks or self._joining_tasks) and self._failed:
            self._join(min(self._failed, key=order.index))

    def _remaining_steps(self) -> Iterator[PlanStep]:
        run = self.engine.run
        for step in run.plan.order():
            if not run.state.step(step.number).status.is_over:
                yield step

    def _is_ready(self, step: PlanStep) -> bool:
        state = self.engine.run.state
        return all(state.step(number).status.is_over for number in step.dependencies)

    def _begin_steps(self) -> None:
        run = self.engine.run
        under_way = {
            *self._side_tasks.values(),
            *self._joining_tasks.values(),
            *self._waiting,
            *self._failed,
        }
        chosen = list[PlanStep]()
        claimed = list[SideClaim]()
        for step in self._remaining_steps():
            claim = SideClaim.of_step(run.record.root, step)
            is_free = step.number not in under_way and self._is_ready(step)
            if not claim.files:
                if is_free and not (under_way or chosen):
                    self._join(step.number)
                    return
                break  # later steps may need its changes
            if is_free and not any(map(claim.collides, claimed)):
                chosen.append(step)
            claimed.append(claim)
        if len(chosen) == 1 and not under_way:
            self._join(chosen[0].number)
            return
        free = max(0, self.jobs - len(self._side_tasks) - len(self._joining_tasks))
        for step in chosen[:free]:
            self._side_tasks[asyncio.create_task(self._make_beside(step))] = step.number

    # --------------------------------------------------------------------------
    # in a side tree

    async def _make_beside(self, step: PlanStep) -> None:
        """Attempt a step in a side tree until a check passes or no attempt remains.
        Then it waits for the user's tree.
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
                self._removing_tasks.add(asyncio.create_task(self._sweep(tree)))

    async def _sweep(self, tree: SideTree) -> None:
        # `_end` removes all trees again, and reports errors
        with suppress(CddError):
            await self.trees.remove(tree)

    async def _known_base(self) -> Checkpoint:
        """Return the checkpoint for trees, taken before the user's tree changes."""
        async with self._checkpoint_lock:
            if self.base is None:
                written: set[str] = set()
                for step in self.engine.run.state.all_steps.values():
                    written.update(step.files.created, step.files.modified)
                self.base = await self.trees.base(written)
            return self.base

    async def _attempts(self, step: PlanStep, tree: SideTree, base: Checkpoint) -> None:
        run, emit = self.engine.run, self._emit_for(step)
        runner, made = self._runner(tree, emit), list[int]()
        number = self.engine.first_attempt(step, "", tree.root)
        also_show = self.engine.edited.get(step.number, frozenset())
        remaining = self._remaining.get(step.number, self.attempts)
        while True:
            outcome = await self._attempt(step, number, tree, runner, also_show, made)
            if outcome.verification is not None:
                self._waiting.add(step.number)
                break
            if not outcome.is_by_person:
                remaining -= 1
            emit(
                AttemptFailed(
                    step.number,
                    number,
                    outcome.reason,
                    will_retry=remaining > 0,
                    last_attempt=number + remaining,
                    label=step.label,
                    refusal=id_of(outcome.refusal),
                )
            )
            if remaining <= 0:
                self._failed[step.number] = Failed(
                    outcome.reason,
                    outcome.failure,
                    outcome.evidence,
                    base,
                    id_of(outcome.refusal),
                )
                self._stop()
                break
            attempt = run.attempt(step.number, number, tree.record)
            attempt.save_failure(outcome.failure)
            Restorer(tree.record.root, [attempt]).restore()
            made.append(number)
            number += 1
        self._remaining[step.number] = max(remaining, 1)

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
        before = await asyncio.to_thread(self.engine.known_before, step)
        outcome = await runner.attempt(
            step, run.plan, prompt, attempt, before, tree.ledger, earlier
        )
        run.recorder.check()
        return outcome

    def _runner(self, tree: SideTree, emit: Emit) -> StepRunner:
        main, root = self.engine.runner, tree.root

        async def permit(command: str, reason: str) -> Permission:
            async with self._user_tree_lock:
                return await main.commands.permit(command, reason)

        def protected(place: Path) -> bool:
            if place.is_relative_to(root):
                place = main.root / place.relative_to(root)
            return main.protected(place)

        return replace(
            main,
            root=root,
            approval=main.approval.one_at_a_time(self._user_tree_lock),
            user=OneAtATime(main.user, self._user_tree_lock),
            protected=protected,
            commands=replace(
                main.commands,
                root=root,
                permit=permit,
                clock=WorkClock(),
                env=tree.packages.env(root, main.commands.env),
            ),
            emit=emit,
            steering=Steering(),
        )

    def _emit_for(self, step: PlanStep) -> Emit:
        """Return an `emit` that adds the step's number to notices."""
        emit = self.engine.run.teller()

        def emit_with_step(event: Event) -> None:
            if isinstance(event, Notice):
                event = replace(event, step=step.number)
            emit(event)

        return emit_with_step

    # --------------------------------------------------------------------------
    # in the user's tree

    def _join(self, number: int) -> None:
        self._joining_tasks[asyncio.create_task(self._carry_out(number))] = number

    async def _carry_out(self, number: int) -> None:
        run, engine = self.engine.run, self.engine
        step = next(step for step in run.plan.steps if step.number == number)
        failed = self._failed.pop(number, None)
        is_last_word = failed is not None
        # other steps may have added what it lacked
        if failed is not None and failed.base not in (None, self.base):
            self._remaining[number] = self.attempts
        async with self._user_tree_lock:
            is_first_time = not is_last_word and number not in self._repeated_steps
            if is_first_time and not self._is_stopping:
                files = run.overlap(step)
                if files:
                    await self._make_again(step, files)
                    return
            attempts = self._remaining.get(number, self.attempts)
            await engine.run_step(step, attempts=attempts)
            self._take_result(step, is_last_word=is_last_word)

    def _take_result(self, step: PlanStep, *, is_last_word: bool) -> None:
        """Decide what follows a step in the user's tree. `is_last_word`: all its
        attempts failed in a side tree.
        """
        run, engine, number = self.engine.run, self.engine, step.number
        status = run.state.step(number).status
        if status.is_over:
            attempt = run.attempt(number, run.state.step(number).attempts)
            self.base = tree_after(attempt)
        if engine.stopped_by is not None:
            self._stop(engine.stopped_by)
        elif status is StepStatus.FAILED:
            self._stop()
            if not is_last_word and (self._side_tasks or self._waiting or self._failed):
                self._set_apart(step)
        elif is_last_word and not self._failed:
            self._is_stopping = self._stopped_by is not None
        if is_last_word and not status.is_over:
            self._fail_set_apart()

    def _fail_set_apart(self) -> None:
        for step, failure in self._failed.items():
            self.engine.fail_side_step(step, failure)
        self._failed.clear()

    async def _make_again(self, step: PlanStep, files: Sequence[str]) -> None:
        """Make a step pending, because these files have changed since its attempt."""
        run, number = self.engine.run, step.number
        self._repeated_steps.add(number)
        text = (
            "Running the step again, because you or another step changed its"
            f" files: {named(files)}."
        )
        run.emit(Notice(text, kind=NoticeKind.SIDE_BY_SIDE, step=number))
        run.save(run.state.restore(number))
        self.base = None
        await self._known_base()

    def _set_apart(self, step: PlanStep) -> None:
        run, number = self.engine.run, step.number
        now = run.state.step(number)
        attempt = run.attempt(number, now.attempts)
        text = (
            "Its changes are set aside until the steps running next to it are"
            " done. Then it is checked again."
        )
        run.emit(Notice(text, kind=NoticeKind.SIDE_BY_SIDE, step=number))
        run.restore(number)
        self._failed[number] = Failed(
            now.error or "",
            attempt.failure or AttemptFailure(detail=""),
            now.evidence,
            refusal=now.refusal,
        )
        attempt.forget_failure()
        run.save(run.state.restore(number))
        self._remaining[number] = 1

    def _stop(self, error: CddError | None = None) -> None:
        self._is_stopping = True
        self._stopped_by = self._stopped_by or error

    async def _end(self) -> None:
        """Stop running steps and make them pending. None has changed the user's
        tree.
        """
        run, was_cancelled = self.engine.run, False
        for task in (*self._side_tasks, *self._joining_tasks):
            task.cancel()
        while True:
            tasks = (*self._side_tasks, *self._joining_tasks, *self._removing_tasks)
            running = [task for task in tasks if not task.done()]
            if not running:
                break
            try:
                await asyncio.wait(running)
            except asyncio.CancelledError:
                # raised again after restoring all steps
                was_cancelled = True
        for number, step in run.state.step_executions.items():
            if step.status is StepStatus.IN_PROGRESS:
                run.interrupt(number)
        try:
            await remove_all(run.ledger)
        except CddError as error:  # the next start retries
            run.emit(Notice(f"{error.message} (no longer needed)", Tone.WARNING))
        if was_cancelled:
            raise asyncio.CancelledError
