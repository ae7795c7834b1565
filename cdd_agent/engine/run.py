"""A ticket's run on disk: its plan, state and record.

An open run holds the ticket's lock, so the state has one writer.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar
from datetime import datetime
from enum import Enum, auto
from pathlib import Path
from typing import Self

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.context.finder import CodeFinder
from cdd_agent.cost import NO_COST, Cost
from cdd_agent.engine.accepted import KnownTests
from cdd_agent.engine.attempt import Attempt
from cdd_agent.engine.ledger import Ledger, OpenCheckpoints, no_part
from cdd_agent.engine.load_state import drift, open_state, renumbered, save
from cdd_agent.engine.lock import TicketLock, others_at_work
from cdd_agent.engine.logged_run import LoggedRun
from cdd_agent.engine.missing_work import find_missing_work
from cdd_agent.engine.old_records import (
    OldRecordUnreadable,
    find_old_steps,
    take_over,
)
from cdd_agent.engine.prompt import (
    FailedAttempt,
    PromptInputs,
    StepPrompt,
    build_prompt,
    step_digest,
)
from cdd_agent.engine.record import RunRecord
from cdd_agent.engine.recording import Recorder
from cdd_agent.engine.report import Report
from cdd_agent.engine.restoring import Restorer
from cdd_agent.engine.whereabouts import expect_here
from cdd_agent.errors import BadInput, CddError, StepFailed
from cdd_agent.events.dialogue_events import ReplyFinished, ReplyLost, ReplyStarted
from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.events.run_events import RunFinished
from cdd_agent.events.step_events import ChangesPutBack
from cdd_agent.events.stream import Emit, Event
from cdd_agent.events.ticket_events import PlanOpened
from cdd_agent.files.atomic import digest, read_bytes, remove_leftovers
from cdd_agent.files.line_ranges import Ranges
from cdd_agent.git.checkpoint import Checkpoints
from cdd_agent.llm.port import Usage
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.text.redaction import Redactor
from cdd_agent.threads import waited_for
from cdd_agent.tickets.outcome_words import steps_in_words
from cdd_agent.tickets.plan import ImplementationPlan, PlanStep
from cdd_agent.tickets.run_outcome import WITHOUT_PROOF, Require, refused_steps
from cdd_agent.tickets.served_criteria import (
    adopt_criteria,
    begin_step,
    digests_of_step,
    note_numbers,
    places_of_step,
    skip_step,
)
from cdd_agent.tickets.spec import TicketSpec
from cdd_agent.tickets.state import (
    NO_FILES,
    ExecutionState,
    StepExecution,
    match_state,
    next_step,
    renumbered_steps,
)
from cdd_agent.tickets.status import MissingWork, RunStatus, StepStatus
from cdd_agent.tickets.store import Ticket
from cdd_agent.verification.before import Agenda

_asked_for: ContextVar[int] = ContextVar("asked_for", default=0)
"""Number of the step that the model was last asked for, 0 for none. Each concurrent
step has a separate value.
"""


class SavedWork(Enum):
    """The saved part of an interrupted step's reply, which was paid for."""

    NONE = auto()
    REPLY = auto()
    ROUNDS = auto()
    """Tool calls, without the model's last message."""


