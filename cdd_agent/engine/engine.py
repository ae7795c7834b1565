"""The engine: carries a plan out step by step, saves at every transition, and tells
what happens as events.

A step is a transaction. Its attempt is journalled before it is written; a failed
attempt is restored before the next one, an interrupted step is restored at once (or,
after a kill, when the run is opened again) and goes on from its saved reply. The files
of the last failed attempt stay for the person to look at until they retry or skip.

Restoring a step touches only files that its reply wrote, and that are still as it wrote
them: what else has changed may be a person's work. `undo` and `redo` cover what
commands did, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Literal, Self

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.engine.accepted import accepted
from cdd_agent.engine.attempt import AttemptOutcome
from cdd_agent.engine.failed_step import FailedStep
from cdd_agent.engine.known_before import KnownBefore
from cdd_agent.engine.ledger import OpenCheckpoints
from cdd_agent.engine.load_state import drift
from cdd_agent.engine.lock import TicketLock
from cdd_agent.engine.named_files import named
from cdd_agent.engine.net_changes import is_same
from cdd_agent.engine.report_page import save
from cdd_agent.engine.run import Run, SavedWork
from cdd_agent.engine.side_by_side import Failed, SideBySide
from cdd_agent.engine.side_tree import remove_all
from cdd_agent.engine.spec_notices import spec_notices
from cdd_agent.engine.step import StepRunner
from cdd_agent.engine.step_commit import (
    commit_step,
    expect_checked_out,
    expect_commit,
    step_message,
    trailer_prefix,
)
from cdd_agent.engine.transaction import tell_uncovered
from cdd_agent.engine.undo import Undoing
from cdd_agent.errors import (
    BadInput,
    BudgetExhausted,
    CddError,
    ExitCode,
    NotApproved,
    StepFailed,
)
from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.events.run_events import BaselineStarted, RunFinished
from cdd_agent.events.step_events import (
    AttemptFailed,
    StepCommitted,
    StepStarted,
    UndoPreview,
)
from cdd_agent.events.step_summary import StepFinished
from cdd_agent.events.stream import Emit, ignore_event
from cdd_agent.files.hidden_from_models import HiddenFiles
from cdd_agent.git.checkpoint import Checkpoints
from cdd_agent.git.commit import already_committed, settle_commits
from cdd_agent.git.commit_git import CommitRefused
from cdd_agent.git.restore import entry_now
from cdd_agent.llm.port import ModelError, RateLimited
from cdd_agent.redaction import Redactor
from cdd_agent.tickets.declared_files import (
    declare_files,
    describe_hidden,
    find_hidden_reason,
)
from cdd_agent.tickets.plan import ImplementationPlan, PlanStep
from cdd_agent.tickets.state import NO_FILES, StepExecution
from cdd_agent.tickets.status import RunStatus, StepStatus, Verification
from cdd_agent.tickets.store import Ticket
from cdd_agent.verification.before import Before

_PAUSES: dict[type[CddError], NoticeKind] = {
    NotApproved: NoticeKind.NOT_APPROVED,
    BudgetExhausted: NoticeKind.NO_BUDGET,
    RateLimited: NoticeKind.COME_BACK_LATER,
    ModelError: NoticeKind.MODEL_FAILED,
}
"""Errors of the run that pause a step, and the subjects of their notices. The step
becomes pending again, or has its earlier failure again, and resumes once the user or
the provider allows it. The first type that fits counts.
"""
_PAUSING = tuple(_PAUSES)
_OF_MODEL = (BudgetExhausted, ModelError)

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


class Engine(Struct):
    """Carries out one ticket's run."""

    run: Run
    runner: StepRunner
    commits: bool = False
    """Each completed step's files are committed on the user's branch."""
    clock: Clock = utc_now
    jobs: int = 1
    """How many steps run at once where the whole plan is carried out."""
    waits_for_baseline: bool = False
    """The model is not asked before the baseline is over: somebody else looks at the
    project before each call.
    """
    stopped_by: CddError | None = None
    """The error that ended the last step, besides its own check, for whoever turns it
    into an exit code.
    """
    failed_steps: dict[int, FailedStep] = field(default_factory=dict)
    """Failed steps whose files were restored, until their next attempt is over."""
    edited: dict[int, frozenset[str]] = field(default_factory=dict)
    """By step, the files of an attempt that failed which a person has edited since: its
    model is shown them.
    """
    _recovered: bool = False
    _has_side_trees: bool = False
    """Steps run side by side. No failed files are put back before all are done."""

    @classmethod
    def open(
        cls,
        root: Path,
        ticket: Ticket,
        runner: StepRunner,
        clock: Clock = utc_now,
        emit: Emit = ignore_event,
        *,
        own: Iterable[str] = (),
        commits: bool = False,
        jobs: int = 1,
        require: Literal["verified"] | None = None,
        start_over: bool = False,
        runs_steps: bool = True,
        lock: TicketLock | None = None,
        open_checkpoints: OpenCheckpoints = Checkpoints.open,
    ) -> Self:
        """Read the ticket; take its lock, or use the one given. `start_over` sets aside
        what an earlier run has kept; `own` are files and folders that this program
        writes beside `.cdd`, relative to `root`: no step is blamed for them. Without
        `runs_steps` the plan may have checks that are not allowed.

        Raises `BadInput` for a plan that cannot run, a state that cannot be read or is
        another plan's, or when another process is at work on the ticket.
        """
        plan = _read_plan(ticket)
        if runs_steps:
            runner.check_commands(plan)
        redactor = Redactor.of_environment(runner.commands.settings.hide_env)
        now = clock().isoformat()
        run = Run.open(
            root,
            ticket,
            plan,
            redactor,
            now,
            emit,
            own=own,
            code=runner.code,
            require=require,
            start_over=start_over,
            lock=lock,
            open_checkpoints=open_checkpoints,
        )
        commands = replace(runner.commands, noted_in=run.record.folder)
        return cls(
            run, replace(runner, emit=run.emit, commands=commands), commits, clock, jobs
        )

    def close(self) -> None:
        self.run.close()

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Around whatever a person or a script has the run do: when it is over, however
        it ended, the report is saved.

        Raises `BadInput` when the disk refuses the report, or refused a part of the
        log.
        """
        with self.run.recorder.recording(then=self.save_report):
            self.run.tell_what_was_found()
            yield

    def save_report(self) -> None:
        """Beside the log, once something was run. Raises `BadInput` when the disk
        refuses.
        """
        run = self.run
        if run.state.started_at is not None:
            run.save_costs()
            save(run.report(), run.record.folder)

    async def recover(self) -> None:
        """Put in order what a killed run, or a stopped undo, left; and once, say what
        else there is to know.

        Where a person's edit is in the way of restoring a step, the run waits: it is
        told, and in `stopped_by`. Everything that changes something begins with this.
        Raises `RunElsewhere` for a run that is not here.
        """
        self.run.expect_here(self.clock())
        if not self._recovered:
            await remove_all(self.run.ledger)
            if self.runner.commands.settings.mode == "unsafe":
                text = (
                    "`commands.mode` is unsafe: checks run in a real shell, whatever"
                    " they say."
                )
                self.run.emit(Notice(text, Tone.WARNING))
            for lack in (
                self.run.spec.missing() if self.run.next_step is not None else ()
            ):
                text = (
                    f"{self.run.ticket.shown(self.run.ticket.spec_path)} is not"
                    f" complete: {lack}"
                )
                self.run.emit(
                    Notice(text, Tone.WARNING, kind=NoticeKind.SPEC_INCOMPLETE)
                )
            self.run.tell_what_was_found()
            for event in drift(self.run.plan, self.run.state):
                self.run.emit(event)
            self._report_findings()
            for number, found in self.run.state.all_steps.items():
                if found.status is StepStatus.IN_PROGRESS:
                    await self._recover_step(number, found)
            self._recovered = True
        await self._undoing.finish()

    def _report_findings(self) -> None:
        """Emit the warnings about the text of spec and plan, while a step is to
        come.
        """
        if self.run.next_step is None:
            return
        for notice in spec_notices(self.run.ticket):
            self.run.emit(notice)
        source = self.run.ticket.shown(self.run.ticket.plan_path)
        for finding in self.run.plan.findings:
            text = f"{source}:{finding.line}: {finding.text}"
            self.run.emit(Notice(text, Tone.WARNING, kind=NoticeKind.PLAN_FINDING))
        self._report_hidden_files(source)

    def _report_hidden_files(self, source: str) -> None:
        """Emit a warning about each file that a step to come declares and that its
        model will not see.
        """
        run, root = self.run, self.run.record.root
        hidden = HiddenFiles(root, allowed=run.record.choices.pinned)
        for step in run.plan.steps:
            if run.state.step(step.number).status.is_over:
                continue
            for declared in declare_files(root, step).files:
                if why := find_hidden_reason(declared, hidden):
                    words = describe_hidden(declared.path, why)
                    text = f"{source}:{step.line}: step {step.label} {words}"
                    run.emit(Notice(text, Tone.WARNING, kind=NoticeKind.PLAN_FINDING))

    async def _recover_step(self, number: int, found: StepExecution) -> None:
        """A step that was under way when its process was killed. It is pending when all
        of it is told: who is killed here begins again, and hears of it again.
        """
        refusal = self.run.old_record_refusal(found)
        if refusal is not None:
            self._wait_for_user(refusal, NoticeKind.RESUMED)
            return
        attempt = (
            self.run.record.attempt(found.folder, found.attempts)
            if found.attempts
            else None
        )
        others: tuple[str, ...] = ()
        with suppress(CddError):  # it is only good to know
            others = await self.run.ledger.look_after_kill(attempt) if attempt else ()
        back = self.run.restore_files(number)
        label = self.run.plan.label_of(number)
        text = f"Step {label} was interrupted and {self.run.resume_hint(number)}."
        self.run.emit(Notice(text, Tone.WARNING, kind=NoticeKind.RESUMED))
        if others:
            text = (
                f"Changed while step {label} ran, or since, and left as it is:"
                f" {named(others)}"
            )
            text += " (`undo` leaves it, too: it could be yours)"
            self.run.emit(Notice(text, Tone.WARNING, kind=NoticeKind.CHANGED_BESIDE))
        await self._undoing.tell_what_is_left(found)
        if back is not None:
            self.run.emit(back)
        if back is not None and back.kept:
            edited = NotApproved(
                f"You have edited {named(back.kept)} since: the run waits for you to"
                " look at it",
                hint=(
                    "To go on, run it again: the step then begins with your edit, and"
                    " the model is shown it."
                ),
            )
            self._wait_for_user(edited, NoticeKind.NOT_APPROVED)
        if self.commits:
            await settle_commits(self.runner.root)
        self.run.save(self.run.state.restore(number))

    def _wait_for_user(self, why: CddError, kind: NoticeKind) -> None:
        """Stop the run before it begins."""
        self.stopped_by = why
        self.run.emit(Notice(why.message, Tone.WARNING, kind=kind))
        self.run.emit(Notice(why.hint))

    async def run_step(
        self,
        step: PlanStep,
        *,
        guidance: str = "",
        attempts: int = 1,
        asks_anew: bool = False,
    ) -> None:
        """Run a step until it is completed, or `attempts` attempts failed.

        A step that was interrupted goes on with its saved reply, if it has one and
        there is no new guidance. With `asks_anew` the model is asked again. Whatever
        else ends it (the model's endpoint, the disk, no approval) is told, and kept in
        `stopped_by`.
        """
        is_first_look = not self._recovered
        await self.recover()
        if is_first_look and self.stopped_by is not None:
            return
        self.stopped_by = None
        await self._expect_ready(step)
        if not await self._can_ask_model(step, guidance, asks_anew=asks_anew):
            return
        also_show = frozenset(self._restore_failed(step.number))
        first = self.first_attempt(step, guidance, asks_anew=asks_anew)
        if not self._has_side_trees:
            self._report_saved_work(step, first)
        number, left = first, attempts
        async with self._begin_baseline(step) as known:
            if self.waits_for_baseline:
                await known()
            while True:
                try:
                    outcome = await self._attempt(
                        step, number, guidance, also_show, known
                    )
                except asyncio.CancelledError:
                    # whoever stops it wants to see what comes next
                    self.ask_again()
                    raise
                if outcome is None or outcome.verification is not None:
                    break
                is_outdated = (
                    number == first
                    and known.baseline is not None
                    and self._is_outdated(step, outcome)
                )
                left -= not (outcome.is_by_person or is_outdated)
                will_retry = left > 0 and outcome.insufficient is None
                self.run.emit(
                    AttemptFailed(
                        step.number,
                        number,
                        outcome.reason,
                        will_retry=will_retry,
                        label=step.label,
                    )
                )
                if not will_retry:
                    break
                also_show |= frozenset(self._restore_failed(step.number))
                number += 1
            self._report_step(step)
            self._tell_why_it_stopped(self.stopped_by)
            if self.run.next_step is None:
                self.ask_again()
            with suppress(CddError):  # it is told already, where it has ended the step
                # where no reply came, it is kept for when the run goes on
                await known()

    def _report_saved_work(self, step: PlanStep, number: int) -> None:
        """Report that an interrupted step goes on from what was paid for before."""
        if number != self.run.state.step(step.number).last_attempt:
            return
        saved = self.run.find_saved_work(step)
        if saved is SavedWork.NONE:
            return
        if saved is SavedWork.REPLY:
            text = (
                f"The saved reply of step {step.label} is checked again; the model is"
                " not asked, so nothing is paid."
            )
        else:
            text = (
                f"Step {step.label} resumes after its saved rounds with the model;"
                " these are not paid for again."
            )
        text += " To ask for a new reply instead: `retry` in the shell."
        self.run.emit(Notice(text, kind=NoticeKind.SAVED_WORK, step=step.number))

    async def _can_ask_model(
        self, step: PlanStep, guidance: str, *, asks_anew: bool = False
    ) -> bool:
        """Check the model, if the step needs one, before anything changes. If it cannot
        be asked, report that as the run's error.

        A server is looked for only before a failed step, whose files would be restored,
        and before a saved reply is given up. Other steps are safe, and a call is more
        patient than this check.
        """
        if not self.run.needs_model(step.number, guidance, is_new=asks_anew):
            return True
        has_failed = self.run.state.step(step.number).status is StepStatus.FAILED
        try:
            await self.runner.model().check(connect=has_failed or asks_anew)
        except (BadInput, ModelError) as error:
            self.stopped_by = error
            kind = _find_pause(error) or NoticeKind.MODEL_FAILED
            self.run.emit(Notice(error.message, Tone.ERROR, kind=kind))
            if error.hint:
                self.run.emit(Notice(error.hint))
            return False
        return True

    def _restore_failed(self, number: int) -> tuple[str, ...]:
        """Restore the files of a step before its next attempt. Returns those that the
        user has edited since.
        """
        failed, kept = FailedStep.restore(self.run, number)
        if failed is not None:
            earlier = self.failed_steps.get(number)
            self.failed_steps[number] = failed.after(earlier)
        elif not self._has_side_trees:
            self.failed_steps.pop(number, None)
        return kept

    def _pause(self, number: int) -> None:
        """Restore an attempt that got no reply. The step has its earlier failure again,
        if it had failed, and otherwise is pending.
        """
        failed = self.failed_steps.get(number)
        if failed is None:
            self.run.interrupt(number)
            return
        back = self.run.restore_files(number)
        self.run.save(self.run.state.reinstate(failed.execution))
        if back is not None:
            self.run.emit(back)

    def _put_back_failures(self) -> None:
        """Write the files of failed steps again whose next attempt got no reply, so
        that the user sees what failed.
        """
        for number, failed in self.failed_steps.items():
            now = self.run.state.step(number)
            is_unchanged = now.attempts == failed.execution.attempts
            if now.status is not StepStatus.FAILED or not is_unchanged:
                continue
            if written := failed.reinstate(self.run):
                text = (
                    f"The files of step {self.run.plan.label_of(number)} are again as"
                    f" its failed attempt left them: {named(written)}"
                )
                notice = Notice(text, kind=NoticeKind.FAILURE_REINSTATED, step=number)
                self.run.emit(notice)
        self.failed_steps.clear()

    def _report_step(self, step: PlanStep) -> None:
        """Emit how a step stands after it ran."""
        finished = StepFinished.from_run(step, self.run.plan, self.run.state)
        is_reinstated = self.run.state.step(step.number).open_attempt > 0
        self.run.emit(replace(finished, is_earlier_failure=is_reinstated))

    async def carry_out(self, *, attempts: int = 1) -> None:
        """Put the run in order, tell how it stands, and run it to its end, as far as it
        comes.
        """
        await self.recover()
        self.run.emit(self.run.opened())
        if self.stopped_by is not None:
            return
        if self.run.next_step is None and self.run.refusal() is None:
            await self.report_all_done()
        else:
            await self.run_all(attempts=attempts)

    async def report_all_done(self) -> None:
        """Report that no step is to come, or which work the tree does not have."""
        await self.run.find_missing_work()
        summary = self.run.summary()
        if summary.status is RunStatus.COMPLETED:
            text = "All steps are done already; nothing was run."
            self.run.emit(Notice(text, Tone.GOOD, kind=NoticeKind.ALL_DONE))
        self.run.emit(summary)

    async def report_end(self) -> None:
        """Emit the summary of a run without a next step."""
        await self.run.find_missing_work()
        self.run.emit(self.run.summary())

    @property
    def exit_code(self) -> ExitCode:
        """As that of `cdd exec`."""
        if self.stopped_by is not None:
            return self.stopped_by.exit_code
        return (
            ExitCode.DONE
            if self.run.summary().status is RunStatus.COMPLETED
            else ExitCode.FAILED
        )

    def first_attempt(
        self,
        step: PlanStep,
        guidance: str,
        root: Path | None = None,
        *,
        asks_anew: bool = False,
    ) -> int:
        """The number of the attempt to make now, see `Run.attempt_number`."""
        number, before = (
            self.run.attempt_number(step, guidance, root, is_new=asks_anew),
            self.run.state.step(step.number),
        )
        if (
            before.status is StepStatus.FAILED
            and number > before.attempts
            and not before.identity.is_same(step)
        ):
            # The plan has another step under this number now.
            self.run.save(self.run.state.hide_attempts(step.number))
        return number

    async def run_all(self, *, attempts: int = 1) -> None:
        """Run to the end, or to the first step that fails; as the plan is when a step
        begins. Not on top of a step that the run's rule does not accept: that is told,
        and kept in `stopped_by`.
        """
        self.run.expect_here(self.clock())
        await self._undoing.finish()
        if (refusal := self.run.refusal()) is not None:
            self.stopped_by = refusal
            self.run.emit(Notice(refusal.message, Tone.ERROR))
            self.run.emit(Notice(refusal.hint))
            await self.report_end()
            return
        if self.run.next_step is None:
            await self.report_end()
            return
        if self.jobs > 1 and not self._recovered:
            await self.recover()
            if self.stopped_by is not None:
                self.run.emit(self.run.summary())
                return
        side = await self._side_by_side(attempts)
        if self.stopped_by is not None:
            self.run.emit(self.run.summary())
            return
        if side is not None:
            self._has_side_trees = True
            try:
                await side.carry_out()
            finally:
                self._has_side_trees = False
                self._put_back_failures()
        else:
            while (step := self.run.next_step) is not None:
                await self.run_step(step, attempts=attempts)
                if (
                    not self.run.state.step(step.number).status.is_over
                    or self.stopped_by is not None
                ):
                    break
                self.reread()
        self.run.emit(await self.ended())

    async def ended(self) -> RunFinished:
        """Return the summary after a step, see `Run.ended`. It reports work of earlier
        steps that the tree does not have.
        """
        await self.run.find_missing_work()
        return self.run.ended()

    async def _expect_ready(self, *steps: PlanStep) -> None:
        """Raise a `CddError` if these steps cannot begin. Report concurrent runs."""
        self.run.lock.check()
        await self.run.ledger.open()  # without checkpoints no step begins
        for notice in tell_uncovered(self.run.ledger):
            self.run.emit(notice)
        root = self.runner.root
        await asyncio.to_thread(expect_checked_out, root, steps)
        if self.commits:
            slug, state = self.run.ticket.slug, self.run.state
            folders = [state.step(step.number).folder for step in steps]
            trailers = [trailer_prefix(slug, folder) for folder in folders]
            await expect_commit(root, steps, trailers)
        self.run.tell_of_concurrent_runs()

    async def _side_by_side(self, attempts: int) -> SideBySide | None:
        """Prepare steps to be run at once; None where they are run one after the
        other, or where the model cannot be asked (`stopped_by`).
        """
        self.stopped_by = None
        left = [
            step
            for step in self.run.plan.order()
            if not self.run.state.step(step.number).status.is_over
        ]
        if self.jobs == 1 or len(left) < 2:
            return None
        await self.recover()
        await self._expect_ready(*left)
        for step in left:
            if not await self._can_ask_model(step, ""):
                return None
        for step in left:  # of what failed, nothing is to be in the trees that are made
            if kept := self._restore_failed(step.number):
                self.edited[step.number] = frozenset(kept)
        side = await SideBySide.of(self, self.jobs, attempts)
        if side is not None:
            async with self._begin_baseline(left[0]) as known:
                # no tree is made of a project in which the tests are running
                await known()
        return side

    def known_before(self, step: PlanStep) -> Before:
        """What is known of the tests before this step, which is about to run."""
        before = self.run.known_tests.so_far(self.run.state)
        agenda = self.run.agenda(step)
        if before.baseline is None:
            return replace(before, agenda=agenda)
        label = self.run.plan.label_of(before.baseline.step)
        return replace(before, agenda=agenda, baseline_label=label)

    def end_by(self, step: PlanStep, error: CddError) -> None:
        """A step beside others was ended by an error: it is pending again, or has
        failed; its files are not there.
        """
        if isinstance(error, _OF_MODEL):
            self._pause(step.number)
        elif isinstance(error, NotApproved):
            self.run.interrupt(step.number)
        else:
            why = self.run.record.redactor.redact(error.message)
            self.run.save(self.run.state.failed(step.number, self.clock(), why))
        self._report_step(step)
        self._tell_why_it_stopped(error)

    def fail_beside(self, number: int, failed: Failed) -> None:
        """A step has failed beside others, and its files are not there."""
        self.run.attempt(number, self.run.state.step(number).attempts).save_failure(
            failed.failure
        )
        why = self.run.record.redactor.redact(failed.reason)
        self.run.save(
            self.run.state.failed(number, self.clock(), why, evidence=failed.evidence)
        )
        step = next(step for step in self.run.plan.steps if step.number == number)
        self.run.emit(StepFinished.from_run(step, self.run.plan, self.run.state))

    @property
    def is_plan_as_read(self) -> bool:
        """Nobody has edited the plan since. One that cannot be run is for `reread` to
        refuse.
        """
        try:
            return _runnable_plan(self.run.ticket, self.runner) == self.run.plan
        except BadInput:
            return False

    def reread(self, *, is_known: bool = False) -> None:
        """Take up a plan that was edited meanwhile, and tell that unless it `is_known`.
        Raises `BadInput` for one that cannot be run.
        """
        self.run.reload_spec()
        plan = _runnable_plan(self.run.ticket, self.runner)
        if plan != self.run.plan:
            self.run.reload_plan(plan, is_known=is_known)

    async def skip(self, step: PlanStep, reason: str, *, keep: bool) -> None:
        """Leave a step out. What a failed attempt left behind is restored, unless it is
        to be kept.
        """
        await self.recover()
        self.run.lock.check()
        before = self.run.state.step(step.number)
        if not keep:
            self.run.restore(step.number)
            await self._undoing.tell_what_is_left(before)
        files = before.files if keep else NO_FILES
        why = self.run.record.redactor.redact(reason)
        self.run.skip_step(step)
        self.run.save(self.run.state.skipped(step, self.clock(), why, files))
        self.run.emit(StepFinished.from_run(step, self.run.plan, self.run.state))
        dependents = [
            other.label
            for other in self.run.plan.steps
            if step.number in other.dependencies
        ]
        if dependents:
            one, names = len(dependents) == 1, ", ".join(dependents)
            who = f"Step {names} depends" if one else f"Steps {names} depend"
            self.run.emit(
                Notice(
                    f"{who} on it and will run without its result.",
                    Tone.WARNING,
                    kind=NoticeKind.DEPENDENTS,
                )
            )

    async def undo(self, number: int | None = None) -> None:
        """Go back to before a step, or before the last one: it and those after it are
        pending again.

        One that was killed, or stopped, is brought to its end instead. Raises
        `BadInput` for a step that was not carried out, `CheckpointGone` where what it
        changed cannot be known any more; then nothing was changed.
        """
        if await self._is_in_order():
            self.ask_again()
            await self._undoing.undo(number)

    async def redo(self) -> None:
        """Undo the last undo. Not any more when another step was run or skipped since.

        Raises `BadInput` where the plan is another one by now, or `CheckpointGone`.
        """
        if await self._is_in_order():
            await self._undoing.redo()

    async def preview_undo(self, number: int) -> UndoPreview:
        """The effect of going back to before a step now. Raises `BadInput` for a step
        that was not carried out.
        """
        return await self._undoing.preview(number)

    async def diff(self, number: int | None = None) -> None:
        """Show what a step, or the last one, changed. Raises `BadInput` for a step that
        was not carried out.
        """
        await self._undoing.diff(number)

    @property
    def _undoing(self) -> Undoing:
        return Undoing(self.run)

    async def _is_in_order(self) -> bool:
        """Put the run in order. False: an undo that was begun earlier was brought to
        its end, instead of another.
        """
        was_begun = self.run.record.going_back is not None
        await self.recover()
        if not was_begun:
            self.run.lock.check()
        return not was_begun

    @property
    def accepts_all(self) -> bool:
        """A person has accepted all changes of this run."""
        return self.runner.approval is not None and self.runner.approval.accepts_all

    def ask_again(self) -> None:
        """About changes, where a person had accepted everything of this run."""
        if self.runner.approval is not None:
            self.runner.approval.accept_all(self.run.emit, is_on=False)

    def _begin_baseline(self, step: PlanStep) -> KnownBefore:
        """What is known before a step. Before the first one of a run it begins with the
        baseline, which is taken once, and kept for when the run goes on.
        """
        run, runner = self.run, self.runner
        if run.state.started_at is None:
            run.record.set_baseline_aside()  # of a run whose state is gone
        remaining = [
            other
            for other in run.plan.steps
            if not run.state.step(other.number).status.is_over
        ]
        if run.record.baseline is not None or not runner.needs_baseline(remaining):
            return KnownBefore(
                asyncio.to_thread(self.known_before, step), None, run.emit
            )
        check = runner.project_check()
        started = (
            BaselineStarted(step.number, check.shown) if check is not None else None
        )
        if started is not None:
            run.emit(started)
        already = tuple((done.folder, done.attempts) for done in accepted(run.state))

        async def take_and_know() -> Before:
            await runner.take_baseline(step, check, already, run.record)
            # at once: who is stopped here is told of the baseline that is kept
            return self.known_before(step)

        return KnownBefore(take_and_know(), started, run.emit)

    def _is_outdated(self, step: PlanStep, outcome: AttemptOutcome) -> bool:
        """Whether a reply was refused for a file that the baseline, or somebody else,
        has changed since the model was shown it: that is no failure of the model's.
        """
        return not outcome.changes.changes and not outcome.unseen.isdisjoint(
            self.run.overlap(step)
        )

    async def _attempt(
        self,
        step: PlanStep,
        number: int,
        guidance: str,
        also_show: frozenset[str],
        known: KnownBefore,
    ) -> AttemptOutcome | None:
        """One attempt, with its state saved before and after. On every way out but its
        own end it is restored; None: what ended it is in `stopped_by`.
        """
        attempt = self.run.attempt(step.number, number)
        # a new one, not an interrupted one that goes on
        if number != self.run.state.step(step.number).last_attempt:
            attempt.begin(guidance)
        self.run.begin_step(step)
        self.run.save(self.run.state.started(step, self.clock(), attempt=number))
        settled = False
        try:
            self.run.emit(
                StepStarted(step.number, step.title, number, label=step.label)
            )
            self.run.recorder.check()
            prompt = partial(self.run.prompt, step, number, also_show)
            earlier = self.run.standing(self.run.state.step(step.number))[:-1]
            attempted = await self.runner.attempt(
                step, prompt, attempt, known, self.run.ledger, earlier
            )
            self.run.recorder.check()
            outcome = self._as_required(attempted)
            if outcome.verification is None and outcome.insufficient is None:
                attempt.save_failure(outcome.failure)
            committed = await self._committed(step, number, outcome)
            files = self.run.ledger.net([attempt]).files
            redactor, state, now = (
                self.run.record.redactor,
                self.run.state,
                self.clock(),
            )
            seen = redactor.redacted(outcome.evidence) if outcome.evidence else None
            if outcome.verification is not None:
                state = state.completed(
                    step.number,
                    now,
                    outcome.verification,
                    files,
                    committed.commit if committed else None,
                    seen,
                    committed.submodule_commits if committed else None,
                )
            else:
                why = redactor.redact(outcome.reason)
                state = state.failed(
                    step.number, now, why, files, outcome.insufficient, seen
                )
            self.run.save(state)
            settled = True
            if committed is not None:
                self.run.emit(committed)
            return outcome
        except _PAUSING as error:
            if isinstance(error, _OF_MODEL):
                self._pause(step.number)
            else:
                self.run.interrupt(step.number)
            settled, self.stopped_by = True, error
            await self._tell_what_is_left(step.number)
            if not self._has_side_trees:
                self._put_back_failures()
        except CddError as error:
            # nothing is known of the step then: it is pending again
            if error is self.run.recorder.refused:
                raise
            self.run.restore(step.number)
            why = self.run.record.redactor.redact(error.message)
            self.run.save(self.run.state.failed(step.number, self.clock(), why))
            settled, self.stopped_by = True, error
        finally:
            if not settled:
                self.run.recorder.forget()
                self.run.interrupt(step.number)
                await self._tell_what_is_left(step.number)
        return None

    async def _tell_what_is_left(self, number: int) -> None:
        await self._undoing.tell_what_is_left(self.run.state.step(number))

    def _as_required(self, outcome: AttemptOutcome) -> AttemptOutcome:
        """An attempt whose verification is not enough has failed, and the run is
        stopped. It was not the model's fault: the step goes on from the same reply when
        it is run again.
        """
        how = outcome.verification
        if how in (None, Verification.PASSED) or self.run.require is None:
            return outcome
        error = (
            f"`require: {self.run.require}` holds, and no tests have shown that it is"
            f" done ({outcome.reason})"
        )
        hint = (
            "Its reply is kept: the step goes on from it when it is run again, with"
            " tests that show it, or with "
        )
        self.stopped_by = StepFailed(error, hint=f"{hint}`require: off`.")
        return replace(outcome, verification=None, reason=error, insufficient=how)

    async def _committed(
        self, step: PlanStep, attempt: int, outcome: AttemptOutcome
    ) -> StepCommitted | None:
        """Commit a completed step, before it is saved as such. A refusal ends the run,
        and not the step: also where a file of the step is no longer as the step wrote
        it, as a commit has files whole.

        After a kill between the commit and the saving there is nothing left to commit:
        then it is found.
        """
        if not self.commits or outcome.verification is None:
            return None
        slug, folder = self.run.ticket.slug, self.run.state.step(step.number).folder
        message = step_message(
            slug,
            self.run.spec.title,
            step,
            attempt,
            outcome.verification,
            folder=folder,
        )
        root = self.runner.root
        try:
            net = self.run.ledger.net([self.run.attempt(step.number, attempt)])
            others = [
                change.path
                for change in net.changes
                if not is_same(entry_now(root, change.path), change.after)
            ]
            if others:
                raise CommitRefused(
                    f"{named(others)}: changed while the step ran, by you",
                    hint=(
                        "Commit the step by hand, with that or without; then run it"
                        " again to go on."
                    ),
                )
            done = await commit_step(root, step, sorted(net.paths), message)
            name = done.name or await already_committed(root, message.trailer)
        except CommitRefused as refusal:
            self.stopped_by = refusal
            return None
        if done.left_out:
            reasons = (f"{path} ({why})" for path, why in done.left_out.items())
            text = f"Not in the commit of step {step.label}: {', '.join(reasons)}"
            kind = NoticeKind.LEFT_OUT_OF_COMMIT
            self.run.emit(Notice(text, Tone.WARNING, kind=kind))
        return StepCommitted(step.number, name, dict(done.inside)) if name else None

    def _tell_why_it_stopped(self, error: CddError | None) -> None:
        if isinstance(error, CommitRefused):
            text = f"It was not committed: {error.message}"
            self.run.emit(Notice(text, Tone.WARNING, kind=NoticeKind.NOT_COMMITTED))
        # any other reason is the step's own error
        if error is not None and (kind := _find_pause(error)) is not None:
            self.run.emit(Notice(error.message, _tone_of(kind), kind=kind))
        if error is not None and error.hint:
            self.run.emit(Notice(error.hint))


def _find_pause(error: CddError) -> NoticeKind | None:
    """Return the subject of the notice about an error that pauses a step; None for
    other errors.
    """
    return next(
        (kind for type_, kind in _PAUSES.items() if isinstance(error, type_)), None
    )


def _tone_of(kind: NoticeKind) -> Tone:
    return Tone.ERROR if kind is NoticeKind.MODEL_FAILED else Tone.WARNING


def _runnable_plan(ticket: Ticket, runner: StepRunner) -> ImplementationPlan:
    """Raises `BadInput` for a plan that cannot be run."""
    plan = _read_plan(ticket)
    runner.check_commands(plan)
    return plan


def _read_plan(ticket: Ticket) -> ImplementationPlan:
    """Raises `BadInput` for a plan that has no order of steps, or cannot be read."""
    plan = ticket.read_plan()
    plan.check(ticket.shown(ticket.plan_path))
    return plan
