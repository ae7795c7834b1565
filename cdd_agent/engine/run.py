"""One ticket's run as it is on the disk: the plan, the state, the record of its
attempts; read and written, no more.

While it is open it holds the ticket's lock: there is one writer of the state.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar
from datetime import datetime
from enum import Enum, auto
from pathlib import Path
from typing import Literal, Self

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.context.finder import CodeFinder
from cdd_agent.cost import NO_COST, Cost
from cdd_agent.edits.excerpts import Ranges
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
from cdd_agent.engine.prompt import Earlier, StepPrompt, step_digest, step_prompt
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
from cdd_agent.git.checkpoint import Checkpoints
from cdd_agent.llm.port import Usage
from cdd_agent.redaction import Redactor
from cdd_agent.threads import waited_for
from cdd_agent.tickets.plan import ImplementationPlan, PlanStep
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
"""The number of the step that the model was asked for last; each of several that run
side by side has its own.
"""


class SavedWork(Enum):
    """The part of a reply that an interrupted step has, and that was paid for."""

    NONE = auto()
    REPLY = auto()
    ROUNDS = auto()
    """Rounds of tool calls, without the last words of the model."""


class Run(Struct):
    """A ticket's run. What this process believes of it is never ahead of the disk."""

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
    """Files and folders that this program writes beside `.cdd`, relative to the root.
    """
    code: CodeFinder | None = None
    """Finds the code that a step is about; None: prompts show what is named, and no
    more.
    """
    missing: tuple[MissingWork, ...] = ()
    """The work that the tree does not have, as `find_missing_work` found it last. Empty
    while a step is to come.
    """
    require: Literal["verified"] | None = None
    """`verified`: a step that no tests have shown to be done fails the run."""
    unreadable: dict[int, CddError] = field(default_factory=dict)
    """Why the records of steps that version 0.1 began cannot be read, by the folders of
    the steps.
    """
    _found: list[Event] = field(default_factory=list)
    """Things to know of how it was opened that were not told yet."""
    _met: set[str] = field(default_factory=set)
    """The other runs in this project that were told of."""
    _unsaved: dict[int, Cost] = field(default_factory=dict)
    """The cost of calls that the state does not have yet, by the folder of the step
    that they were made for.
    """

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
        require: Literal["verified"] | None = None,
        start_over: bool = False,
        lock: TicketLock | None = None,
        open_checkpoints: OpenCheckpoints = Checkpoints.open,
    ) -> Self:
        """Take the ticket's lock, `since` now, or use the one given; read what there
        is, or with `start_over` set it aside.

        Raises `BadInput` for a state that cannot be read or is another plan's, or when
        another process is at work on the ticket.
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
            costs = {
                folder: effort.cost
                for folder, effort in LoggedRun.read(record.log).efforts.items()
            }
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
            _found=[*opened.news, *lock.news],
        )

    def close(self) -> None:
        self.lock.release()

    def emit(self, event: Event) -> None:
        """Tell what happens: it is counted, logged, and shown."""
        self._note(event)
        self.recorder.emit(event)

    def teller(self) -> Emit:
        """An `emit` for work beside other work: what comes in pieces is joined with its
        own pieces alone.
        """
        beside = self.recorder.beside()

        def emit(event: Event) -> None:
            self._note(event)
            beside.emit(event)

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
        """A call took this and brought no whole reply: it is counted and logged, and no
        face is told.
        """
        step = _asked_for.get()
        self._count(self.state.step(step).folder, usage)
        self.record.log.add(ReplyLost(usage, step or None))

    def _count(self, folder: int, usage: Usage) -> None:
        self._unsaved[folder] = self._unsaved.get(folder, NO_COST) + usage.cost

    def save_costs(self) -> None:
        """Of calls that no step was saved after: questions."""
        if self._unsaved:
            self.save(self.state)

    @property
    def next_step(self) -> PlanStep | None:
        """The step that would run now: pending, interrupted, or failed. None when all
        are over.
        """
        return next_step(self.plan, self.state)

    def agenda(self, step: PlanStep) -> Agenda:
        """Return the ticket around this step, which is about to run."""
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
        """Return the number of the step that a user means, None if there is none. A
        label of the plan comes first; then the number of a step that is no longer in
        it.
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
        """Look for the work of the steps in the project's tree, once all are over. A
        state that was rebuilt is saved if the work is there. Raises `BadInput` for a
        record that is damaged.
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
        """Raises `BadInput` when the log cannot be read."""
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
        """Return the spec as it is on the disk, by which a run is judged. Steps go by
        `spec` until `reload_spec`.
        """
        try:
            return self.ticket.read_spec()
        except BadInput:
            return self.spec

    def refusal(self) -> StepFailed | None:
        """Why nothing may be built on what there is: a step that is over, and that the
        run's rule does not accept.
        """
        refused = [
            step
            for step in self.summary().unproven
            if self.state.step(step.step).status.is_over
        ]
        if self.require is None or not refused:
            return None
        one, labels = len(refused) == 1, ", ".join(step.label for step in refused)
        steps = f"step {labels} is" if one else f"steps {labels} are"
        back = (
            f"`cdd undo {self.ticket.slug} --step {refused[0].label}` goes back to"
            " before "
        )
        return StepFailed(
            f"`require: {self.require}` holds, and no tests have shown that {steps}"
            " done: nothing is built on that",
            hint=(
                f"{back}{'it' if one else 'the first'}; with `require: off` the run"
                " goes on as it is."
            ),
        )

    def ended(self) -> RunFinished:
        """The summary; when the last step is over, with what was committed of the
        changes, and what is left to be.
        """
        if self.state.status is not RunStatus.COMPLETED:
            return self.summary()
        steps = [self.state.step(step.number) for step in self.plan.steps]
        commits = tuple(step.commit for step in steps if step.commit)
        left = tuple(
            step.step_number
            for step in steps
            if step.files != NO_FILES and not step.commit
        )
        return replace(
            self.summary(),
            commits=commits,
            to_commit=left,
            labels_to_commit=self.plan.labels_of(left),
        )

    def expect_here(self, now: datetime) -> None:
        """Raises `RunElsewhere` where it was pushed, or its lease is over, or it has a
        tree of its own.
        """
        expect_here(self.record.root, self.record.folder, now)

    def tell_what_was_found(self) -> None:
        """How it was opened, where there is something to know; told once."""
        while self._found:
            self.emit(self._found.pop(0))

    def tell_of_concurrent_runs(self) -> None:
        """Other tickets that are at work in this project now, and what that means; each
        is told once.
        """
        new = {
            slug: who
            for slug, who in others_at_work(self.record.folder).items()
            if slug not in self._met
        }
        self._met |= new.keys()
        text = (
            "What it changes while a step of this run is under way counts as that"
            " step's for `undo` and `diff`, and "
        )
        text += (
            "checks see it. To keep the two apart, give each a tree of its own"
            " (`cdd exec --worktree`)."
        )
        for slug, who in new.items():
            told = f"{slug} is at work in this project, too{who}. {text}"
            self.emit(Notice(told, Tone.WARNING, kind=NoticeKind.OTHER_RUN))

    def reload_spec(self) -> None:
        """Go on by a spec that was edited meanwhile. Raises `BadInput` for one that
        cannot be read.
        """
        spec = self.ticket.read_spec()
        if spec == self.spec:
            return
        self.spec = spec
        self.emit(
            Notice(
                "The spec was edited; the run continues with the new version.",
                kind=NoticeKind.SPEC_CHANGED,
            )
        )

    def reload_plan(self, plan: ImplementationPlan, *, is_known: bool = False) -> None:
        """Go on by a plan that was edited meanwhile. Raises `BadInput` for one that the
        state does not fit.
        """
        state = match_state(self.state, plan)
        told = renumbered(self.state, state, plan, self.plan)
        if renumbered_steps(self.state, state):
            state = save(self.ticket, plan, self.record, state)
        self.state, self.plan, self.missing = state, plan, ()
        edited = Notice(
            "The plan was edited; the run continues with the new version.",
            kind=NoticeKind.PLAN_EDITED,
        )
        news: list[Event] = [edited, *told, *drift(plan, self.state), self.opened()]
        for event in () if is_known else news:
            self.emit(event)

    def begin_step(self, step: PlanStep) -> None:
        """Note which criteria a step serves that begins now."""
        criteria = self.spec.acceptance_criteria
        self.state = begin_step(self.state, self.plan, step, criteria)

    def skip_step(self, step: PlanStep) -> None:
        """Note which criteria a step would have served that is skipped now."""
        criteria = self.spec.acceptance_criteria
        self.state = skip_step(self.state, step, criteria)

    def save(self, state: ExecutionState) -> None:
        """The files first: what this process believes is never ahead of the disk. With
        what was spent since.
        """
        state = note_numbers(state, self.plan, self.spec.acceptance_criteria)
        self.state = save(
            self.ticket, self.plan, self.record, state.with_costs(self._unsaved)
        )
        self._unsaved.clear()
        self.missing = ()

    def attempt(self, step: int, number: int, side: RunRecord | None = None) -> Attempt:
        """An attempt at the step that has this number now; `side` as for
        `RunRecord.attempt`.
        """
        return self.record.attempt(self.state.step(step).folder, number, side)

    def restore(self, step: int) -> tuple[str, ...]:
        """Take back what the attempts at a step changed, and tell of it. Returns the
        files that were edited since: they were kept, or merged with what was before.
        """
        back = self.restore_files(step)
        if back is None:
            return ()
        self.emit(back)
        return (*back.kept, *back.merged)

    def restore_files(self, step: int) -> ChangesPutBack | None:
        """The same without telling: that is left to the caller. It can be repeated."""
        back = self.restorer(self.state.step(step)).restore()
        if not (back.restored or back.kept or back.merged):
            return None
        return ChangesPutBack(step, back.restored, back.kept, back.merged)

    def interrupt(self, step: int) -> None:
        """Put the step back: it is pending, and goes on from what was saved."""
        back = self.restore_files(step)
        self.save(self.state.restore(step))
        if back is not None:
            self.emit(back)

    def standing(self, *steps: StepExecution) -> list[Attempt]:
        """The attempts of which something may be left, of steps in the order in which
        they were over. Raises `OldRecordUnreadable`.
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
        """Return what restores the files that these steps changed. Raises
        `OldRecordUnreadable`.
        """
        return Restorer(self.record.root, self.standing(*steps))

    def old_record_refusal(self, step: StepExecution) -> OldRecordUnreadable | None:
        """Return why nothing is known of what the attempts at a step changed."""
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
        """Of the attempt to make now, in the tree at `root` if it is not the person's
        own: the last one, if it goes on there, or a new one. `is_new`: what the last
        one has of a reply is not used.
        """
        now = self.state.step(step.number)
        if is_new and self.find_saved_work(step) is not SavedWork.NONE:
            return now.last_attempt + 1
        if guidance or not self._goes_on(step, now, root):
            return now.last_attempt + 1
        return now.last_attempt

    def find_saved_work(self, step: PlanStep) -> SavedWork:
        """Return what the next run of an interrupted step uses without asking the
        model again.
        """
        now = self.state.step(step.number)
        if now.status is not StepStatus.PENDING or not now.last_attempt:
            return SavedWork.NONE
        if not self._goes_on(step, now):
            return SavedWork.NONE
        attempt = self.attempt(step.number, now.last_attempt)
        if attempt.reply is not None:
            return SavedWork.REPLY
        return SavedWork.ROUNDS if attempt.dialogue else SavedWork.NONE

    def needs_model(self, number: int, guidance: str, *, is_new: bool = False) -> bool:
        """True if a model is asked when the step runs now. A step with a saved reply
        may still need one, if the files that its model was shown have changed.
        """
        last = self.state.step(number).last_attempt
        if guidance or is_new or not last:
            return True
        attempt = self.attempt(number, last)
        return attempt.reply is None or attempt.failure is not None

    def resume_hint(self, number: int) -> str:
        """How an interrupted step will go on, for people."""
        step = self.plan.step(number)
        now = self.state.step(number)
        if step is None or not now.attempts:
            return "starts again"
        attempt = self.attempt(number, now.last_attempt)
        if not self._goes_on(step, now) or (
            attempt.reply is None and not attempt.dialogue
        ):
            return "starts again"
        return (
            "goes on from its saved reply"
            if attempt.reply is not None
            else "goes on where it was"
        )

    def prompt(
        self,
        step: PlanStep,
        number: int,
        also_show: frozenset[str],
        window: int | None,
        beside: int,
        root: Path | None = None,
    ) -> StepPrompt:
        """That of an attempt in the person's tree, or the one at `root`."""
        earlier: Earlier | None = None
        missed: dict[str, Ranges] = dict.fromkeys(also_show, ())
        before = range(number - 1, self.state.step(step.number).hidden_attempts, -1)
        for attempt in (self.attempt(step.number, number) for number in before):
            if (failure := attempt.failure) is not None:
                earlier = Earlier(failure.detail, attempt.said)
                missed |= {path: failure.lines.get(path, ()) for path in failure.unseen}
                break
        found = (
            self.attempt(step.number, number).context for number in (number, *before)
        )
        return step_prompt(
            root or self.record.root,
            self.spec,
            self.plan,
            self.state,
            step,
            window=window,
            beside=beside,
            own=self.own,
            earlier=earlier,
            also_show=missed,
            guidance=self.attempt(step.number, number).guidance,
            code=self.code,
            choices=self.record.choices,
            with_tools=beside > 0,
            kept=next((context for context in found if context is not None), None),
        )

    def _goes_on(
        self, step: PlanStep, now: StepExecution, root: Path | None = None
    ) -> bool:
        """Whether its last attempt does, of which nothing was seen yet: it was
        interrupted, the model gave no answer, the check could not be run, or it was
        made beside others. Not if the plan's step, or a file that the model was shown,
        has changed since.
        """
        if now.last_attempt == now.hidden_attempts:
            return False
        attempt = self.attempt(step.number, now.last_attempt)
        if attempt.is_over:
            return False
        if attempt.reply is None and not attempt.dialogue:
            return True
        if not self._was_asked_for(step, attempt):
            return False
        return not self._changed_since_shown(attempt, root)

    def _was_asked_for(self, step: PlanStep, attempt: Attempt) -> bool:
        """True if the model was asked for the step as it is in the plan and the spec
        now.
        """
        shown = attempt.shown
        if shown is None or shown.step != step_digest(step, attempt.guidance):
            return False
        if shown.criteria is None:
            return True
        criteria = self.spec.acceptance_criteria
        return shown.criteria == digests_of_step(step, self.plan, self.state, criteria)

    def overlap(self, step: PlanStep) -> tuple[str, ...]:
        """The files that the model was shown for the step's last attempt, or that it
        has read or written with tools, and that are others by now.
        """
        now = self.state.step(step.number)
        return (
            self._changed_since_shown(self.attempt(step.number, now.last_attempt))
            if now.last_attempt
            else ()
        )

    def _changed_since_shown(
        self, attempt: Attempt, root: Path | None = None
    ) -> tuple[str, ...]:
        known = shown.all_files if (shown := attempt.shown) else {}
        root = root or self.record.root
        return tuple(
            path
            for path, seen in known.items()
            if digest(read_bytes(root / path)) != seen
        )


async def _take_over(ledger: Ledger, state: ExecutionState) -> dict[int, CddError]:
    """Take over the records of version 0.1, with checkpoints that no other event loop
    uses.
    """
    return await take_over(replace(ledger), state)
