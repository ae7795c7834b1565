"""All undoable changes of a project in order of time: steps, and changes outside of
tickets.

A change's time is that of its last ledger entry, except undos.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC

from msgspec import Struct, field

from cdd_agent.engine.ledger_file import UNDOS
from cdd_agent.engine.outside import OutsideChange, OutsideChanges, in_words
from cdd_agent.engine.record import RunRecord
from cdd_agent.engine.whereabouts import in_its_tree
from cdd_agent.errors import CddError
from cdd_agent.events.outside_events import OutsideListed, OutsideView
from cdd_agent.files.json_file import STAMP, stamp
from cdd_agent.text.redaction import Redactor
from cdd_agent.tickets.plan import ImplementationPlan
from cdd_agent.tickets.state import StepExecution
from cdd_agent.tickets.state_file import load_state
from cdd_agent.tickets.status import StepStatus
from cdd_agent.tickets.store import Ticket, TicketStore

_SECONDS = len("20261127T143000")
LISTED = 20


class PastStep(Struct, frozen=True):
    """A finished or failed step."""

    ticket: Ticket
    """In the tree of its run."""
    step: StepExecution
    label: str

    @property
    def name(self) -> str:
        return f"{self.ticket.slug} {self.label}"

    @property
    def title(self) -> str:
        text = f"step {self.label} of {self.ticket.slug}"
        return f"{text}, {self.step.title.rstrip('.')}" if self.step.title else text


class PastChange(Struct, frozen=True):
    """A step or a change outside of tickets."""

    at: str
    """Time of its last change, as `stamp` formats it."""
    source: PastStep | OutsideChange
    undone_at: str = ""
    """Time of its undo; empty if not undone."""

    @property
    def name(self) -> str:
        """As the user types it after `/undo`."""
        return self.source.name

    @property
    def title(self) -> str:
        """Such as `step 2 of feature-a, Add them up`."""
        return self.source.title


class SessionScope(Struct):
    """Decides which changes belong to a shell session: those made since its start, and
    those of conversations and runs that it resumed.
    """

    started_at: str = field(default_factory=stamp)
    is_whole_project: bool = False
    """True if all changes belong to the session, because no user types its lines."""
    tickets: dict[str, str] = {}
    """Ticket → time from which its steps belong to the session."""
    names: set[str] = set()
    """Changes that the user chose to undo."""
    conversations: frozenset[str] = frozenset()

    def add_ticket(self, slug: str, *, is_resumed: bool = False) -> None:
        """Add a ticket. A resumed run's earlier steps belong to the session too."""
        since = "" if is_resumed else self.started_at
        self.tickets[slug] = min(since, self.tickets.get(slug, since))

    def add_change(self, name: str) -> None:
        self.names.add(name)

    def covers(self, change: PastChange) -> bool:
        source = change.source
        if self.is_whole_project or change.name in self.names:
            return True
        if isinstance(source, PastStep):
            since = self.tickets.get(source.ticket.slug)
            if since is None:
                return False
            if source.step.status is StepStatus.SKIPPED:
                # its time is in whole seconds
                since = since[:_SECONDS]
            return max(change.at, change.undone_at) >= since
        # another shell may be open
        if source.conversation:
            return source.conversation in self.conversations
        return change.at >= self.started_at


