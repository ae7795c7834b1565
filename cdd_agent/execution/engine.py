"""The engine: carries a plan out step by step, saves at every transition, and tells what happens as events.

A step is a transaction. Its attempt is journalled before it is written; a failed attempt is put back before the
next one, an interrupted step is put back at once (or, after a kill, when the run is opened again) and goes on from
its saved reply. The files of the last failed attempt stay for the person to look at until they retry or skip.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Self

from cdd_agent.errors import BadInput, CddError, NotApproved
from cdd_agent.events import (
    AttemptFailed,
    ChangesPutBack,
    Event,
    Notice,
    PlanOpened,
    RunFinished,
    StepFinished,
    StepStarted,
    Tone,
)
from cdd_agent.execution.outcomes import Reference
from cdd_agent.execution.prompt import Earlier, Prompt, step_digest, step_prompt
from cdd_agent.execution.record import Failure, RunRecord, set_aside
from cdd_agent.execution.step import Outcome, StepRunner
from cdd_agent.execution.verify import Before
from cdd_agent.tickets.plan import ImplementationPlan, PlanStep
from cdd_agent.tickets.spec import TicketSpec
from cdd_agent.tickets.state import (
    ExecutionState,
    StateUnreadable,
    StepExecution,
    load_state,
    new_state,
    ready,
    save_state,
)
from cdd_agent.tickets.status import StepStatus, Verification
from cdd_agent.tickets.store import Ticket
from cdd_agent.workspace.redaction import Redactor

if TYPE_CHECKING:
    from filelock import FileLock

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
    runner: StepRunner
    lock: FileLock
    clock: Clock = utc_now
    stopped_by: CddError | None = None
    """What ended the last step besides its own check, for whoever turns it into an exit code."""
    _news: list[Event] = field(default_factory=list)

    @classmethod
    def open(cls, root: Path, ticket: Ticket, runner: StepRunner, clock: Clock = utc_now) -> Self:
        """Read the ticket and take its lock. Raises `BadInput` for a plan that cannot run, an unreadable state
        (which is set aside first), or when another process is at work on the ticket."""
        plan = ticket.read_plan()
        plan.check(ticket.shown(ticket.plan_path))
        runner.check_commands(plan)
        spec = ticket.read_spec()
        record = RunRecord.of(root, ticket.slug, Redactor.of_environment(runner.commands.settings.hide_env))
        record.prepare()
        lock = _locked(record, ticket.slug)
        try:
            state = _state(ticket, plan)
        except CddError:
            lock.release()
            raise
        return cls(ticket, spec, plan, state, record, runner, lock, clock)

    def close(self) -> None:
        self.lock.release()

    @property
    def next_step(self) -> PlanStep | None:
        """The step that would run now: pending, interrupted, or failed. None when all are over."""
        return ready(self.plan, self.state)

    def opened(self) -> PlanOpened:
        return PlanOpened.of(self.spec.title, self.plan, self.state)

    def recover(self) -> Iterator[Event]:
        """Put back what a killed run left of a step, and say what else there is to know. To be called once."""
        if self.runner.commands.settings.mode == "unsafe":
            yield Notice("`commands.mode` is unsafe: checks run in a real shell, whatever they say.", Tone.WARNING)
        for lack in self.spec.missing() if self.next_step is not None else ():
            yield Notice(f"{self.ticket.shown(self.ticket.spec_path)} is not complete: {lack}", Tone.WARNING)
        known = {**self.state.former_steps, **self.state.step_executions}
        for number, found in known.items():
            if found.status is not StepStatus.IN_PROGRESS:
                continue
            has_reply = found.attempts > 0 and self.record.attempt(number, found.attempts).reply is not None
            self._interrupted(number)
            how = "goes on from its saved reply" if has_reply else "starts again"
            yield Notice(f"Step {number} was interrupted and {how}.", Tone.WARNING)
        yield from self.news()

    def news(self) -> list[Event]:
        """What happened while nobody could be told, because whoever listened had left; told once."""
        news, self._news = self._news, []
        return news

    async def run_step(self, step: PlanStep, *, guidance: str = "", attempts: int = 1) -> AsyncGenerator[Event, None]:
        """Run a step until it is completed, or `attempts` attempts failed.

        A step that was interrupted goes on with its saved reply, if it has one and there is no new guidance.
        Whatever else ends it (the model's endpoint, the disk, no approval) is told, and kept in `stopped_by`.
        """
        self.stopped_by = None
        first = self._attempt_number(step, guidance)
        for number in range(first, first + attempts):
            kept = self._put_back(step.number)
            for event in self.news():
                yield event
            if number == first:
                async with aclosing(self._baseline(step)) as events:
                    async for event in events:
                        yield event
            outcome: Outcome | None = None
            async with aclosing(self._attempt(step, number, guidance, frozenset(kept))) as items:
                async for item in items:
                    if isinstance(item, Outcome):
                        outcome = item
                    else:
                        yield item
            if outcome is None or outcome.verification is not None:
                break
            yield AttemptFailed(step.number, number, outcome.error, will_retry=number < first + attempts - 1)
        for event in (*self.news(), self._finished(step), *self._why_stopped()):
            yield event

    async def run_all(self, *, attempts: int = 1) -> AsyncGenerator[Event, None]:
        """Run to the end, or to the first step that fails."""
        while (step := self.next_step) is not None:
            async with aclosing(self.run_step(step, attempts=attempts)) as events:
                async for event in events:
                    yield event
            if not self.state.of(step.number).status.over:
                break
        yield self.summary()

    def skip(self, step: PlanStep, reason: str, *, keep: bool) -> Iterator[Event]:
        """Leave a step out. What a failed attempt left behind is put back, unless it is to be kept."""
        before = self.state.of(step.number)
        if not keep:
            self._put_back(step.number)
            yield from self.news()
        created, modified = (before.files_created, before.files_modified) if keep else ((), ())
        self._save(self.state.skipped(step.number, self.clock(), reason, created, modified))
        yield self._finished(step)
        dependents = [other.number for other in self.plan.steps if step.number in other.dependencies]
        if dependents:
            one, names = len(dependents) == 1, ", ".join(map(str, dependents))
            who = f"Step {names} depends" if one else f"Steps {names} depend"
            yield Notice(f"{who} on it and will run without its result.", Tone.WARNING)

    def summary(self) -> RunFinished:
        states = [self.state.of(step.number) for step in self.plan.steps]
        worked = [step.completed_at - step.started_at for step in states if step.completed_at and step.started_at]
        files = {path for step in states for path in (*step.files_created, *step.files_modified)}
        return RunFinished(
            self.ticket.slug,
            self.state.status,
            completed=sum(step.status is StepStatus.COMPLETED for step in states),
            skipped=sum(step.status is StepStatus.SKIPPED for step in states),
            unverified=sum(step.verification is Verification.NONE for step in states),
            total=len(states),
            seconds=sum(worked, timedelta()).total_seconds() if worked else None,
            files=tuple(sorted(files)),
            with_old_failures=sum(step.verification is Verification.BASELINE for step in states),
        )

    async def _baseline(self, step: PlanStep) -> AsyncGenerator[Event, None]:
        """Before the first step of a run: what the tests are like. Taken once, and kept for when the run goes on."""
        if self.state.started_at is None:
            self.record.set_baseline_aside()  # of a run whose state is gone
        if self.record.baseline is None:
            left = [other for other in self.plan.steps if not self.state.of(other.number).status.over]
            async with aclosing(self.runner.baseline(step, left, self._accepted(), self.record)) as events:
                async for event in events:
                    yield event

    def _before(self) -> Before:
        """What is known of the tests: from the baseline, and from each state of the project that was accepted since."""
        baseline = self.record.baseline
        reference = Reference().after(baseline.tests) if baseline and baseline.tests else Reference()
        for number, attempt in self._accepted():
            seen_by_baseline = baseline is not None and (number, attempt) in baseline.already
            if not seen_by_baseline and (tests := self.record.attempt(number, attempt).tests):
                reference = reference.after(tests)
        return Before(baseline, reference)

    def _accepted(self) -> tuple[tuple[int, int], ...]:
        """The steps whose work stands, with the number of their attempt, in the order in which they were over:
        completed ones, and skipped ones whose files were kept."""
        places = {step.number: place for place, step in enumerate(self.plan.order())}

        def counts(found: StepExecution) -> bool:
            kept = found.status is StepStatus.SKIPPED and (found.files_created or found.files_modified)
            return bool(found.attempts and found.completed_at and (found.status is StepStatus.COMPLETED or kept))

        known = {**self.state.former_steps, **self.state.step_executions}
        accepted = [(number, found) for number, found in known.items() if counts(found)]
        accepted.sort(key=lambda item: (item[1].completed_at, places.get(item[0], -1)))
        return tuple((number, found.attempts) for number, found in accepted)

    async def _attempt(
        self, step: PlanStep, number: int, guidance: str, also_show: frozenset[str]
    ) -> AsyncGenerator[Event | Outcome, None]:
        """One attempt, with its state saved before and after. On every way out but its own end it is put back."""
        attempt = self.record.attempt(step.number, number)
        if number != self.state.of(step.number).attempts:  # a new one, not an interrupted one that goes on
            attempt.begin(guidance)
        self._save(self.state.started(step.number, self.clock(), attempt=number, title=step.title))
        settled = False
        try:
            yield StepStarted(step.number, step.title, number)
            prompt = self._prompt(step, number, also_show)
            before = await asyncio.to_thread(self._before)
            async with aclosing(self.runner.attempt(step, prompt, attempt, before)) as events:
                async for item in events:
                    if isinstance(item, Outcome):
                        if item.verification is None:
                            attempt.save_failure(Failure(detail=item.detail, unseen=item.unseen))
                        self._settle(step, item)
                        settled = True
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

    def _why_stopped(self) -> Iterator[Notice]:
        if isinstance(self.stopped_by, NotApproved):  # any other reason is the step's own error
            yield Notice(self.stopped_by.message, Tone.WARNING)
        if self.stopped_by is not None and self.stopped_by.hint:
            yield Notice(self.stopped_by.hint)

    def _settle(self, step: PlanStep, outcome: Outcome) -> None:
        """Completed, or failed with the files that the attempt leaves behind."""
        files, now = (outcome.changes.created, outcome.changes.modified), self.clock()
        if outcome.verification is None:
            self._save(self.state.failed(step.number, now, self.record.redactor.redact(outcome.error), *files))
        else:
            self._save(self.state.completed(step.number, now, outcome.verification, *files))

    def _put_back(self, step: int) -> tuple[str, ...]:
        """Take back what the step's last attempt left. Returns the files that were edited since, and so were kept."""
        attempts = self.state.of(step).attempts
        if not attempts:
            return ()
        back = self.record.attempt(step, attempts).put_back()
        if back.restored or back.kept:
            self._news.append(ChangesPutBack(step, back.restored, back.kept))
        return back.kept

    def _interrupted(self, step: int) -> None:
        self._put_back(step)
        self._save(self.state.put_back(step))

    def _attempt_number(self, step: PlanStep, guidance: str) -> int:
        """An attempt of which nothing was seen yet goes on: it was interrupted, the model gave no answer, or the check
        could not be run. Not if there is something new to be said, or the plan's step has changed since."""
        before = self.state.of(step.number)
        if not before.attempts or guidance:
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
        for before in range(number - 1, 0, -1):
            attempt = self.record.attempt(step, before)
            if (failure := attempt.failure) is not None:
                return Earlier(failure.detail, attempt.reply or ""), failure.unseen
        return None, frozenset()

    def _finished(self, step: PlanStep) -> StepFinished:
        now = self.state.of(step.number)
        return StepFinished(
            step.number,
            step.title,
            now.status,
            now.verification,
            now.error,
            now.reason,
            now.files_created,
            now.files_modified,
            done=self.state.done,
            total=len(self.plan.steps),
        )

    def _save(self, state: ExecutionState) -> None:
        """The file first: what this process believes is never ahead of the disk."""
        save_state(self.ticket.state_path, state)
        self.state = state


def _locked(record: RunRecord, slug: str) -> FileLock:
    from filelock import FileLock, Timeout  # slow to import, and not needed to show the shell

    lock = FileLock(record.folder / "lock", timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise BadInput(
            f"Another cdd is at work on {slug}",
            hint="Finish or leave it there first; two at once would undo each other's work.",
        ) from error
    except OSError as error:
        raise BadInput(f"{record.folder / 'lock'} could not be made: {error.strerror or error}") from error
    return lock


def _state(ticket: Ticket, plan: ImplementationPlan) -> ExecutionState:
    """The saved state, or a new one. An unreadable file is set aside and told, never overwritten."""
    try:
        saved = load_state(ticket.state_path, ticket.slug, plan)
    except StateUnreadable as error:
        aside = set_aside(ticket.state_path)
        raise BadInput(
            f"{error.message}. It was set aside as {aside.name}; nothing of the project was touched",
            hint=f"Mend it and move it back to {ticket.state_path.name}, or run again to start from the first step.",
        ) from error
    return saved or new_state(ticket.slug, plan)