class Run(Struct):
    """The run of a ticket. Values in memory are never ahead of the disk."""

    ticket: Ticket
    spec: TicketSpec
    plan: ImplementationPlan
    state: ExecutionState
    record: RunRecord
    ledger: Ledger
    lock: TicketLock
    recorder: Recorder
    known_tests: KnownTests
    own: tuple[str, ...] = ()
    """This program's files and folders outside `.cdd`, relative to the root."""
    code: CodeFinder | None = None
    """Finds code for prompts. None: prompts show only named files."""
    missing: tuple[MissingWork, ...] = ()
    """Missing work, as last found by `find_missing_work`. Empty while steps remain."""
    require: Require | None = None
    """The run's rule about its steps, if any."""
    unreadable: dict[int, CddError] = field(default_factory=dict)
    """Folder → why a record of version 0.1 is unreadable."""
    _opening_events: list[Event] = field(default_factory=list)
    """Unreported events of the opening."""
    _reported_runs: set[str] = field(default_factory=set)
    """Concurrent runs already reported."""
    _unsaved: dict[int, Cost] = field(default_factory=dict)
    """Folder → cost of calls not yet in the state."""

    @classmethod
    def open(
        cls,
        root: Path,
        ticket: Ticket,
        plan: ImplementationPlan,
        redactor: Redactor,
        since: str,
        emit: Emit,
        *,
        own: Iterable[str] = (),
        code: CodeFinder | None = None,
        require: Require | None = None,
        start_over: bool = False,
        lock: TicketLock | None = None,
        open_checkpoints: OpenCheckpoints = Checkpoints.open,
    ) -> Self:
        """Take the ticket's lock, or use the given one, and read the run. `since` is
        the start time in the lock. `start_over` moves the earlier run aside.

        Raises `BadInput` for a state that is unreadable or another plan's, or if
        another process works on the ticket.
        """
        spec = ticket.read_spec()
        record = RunRecord.of_ticket(ticket, redactor)
        record.prepare()
        lock = lock or TicketLock.take(record.folder, ticket.slug, since)
        own = (*own, ticket.shown(ticket.folder))
        ledger = Ledger(record, no_part(root, own), open_checkpoints=open_checkpoints)
        unreadable: dict[int, CddError] = {}
        try:
            record.tidy()
            remove_leftovers(ticket.folder)
            opened = open_state(ticket, plan, record, start_over=start_over)
            if find_old_steps(record, opened.state):
                unreadable = waited_for(_take_over(ledger, opened.state))
        except BaseException:
            lock.release()
            raise
        recorder = Recorder(redactor, record.log, emit)
        state = opened.state
        if any(step.attempts and step.lacks_costs for step in state.all_steps.values()):
            efforts = LoggedRun.read(record.log).efforts
            costs = {folder: effort.cost for folder, effort in efforts.items()}
            state = state.with_costs(costs, instead=True)
        adopted = adopt_criteria(state, plan, spec.acceptance_criteria)
        if adopted is not state:
            state = save(ticket, plan, record, adopted)
        return cls(
            ticket,
            spec,
            plan,
            state,
            record,
            ledger,
            lock,
            recorder,
            KnownTests(record),
            own,
            code,
            require=require,
            unreadable=unreadable,
            _opening_events=[*opened.news, *lock.news],
        )

    def close(self) -> None:
        self.lock.release()

    def emit(self, event: Event) -> None:
        self._note(event)
        self.recorder.emit(event)

    def teller(self) -> Emit:
        """Return an `emit` for concurrent work, which keeps pieces of a stream
        together.
        """
        separate = self.recorder.beside()

        def emit(event: Event) -> None:
            self._note(event)
            separate.emit(event)

        return emit

    def _note(self, event: Event) -> None:
        match event:
            case ReplyStarted(step=int(step)):
                _asked_for.set(step)
            case ReplyFinished(step=int(step), usage=Usage() as usage):
                self._count(self.state.step(step).folder, usage)
            case _:
                pass

    def lost(self, usage: Usage) -> None:
        """Count and log the usage of a call that brought no whole reply."""
        step = _asked_for.get()
        self._count(self.state.step(step).folder, usage)
        self.record.log.add(ReplyLost(usage, step or None))

    def _count(self, folder: int, usage: Usage) -> None:
        self._unsaved[folder] = self._unsaved.get(folder, NO_COST) + usage.cost

    def save_costs(self) -> None:
        """Save costs of calls after which no step was saved, such as questions."""
        if self._unsaved:
            self.save(self.state)

    @property
    def next_step(self) -> PlanStep | None:
        """The step to run now: pending, interrupted or failed. None if no step
        remains.
        """
        return next_step(self.plan, self.state)

    def agenda(self, step: PlanStep) -> Agenda:
        """Return the criteria, and the steps before and after one that is about to
        run.
        """
        later = []
        earlier = []
        for other in self.plan.order():
            if self.state.step(other.number).status.is_over:
                earlier.append(other)
            elif other.number != step.number:
                later.append(other)
        criteria = self.spec.acceptance_criteria
        served = {
            other.number: places_of_step(other, self.state, criteria)
            for other in (step, *later)
        }
        return Agenda(criteria, tuple(later), tuple(earlier), served)

    def find_number(self, label: str) -> int | None:
        """Return the number of the step that a user means, or None: by label, else by
        the number of a step removed from the plan.
        """
        step = self.plan.find_step(label)
        if step is not None:
            return step.number
        is_former = label.isdecimal() and int(label) in self.state.former_steps
        return int(label) if is_former else None

    def opened(self) -> PlanOpened:
        spec = self._present_spec()
        criteria = spec.acceptance_criteria
        return PlanOpened.from_run(spec.title, self.plan, self.state, criteria)

    def summary(self) -> RunFinished:
        criteria = self._present_spec().acceptance_criteria
        return RunFinished.from_run(
            self.plan, self.state, criteria, self.require, self.missing
        )

    async def find_missing_work(self) -> None:
        """If no step remains, search the tree for the steps' work. A rebuilt state is
        saved if it is there. Raises `BadInput` for a damaged record.
        """
        self.missing = ()
        if self.state.status is not RunStatus.COMPLETED:
            return
        self.missing = await find_missing_work(
            self.plan, self.state, self.record, self.ledger
        )
        if not self.missing and not self.ticket.state_path.exists():
            self.save(self.state)

    def report(self) -> Report:
        """Raises `BadInput` if the log is unreadable."""
        spec = self._present_spec()
        return Report.from_run(
            spec.title,
            self.plan,
            self.state,
            self.record,
            spec.acceptance_criteria,
            self.require,
            self.missing,
        )

    def _present_spec(self) -> TicketSpec:
        """Return the spec on disk, which judges the run. Steps use `spec` until
        `reload_spec`.
        """
        try:
            return self.ticket.read_spec()
        except BadInput:
            return self.spec

    def refusal(self) -> StepFailed | None:
        """Return why no further step may run: the run's rule rejects a finished one."""
        if self.require is None:
            return None
        refused = [
            step
            for step in refused_steps(self.require, self.summary().unproven)
            if self.state.step(step.step).status.is_over
        ]
        if not refused:
            return None
        steps = steps_in_words([step.label for step in refused])
        first = refused[0].label
        does, are = "does", "it is"
        if len(refused) > 1:
            does, are = "do", "they are"
        return StepFailed(
            f"{steps.capitalize()} {does} not meet `require: {self.require}`:"
            f" {WITHOUT_PROOF[self.require]} {are} done. No further step runs",
            hint=f"To redo the work, undo it with `cdd undo {self.ticket.slug}"
            f" --step {first}`. To continue anyway, set `require: off`.",
            refusal=Refusal.PROOF_REQUIRED,
        )

    def ended(self) -> RunFinished:
        """Return the summary. After the last step it has the run's commits and the
        uncommitted steps.
        """
        if self.state.status is not RunStatus.COMPLETED:
            return self.summary()
        steps = [self.state.step(step.number) for step in self.plan.steps]
        commits = tuple(step.commit for step in steps if step.commit)
        uncommitted = tuple(
            step.step_number
            for step in steps
            if step.files != NO_FILES and not step.commit
        )
        return replace(
            self.summary(),
            commits=commits,
            to_commit=uncommitted,
            labels_to_commit=self.plan.labels_of(uncommitted),
        )

    def expect_here(self, now: datetime) -> None:
        """Raise `RunElsewhere` if the run was pushed, its lease is over, or it has a
        separate tree.
        """
        expect_here(self.record.root, self.record.folder, now)

    def report_opening(self) -> None:
        """Report once what opening the run found."""
        while self._opening_events:
            self.emit(self._opening_events.pop(0))

    def report_concurrent_runs(self) -> None:
        """Report each other running ticket of the project once, with the
        consequences.
        """
        new = {
            slug: who
            for slug, who in others_at_work(self.record.folder).items()
            if slug not in self._reported_runs
        }
        self._reported_runs |= new.keys()
        for slug, who in new.items():
            text = (
                f"{slug} is running in this project, too{who}. Checks of one run"
                " see the changes of the other, and `undo` and `diff` may mix"
                " them up. To separate the two runs, give each its own tree:"
                " `cdd exec SLUG --worktree`."
            )
            self.emit(Notice(text, Tone.WARNING, kind=NoticeKind.OTHER_RUN))

    def reload_spec(self) -> None:
        """Use an edited spec. Raises `BadInput` if it is unreadable."""
        spec = self.ticket.read_spec()
        if spec == self.spec:
            return
        self.spec = spec
        self.emit(
            Notice(
                "The spec has changed. The run continues with the new version.",
                kind=NoticeKind.SPEC_CHANGED,
            )
        )

    def reload_plan(self, plan: ImplementationPlan, *, is_known: bool = False) -> None:
        """Use an edited plan. Raises `BadInput` if the state does not fit it."""
        state = match_state(self.state, plan)
        renumberings = renumbered(self.state, state, plan, self.plan)
        if renumbered_steps(self.state, state):
            state = save(self.ticket, plan, self.record, state)
        self.state, self.plan, self.missing = state, plan, ()
        edited = Notice(
            "The plan has changed. The run continues with the new version.",
            kind=NoticeKind.PLAN_EDITED,
        )
        if is_known:
            return
        changes = drift(plan, self.state)
        news: list[Event] = [edited, *renumberings, *changes, self.opened()]
        for event in news:
            self.emit(event)

    def begin_step(self, step: PlanStep) -> None:
        """Note the criteria that a step serves, as it begins."""
        criteria = self.spec.acceptance_criteria
        self.state = begin_step(self.state, self.plan, step, criteria)

    def skip_step(self, step: PlanStep) -> None:
        """Note the criteria that a skipped step would have served."""
        criteria = self.spec.acceptance_criteria
        self.state = skip_step(self.state, step, criteria)

    def save(self, state: ExecutionState) -> None:
        """Save the state with costs, then use it: memory is never ahead of the disk."""
        state = note_numbers(state, self.plan, self.spec.acceptance_criteria)
        self.state = save(
            self.ticket, self.plan, self.record, state.with_costs(self._unsaved)
        )
        self._unsaved.clear()
        self.missing = ()

    def attempt(self, step: int, number: int, side: RunRecord | None = None) -> Attempt:
        """Return an attempt by the step's current number. `side`: see
        `RunRecord.attempt`.
        """
        return self.record.attempt(self.state.step(step).folder, number, side)

    def restore(self, step: int) -> ChangesPutBack | None:
        back = self.restore_files(step)
        if back is not None:
            self.emit(back)
        return back

    def restore_files(self, step: int) -> ChangesPutBack | None:
        """Restore a step's files. Returns the event to report, if any. Can be
        repeated.
        """
        back = self.restorer(self.state.step(step)).restore()
        if not (back.restored or back.kept or back.merged):
            return None
        return ChangesPutBack(step, back.restored, back.kept, back.merged)

    def interrupt(self, step: int) -> None:
        """Restore the step and make it pending. It continues from its saved reply."""
        back = self.restore_files(step)
        self.save(self.state.restore(step))
        if back is not None:
            self.emit(back)

    def remaining_attempts(self, *steps: StepExecution) -> list[Attempt]:
        """Return attempts whose changes may still be in the tree, by step. Raises
        `OldRecordUnreadable`.
        """
        for step in steps:
            refusal = self.old_record_refusal(step)
            if refusal is not None:
                raise refusal
        return [
            self.record.attempt(step.folder, number)
            for step in steps
            for number in step.remaining_attempts
        ]

    def restorer(self, *steps: StepExecution) -> Restorer:
        """Return a restorer of these steps' files. Raises `OldRecordUnreadable`."""
        return Restorer(self.record.root, self.remaining_attempts(*steps))

    def old_record_refusal(self, step: StepExecution) -> OldRecordUnreadable | None:
        """Return why a step's changes are unknown; None if they are known."""
        why = self.unreadable.get(step.folder)
        if why is None or not step.remaining_attempts:
            return None
        return OldRecordUnreadable(self.plan.label_of(step.step_number), why)

    def attempt_number(
        self,
        step: PlanStep,
        guidance: str,
        root: Path | None = None,
        *,
        is_new: bool = False,
    ) -> int:
        """Return the next attempt's number: the last if it continues, else a new one.
        `root` is a side tree. `is_new` ignores a saved reply.
        """
        execution = self.state.step(step.number)
        if is_new and self.find_saved_work(step) is not SavedWork.NONE:
            return execution.last_attempt + 1
        if guidance or not self._continues(step, execution, root):
            return execution.last_attempt + 1
        return execution.last_attempt

    def find_saved_work(self, step: PlanStep) -> SavedWork:
        """Return what an interrupted step reuses without asking the model."""
        execution = self.state.step(step.number)
        if execution.status is not StepStatus.PENDING or not execution.last_attempt:
            return SavedWork.NONE
        if not self._continues(step, execution):
            return SavedWork.NONE
        attempt = self.attempt(step.number, execution.last_attempt)
        if attempt.reply is not None:
            return SavedWork.REPLY
        return SavedWork.ROUNDS if attempt.dialogue else SavedWork.NONE

    def needs_model(self, number: int, guidance: str, *, is_new: bool = False) -> bool:
        """True if running the step asks the model now. With a saved reply it may still
        be asked later, if shown files have changed.
        """
        last = self.state.step(number).last_attempt
        if guidance or is_new or not last:
            return True
        attempt = self.attempt(number, last)
        return attempt.reply is None or attempt.failure is not None

    def resume_hint(self, number: int) -> str:
        """Return how an interrupted step will continue, for the user."""
        step = self.plan.step(number)
        execution = self.state.step(number)
        if step is None or not execution.attempts:
            return "starts again"
        if not self._continues(step, execution):
            return "starts again"
        attempt = self.attempt(number, execution.last_attempt)
        if attempt.reply is not None:
            return "continues with its saved reply"
        if attempt.dialogue:
            return "resumes where it stopped"
        return "starts again"

    def prompt(
        self,
        step: PlanStep,
        number: int,
        also_show: frozenset[str],
        window: int | None,
        reserved: int,
        root: Path | None = None,
    ) -> StepPrompt:
        """Return an attempt's prompt, in the user's tree or in `root`. `reserved` are
        the tokens for tools and their answers; 0 without tools.
        """
        failed: FailedAttempt | None = None
        missed: dict[str, Ranges] = dict.fromkeys(also_show, ())
        before = range(number - 1, self.state.step(step.number).hidden_attempts, -1)
        for attempt in (self.attempt(step.number, number) for number in before):
            failure = attempt.failure
            if failure is not None:
                failed = FailedAttempt(failure.detail, attempt.said)
                missed |= {path: failure.lines.get(path, ()) for path in failure.unseen}
                break
        contexts = (
            self.attempt(step.number, number).context for number in (number, *before)
        )
        inputs = PromptInputs(
            root or self.record.root,
            self.spec,
            self.plan,
            self.state,
            step,
            private_paths=self.own,
            code=self.code,
            choices=self.record.choices,
            kept_context=next(filter(None, contexts), None),
            failed=failed,
            missed_files=missed,
            guidance=self.attempt(step.number, number).guidance,
            window=window,
            reserved=reserved,
            with_tools=reserved > 0,
        )
        return build_prompt(inputs)

    def _continues(
        self, step: PlanStep, execution: StepExecution, root: Path | None = None
    ) -> bool:
        """True if the last attempt continues: it was interrupted, unanswered, its check
        could not run, or it was in a side tree; and neither the step nor shown files
        have changed.
        """
        if execution.last_attempt == execution.hidden_attempts:
            return False
        attempt = self.attempt(step.number, execution.last_attempt)
        if attempt.is_over:
            return False
        if attempt.reply is None and not attempt.dialogue:
            return True
        if not self._was_asked_for(step, attempt):
            return False
        return not self._changed_since_shown(attempt, root)

    def _was_asked_for(self, step: PlanStep, attempt: Attempt) -> bool:
        shown = attempt.shown
        if shown is None or shown.step != step_digest(step, attempt.guidance):
            return False
        if shown.criteria is None:
            return True
        criteria = self.spec.acceptance_criteria
        return shown.criteria == digests_of_step(step, self.plan, self.state, criteria)

    def overlap(self, step: PlanStep) -> tuple[str, ...]:
        """Return files that the model saw or wrote in the last attempt, and that have
        changed since.
        """
        execution = self.state.step(step.number)
        if not execution.last_attempt:
            return ()
        return self._changed_since_shown(
            self.attempt(step.number, execution.last_attempt)
        )

    def _changed_since_shown(
        self, attempt: Attempt, root: Path | None = None
    ) -> tuple[str, ...]:
        shown = attempt.shown
        if shown is None:
            return ()
        root = root or self.record.root
        return tuple(
            path
            for path, seen in shown.all_files.items()
            if digest(read_bytes(root / path)) != seen
        )


async def _take_over(ledger: Ledger, state: ExecutionState) -> dict[int, CddError]:
    """Convert records of version 0.1, with checkpoints that no other event loop
    uses.
    """
    return await take_over(replace(ledger), state)
