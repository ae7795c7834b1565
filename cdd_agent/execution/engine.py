"""The engine: carries a plan out step by step, saves at every transition, and tells what happens as events.

A step is a transaction. Its attempt is journalled before it is written; a failed attempt is put back before the
next one, an interrupted step is put back at once (or, after a kill, when the run is opened again) and goes on from
its saved reply. The files of the last failed attempt stay for the person to look at until they retry or skip.

What the engine does by itself touches only files that a reply wrote, and that are still as it wrote them. What a person
asks for (`retry`, `skip`, `undo`, `redo`) covers what commands did, too.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from cdd_agent.errors import BadInput, CddError, NotApproved
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
from cdd_agent.execution.record import Attempt, Failure, GoingBack, RunRecord
from cdd_agent.execution.step import Outcome, StepRunner
from cdd_agent.execution.step_commit import step_message
from cdd_agent.tickets.plan import ImplementationPlan, PlanStep
from cdd_agent.tickets.spec import TicketSpec
from cdd_agent.tickets.state import NO_FILES, ExecutionState, Files, StepExecution, ready, save_state
from cdd_agent.tickets.status import StepStatus
from cdd_agent.tickets.store import Ticket
from cdd_agent.workspace.commits import CommitRefused, already_committed, commit_files, expect_ready
from cdd_agent.workspace.files import remove_leftovers
from cdd_agent.workspace.redaction import Redactor
from cdd_agent.workspace.taking_back import TakenBack

_NAMED = 6
"""Files that are named in a sentence."""

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
        commits: bool = False,
        start_over: bool = False,
    ) -> Self:
        """Read the ticket and take its lock. `start_over` sets aside what an earlier run has kept.

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
        history = History(record, _no_part_of_checkpoints(root, ticket))
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
        """Put in order what a killed run left, and say what else there is to know; nothing the second time.

        Where a person's edit is in the way of putting a step back, the run waits: it is told in `stopped_by`.
        """
        if self._recovered:
            return
        self._recovered = True
        if self.runner.commands.settings.mode == "unsafe":
            yield Notice("`commands.mode` is unsafe: checks run in a real shell, whatever they say.", Tone.WARNING)
        for lack in self.spec.missing() if self.next_step is not None else ():
            yield Notice(f"{self.ticket.shown(self.ticket.spec_path)} is not complete: {lack}", Tone.WARNING)
        for event in (*self.news(), *drift(self.plan, self.state)):
            yield event
        if self.next_step is not None:
            await self.history.open()  # without checkpoints no step begins
            if self.commits:
                await expect_ready(self.runner.root)
        async with aclosing(self._bring_going_back_to_its_end()) as events:
            async for event in events:
                yield event
        known = {**self.state.former_steps, **self.state.step_executions}
        for number, found in known.items():
            if found.status is StepStatus.IN_PROGRESS:
                async with aclosing(self._recover(number, found)) as events:
                    async for event in events:
                        yield event

    async def _recover(self, number: int, found: StepExecution) -> AsyncGenerator[Event, None]:
        """A step that was under way when its process was killed."""
        attempt = self.record.attempt(number, found.attempts) if found.attempts else None
        others = await self.history.changed_since(attempt) if attempt else ()
        kept = self._put_back(number)
        self._save(self.state.put_back(number))
        how = "goes on from its saved reply" if attempt and attempt.reply is not None else "starts again"
        yield Notice(f"Step {number} was interrupted and {how}.", Tone.WARNING)
        if others:
            text = f"Changed while step {number} ran, or since, and left as it is: {_named(others)}"
            yield Notice(text, Tone.WARNING)
        for event in self.news():
            yield event
        if kept:
            self.stopped_by = NotApproved(
                f"Step {number} was interrupted, and {_named(kept)} edited since: the run waits",
                hint="Run it again to go on: the step then begins with your edit, and the model is shown it.",
            )

    def news(self) -> list[Event]:
        """What happened while nobody could be told, because whoever listened had left; told once."""
        news, self.told_later = self.told_later, []
        return news

    async def run_step(self, step: PlanStep, *, guidance: str = "", attempts: int = 1) -> AsyncGenerator[Event, None]:
        """Run a step until it is completed, or `attempts` attempts failed.

        A step that was interrupted goes on with its saved reply, if it has one and there is no new guidance.
        Whatever else ends it (the model's endpoint, the disk, no approval) is told, and kept in `stopped_by`.
        """
        self.stopped_by = None
        first = self._attempt_number(step, guidance)
        also_show = await self._start_from_the_beginning(step, first)
        for number in range(first, first + attempts):
            also_show |= frozenset(self._put_back(step.number))
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
        """Run to the end, or to the first step that fails."""
        while (step := self.next_step) is not None:
            async with aclosing(self.run_step(step, attempts=attempts)) as events:
                async for event in events:
                    yield event
            if not self.state.of(step.number).status.over or self.stopped_by is not None:
                break
        yield self.summary()

    async def skip(self, step: PlanStep, reason: str, *, keep: bool) -> AsyncGenerator[Event, None]:
        """Leave a step out. What a failed attempt left behind is put back, unless it is to be kept."""
        before = self.state.of(step.number)
        if not keep:
            await self._take_back(before)
            for event in self.news():
                yield event
        files = before.files if keep else NO_FILES
        self._save(self.state.skipped(step.number, self.clock(), reason, files))
        yield StepFinished.of(step, self.plan, self.state)
        dependents = [other.number for other in self.plan.steps if step.number in other.dependencies]
        if dependents:
            one, names = len(dependents) == 1, ", ".join(map(str, dependents))
            who = f"Step {names} depends" if one else f"Steps {names} depend"
            yield Notice(f"{who} on it and will run without its result.", Tone.WARNING)

    async def undo(self, number: int | None = None) -> AsyncGenerator[Event, None]:
        """Go back to before a step, or before the last one: it and those after it are pending again.

        Raises `BadInput` for a step that was not carried out.
        """
        async with aclosing(self.recover()) as events:
            async for event in events:
                yield event
        settled = [step.step_number for step in self.state.settled()]
        if not settled:
            yield Notice("Nothing was carried out yet.")
            return
        number = settled[-1] if number is None else number
        if number not in settled:
            known = ", ".join(map(str, settled))
            raise BadInput(f"Step {number} was not carried out", hint=f"Those that were, in this order: {known}.")
        self.record.save_going_back(GoingBack(steps=tuple(settled[settled.index(number) :])))
        async with aclosing(self._bring_going_back_to_its_end()) as events:
            async for event in events:
                yield event

    async def redo(self) -> AsyncGenerator[Event, None]:
        """Undo the last undo. Not any more when another step was run since."""
        async with aclosing(self.recover()) as events:
            async for event in events:
                yield event
        if not self.state.undone:
            yield Notice("There is no undo to be undone, or another step has been run since.")
            return
        steps = tuple(step.step_number for step in self.state.undone[-1])
        self.record.save_going_back(GoingBack(steps=steps, again=True))
        async with aclosing(self._bring_going_back_to_its_end()) as events:
            async for event in events:
                yield event

    async def diff(self, number: int | None = None) -> AsyncGenerator[Event, None]:
        """Show what a step, or the last one, changed. Raises `BadInput` for a step that was not carried out."""
        settled = {step.step_number: step for step in self.state.settled()}
        if number is None and not settled:
            yield Notice("Nothing was carried out yet.")
            return
        number = next(reversed(settled)) if number is None else number
        if number not in settled:
            known = ", ".join(map(str, settled))
            raise BadInput(f"Step {number} was not carried out", hint=f"Those that were: {known}." if known else "")
        step = settled[number]
        yield StepDiff(number, step.title or "", await self.history.diff(self._standing(step)))

    async def _bring_going_back_to_its_end(self) -> AsyncGenerator[Event, None]:
        """An undo or a redo that was begun; after a kill perhaps a second time, which does no harm."""
        going = self.record.going_back
        if going is None:
            return
        undone = self.state.undone[-1] if self.state.undone else ()
        is_to_be_redone = tuple(step.step_number for step in undone) == going.steps
        if going.again and is_to_be_redone:
            back = _together([await self.history.do_again(self._standing(step)) for step in undone])
            self._save(self.state.redo())
            yield StepsRedone(going.steps, back.restored, back.kept)
        elif not going.again and not is_to_be_redone:
            steps = [step for step in self.state.settled() if step.step_number in going.steps]
            back = _together([await self.history.take_back(self._standing(step)) for step in reversed(steps)])
            self._save(self.state.undo(steps))
            commits = tuple(step.commit for step in steps if step.commit)
            yield StepsUndone(going.steps, back.restored, back.kept, commits)
        self.record.went_back()

    async def _start_from_the_beginning(self, step: PlanStep, first: int) -> frozenset[str]:
        """A person's retry of a failed step: nothing of it is left but what they edited since, which is returned."""
        before = self.state.of(step.number)
        if before.status is not StepStatus.FAILED:
            return frozenset()
        kept = await self._take_back(before)
        if first > before.attempts:
            self._save(self.state.went_back(step.number))
        return frozenset(kept)

    async def _take_back(self, step: StepExecution) -> tuple[str, ...]:
        """Take back all that is left of a step's attempts, commands' effects, too. Returns what was edited since."""
        back = await self.history.take_back(self._standing(step))
        if back.restored or back.kept:
            self.told_later.append(ChangesPutBack(step.step_number, back.restored, back.kept))
        return tuple(dict.fromkeys((*back.kept, *self._put_back(step.step_number, told=back.kept))))

    def _standing(self, step: StepExecution) -> list[Attempt]:
        return [self.record.attempt(step.step_number, number) for number in step.standing]

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
            prompt = self._prompt(step, number, also_show)
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
        except NotApproved as error:
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
        if isinstance(self.stopped_by, NotApproved):  # any other reason is the step's own error
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

    def _put_back(self, step: int, told: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Take back what the step's last attempt wrote. Returns the files that were edited since, and so were kept;
        those that were `told` already are not told again."""
        attempts = self.state.of(step).attempts
        if not attempts:
            return ()
        back = self.record.attempt(step, attempts).put_back()
        kept = tuple(path for path in back.kept if path not in told)
        if back.restored or kept:
            self.told_later.append(ChangesPutBack(step, back.restored, kept))
        return back.kept

    def _interrupted(self, step: int) -> None:
        self._put_back(step)
        self._save(self.state.put_back(step))

    def _attempt_number(self, step: PlanStep, guidance: str) -> int:
        """An attempt of which nothing was seen yet goes on: it was interrupted, the model gave no answer, or the check
        could not be run. Not if there is something new to be said, or the plan's step has changed since."""
        before = self.state.of(step.number)
        if before.attempts == before.forgotten or guidance:
            return before.attempts + 1
        attempt = self.record.attempt(step.number, before.attempts)
        same = attempt.shown is not None and attempt.shown.step == step_digest(step, attempt.guidance)
        undecided = attempt.failure is None and (attempt.reply is None or same)
        return before.attempts if undecided else before.attempts + 1

    def _prompt(self, step: PlanStep, number: int, also_show: frozenset[str]) -> Prompt:
        earlier, unseen = self._last_failure(step.number, number)
        return step_prompt(
            self.runner.root,
            self.spec,
            self.plan,
            self.state,
            step,
            earlier=earlier,
            also_show=also_show | unseen,
            guidance=self.record.attempt(step.number, number).guidance,
        )

    def _last_failure(self, step: int, number: int) -> tuple[Earlier | None, frozenset[str]]:
        for before in range(number - 1, self.state.of(step).forgotten, -1):
            attempt = self.record.attempt(step, before)
            if (failure := attempt.failure) is not None:
                return Earlier(failure.detail, attempt.reply or ""), failure.unseen
        return None, frozenset()

    def _save(self, state: ExecutionState) -> None:
        """The files first, the ticket's before its copy: what this process believes is never ahead of the disk."""
        save_state(self.ticket.state_path, state)
        save_state(self.record.state, state)
        self.state = state


def _together(parts: Iterable[TakenBack]) -> TakenBack:
    """What became of files that several attempts touched."""
    parts = list(parts)
    kept = {path for part in parts for path in part.kept}
    restored = {path for part in parts for path in part.restored}
    return TakenBack(tuple(sorted(restored - kept)), tuple(sorted(kept)))


def _named(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return ", ".join(paths[:_NAMED]) + more


def _no_part_of_checkpoints(root: Path, ticket: Ticket) -> tuple[str, ...]:
    """The run's own files, and what a write that goes on just now has beside its file."""
    state = "execution-state*"
    folders = {"tickets/*", "specs/tickets/*", re.sub(r"([*?\[\\])", r"\\\1", ticket.shown(ticket.folder))}
    return (".cdd/runs/**", *(f"{folder}/{state}" for folder in sorted(folders)), "**/.cdd-*.tmp")
