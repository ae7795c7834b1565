"""The state that a run begins with: saved, rebuilt from the record, or new."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.engine.attempt import Attempt
from cdd_agent.engine.old_records import is_old, restore_written
from cdd_agent.engine.record import RunRecord
from cdd_agent.engine.restoring import Restorer
from cdd_agent.errors import BadInput, CddError
from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.events.step_events import ChangesPutBack
from cdd_agent.events.stream import Event
from cdd_agent.files.atomic import digest, sync_folder, write_atomic
from cdd_agent.files.json_file import choose_aside_name, set_aside
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.tickets.plan import ImplementationPlan
from cdd_agent.tickets.served_criteria import edited_criteria
from cdd_agent.tickets.state import (
    ExecutionState,
    StateUnreadable,
    add_missing_identities,
    edited_steps,
    match_state,
    new_state,
    next_step_number,
    renumbered_steps,
)
from cdd_agent.tickets.state_file import (
    load_state,
    read_state,
    read_state_file,
    save_state,
)
from cdd_agent.tickets.status import RunStatus, StepStatus
from cdd_agent.tickets.store import StateOrigin, Ticket, slug_in


class Opened(Struct, frozen=True):
    """A state, and events that explain its origin."""

    state: ExecutionState
    news: tuple[Event, ...] = ()


def open_state(
    ticket: Ticket, plan: ImplementationPlan, record: RunRecord, *, start_over: bool
) -> Opened:
    """Read a run's state. A damaged file, or another ticket's, is renamed and rebuilt
    from the copy in the record; a missing one is rebuilt, too. Nothing is overwritten,
    and a begun run restarts only if the user says so.

    Raises `BadInput` for another plan's state, or if nothing can be rebuilt.
    """
    if start_over:
        return _start_over(ticket, plan, record)
    rename_copy(record)
    shown = ticket.shown(ticket.state_path)
    try:
        copied = set_copied_state_aside(ticket)
        saved = read_state(ticket)
    except StateUnreadable as error:
        return _rebuilt(ticket, plan, record, error)
    if saved is None:
        return _open_without_file(ticket, plan, record, copied)
    matched, copy = match_state(saved, plan), _copy(ticket, plan, record)
    state = add_missing_identities(matched, plan)
    lacked_identities, news = state != matched, renumbered(saved, state, plan)
    if renumbered_steps(saved, state):
        state = save(ticket, plan, record, state)
    if copy is not None and copy.tally.over > state.tally.over:
        text = (
            f"{shown} is older than the run's record ({_progress(copy)}). cdd"
            " uses the file. To use the record instead, delete the file."
        )
        warning = Notice(text, Tone.WARNING, kind=NoticeKind.STATE_RECOVERED)
        return Opened(state, (*news, warning))
    if not lacked_identities:
        return Opened(state, news)
    # save the steps' identities, and the copy
    state = save(ticket, plan, record, state)
    if saved.is_of_earlier_version:
        text = (
            f"Converted {shown} from an earlier version of cdd:"
            f" {_progress(state)}. The steps count as unverified, because the old"
            " file does not say how they were checked."
        )
        warning = Notice(text, Tone.WARNING, kind=NoticeKind.STATE_RECOVERED)
        news = (*news, warning)
    return Opened(state, news)


def _open_without_file(
    ticket: Ticket,
    plan: ImplementationPlan,
    record: RunRecord,
    news: tuple[Notice, ...],
) -> Opened:
    """Rebuild a missing state from its copy, or return a new one."""
    shown = ticket.shown(ticket.state_path)
    try:
        copy = load_copy(ticket, plan, record)
    except StateUnreadable as error:  # a run was begun
        aside = set_aside(record.state)
        raise BadInput(
            f"{shown} is missing, and its copy in the run's record cannot be"
            f" read: {error.message}. The copy was renamed to {aside.name}; your"
            " project was not changed",
            hint=f"Restore {ticket.state_path.name}, or run again to start with"
            " the first step.",
            refusal=Refusal.DISK,
        ) from error
    if copy is None:
        return Opened(new_state(ticket.slug, plan), news)
    state = copy
    # A completed run's file is written once its work is found in the tree. On another
    # branch it would prevent git from switching back.
    if copy.status is not RunStatus.COMPLETED:
        state = save(ticket, plan, record, copy)
    text = (
        f"{shown} was missing. Restored it from the run's record:"
        f" {_progress(state)}. To start from scratch instead, add `--start-over`."
    )
    rebuilt = Notice(text, Tone.WARNING, kind=NoticeKind.STATE_RECOVERED)
    return Opened(state, (*news, rebuilt))


def renumbered(
    before: ExecutionState,
    after: ExecutionState,
    plan: ImplementationPlan,
    former_plan: ImplementationPlan | None = None,
) -> tuple[Notice, ...]:
    """Return a notice about renumbered steps, if any."""
    moved = []
    for old, new in renumbered_steps(before, after).items():
        former_label = former_plan.label_of(old) if former_plan else str(old)
        label = plan.label_of(new)
        if label != former_label:
            moved.append(f"{former_label} is {label} now")
    if not moved:
        return ()
    text = f"The steps in the plan were renumbered: {', '.join(moved)}."
    return (Notice(text, kind=NoticeKind.RENUMBERED),)


def drift(plan: ImplementationPlan, state: ExecutionState) -> Iterator[Notice]:
    """Yield a notice for each finished step whose text changed."""
    for number in edited_steps(plan, state):
        status = state.step(number).status
        text = (
            f"The plan's text of step {plan.label_of(number)} has changed since"
            f" it was {status}. The step stays {status}. To run it again, undo it."
        )
        yield Notice(text, Tone.WARNING, kind=NoticeKind.STEP_CHANGED)
    for number, step in state.former_steps.items():
        if step.status.is_over or step.status is StepStatus.FAILED:
            text = (
                f"Step {number} ({step.status}) is no longer in the plan. Its"
                f" changes and its record stay unless you undo step {number}."
            )
            yield Notice(text, kind=NoticeKind.STEP_CHANGED)


def save(
    ticket: Ticket, plan: ImplementationPlan, record: RunRecord, state: ExecutionState
) -> ExecutionState:
    """Save the ticket's file, then its copy. Returns the state with the plan's next
    step.

    Both name the record's folder; for a renamed ticket, the former one until
    `follow_rename`.
    """
    is_over = state.status is RunStatus.COMPLETED
    state = replace(
        state,
        current_step=next_step_number(plan, state),
        done_plan=ticket.plan_digest(plan) if is_over else None,
        done_spec=_done_spec(ticket, plan, state) if is_over else None,
    )
    save_state(replace(state, ticket_slug=record.slug), ticket.state_path, record.state)
    return state


def _done_spec(
    ticket: Ticket, plan: ImplementationPlan, state: ExecutionState
) -> str | None:
    """Return spec.yaml's digest. None if unreadable, or with criteria that the run does
    not know.
    """
    try:
        text = ticket.spec_text()
        criteria = ticket.parse_spec(text).acceptance_criteria
    except BadInput:
        return None
    if edited_criteria(plan, state, criteria):
        return None
    return digest(text.encode())


def set_copied_state_aside(ticket: Ticket) -> tuple[Notice, ...]:
    """Rename a state copied with another ticket's folder. Returns notices for the
    user.
    """
    state = read_state_file(ticket.state_path)
    if state is None:
        return ()
    original = state.ticket_slug
    if ticket.state_origin(original) is not StateOrigin.COPIED:
        return ()
    aside = set_aside(ticket.state_path)
    text = (
        f"{ticket.shown(ticket.folder)} is a copy of {original}, so its run"
        " starts with the first step. The copied state was renamed to"
        f" {aside.name}."
    )
    return (Notice(text, Tone.WARNING, kind=NoticeKind.STATE_COPIED),)


def rename_copy(record: RunRecord) -> None:
    """Update the slug in the state's copy after a rename."""
    if slug_in(record.state) in (None, record.slug):
        return
    try:
        state = read_state_file(record.state)
    except StateUnreadable:
        # An unusable copy is reported when needed.
        return
    if state is not None:
        save_state(replace(state, ticket_slug=record.slug), record.state)


