"""The runs of a project on this machine, read from its files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.cost import Cost
from cdd_agent.engine.lock import is_at_work
from cdd_agent.engine.logged_run import LoggedRun
from cdd_agent.engine.record import RunRecord
from cdd_agent.engine.whereabouts import load_own_tree
from cdd_agent.errors import CddError
from cdd_agent.events.notices import Notice, NoticeKind
from cdd_agent.events.run_events import RunFinished
from cdd_agent.events.step_events import StepStarted
from cdd_agent.events.stream import to_json
from cdd_agent.events.ticket_events import PlanOpened
from cdd_agent.files.atomic import read_bytes, write_atomic
from cdd_agent.files.json_file import as_short_json, from_json
from cdd_agent.files.shared_json import read_json
from cdd_agent.fleet.board import Board, Row, RunState
from cdd_agent.fleet.job import TicketJob
from cdd_agent.text.redaction import Redactor
from cdd_agent.tickets.run_outcome import Require, reasons_against
from cdd_agent.tickets.state_file import load_state
from cdd_agent.tickets.status import RunStatus, StepStatus
from cdd_agent.tickets.store import Ticket

_END_OF_LOG = 64 * 1024
"""Bytes at a log's end that contain the reason for a stop."""
_WAITS_FOR = {
    NoticeKind.NOT_APPROVED: RunState.NEEDS_YOU,
    NoticeKind.CHECK_UNUSABLE: RunState.NEEDS_YOU,
    NoticeKind.NO_BUDGET: RunState.NO_BUDGET,
    NoticeKind.COME_BACK_LATER: RunState.LATER,
}
TOGETHER = ".together"
COMPARING = ".compare"
_STATES = {
    RunStatus.COMPLETED: RunState.COMPLETED,
    RunStatus.FAILED: RunState.FAILED,
    RunStatus.IN_PROGRESS: RunState.WAITING,
}


def folder_of(root: Path, name: str = TOGETHER) -> Path:
    """Return the folder of a run, or of runs together: no slug begins with a dot."""
    return root / ".cdd" / "runs" / name


def prepare_folder(folder: Path) -> None:
    """Make the shared folder of runs, ignored by git. Raises `BadInput`."""
    RunRecord.of(folder.parents[2], folder.name, Redactor()).prepare()


class RecordedRun(Struct, frozen=True):
    """The record of a run, and its version of the ticket."""

    record: RunRecord
    ticket: Ticket


def find_run(
    root: Path, prefix: str, job: TicketJob, ticket: Ticket
) -> RecordedRun | None:
    """Return a run in its own tree, or in the user's after landing. None if it never
    began. `prefix` is the project's folder in its repository.
    """
    if job.variant:
        record = RunRecord.of(root, job.name, Redactor())
    else:
        record = RunRecord.of_ticket(ticket, Redactor())
    made = load_own_tree(record.folder)
    if made is not None and made.is_made:
        in_tree = ticket.at(record.folder / "tree" / prefix)
        return RecordedRun(RunRecord.of_ticket(in_tree, Redactor()), in_tree)
    if job.variant:
        return None
    return RecordedRun(record, ticket)


def load_row(
    root: Path,
    prefix: str,
    job: TicketJob,
    ticket: Ticket,
    require: Require | None = None,
) -> Row:
    """Return the row of a run. An unreadable run waits: carrying it out will report the
    reason.
    """
    row = Row(job)
    try:
        run = find_run(root, prefix, job, ticket)
        if run is None:
            return row
        plan = ticket.read_plan()
        state = load_state(run.ticket, plan)
        if state is None:
            return row
        criteria = ticket.read_spec().acceptance_criteria
        opened = PlanOpened.from_run("", plan, state, criteria)
        finished = RunFinished.from_run(plan, state, criteria, require)
    except CddError:
        return row
    row = row.after_event(to_json(opened))
    if finished.edited_criteria:
        why = "; ".join(reasons_against(None, (), finished.edited_criteria))
        return replace(row, state=RunState.FAILED, why=why)
    return _with_steps(row, opened, finished.status)


def _with_steps(row: Row, opened: PlanOpened, status: RunStatus) -> Row:
    """Add the state of the run, and the steps behind it."""
    shown = {
        RunStatus.FAILED: StepStatus.FAILED,
        RunStatus.IN_PROGRESS: StepStatus.IN_PROGRESS,
    }
    titles, why = dict[int, str](), ""
    for step in opened.steps:
        if step.status is shown.get(status):
            titles[step.number] = step.title
            why = why or step.error or ""
    if status is not RunStatus.FAILED:
        why = ""
    state = _STATES[status]
    if state is RunState.COMPLETED and row.tally.is_done:
        state = RunState.DONE
    return replace(row, state=state, steps=titles, why=why)


