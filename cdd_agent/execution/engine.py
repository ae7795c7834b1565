"""The engine: carries a plan out step by step, saves at every transition, and tells what happens as events.

A step is a transaction. Its attempt is journalled before it is written; a failed attempt is put back before the
next one, an interrupted step is put back at once (or, after a kill, when the run is opened again) and goes on from
its saved reply. The files of the last failed attempt stay for the person to look at until they retry or skip.

Putting a step back touches only files that its reply wrote, and that are still as it wrote them: what else has changed
may be a person's work. `undo` and `redo` cover what commands did, too.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Self

from cdd_agent.errors import BadInput, BudgetExhausted, CddError, NotApproved
from cdd_agent.events import (
    AttemptFailed,
    ChangesPutBack,
    Event,
    Notice,
    PlanOpened,
    RunFinished,
    StepCommitted,
    StepDiff,
    StepFinished,
    StepsRedone,
    StepStarted,
    StepsUndone,
    Tone,
)
from cdd_agent.execution.accepted import accepted, known_so_far
from cdd_agent.execution.history import History
from cdd_agent.execution.lock import TicketLock
from cdd_agent.execution.opening import drift, open_state
from cdd_agent.execution.prompt import Earlier, Prompt, step_digest, step_prompt
from cdd_agent.execution.record import Attempt, Failure, GoingBack, RunRecord, stamp
from cdd_agent.execution.step import Outcome, StepRunner
from cdd_agent.execution.step_commit import step_message
from cdd_agent.llm.port import RateLimited
from cdd_agent.tickets.drift import is_same
from cdd_agent.tickets.plan import ImplementationPlan, PlanStep
from cdd_agent.tickets.spec import TicketSpec
from cdd_agent.tickets.state import NO_FILES, ExecutionState, Files, StepExecution, of_plan, ready, save_state
from cdd_agent.tickets.status import StepStatus
from cdd_agent.tickets.store import Ticket
from cdd_agent.workspace.commits import CommitRefused, already_committed, commit_files, expect_ready
from cdd_agent.workspace.files import digest, read_bytes, remove_leftovers
from cdd_agent.workspace.reading import holds_secrets
from cdd_agent.workspace.redaction import Redactor
from cdd_agent.workspace.taking_back import CheckpointGone

_NAMED = 6
"""Files that are named in a sentence."""
_UNDECIDED = (NotApproved, BudgetExhausted, RateLimited)
"""What ends a step without a word on it: it is pending again, and goes on when a person or a provider lets it."""

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


@dataclass
class Engine:
    """One ticket's run. While it is open it holds the ticket's lock: there is one writer of the state."""

    ticket: Ticket
    spec: TicketSpec
    plan: ImplementationPlan
    state: ExecutionState
    record: RunRecord
    history: History
    runner: StepRunner
    lock: TicketLock
    commits: bool = False
    """Each completed step's files are committed on the user's branch."""
    clock: Clock = utc_now
    stopped_by: CddError | None = None
    """What ended the last step besides its own check, for whoever turns it into an exit code."""
    told_later: list[Event] = field(default_factory=list)
    """What happened while nobody could be told."""
    _recovered: bool = False

    @classmethod
    def open(
        cls,
        root: Path,
        ticket: Ticket,
        runner: StepRunner,
        clock: Clock = utc_now,
        *,
        own: Iterable[str] = (),
        commits: bool = False,
        start_over: bool = False,
    ) -> Self:
        """Read the ticket and take its lock. `start_over` sets aside what an earlier run has kept; `own` are files and
        folders that this program writes beside `.cdd`, relative to `root`: no step is blamed for them.

        Raises `BadInput` for a plan that cannot run, a state that cannot be read or is another plan's, or when another
        process is at work on the ticket.
        """
        plan = ticket.read_plan()
        plan.check(ticket.shown(ticket.plan_path))
        runner.check_commands(plan)
        spec = ticket.read_spec()
        record = RunRecord.of(root, ticket.slug, Redactor.of_environment(runner.commands.settings.hide_env))
        record.prepare()
        lock = TicketLock.take(record.folder, ticket.slug, clock().isoformat())
        try:
            record.tidy()
            remove_leftovers(ticket.folder)
            opened = open_state(ticket, plan, record, start_over=start_over)
        except BaseException:
            lock.release()
            raise
        history = History(record, _no_part_of_checkpoints((*own, ticket.shown(ticket.folder))))
        return cls(
            ticket, spec, plan, opened.state, record, history, runner, lock, commits, clock, told_later=[*opened.news]
        )

    def close(self) -> None:
        self.lock.release()

    @property
    def next_step(self) -> PlanStep | None:
        """The step that would run now: pending, interrupted, or failed. None when all are over."""
        return ready(self.plan, self.state)

    def opened(self) -> PlanOpened:
        return PlanOpened.of(self.spec.title, self.plan, self.state)

    def summary(self) -> RunFinished:
        return RunFinished.of(self.plan, self.state)

    async def recover(self) -> AsyncGenerator[Event, None]:
        """Put in order what a killed run, or a stopped undo, left; and once, say what else there is to know.

        Where a person's edit is in the way of putting a step back, the run waits: it is told, and in `stopped_by`.
        Everything that changes something begins with this.
        """
        if not self._recovered:
            async with aclosing(self._recover()) as events:
                async for event in events:
                    yield event
            self._recovered = True
        async with aclosing(self._bring_going_back_to_its_end()) as events:
            async for event in events:
                yield event

    async def _recover(self) -> AsyncGenerator[Event, None]:
        if self.runner.commands.settings.mode == "unsafe":
            yield Notice("`commands.mode` is unsafe: checks run in a real shell, whatever they say.", Tone.WARNING)
        for lack in self.spec.missing() if self.next_step is not None else ():
            yield Notice(f"{self.ticket.shown(self.ticket.spec_path)} is not complete: {lack}", Tone.WARNING)
        for event in (*self.news(), *drift(self.plan, self.state)):
            yield event
        known = {**self.state.former_steps, **self.state.step_executions}
        for number, found in known.items():
            if found.status is StepStatus.IN_PROGRESS:
                async with aclosing(self._recover_step(number, found)) as events:
                    async for event in events:
                        yield event

    async def _recover_step(self, number: int, found: StepExecution) -> AsyncGenerator[Event, None]:
        """A step that was under way when its process was killed."""
        others = await self._changed_since(found)
        kept = self._put_back(number)
        self._save(self.state.put_back(number))
        yield Notice(f"Step {number} was interrupted and {self._how_it_goes_on(number)}.", Tone.WARNING)
        if others:
            text = f"Changed while step {number} ran, or since, and left as it is: {_named(others)}"
            yield Notice(text, Tone.WARNING)
        for event in self.news():
            yield event
        if kept:
            self.stopped_by = NotApproved(
                f"You have edited {_named(kept)} since: the run waits for you to look at it",
                hint="To go on, run it again: the step then begins with your edit, and the model is shown it.",
            )
            yield Notice(self.stopped_by.message, Tone.WARNING)
            yield Notice(self.stopped_by.hint)

    async def _changed_since(self, found: StepExecution) -> tuple[str, ...]:
        """What is only good to know: where it cannot be known any more, nothing hangs on it."""
        with suppress(CheckpointGone):
            if found.attempts:
                return await self.history.changed_since(self.record.attempt(found.step_number, found.attempts))
        return ()

    def _how_it_goes_on(self, number: int) -> str:
        step = next((step for step in self.plan.steps if step.number == number), None)
        now = self.state.of(number)
        if step is None or not now.attempts:
            return "starts again"
        attempt = self.record.attempt(number, now.attempts)
        if not self._goes_on(step, now) or (attempt.reply is None and not attempt.dialogue):
            return "starts again"
        return "goes on from its saved reply" if attempt.reply is not None else "goes on where it was"

    def news(self) -> list[Event]:
        """What happened while nobody could be told, because whoever listened had left; told once."""
        news, self.told_later = self.told_later, []
        return news

    async def run_step(self, step: PlanStep, *, guidance: str = "", attempts: int = 1) -> AsyncGenerator[Event, None]:
        """Run a step until it is completed, or `attempts` attempts failed.

        A step that was interrupted goes on with its saved reply, if it has one and there is no new guidance.
        Whatever else ends it (the model's endpoint, the disk, no approval) is told, and kept in `stopped_by`.
        """
        is_first_look = not self._recovered
        async with aclosing(self.recover()) as events:
            async for event in events:
                yield event
        if is_first_look and self.stopped_by is not None:
            return
        self.stopped_by = None
        await self._prepare()
        first = self._attempt_number(step, guidance)
        self._start_from_the_beginning(step, first)
        also_show = frozenset[str]()
        for number in range(first, first + attempts):
            kept = self._put_back(step.number)
            also_show |= frozenset(path for path in kept if not holds_secrets(PurePosixPath(path).name))
            for event in self.news():
                yield event
            if number == first:
                async with aclosing(self._baseline(step)) as events:
                    async for event in events:
                        yield event
            outcome: Outcome | None = None
            async with aclosing(self._attempt(step, number, guidance, also_show)) as items:
                async for item in items:
                    if isinstance(item, Outcome):
                        outcome = item
                    else:
                        yield item
            if outcome is None or outcome.verification is not None:
                break
            yield AttemptFailed(step.number, number, outcome.error, will_retry=number < first + attempts - 1)
        for event in (*self.news(), StepFinished.of(step, self.plan, self.state), *self._why_stopped()):
            yield event

    async def run_all(self, *, attempts: int = 1) -> AsyncGenerator[Event, None]:
        """Run to the end, or to the first step that fails; as the plan is when a step begins."""
        async with aclosing(self._bring_going_back_to_its_end()) as events:
            async for event in events:
                yield event
        while (step := self.next_step) is not None:
            async with aclosing(self.run_step(step, attempts=attempts)) as events:
                async for event in events:
                    yield event
            if not self.state.of(step.number).status.over or self.stopped_by is not None:
                break
            for event in self.reread():
                yield event
        yield self.summary()

    def reread(self) -> list[Event]:
        """Take up a plan that was edited meanwhile. Raises `BadInput` for one that cannot be run."""
        plan = self.ticket.read_plan()
        if plan == self.plan:
            return []
        plan.check(self.ticket.shown(self.ticket.plan_path))
        self.runner.check_commands(plan)
        self.state = of_plan(self.state, plan)
        self.plan = plan
        return [Notice("The plan was edited; the run goes on as it says now."), *drift(plan, self.state), self.opened()]

    async def _prepare(self) -> None:
        """Raises `CddError` where no step could be run, before anything is paid for."""
        self.lock.check()
        await self.history.open()  # without checkpoints no step begins
        if self.commits:
            await expect_ready(self.runner.root)

    async def skip(self, step: PlanStep, reason: str, *, keep: bool) -> AsyncGenerator[Event, None]:
        """Leave a step out. What a failed attempt left behind is put back, unless it is to be kept."""
        async with aclosing(self.recover()) as events:
            async for event in events:
                yield event
        self.lock.check()
        before = self.state.of(step.number)
        if not keep:
            self._put_back(step.number)
            await self._close(before)
            for event in self.news():
                yield event
        files = before.files if keep else NO_FILES
        why = self.record.redactor.redact(reason)
        self._save(self.state.skipped(step.number, self.clock(), why, files))
        yield StepFinished.of(step, self.plan, self.state)
        dependents = [other.number for other in self.plan.steps if step.number in other.dependencies]
        if dependents:
            one, names = len(dependents) == 1, ", ".join(map(str, dependents))
            who = f"Step {names} depends" if one else f"Steps {names} depend"
            yield Notice(f"{who} on it and will run without its result.", Tone.WARNING)

    async def undo(self, number: int | None = None) -> AsyncGenerator[Event, None]:
        """Go back to before a step, or before the last one: it and those after it are pending again.

        One that was killed, or stopped, is brought to its end instead. Raises `BadInput` for a step that was not
        carried out, `CheckpointGone` where what it changed cannot be known any more; then nothing was changed.
        """
        was_begun = self.record.going_back is not None
        async with aclosing(self.recover()) as events:
            async for event in events:
                yield event
        if was_begun:
            return
        self.lock.check()
        settled = self.state.settled()
        if not settled:
            yield Notice("Nothing was carried out yet.")
            return
        first = settled.index(self._carried_out(number))
        for step in settled[first:]:
            if self._unknown(step):
                raise BadInput(
                    f"What step {step.step_number} changed is not known here: its record is gone. Nothing was undone",
                    hint="Records are in .cdd/runs, on the machine that a step was carried out on.",
                )
        await self.history.expect(await self.history.net(self._standing(*settled[first:])))
        steps = tuple(step.step_number for step in settled[first:])
        self.record.save_going_back(GoingBack(id=stamp(), steps=steps))
        async with aclosing(self._bring_going_back_to_its_end()) as events:
            async for event in events:
                yield event

    async def redo(self) -> AsyncGenerator[Event, None]:
        """Undo the last undo. Not any more when another step was run or skipped since.

        Raises `BadInput` where the plan is another one by now, or `CheckpointGone`.
        """
        was_begun = self.record.going_back is not None
        async with aclosing(self.recover()) as events:
            async for event in events:
                yield event
        if was_begun:
            return
        self.lock.check()
        if not self.state.undone:
            yield Notice("There is no undo to be undone, or another step has been run since.")
            return
        undo = self.state.undone[-1]
        of_plan(self.state.redo(), self.plan)
        await self.history.expect(await self.history.net(self._standing(*undo.steps)))
        steps = tuple(step.step_number for step in undo.steps)
        self.record.save_going_back(GoingBack(id=undo.id, steps=steps, again=True))
        async with aclosing(self._bring_going_back_to_its_end()) as events:
            async for event in events:
                yield event

    async def diff(self, number: int | None = None) -> AsyncGenerator[Event, None]:
        """Show what a step, or the last one, changed. Raises `BadInput` for a step that was not carried out."""
        if number is None and not self.state.settled():
            yield Notice("Nothing was carried out yet.")
            return
        step = self._carried_out(number)
        if self._unknown(step):
            yield Notice(f"What step {step.step_number} changed is not known: its record is gone.", Tone.WARNING)
            return
        yield StepDiff(step.step_number, step.title or "", await self.history.diff(self._standing(step)))

    def _carried_out(self, number: int | None) -> StepExecution:
        """The step of this number, or the last one, that is over or failed."""
        settled = self.state.settled()
        if number is None:
            return settled[-1]
        for step in settled:
            if step.step_number == number:
                return step
        known = ", ".join(str(step.step_number) for step in settled)
        hint = f"Those that were, in this order: {known}." if known else ""
        raise BadInput(f"Step {number} was not carried out", hint=hint)

    async def _bring_going_back_to_its_end(self) -> AsyncGenerator[Event, None]:
        """An undo or a redo that was begun; after a kill perhaps a second time, which does no harm."""
        going = self.record.going_back
        if going is None:
            return
        told: Event | None = None
        undone = next((undo for undo in self.state.undone if undo.id == going.id), None)
        settled = [step for step in self.state.settled() if step.step_number in going.steps]
        if going.again and undone is not None:
            back = await self.history.do_again(await self.history.net(self._standing(*undone.steps)))
            self._save(self.state.redo())
            told = StepsRedone(going.steps, back.restored, back.kept)
        elif not going.again and undone is None and settled:
            back = await self.history.take_back(await self.history.net(self._standing(*settled)))
            self._save(self.state.undo(settled, going.id))
            commits = tuple(step.commit for step in settled if step.commit)
            told = StepsUndone(going.steps, back.restored, back.kept, commits)
        self.record.settle_going_back()
        if told is not None:
            yield told

    async def _close(self, step: StepExecution) -> None:
        """Note what is left of a step whose last attempt was put back, and name it: it may be yours."""
        if not step.standing:
            return
        attempt = self._standing(step)[-1]
        try:
            left = await self.history.close(attempt)
        except CheckpointGone:
            return
        if left:
            text = f"Changed while step {step.step_number} ran, and left as it is: {_named(left)}"
            self.told_later.append(Notice(f"{text} (`undo` takes it back)"))

    def _unknown(self, step: StepExecution) -> tuple[str, ...]:
        """The files of a step of which no checkpoint tells what they were before."""
        spans = (attempt.span for attempt in self._standing(step))
        is_known = any(span is not None and span.after is not None for span in spans)
        return () if is_known else (*step.files_created, *step.files_modified, *step.files_deleted)

    def _start_from_the_beginning(self, step: PlanStep, first: int) -> None:
        """A person's retry of a failed step. Of one that the plan has replaced by another, it is not told."""
        before = self.state.of(step.number)
        if before.status is StepStatus.FAILED and first > before.attempts and not is_same(step, before.known):
            self._save(self.state.forgot(step.number))

    def _standing(self, *steps: StepExecution) -> list[Attempt]:
        """The attempts of which something may be left, of steps in the order in which they were over."""
        return [self.record.attempt(step.step_number, number) for step in steps for number in step.standing]

    async def _baseline(self, step: PlanStep) -> AsyncGenerator[Event, None]:
        """Before the first step of a run: what the tests are like. Taken once, and kept for when the run goes on."""
        if self.state.started_at is None:
            self.record.set_baseline_aside()  # of a run whose state is gone
        if self.record.baseline is None:
            left = [other for other in self.plan.steps if not self.state.of(other.number).status.over]
            async with aclosing(self.runner.baseline(step, left, accepted(self.state), self.record)) as events:
                async for event in events:
                    yield event

    async def _attempt(
        self, step: PlanStep, number: int, guidance: str, also_show: frozenset[str]
    ) -> AsyncGenerator[Event | Outcome, None]:
        """One attempt, with its state saved before and after. On every way out but its own end it is put back."""
        attempt = self.record.attempt(step.number, number)
        if number != self.state.of(step.number).attempts:  # a new one, not an interrupted one that goes on
            attempt.begin(guidance)
        self._save(self.state.started(step, self.clock(), attempt=number))
        settled = False
        try:
            yield StepStarted(step.number, step.title, number)
            prompt = partial(self._prompt, step, number, also_show)
            before = await asyncio.to_thread(known_so_far, self.state, self.record)
            async with aclosing(self.runner.attempt(step, prompt, attempt, before, self.history)) as events:
                async for item in events:
                    if isinstance(item, Outcome):
                        if item.verification is None:
                            attempt.save_failure(Failure(detail=item.detail, unseen=item.unseen))
                        committed = await self._committed(step, number, item)
                        self._settle(step, item, committed)
                        settled = True
                        if committed is not None:
                            yield committed
                    yield item
        except _UNDECIDED as error:
            self._interrupted(step.number)
            settled, self.stopped_by = True, error
        except CddError as error:
            self._put_back(step.number)
            self._save(self.state.failed(step.number, self.clock(), self.record.redactor.redact(error.message)))
            settled, self.stopped_by = True, error
        finally:
            if not settled:
                self._interrupted(step.number)

    async def _committed(self, step: PlanStep, attempt: int, outcome: Outcome) -> StepCommitted | None:
        """Commit a completed step, before it is saved as such. A refusal ends the run, and not the step.

        After a kill between the commit and the saving there is nothing left to commit: then it is found.
        """
        if not self.commits or outcome.verification is None or not outcome.changes.touched:
            return None
        message = step_message(self.ticket.slug, self.spec.title, step, attempt, outcome.verification)
        root = self.runner.root
        try:
            name = await commit_files(root, outcome.changes.touched, message)
            name = name or await already_committed(root, message.trailer)
        except CommitRefused as refusal:
            self.stopped_by = refusal
            return None
        return StepCommitted(step.number, name) if name else None

    def _why_stopped(self) -> Iterator[Notice]:
        if isinstance(self.stopped_by, CommitRefused):
            yield Notice(f"It was not committed: {self.stopped_by.message}", Tone.WARNING)
        if isinstance(self.stopped_by, _UNDECIDED):  # any other reason is the step's own error
            yield Notice(self.stopped_by.message, Tone.WARNING)
        if self.stopped_by is not None and self.stopped_by.hint:
            yield Notice(self.stopped_by.hint)

    def _settle(self, step: PlanStep, outcome: Outcome, committed: StepCommitted | None) -> None:
        """Completed, or failed with the files that the attempt leaves behind."""
        changes, now = outcome.changes, self.clock()
        files = Files(changes.created, changes.modified, changes.deleted)
        if outcome.verification is None:
            self._save(self.state.failed(step.number, now, self.record.redactor.redact(outcome.error), files))
        else:
            commit = committed.commit if committed else None
            self._save(self.state.completed(step.number, now, outcome.verification, files, commit))

    def _put_back(self, step: int) -> tuple[str, ...]:
        """Take back what the step's last attempt wrote. Returns the files that were edited since, and so were kept."""
        now = self.state.of(step)
        if not now.standing:
            return ()
        back = self.record.attempt(step, now.attempts).put_back()
        if back.restored or back.kept:
            self.told_later.append(ChangesPutBack(step, back.restored, back.kept))
        return back.kept

    def _interrupted(self, step: int) -> None:
        self._put_back(step)
        self._save(self.state.put_back(step))

    def _attempt_number(self, step: PlanStep, guidance: str) -> int:
        now = self.state.of(step.number)
        return now.attempts if not guidance and self._goes_on(step, now) else now.attempts + 1

    def _goes_on(self, step: PlanStep, now: StepExecution) -> bool:
        """Whether its last attempt does, of which nothing was seen yet: it was interrupted, the model gave no answer,
        or the check could not be run. Not if the plan's step, or a file that the model was shown, has changed since."""
        if now.attempts == now.forgotten:
            return False
        attempt = self.record.attempt(step.number, now.attempts)
        if attempt.failure is not None or (attempt.reply is None and not attempt.dialogue):
            return attempt.failure is None
        shown = attempt.shown
        return (
            shown is not None
            and shown.step == step_digest(step, attempt.guidance)
            and all(digest(read_bytes(self.runner.root / path)) == seen for path, seen in shown.files.items())
        )

    def _prompt(self, step: PlanStep, number: int, also_show: frozenset[str], window: int | None) -> Prompt:
        earlier, unseen = self._last_failure(step.number, number)
        return step_prompt(
            self.runner.root,
            self.spec,
            self.plan,
            self.state,
            step,
            window=window,
            earlier=earlier,
            also_show=also_show | unseen,
            guidance=self.record.attempt(step.number, number).guidance,
        )

    def _last_failure(self, step: int, number: int) -> tuple[Earlier | None, frozenset[str]]:
        for before in range(number - 1, self.state.of(step).forgotten, -1):
            attempt = self.record.attempt(step, before)
            if (failure := attempt.failure) is not None:
                return Earlier(failure.detail, attempt.said), failure.unseen
        return None, frozenset()

    def _save(self, state: ExecutionState) -> None:
        """The files first, the ticket's before its copy: what this process believes is never ahead of the disk."""
        save_state(self.ticket.state_path, state)
        save_state(self.record.state, state)
        self.state = state


def _named(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return ", ".join(paths[:_NAMED]) + more


def _no_part_of_checkpoints(folders: Iterable[str]) -> tuple[str, ...]:
    """The run's own files, tickets (they are the person's and the program's), and what a write in progress has."""
    literal = (re.sub(r"([*?\[\\])", r"\\\1", folder) for folder in folders)
    return (".cdd/runs", *sorted(set(literal)), "**/.cdd-*.tmp")