def load_copy(
    ticket: Ticket, plan: ImplementationPlan, record: RunRecord
) -> ExecutionState | None:
    """Return the record's copy, matched with the plan; None if absent. Raises
    `BadInput`.
    """
    state = read_state_file(record.state)
    if state is None:
        return None
    return match_state(replace(state, ticket_slug=ticket.slug), plan)


def _rebuilt(
    ticket: Ticket, plan: ImplementationPlan, record: RunRecord, error: StateUnreadable
) -> Opened:
    try:
        state = load_copy(ticket, plan, record)
    except StateUnreadable:
        # another plan's copy raises its own error
        state = None
    if state is None:
        aside = set_aside(ticket.state_path)
        raise BadInput(
            f"{error.message}. The file was renamed to {aside.name}; your project"
            " was not changed",
            hint=f"Fix it and move it back to {ticket.state_path.name}, or run again to"
            " start from the first step.",
            refusal=Refusal.STATE_UNREADABLE,
        ) from error
    aside = choose_aside_name(ticket.state_path)
    # a copy, so that a kill leaves something to rebuild from
    write_atomic(aside, ticket.state_path.read_bytes())
    state = save(ticket, plan, record, state)
    text = (
        f"{error.message}. The file was renamed to {aside.name} and restored from"
        " the run's record: "
    )
    return Opened(
        state,
        (
            Notice(
                f"{text}{_progress(state)}.",
                Tone.WARNING,
                kind=NoticeKind.STATE_RECOVERED,
            ),
        ),
    )