class ChangeHistory(Struct, frozen=True):
    tickets: TicketStore
    outside: OutsideChanges
    redactor: Redactor

    def read(self, *, steps_each: int = 1) -> tuple[PastChange, ...]:
        """Return changes, oldest first: each run's last steps that are not undone, and
        those of its last undo. Raises `Damaged`.
        """
        changes = [_read_outside(change) for change in self.outside.all()]
        for ticket in self.tickets.list():
            # a damaged ticket has no undoable step
            with suppress(CddError):
                changes += self._read_steps(in_its_tree(ticket), steps_each)
        return tuple(sorted(changes, key=lambda change: change.at))

    def read_run(self, slug: str) -> tuple[PastChange, ...]:
        """Return the ticket's last step that is not undone, and those of its last undo.
        Raises `CddError`.
        """
        ticket = in_its_tree(self.tickets.find_slug(slug))
        return tuple(self._read_steps(ticket, 1))

    def find_interrupted(self, scope: SessionScope) -> Iterator[Ticket]:
        """Yield the session's tickets whose undo or redo was killed."""
        for ticket in self.tickets.list():
            if not scope.is_whole_project and ticket.slug not in scope.tickets:
                continue
            with suppress(CddError):
                if self.is_interrupted(ticket):
                    yield in_its_tree(ticket)

    def is_interrupted(self, ticket: Ticket) -> bool:
        """True if the run's undo or redo was killed. Raises `CddError`."""
        record = RunRecord.of_ticket(in_its_tree(ticket), self.redactor)
        return record.going_back is not None

    def _read_steps(self, ticket: Ticket, most: int) -> Iterator[PastChange]:
        if not ticket.state_path.exists():
            return
        plan = ticket.read_plan()
        state = load_state(ticket, plan)
        if state is None:
            return
        record = RunRecord.of_ticket(ticket, self.redactor)
        latest = ""
        for step in state.ended_steps()[-most:]:
            latest = max(latest, _time_of_step(record, step))
            yield PastChange(latest, PastStep(ticket, step, _find_label(plan, step)))
        if not state.undone:
            return
        undo = state.undone[-1]
        for step in undo.steps:
            past = PastStep(ticket, step, _find_label(plan, step))
            yield PastChange(_time_of_step(record, step), past, undo.id)


def list_changes(history: ChangeHistory) -> OutsideListed:
    """Newest first. Raises `Damaged`."""
    changes = history.read(steps_each=LISTED)
    return OutsideListed(tuple(map(_view, reversed(changes[-LISTED:]))))


def newest_standing(
    changes: Sequence[PastChange], scope: SessionScope | None = None
) -> PastChange | None:
    """Return the newest change that is not undone, of a session or of all."""
    for change in reversed(changes):
        is_covered = scope is None or scope.covers(change)
        if is_covered and not change.undone_at:
            return change
    return None


def next_to_redo(
    changes: Sequence[PastChange], scope: SessionScope
) -> PastChange | None:
    """Return the session's last undone change, if nothing in it changed since."""
    covered = [change for change in changes if scope.covers(change)]
    undone = [change for change in covered if change.undone_at]
    if not undone:
        return None
    last = max(undone, key=lambda change: change.undone_at)
    for change in covered:
        if not change.undone_at and change.at > last.undone_at:
            return None
    return last


def find_named(changes: Sequence[PastChange], name: str) -> PastChange | None:
    for change in changes:
        if change.name == name:
            return change
    return None


def _read_outside(change: OutsideChange) -> PastChange:
    undone_at = ""
    if change.last_undo is not None and change.is_undone:
        undone_at = change.last_undo.at
    return PastChange(change.last_change, change, undone_at)


def _view(change: PastChange) -> OutsideView:
    source = change.source
    at, is_undone = in_words(change.at), bool(change.undone_at)
    if isinstance(source, PastStep):
        files = sorted({*source.step.files.created, *source.step.files.modified})
        files += source.step.files.deleted
        return OutsideView(
            source.title, at, tuple(files), is_undone=is_undone, name=source.name
        )
    return OutsideView(
        source.what,
        at,
        source.files,
        source.others,
        is_undone,
        source.is_under_way,
        source.name,
    )


def _find_label(plan: ImplementationPlan, step: StepExecution) -> str:
    return plan.label_of(step.step_number)


def _time_of_step(record: RunRecord, step: StepExecution) -> str:
    """Return the time of the last ledger entry or of the step's end, whichever is
    later: a skip makes no entry. Ends are in whole seconds.
    """
    times = [
        entry.at
        for entry in record.attempt(step.folder, 1).ledger.entries()
        if entry.kind not in UNDOS
    ]
    if step.completed_at is not None:
        moment = step.completed_at
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        times.append(f"{moment.astimezone(UTC):{STAMP}}")
    return max(times, default="")
