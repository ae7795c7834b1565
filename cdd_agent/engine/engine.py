"""Carries out a plan step by step, saves the state at every transition, and reports
progress as events.

A step is a transaction. Changes are entered in the ledger before they are written. A
failed attempt is restored before the next. An interrupted step is restored at once, or
after a kill when the run is opened again, and continues from its saved reply. The last
failed attempt's files stay until the user retries or skips the step.

Restoring touches only the step's files. Other changes are kept and named.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Self

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.engine.accepted import accepted
from cdd_agent.engine.attempt import Attempt, AttemptOutcome
from cdd_agent.engine.failed_step import FailedStep
from cdd_agent.engine.ledger import OpenCheckpoints
from cdd_agent.engine.ledger_entries import was_cut
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
from cdd_agent.engine.transaction import uncovered_notices
from cdd_agent.engine.undo import Undoing
from cdd_agent.errors import (
    BadInput,
    BudgetExhausted,
    CddError,
    CheckUnusable,
    ExitCode,
    NotApproved,
    StepFailed,
)
from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.events.question_events import ApprovalChanged
from cdd_agent.events.run_events import RunFinished
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
from cdd_agent.git.commit_git import CommitFailed, CommitRefused
from cdd_agent.git.restore import entry_now
from cdd_agent.llm.port import ModelError, RateLimited
from cdd_agent.refusals.kinds import Refusal, id_of
from cdd_agent.text.redaction import Redactor
from cdd_agent.tickets.declared_files import (
    declare_files,
    describe_hidden,
    find_hidden_reason,
)
from cdd_agent.tickets.plan import ImplementationPlan, PlanStep
from cdd_agent.tickets.run_outcome import WITHOUT_PROOF, Require, accepts
from cdd_agent.tickets.state import NO_FILES, ExecutionState, StepExecution
from cdd_agent.tickets.status import Evidence, RunStatus, StepOutcome, StepStatus
from cdd_agent.tickets.store import Ticket
from cdd_agent.verification.before import Before

_PAUSES: dict[type[CddError], NoticeKind] = {
    NotApproved: NoticeKind.NOT_APPROVED,
    BudgetExhausted: NoticeKind.NO_BUDGET,
    RateLimited: NoticeKind.COME_BACK_LATER,
    ModelError: NoticeKind.MODEL_FAILED,
    CheckUnusable: NoticeKind.CHECK_UNUSABLE,
    CommitFailed: NoticeKind.NOT_COMMITTED,
}
"""Errors that pause a step, with their kinds of notice. The step becomes pending, or
failed as before, and resumes once the user or provider allows it. The first matching
type counts.
"""
_PAUSING = tuple(_PAUSES)
_OF_MODEL = (BudgetExhausted, ModelError)

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


class Engine(Struct):
    run: Run
    runner: StepRunner
    commits: bool = False
    """True to commit each completed step on the user's branch."""
    clock: Clock = utc_now
    jobs: int = 1
    """Number of steps that run at once when the whole plan is carried out."""
    stopped_by: CddError | None = None
    """The error that ended the last step, other than its check. Sets the exit code."""
    failed_steps: dict[int, FailedStep] = field(default_factory=dict)
    """Failed steps whose files were restored, until their next attempt is over."""
    edited: dict[int, frozenset[str]] = field(default_factory=dict)
    """Step number → files of a failed attempt that the user has edited since. The model
    is shown them.
    """
    _recovered: bool = False
    _has_side_trees: bool = False
    """True while steps run side by side. Failed steps' files are reinstated
    afterwards.
    """

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
        require: Require | None = None,
        start_over: bool = False,
        runs_steps: bool = True,
        lock: TicketLock | None = None,
        open_checkpoints: OpenCheckpoints = Checkpoints.open,
    ) -> Self:
        """Read the ticket and take its lock, or use the given one.

        `start_over` moves the earlier run aside. `own` are files and folders that this
        program writes outside `.cdd`, relative to `root`: they are never a step's
        changes. With `runs_steps=False`, the plan may have forbidden checks.

        Raises `BadInput` for a plan that cannot run, a state that is unreadable or
        another plan's, or if another process works on the ticket.
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
        self.runner.approval.end()
        self.run.close()

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Wrap work, and save the report at its end, even after an error.

        Raises `BadInput` if the disk refuses the report or part of the log.
        """
        with self.run.recorder.recording(then=self.save_report):
            self.run.report_opening()
            yield

    def save_report(self) -> None:
        """Save the report if any step was run. Raises `BadInput` if the disk
        refuses.
        """
        run = self.run
        if run.state.started_at is not None:
            run.save_costs()
            save(run.report(), run.record.folder)

    async def recover(self) -> None:
        """Restore the steps that a killed run left, and finish an interrupted undo.

        Every action that changes files begins with this. The first call also reports
        what was found. If a user's edit prevents it, the run waits: the reason is
        reported, and is in `stopped_by`. Raises `RunElsewhere` for a run that is not
        here.
        """
        self.run.expect_here(self.clock())
        if not self._recovered:
            await self._recover_run()
            self._recovered = True
        await self._undoing.finish()

    async def _recover_run(self) -> None:
        run = self.run
        await remove_all(run.ledger)
        if self.runner.commands.settings.mode == "unsafe":
            text = (
                "`commands.mode` is `unsafe`: checks run in a real shell without"
                " restrictions."
            )
            run.emit(Notice(text, Tone.WARNING))
        self._report_spec_gaps()
        run.report_opening()
        for event in drift(run.plan, run.state):
            run.emit(event)
        self._report_findings()
        for number, execution in run.state.all_steps.items():
            if execution.status is StepStatus.IN_PROGRESS:
                await self._recover_step(number, execution)

    def _report_spec_gaps(self) -> None:
        if self.run.next_step is None:
            return
        source = self.run.ticket.shown(self.run.ticket.spec_path)
        for gap in self.run.spec.missing():
            text = f"{source} is not complete: {gap}"
            self.run.emit(Notice(text, Tone.WARNING, kind=NoticeKind.SPEC_INCOMPLETE))

    def _report_findings(self) -> None:
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
        run, root = self.run, self.run.record.root
        hidden = HiddenFiles(root, allowed=run.record.choices.pinned)
        for step in run.plan.steps:
            if run.state.step(step.number).status.is_over:
                continue
            for declared in declare_files(root, step).files:
                why = find_hidden_reason(declared, hidden)
                if not why:
                    continue
                words = describe_hidden(declared.path, why)
                text = f"{source}:{step.line}: step {step.label} {words}"
                run.emit(Notice(text, Tone.WARNING, kind=NoticeKind.PLAN_FINDING))

    async def _recover_step(self, number: int, execution: StepExecution) -> None:
        """Restore a step whose process was killed. It becomes pending last, so that
        another kill repeats all of this.
        """
        run = self.run
        refusal = run.old_record_refusal(execution)
        if refusal is not None:
            self._wait_for_user(refusal, NoticeKind.RESUMED)
            return
        others: tuple[str, ...] = ()
        who = "You"
        if execution.attempts:
            attempt = run.record.attempt(execution.folder, execution.attempts)
            if was_cut(attempt):
                who = "You or the interrupted command"
            # the step can be restored without this
            with suppress(CddError):
                others = await run.ledger.enter_after_kill(attempt)
        back = run.restore_files(number)
        label = run.plan.label_of(number)
        text = f"Step {label} was interrupted and {run.resume_hint(number)}."
        run.emit(Notice(text, Tone.WARNING, kind=NoticeKind.RESUMED))
        if others:
            text = (
                f"Changed during or after step {label}, left unchanged:"
                f" {named(others)}. `undo` leaves these files unchanged, too,"
                " because the changes could be yours."
            )
            run.emit(Notice(text, Tone.WARNING, kind=NoticeKind.CHANGED_BESIDE))
        await self._undoing.report_other_changes(execution)
        if back is not None:
            run.emit(back)
        if back is not None and back.kept:
            edited = NotApproved(
                f"{who} edited {named(back.kept)} since. Check these files before"
                " the run continues",
                hint="To continue, run it again. The step then starts with your"
                " edit, and the model sees it.",
            )
            self._wait_for_user(edited, NoticeKind.NOT_APPROVED)
        if self.commits:
            await settle_commits(self.runner.root)
        run.save(run.state.restore(number))

    def _wait_for_user(self, why: CddError, kind: NoticeKind) -> None:
        self.stopped_by = why
        self.run.emit(Notice(why.message, Tone.WARNING, kind=kind))
        self.run.emit(Notice(why.remedy))

    async def run_step(
        self,
        step: PlanStep,
        *,
        guidance: str = "",
        attempts: int = 1,
        asks_anew: bool = False,
    ) -> None:
        """Run a step until it is completed or `attempts` attempts failed.

        An interrupted step continues from its saved reply, unless there is new guidance
        or `asks_anew`. Any other error that ends the step (of the model, the disk, a
        missing approval) is reported, and kept in `stopped_by`.
        """
        was_recovered = self._recovered
        await self.recover()
        if not was_recovered and self.stopped_by is not None:
            return
        self.stopped_by = None
        await self._expect_ready(step)
        if not await self._can_ask_model(step, guidance, asks_anew=asks_anew):
            return
        also_show = frozenset(self._restore_failed(step.number))
        first = self.first_attempt(step, guidance, asks_anew=asks_anew)
        if not self._has_side_trees:
            self._report_saved_work(step, first)
        try:
            await self._complete_baseline(step)
            await self._make_attempts(step, first, attempts, guidance, also_show)
        except asyncio.CancelledError:
            # a user who stops a run wants to see the next changes
            self.ask_again()
            raise
        self._report_step(step)
        self._report_stop(self.stopped_by)
        if self.run.next_step is None:
            self.ask_again()

    async def _make_attempts(
        self,
        step: PlanStep,
        first: int,
        attempts: int,
        guidance: str,
        also_show: frozenset[str],
    ) -> None:
        """Make attempts from number `first` on, until the step is completed, `attempts`
        failed, or an error ends it.
        """
        number, remaining = first, attempts
        while True:
            outcome = await self._attempt(step, number, guidance, also_show)
            if outcome is None or outcome.verification is not None:
                return
            if not outcome.is_by_person:
                remaining -= 1
            will_retry = remaining > 0 and outcome.insufficient is None
            self.run.emit(
                AttemptFailed(
                    step.number,
                    number,
                    outcome.reason,
                    will_retry=will_retry,
                    last_attempt=number + remaining,
                    label=step.label,
                    refusal=id_of(outcome.refusal),
                )
            )
            if not will_retry:
                return
            also_show |= frozenset(self._restore_failed(step.number))
            number += 1

    def _report_saved_work(self, step: PlanStep, number: int) -> None:
        if number != self.run.state.step(step.number).last_attempt:
            return
        saved = self.run.find_saved_work(step)
        if saved is SavedWork.NONE:
            return
        if saved is SavedWork.REPLY:
            text = (
                f"Applying the saved reply of step {step.label} again. The model"
                " is not called."
            )
        else:
            text = (
                f"Resuming step {step.label} after its saved calls of the model,"
                " which are not paid for again."
            )
        text += " To get a new reply instead, type `retry` in the shell."
        self.run.emit(Notice(text, kind=NoticeKind.SAVED_WORK, step=step.number))

    async def _can_ask_model(
        self, step: PlanStep, guidance: str, *, asks_anew: bool = False
    ) -> bool:
        """Check the model, if needed, before anything changes. Report an unusable one
        as the run's error.

        The server is contacted only before a failed step, whose files would be
        restored, and before a saved reply is dropped. Other steps lose nothing, and a
        call waits longer than this check.
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
            if error.remedy:
                self.run.emit(Notice(error.remedy))
            return False
        return True

    def _restore_failed(self, number: int) -> tuple[str, ...]:
        """Restore a step before its next attempt. Returns files that the user has
        edited since.
        """
        failed, restored = FailedStep.restore(self.run, number)
        if failed is not None:
            earlier = self.failed_steps.get(number)
            self.failed_steps[number] = failed.after(earlier)
        elif not self._has_side_trees:
            self.failed_steps.pop(number, None)
        return restored

    def _pause(self, number: int) -> None:
        """Restore an attempt without a reply. The step has its earlier failure again,
        or becomes pending.
        """
        failed = self.failed_steps.get(number)
        if failed is None:
            self.run.interrupt(number)
            return
        back = self.run.restore_files(number)
        self.run.save(self.run.state.reinstate(failed.execution))
        if back is not None:
            self.run.emit(back)

    def _reinstate_failures(self) -> None:
        for number, failed in self.failed_steps.items():
            now = self.run.state.step(number)
            is_unchanged = now.attempts == failed.execution.attempts
            if now.status is not StepStatus.FAILED or not is_unchanged:
                continue
            written = failed.reinstate(self.run)
            if not written:
                continue
            text = (
                f"The files of step {self.run.plan.label_of(number)} have the"
                f" changes of its failed attempt again: {named(written)}"
            )
            notice = Notice(text, kind=NoticeKind.FAILURE_REINSTATED, step=number)
            self.run.emit(notice)
        self.failed_steps.clear()

    def _report_step(self, step: PlanStep) -> None:
        finished = StepFinished.from_run(step, self.run.plan, self.run.state)
        is_reinstated = self.run.state.step(step.number).open_attempt > 0
        self.run.emit(replace(finished, is_earlier_failure=is_reinstated))

    async def carry_out(self, *, attempts: int = 1) -> None:
        """Recover the run, report its state, and run to the end or first failure."""
        await self.recover()
        self.run.emit(self.run.opened())
        if self.stopped_by is not None:
            return
        if self.run.next_step is None and self.run.refusal() is None:
            await self.report_all_done()
        else:
            await self.run_all(attempts=attempts)

    async def report_all_done(self) -> None:
        """Report that no step remains, or which work is missing in the tree."""
        await self.run.find_missing_work()
        summary = self.run.summary()
        if summary.status is RunStatus.COMPLETED:
            text = "All steps are done, so no step ran."
            self.run.emit(Notice(text, Tone.GOOD, kind=NoticeKind.ALL_DONE))
        self.run.emit(summary)

    async def report_end(self) -> None:
        """Emit the summary of a run without a next step."""
        await self.run.find_missing_work()
        self.run.emit(self.run.summary())

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of `cdd exec`."""
        if self.stopped_by is not None:
            return self.stopped_by.exit_code
        if self.run.summary().status is RunStatus.COMPLETED:
            return ExitCode.DONE
        return ExitCode.FAILED

    def first_attempt(
        self,
        step: PlanStep,
        guidance: str,
        root: Path | None = None,
        *,
        asks_anew: bool = False,
    ) -> int:
        """Return the next attempt's number, as `Run.attempt_number` does."""
        number = self.run.attempt_number(step, guidance, root, is_new=asks_anew)
        before = self.run.state.step(step.number)
        is_new_after_failure = (
            before.status is StepStatus.FAILED and number > before.attempts
        )
        # the plan may have another step under this number
        if is_new_after_failure and not before.identity.is_same(step):
            self.run.save(self.run.state.hide_attempts(step.number))
        return number

    async def run_all(self, *, attempts: int = 1) -> None:
        """Run the remaining steps until one fails. An edited plan takes effect before
        the next step.

        Nothing runs if the run's rule refuses an earlier step, which is reported and
        kept in `stopped_by`.
        """
        self.run.expect_here(self.clock())
        await self._undoing.finish()
        refusal = self.run.refusal()
        if refusal is not None:
            self.stopped_by = refusal
            self.run.emit(Notice(refusal.message, Tone.ERROR))
            self.run.emit(Notice(refusal.remedy))
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
                self._reinstate_failures()
        else:
            await self._run_in_order(attempts)
        self.run.emit(await self.ended())

    async def _run_in_order(self, attempts: int) -> None:
        while True:
            step = self.run.next_step
            if step is None:
                return
            await self.run_step(step, attempts=attempts)
            is_over = self.run.state.step(step.number).status.is_over
            if not is_over or self.stopped_by is not None:
                return
            self.reread()

    async def ended(self) -> RunFinished:
        """Find missing work of earlier steps, and return the summary after a step, see
        `Run.ended`.
        """
        await self.run.find_missing_work()
        return self.run.ended()

    async def _expect_ready(self, *steps: PlanStep) -> None:
        """Raise a `CddError` if the steps cannot begin. Report concurrent runs."""
        self.run.lock.check()
        await self.run.ledger.open()  # no step begins without checkpoints
        for notice in uncovered_notices(self.run.ledger):
            self.run.emit(notice)
        root = self.runner.root
        await asyncio.to_thread(expect_checked_out, root, steps)
        if self.commits:
            slug, state = self.run.ticket.slug, self.run.state
            folders = [state.step(step.number).folder for step in steps]
            trailers = [trailer_prefix(slug, folder) for folder in folders]
            await expect_commit(root, steps, trailers)
        self.run.report_concurrent_runs()

    async def _side_by_side(self, attempts: int) -> SideBySide | None:
        """Prepare to run steps at once. None if they run in sequence, or the model
        cannot be asked (`stopped_by`).
        """
        self.stopped_by = None
        remaining = [
            step
            for step in self.run.plan.order()
            if not self.run.state.step(step.number).status.is_over
        ]
        if self.jobs == 1 or len(remaining) < 2:
            return None
        await self.recover()
        await self._expect_ready(*remaining)
        for step in remaining:
            if not await self._can_ask_model(step, ""):
                return None
        # side trees must not contain failed changes
        for step in remaining:
            restored = self._restore_failed(step.number)
            if restored:
                self.edited[step.number] = frozenset(restored)
        side = await SideBySide.of(self, self.jobs, attempts)
        if side is not None:
            await self._complete_baseline(*remaining)
        return side

    def known_before(self, step: PlanStep) -> Before:
        before = self.run.known_tests.so_far(self.run.state)
        agenda = self.run.agenda(step)
        if before.baseline is None:
            return replace(before, agenda=agenda)
        label = self.run.plan.label_of(before.baseline.step)
        return replace(before, agenda=agenda, baseline_label=label)

    def end_by(self, step: PlanStep, error: CddError) -> None:
        """End a step in a side tree by an error: it becomes pending or fails. Its files
        are not in the user's tree.
        """
        if isinstance(error, _OF_MODEL):
            self._pause(step.number)
        elif isinstance(error, NotApproved):
            self.run.interrupt(step.number)
        else:
            self._save_failure(step.number, error)
        self._report_step(step)
        self._report_stop(error)

    def _save_failure(self, number: int, error: CddError) -> None:
        why = self.run.record.redactor.redact(error.message)
        refusal = id_of(error.refusal)
        self.run.save(self.run.state.failed(number, self.clock(), why, refusal=refusal))

    def fail_side_step(self, number: int, failed: Failed) -> None:
        """Fail a step in a side tree. Its files are not in the user's tree."""
        self.run.attempt(number, self.run.state.step(number).attempts).save_failure(
            failed.failure
        )
        why = self.run.record.redactor.redact(failed.reason)
        self.run.save(
            self.run.state.failed(
                number,
                self.clock(),
                why,
                evidence=failed.evidence,
                refusal=failed.refusal,
            )
        )
        step = next(step for step in self.run.plan.steps if step.number == number)
        self.run.emit(StepFinished.from_run(step, self.run.plan, self.run.state))

    @property
    def is_plan_unchanged(self) -> bool:
        """True if the plan on disk is the run's. False for a plan that cannot run,
        which `reread` refuses.
        """
        try:
            return _runnable_plan(self.run.ticket, self.runner) == self.run.plan
        except BadInput:
            return False

    def reread(self, *, is_known: bool = False) -> None:
        """Use an edited plan, and report the edit unless it `is_known`. Raises
        `BadInput` if the plan cannot run.
        """
        self.run.reload_spec()
        plan = _runnable_plan(self.run.ticket, self.runner)
        if plan != self.run.plan:
            self.run.reload_plan(plan, is_known=is_known)

    async def skip(self, step: PlanStep, reason: str, *, keep: bool) -> None:
        """Skip a step. A failed attempt's changes are restored, unless `keep`."""
        await self.recover()
        self.run.lock.check()
        before = self.run.state.step(step.number)
        if not keep:
            self.run.restore(step.number)
            await self._undoing.report_other_changes(before)
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
        if not dependents:
            return
        names = ", ".join(dependents)
        who = f"Steps {names} depend"
        if len(dependents) == 1:
            who = f"Step {names} depends"
        text = f"{who} on it and will run without its result."
        self.run.emit(Notice(text, Tone.WARNING, kind=NoticeKind.DEPENDENTS))

    async def undo(self, number: int | None = None) -> None:
        """Undo a step (default: the last) and all later ones, which become pending.

        An interrupted undo is finished instead. Raises `BadInput` if the step did not
        run, and `CheckpointGone`, before any change, if its earlier contents are
        missing.
        """
        if await self._can_begin_undo():
            self.ask_again()
            await self._undoing.undo(number)

    async def redo(self) -> None:
        """Reverse the last undo, unless another step was run or skipped since.

        Raises `BadInput` if the plan has changed, or `CheckpointGone`.
        """
        if await self._can_begin_undo():
            await self._undoing.redo()

    async def preview_undo(self, number: int) -> UndoPreview:
        """Return what an undo would do now. Raises `BadInput` if the step did not
        run.
        """
        return await self._undoing.preview(number)

    async def diff(self, number: int | None = None) -> None:
        """Show the changes of a step (default: the last). Raises `BadInput` if it did
        not run.
        """
        await self._undoing.diff(number)

    @property
    def _undoing(self) -> Undoing:
        return Undoing(self.run)

    async def _can_begin_undo(self) -> bool:
        """Recover the run. False if that finished an earlier undo: then no other
        begins.
        """
        was_begun = self.run.record.going_back is not None
        await self.recover()
        if not was_begun:
            self.run.lock.check()
        return not was_begun

    @property
    def accepts_all(self) -> bool:
        return self.runner.approval.accepts_all

    def ask_again(self) -> None:
        """Ask about changes again, even in a run accepted as a whole."""
        self.runner.approval.accept_all(self.run.emit, is_on=False)

    def ask_before_edits(self) -> None:
        """Ask before files change: in this run, and later in the session."""
        mode = self.runner.approval.mode
        self.ask_again()
        if mode.value != "ask":
            mode.change("ask")
            self.run.emit(ApprovalChanged("ask"))

    @property
    def asks_before_edits(self) -> bool:
        return self.runner.approval.must_ask()

    async def _complete_baseline(self, *steps: PlanStep) -> None:
        """Run checks whose results before these steps are unknown. The model is asked
        afterwards: an unusable check is reported before a call is paid for.
        """
        run = self.run
        if run.state.started_at is None:
            # it belongs to a run whose state was deleted
            run.record.set_baseline_aside()
        remaining = [
            other
            for other in run.plan.steps
            if not run.state.step(other.number).status.is_over
        ]
        already = tuple((done.folder, done.attempts) for done in accepted(run.state))
        results = await asyncio.to_thread(run.known_tests.so_far, run.state)
        await self.runner.complete_baseline(
            steps, remaining, results, already, run.record
        )

    async def _attempt(
        self,
        step: PlanStep,
        number: int,
        guidance: str,
        also_show: frozenset[str],
    ) -> AttemptOutcome | None:
        """Make one attempt, and save the state before and after it. It is restored
        unless it ends by itself. Returns None if an error ended it (`stopped_by`).
        """
        attempt = self.run.attempt(step.number, number)
        # an interrupted attempt continues instead
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
            earlier = self.run.remaining_attempts(self.run.state.step(step.number))[:-1]
            before = await asyncio.to_thread(self.known_before, step)
            attempted = await self.runner.attempt(
                step,
                self.run.plan,
                prompt,
                attempt,
                before,
                self.run.ledger,
                earlier,
            )
            self.run.recorder.check()
            outcome = self._apply_rule(attempted)
            if outcome.verification is None and outcome.insufficient is None:
                attempt.save_failure(outcome.failure)
            committed = await self._commit(step, attempt, outcome)
            self.run.save(self._state_after(step, attempt, outcome, committed))
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
            await self._report_other_changes(step.number)
            if not self._has_side_trees:
                self._reinstate_failures()
        except CddError as error:
            # the log is incomplete: the step becomes pending
            if error is self.run.recorder.refused:
                raise
            self.run.restore(step.number)
            self._save_failure(step.number, error)
            settled, self.stopped_by = True, error
        finally:
            if not settled:
                self.run.recorder.forget()
                self.run.interrupt(step.number)
                await self._report_other_changes(step.number)
        return None

    async def _report_other_changes(self, number: int) -> None:
        await self._undoing.report_other_changes(self.run.state.step(number))

    def _state_after(
        self,
        step: PlanStep,
        attempt: Attempt,
        outcome: AttemptOutcome,
        committed: StepCommitted | None,
    ) -> ExecutionState:
        files = self.run.ledger.net([attempt]).files
        redactor, state, now = self.run.record.redactor, self.run.state, self.clock()
        evidence = self._redacted_evidence(outcome)
        if outcome.verification is None:
            why = redactor.redact(outcome.reason)
            return state.failed(
                step.number,
                now,
                why,
                files,
                outcome.insufficient,
                evidence,
                id_of(outcome.refusal),
            )
        return state.completed(
            step.number,
            now,
            outcome.verification,
            files,
            committed.commit if committed else None,
            evidence,
            committed.submodule_commits if committed else None,
        )

    def _redacted_evidence(self, outcome: AttemptOutcome) -> Evidence | None:
        if outcome.evidence is None:
            return None
        return self.run.record.redactor.redacted(outcome.evidence)

    def _apply_rule(self, outcome: AttemptOutcome) -> AttemptOutcome:
        """Apply the run's rule. An attempt that lacks the required verification fails
        and stops the run; later the step continues from the same reply.
        """
        verification, require = outcome.verification, self.run.require
        if verification is None or require is None:
            return outcome
        outcome_of_step = StepOutcome.from_verification(verification, outcome.evidence)
        if accepts(require, outcome_of_step):
            return outcome
        error = (
            f"The step does not meet `require: {require}`:"
            f" {WITHOUT_PROOF[require]} it is done ({outcome.reason})"
        )
        hint = (
            "Its reply is saved. Add tests for the step or set `require: off`,"
            " then run it again: it continues with the saved reply."
        )
        self.stopped_by = StepFailed(error, hint=hint, refusal=Refusal.PROOF_REQUIRED)
        return replace(
            outcome,
            verification=None,
            reason=error,
            insufficient=verification,
            refusal=Refusal.PROOF_REQUIRED,
        )

    async def _commit(
        self, step: PlanStep, attempt: Attempt, outcome: AttemptOutcome
    ) -> StepCommitted | None:
        """Commit a completed step before its state is saved. A refusal ends the run,
        not the step. Commits contain whole files, so a user's change in a file of the
        step is a reason to refuse.

        After a kill, an existing commit is found. Raises `CommitFailed` if git or the
        disk fails: nothing would commit a completed step later.
        """
        if not self.commits or outcome.verification is None:
            return None
        slug, folder = self.run.ticket.slug, self.run.state.step(step.number).folder
        message = step_message(
            slug,
            self.run.spec.title,
            step,
            attempt.number,
            outcome.verification,
            self._redacted_evidence(outcome),
            folder=folder,
        )
        root = self.runner.root
        try:
            net = self.run.ledger.net([attempt])
            edited = [
                change.path
                for change in net.changes
                if not is_same(entry_now(root, change.path), change.after)
            ]
            if edited:
                raise CommitRefused(
                    f"you changed {named(edited)} while the step ran",
                    hint="Commit the step by hand, with or without your change."
                    " Then run it again to continue.",
                )
            done = await commit_step(root, step, sorted(net.paths), message)
            name = done.name or await already_committed(root, message.trailer)
        except CommitFailed:
            raise
        except CommitRefused as refusal:
            self.stopped_by = refusal
            return None
        if done.left_out:
            reasons = (f"{path} ({why})" for path, why in done.left_out.items())
            text = f"Not in the commit of step {step.label}: {', '.join(reasons)}"
            kind = NoticeKind.LEFT_OUT_OF_COMMIT
            self.run.emit(Notice(text, Tone.WARNING, kind=kind))
        if not name:
            return None
        return StepCommitted(step.number, name, dict(done.inside))

    def _report_stop(self, error: CddError | None) -> None:
        """Report why the run stopped. Other errors were reported with their step."""
        if error is None:
            return
        text, kind = error.message, _find_pause(error)
        if isinstance(error, CommitRefused):
            text, kind = f"It was not committed: {text}", NoticeKind.NOT_COMMITTED
        if kind is not None:
            self.run.emit(Notice(text, _tone_of(kind), kind=kind))
        if error.remedy:
            self.run.emit(Notice(error.remedy))


def _find_pause(error: CddError) -> NoticeKind | None:
    """Return the kind of notice; None for errors that do not pause a step."""
    for error_type, kind in _PAUSES.items():
        if isinstance(error, error_type):
            return kind
    return None


def _tone_of(kind: NoticeKind) -> Tone:
    errors = (NoticeKind.MODEL_FAILED, NoticeKind.CHECK_UNUSABLE)
    return Tone.ERROR if kind in errors else Tone.WARNING


def _runnable_plan(ticket: Ticket, runner: StepRunner) -> ImplementationPlan:
    """Return the plan. Raises `BadInput` if it cannot run."""
    plan = _read_plan(ticket)
    runner.check_commands(plan)
    return plan


def _read_plan(ticket: Ticket) -> ImplementationPlan:
    """Raises `BadInput` if the plan is unreadable or its steps have no order."""
    plan = ticket.read_plan()
    plan.check(ticket.shown(ticket.plan_path))
    return plan
