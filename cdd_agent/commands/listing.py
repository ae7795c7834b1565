"""Tickets as `/list` and `/status` show them: their states and next commands."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from cdd_agent.agents.spec_notes import open_points
from cdd_agent.engine.changed_since import add_changes
from cdd_agent.engine.missing_work import count_changed_files
from cdd_agent.engine.record import RunRecord
from cdd_agent.engine.whereabouts import (
    RunElsewhere,
    expect_here,
    in_its_tree,
    where_in_short,
)
from cdd_agent.errors import BadInput, CddError
from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.events.ticket_events import (
    TICKET_STATES,
    PlanOpened,
    SpecOpened,
    TicketsListed,
    TicketView,
)
from cdd_agent.tickets.outcome_words import run_in_words
from cdd_agent.tickets.run_outcome import judge_run
from cdd_agent.tickets.spec import SpecEmpty, TicketSpec, TicketType
from cdd_agent.tickets.state import ExecutionState, load_state, new_state, read_state
from cdd_agent.tickets.status import RunStatus
from cdd_agent.tickets.step_tally import StepTally
from cdd_agent.tickets.store import Ticket, TicketStore

TYPES = tuple(kind.value for kind in TicketType)
STATES = tuple(state.replace(" ", "-") for state in TICKET_STATES)
"""The states as the user types them."""
_LARGE = 100_000
"""Bytes of a spec that is certainly not blank. Large specs take seconds to read."""


def listed(store: TicketStore, words: Iterable[str]) -> TicketsListed:
    """Return the tickets of a type, in a state, or both. Raises `BadInput` for another
    word.
    """
    found: dict[str, str] = {}
    for word in words:
        typed = word.lower().replace("_", "-")
        what = "type" if typed in TYPES else "state" if typed in STATES else None
        if what is None:
            allowed = f"Allowed: {', '.join(STATES)}; or a type: {', '.join(TYPES)}."
            raise BadInput(f"{word!r} is neither a type nor a state", hint=allowed)
        if what in found:
            raise BadInput(
                f"A ticket has one {what}, not {found[what]} and {typed}",
                hint="Type one of them.",
            )
        found[what] = typed
    kind, state = (
        found.get("type"),
        found["state"].replace("-", " ") if "state" in found else None,
    )
    tickets = ((ticket, type_of(ticket)) for ticket in store.list())
    views = [
        view(ticket, of_type) for ticket, of_type in tickets if kind in (None, of_type)
    ]
    return TicketsListed(
        tuple(seen for seen in views if state in (None, seen.state)), state, kind
    )


def type_of(ticket: Ticket) -> str:
    """Return the type of a ticket: the first word of its slug, or the type in its spec.
    Empty if the spec cannot be read.
    """
    first = ticket.slug.partition("-")[0]
    if first in TYPES:
        return first
    try:
        return ticket.read_spec().type.value
    except CddError:
        return ""


def view(ticket: Ticket, kind: str = "") -> TicketView:
    """Return one ticket for the list. If a file cannot be read, the ticket's line
    reports it.
    """
    where = ""
    # A run with its own tree is judged by the user's own spec, too.
    own = ticket
    try:
        ticket.expect_unique()
        record = ticket.record
        if record.exists():
            where, ticket = where_in_short(record), in_its_tree(ticket)
        if not ticket.plan_path.exists():
            is_blank = (
                ticket.find_spec().stat().st_size <= _LARGE
                and ticket.read_spec().is_blank
            )
            return TicketView(ticket.slug, "empty" if is_blank else "spec", type=kind)
        known = read_state(ticket)
        if known and _is_still_over(ticket, own, known):
            word = run_in_words(RunStatus.COMPLETED, known.tally)
            changed = _count_changed(ticket, known)
            return _with_run(ticket, word, known.tally, kind, where, changed)
        plan = ticket.read_plan()
        plan.check(ticket.shown(ticket.plan_path))
        state = load_state(ticket, plan)
        is_over = state is not None and state.status is RunStatus.COMPLETED
        criteria = _read_criteria(own) if is_over else ()
        changed = _count_changed(ticket, state) if state and is_over else 0
    except SpecEmpty:
        return TicketView(ticket.slug, "empty", type=kind)
    except CddError as error:
        return TicketView(
            ticket.slug, "unreadable", error=error.message.partition("\n")[0], type=kind
        )
    except OSError as error:
        return TicketView(
            ticket.slug,
            "unreadable",
            error=f"{error.filename}: {error.strerror}",
            type=kind,
        )
    if state is None:
        tally = StepTally(open=len(plan.steps))
        return _with_run(ticket, "planned", tally, kind, where)
    word = run_in_words(state.status, state.tally)
    if judge_run(plan, state, criteria).edited_criteria:
        word = "spec changed"
    return _with_run(ticket, word, state.tally, kind, where, changed)


def _with_run(
    ticket: Ticket,
    state: str,
    tally: StepTally,
    kind: str,
    where: str,
    changed: int = 0,
) -> TicketView:
    """Return the view of a ticket with a plan."""
    return TicketView(
        ticket.slug,
        state,
        tally.over,
        tally.total,
        type=kind,
        where=where,
        tally=tally,
        changed=changed,
    )


def _count_changed(ticket: Ticket, state: ExecutionState) -> int:
    """Raises `BadInput` for a record that is damaged."""
    return count_changed_files(state, RunRecord(ticket.root, ticket.record))


def _read_criteria(ticket: Ticket) -> tuple[str, ...]:
    """Raises `BadInput` for a spec that cannot be read."""
    try:
        return ticket.read_spec().acceptance_criteria
    except SpecEmpty:
        return ()


def _is_still_over(ticket: Ticket, own: Ticket, state: ExecutionState) -> bool:
    """True if a run was over with this plan and the spec of the user's `own` ticket, so
    that neither need be read. A state of an earlier version knows no criteria.
    """
    if state.status is not RunStatus.COMPLETED or state.done_plan is None:
        return False
    if state.done_plan != ticket.plan_digest():
        return False
    return not state.criteria or state.done_spec == own.spec_digest()


def opened(ticket: Ticket) -> PlanOpened | SpecOpened:
    """Return the steps of a ticket's plan; without a plan what its spec still needs.
    Raises `BadInput`.
    """
    if not ticket.plan_path.exists():
        try:
            spec = ticket.read_spec()
        except SpecEmpty:
            spec = TicketSpec()
        title = spec.title if spec.has_title else ""
        return SpecOpened(
            ticket.slug,
            title,
            ticket.shown(ticket.spec_path),
            tuple(spec.missing()),
            open_points(ticket.record, spec),
        )
    spec, own = ticket.read_spec(), ticket
    if ticket.record.exists():
        ticket = in_its_tree(ticket)
    plan = ticket.read_plan()
    plan.check(ticket.shown(ticket.plan_path))
    state = load_state(ticket, plan) or new_state(ticket.slug, plan)
    shown = PlanOpened.from_run(spec.title, plan, state, spec.acceptance_criteria)
    record = RunRecord(ticket.root, ticket.record)
    return add_changes(shown, own, plan, state, record)


def whereabouts(ticket: Ticket) -> Iterator[Notice]:
    """Yield a notice if the run continues on another machine, as its state here is old.
    Raises `Damaged`.
    """
    if not ticket.record.exists():
        return
    try:
        expect_here(ticket.root, ticket.record, datetime.now(UTC))
    except RunElsewhere as elsewhere:
        yield Notice(
            f"{elsewhere.message}. {elsewhere.hint}",
            Tone.WARNING,
            kind=NoticeKind.RUN_MOVED,
        )