def _copy(
    ticket: Ticket, plan: ImplementationPlan, record: RunRecord
) -> ExecutionState | None:
    """Return the state's copy; None if torn, or another plan's."""
    try:
        return load_copy(ticket, plan, record)
    except BadInput:
        return None


def _progress(state: ExecutionState) -> str:
    tally = state.tally
    return f"{tally.over} of {tally.total} steps done"


def _restore_interrupted(
    record: RunRecord, attempt: Attempt, step: int, label: str
) -> Event:
    """Restore an attempt of a killed process. Returns the event for the user."""
    if not is_old(attempt):
        back = Restorer(record.root, [attempt]).restore()
        return ChangesPutBack(step, back.restored, back.kept, back.merged)
    try:
        back = restore_written(attempt, record)
    except CddError as error:
        text = (
            f"The files of step {label}, which was interrupted in version 0.1, are not"
            f" restored: {error.message}"
        )
        return Notice(text, Tone.WARNING, kind=NoticeKind.LEFT_AS_IS)
    return ChangesPutBack(step, back.restored, back.kept, back.merged)


def _start_over(ticket: Ticket, plan: ImplementationPlan, record: RunRecord) -> Opened:
    """A step killed while writing is restored first, so that no half of it remains."""
    try:
        state = load_state(ticket, plan) or _copy(ticket, plan, record)
    except BadInput:
        # another plan's, or unreadable: irrelevant here
        state = None
    news: list[Event] = []
    for step in (
        (*state.former_steps.values(), *state.step_executions.values()) if state else ()
    ):
        if step.status is StepStatus.IN_PROGRESS and step.attempts:
            label = plan.label_of(step.step_number)
            attempt = record.attempt(step.folder, step.attempts)
            news.append(_restore_interrupted(record, attempt, step.step_number, label))
    earlier = record.start_over()
    if ticket.state_path.exists():
        try:
            ticket.state_path.rename(earlier / ticket.state_path.name)
            for folder in (earlier, ticket.folder):
                sync_folder(folder)
        except OSError as error:
            raise BadInput(
                f"{ticket.state_path} could not be renamed: {error.strerror or error}",
                refusal=Refusal.DISK,
            ) from error
    where = earlier.relative_to(record.root).as_posix()
    text = (
        "Starting over. Your files stay unchanged. The previous run is recorded"
        f" in {where}."
    )
    return Opened(
        new_state(ticket.slug, plan),
        (*news, Notice(text, kind=NoticeKind.STARTED_OVER)),
    )
