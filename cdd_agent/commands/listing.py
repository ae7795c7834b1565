"""Tickets for `/list` and `/status`: their states and next commands."""

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
from cdd_agent.tickets.state import ExecutionState, new_state
from cdd_agent.tickets.state_file import load_state, read_state
from cdd_agent.tickets.status import RunStatus
from cdd_agent.tickets.step_tally import StepTally
from cdd_agent.tickets.store import Ticket, TicketStore

TYPES = tuple(kind.value for kind in TicketType)
STATES = tuple(state.replace(" ", "-") for state in TICKET_STATES)
_LARGE = 100_000
"""Bytes above which a spec is not checked for being blank: large specs take seconds to
read.
"""


def listed(store: TicketStore, words: Iterable[str]) -> TicketsListed:
    """Return the tickets of a type, in a state, or both. Raises `BadInput` for other
    words.
    """
    filters = _read_filters(words)
    kind, state = filters.get("type"), filters.get("state")
    if state is not None:
        state = state.replace("-", " ")
    views = []
    for ticket in store.list():
        ticket_type = type_of(ticket)
        if kind not in (None, ticket_type):
            continue
        ticket_view = view(ticket, ticket_type)
        if state in (None, ticket_view.state):
            views.append(ticket_view)
    return TicketsListed(tuple(views), state, kind)


def _read_filters(words: Iterable[str]) -> dict[str, str]:
    """Raise `BadInput` for an unknown or repeated filter."""
    filters: dict[str, str] = {}
    for word in words:
        typed = word.lower().replace("_", "-")
        if typed in TYPES:
            name = "type"
        elif typed in STATES:
            name = "state"
        else:
            allowed = f"Allowed: {', '.join(STATES)}; or a type: {', '.join(TYPES)}."
            raise BadInput(f"{word!r} is neither a type nor a state", hint=allowed)
        if name in filters:
            raise BadInput(
                f"A ticket has one {name}, not {filters[name]} and {typed}",
                hint="Type one of them.",
            )
        filters[name] = typed
    return filters


def type_of(ticket: Ticket) -> str:
    """Return the type of a ticket, from the first word of its slug, otherwise from its
    spec; empty if the spec is unreadable.
    """
    first = ticket.slug.partition("-")[0]
    if first in TYPES:
        return first
    try:
        return ticket.read_spec().type.value
    except CddError:
        return ""


def view(ticket: Ticket, kind: str = "") -> TicketView:
    """Return a ticket for the list. Its line reports an unreadable file."""
    try:
        return _read_view(ticket, kind)
    except SpecEmpty:
        return TicketView(ticket.slug, "empty", type=kind)
    except CddError as error:
        problem = error.message.partition("\n")[0]
    except OSError as error:
        problem = f"{error.filename}: {error.strerror}"
    return TicketView(ticket.slug, "unreadable", error=problem, type=kind)


def _read_view(ticket: Ticket, kind: str) -> TicketView:
    """Raise `CddError` and `OSError` if a file is unreadable."""
    # A run in a separate tree is judged by the spec in the user's tree.
    user_ticket = ticket
    ticket.expect_unique()
    where = ""
    record = ticket.record
    if record.exists():
        where, ticket = where_in_short(record), in_its_tree(ticket)
    if not ticket.plan_path.exists():
        is_small = ticket.find_spec().stat().st_size <= _LARGE
        is_blank = is_small and ticket.read_spec().is_blank
        return TicketView(ticket.slug, "empty" if is_blank else "spec", type=kind)
    stored = read_state(ticket)
    if stored and _is_still_over(ticket, user_ticket, stored):
        word = run_in_words(RunStatus.COMPLETED, stored.tally)
        changed = _count_changed(ticket, stored)
        return _with_run(ticket, word, stored.tally, kind, where, changed)
    plan = ticket.read_plan()
    plan.check(ticket.shown(ticket.plan_path))
    state = load_state(ticket, plan)
    if state is None:
        tally = StepTally(open=len(plan.steps))
        return _with_run(ticket, "planned", tally, kind, where)
    criteria: tuple[str, ...] = ()
    changed = 0
    if state.status is RunStatus.COMPLETED:
        criteria = _read_criteria(user_ticket)
        changed = _count_changed(ticket, state)
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
    """Raise `BadInput` for a damaged record."""
    return count_changed_files(state, RunRecord(ticket.root, ticket.record))


def _read_criteria(ticket: Ticket) -> tuple[str, ...]:
    """Raise `BadInput` for an unreadable spec."""
    try:
        return ticket.read_spec().acceptance_criteria
    except SpecEmpty:
        return ()


def _is_still_over(ticket: Ticket, user_ticket: Ticket, state: ExecutionState) -> bool:
    """True if the run was over with this plan and the spec in the user's tree, so that
    neither must be read. States from earlier versions contain no criteria.
    """
    if state.status is not RunStatus.COMPLETED or state.done_plan is None:
        return False
    if state.done_plan != ticket.plan_digest():
        return False
    return not state.criteria or state.done_spec == user_ticket.spec_digest()


def opened(ticket: Ticket) -> PlanOpened | SpecOpened:
    """Return the steps of a ticket's plan; without a plan, the missing parts of its
    spec. Raises `BadInput`.
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
    spec, ticket_in_tree = ticket.read_spec(), ticket
    if ticket.record.exists():
        ticket = in_its_tree(ticket)
    plan = ticket.read_plan()
    plan.check(ticket.shown(ticket.plan_path))
    state = load_state(ticket, plan) or new_state(ticket.slug, plan)
    shown = PlanOpened.from_run(spec.title, plan, state, spec.acceptance_criteria)
    record = RunRecord(ticket.root, ticket.record)
    return add_changes(shown, ticket_in_tree, plan, state, record)


def whereabouts(ticket: Ticket) -> Iterator[Notice]:
    """Yield a notice if the run continues on another machine, so that its state here is
    old. Raises `Damaged`.
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