def load_spent(root: Path, prefix: str, job: TicketJob, ticket: Ticket) -> Cost:
    """Return the cost of a run so far, from its log. Raises `BadInput` if the log is
    unreadable.
    """
    run = find_run(root, prefix, job, ticket)
    if run is None or not run.ticket.state_path.exists():
        return Cost()
    return LoggedRun.read(run.record.log).effort.cost


def find_planned(
    root: Path, tickets: Iterable[Ticket], folder: Path, prefix: str
) -> list[Ticket]:
    """Return the tickets with a plan that is not carried out, or is being carried out
    in a separate worktree. After a stop of the same command, also its done tickets,
    until all are done.
    """

    def is_done(ticket: Ticket) -> bool:
        job = TicketJob(ticket.slug)
        return load_row(root, prefix, job, ticket).state.is_completed

    earlier = read_json(folder / "planned.json").get("slugs", [])
    chosen, has_unfinished = list[Ticket](), False
    for ticket in sorted(tickets, key=lambda ticket: ticket.slug):
        is_waiting = ticket.plan_path.exists() and not ticket.state_path.exists()
        if ticket.slug not in earlier and not is_waiting:
            continue
        if not is_done(ticket):
            chosen.append(ticket)
            has_unfinished = has_unfinished or ticket.slug in earlier
        elif ticket.slug in earlier:
            chosen.append(ticket)
    if has_unfinished:
        return chosen
    return [ticket for ticket in chosen if ticket.slug not in earlier]


def save_planned(folder: Path, tickets: Sequence[Ticket]) -> None:
    """Save the tickets for `find_planned`. Raises `BadInput` if the disk refuses."""
    slugs = [ticket.slug for ticket in tickets]
    write_atomic(folder / "planned.json", json.dumps({"slugs": slugs}).encode())


def save_board(folder: Path, board: Board) -> None:
    """Save the board for the shell. Raises `BadInput` if the disk refuses."""
    write_atomic(folder / "board.json", as_short_json(board))


def load_board(folder: Path) -> Board | None:
    """Return the board that was saved last, if readable."""
    data = read_bytes(folder / "board.json")
    try:
        return None if data is None else from_json(data, Board)
    except ValueError:
        return None


def board_here(root: Path, tickets: Iterable[Ticket]) -> Board:
    """Return the project's runs on this machine: those that run together, from their
    coordinator's board, and all others that are running or have a worktree.
    """
    rows = dict[str, Row]()
    for folder in (folder_of(root), folder_of(root, COMPARING)):
        if is_at_work(folder) and (board := load_board(folder)) is not None:
            rows |= board.rows
    by_slug = {ticket.slug: ticket for ticket in tickets}
    prefix = _prefix_of(root)
    for folder in sorted(folder_of(root).parent.glob("[!.]*")):
        slug, _, variant = folder.name.partition("--")
        if folder.name in rows or slug not in by_slug:
            continue
        # unreadable runs are not shown
        with suppress(CddError):
            job = TicketJob(slug, variant)
            row = _row_here(root, prefix, job, by_slug[slug])
            if row is not None:
                rows[folder.name] = row
    return Board(rows)


def _prefix_of(root: Path) -> str:
    """Return the project's folder in its repository."""
    for top in (root, *root.parents):
        if (top / ".git").exists():
            return root.relative_to(top).as_posix()
    return "."


def _row_here(root: Path, prefix: str, job: TicketJob, ticket: Ticket) -> Row | None:
    """Return the row of a run that is running or has a worktree. Raises `CddError`."""
    run = find_run(root, prefix, job, ticket)
    if run is not None and is_at_work(run.record.folder):
        row = load_row(root, prefix, job, ticket)
        return replace(row, state=RunState.RUNNING)
    if load_own_tree(folder_of(root, job.name)) is None:
        return None
    row = load_row(root, prefix, job, ticket)
    if run is None or row.state is not RunState.WAITING:
        return row
    row = replace(row, state=RunState.STOPPED)
    # the log may be unreadable
    with suppress(CddError):
        row = _with_reason(row, run.record)
    return row


def _with_reason(row: Row, record: RunRecord) -> Row:
    """Return the row of a stopped run with the reason in its log. Raises `BadInput`."""
    for entry in record.log.latest(_END_OF_LOG):
        match entry.event:
            case StepStarted():
                row = replace(row, state=RunState.STOPPED, why="")
            case Notice(text=text, kind=NoticeKind() as kind) if kind in _WAITS_FOR:
                row = replace(row, state=_WAITS_FOR[kind], why=text)
            case _:
                pass
    return row
