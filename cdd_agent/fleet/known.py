"""What the disk says of runs: the ones that a command is about, and where each of them
is.

How a record is read is imported with the first run that has one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from cdd_agent.engine.effort import effort_of
from cdd_agent.engine.lock import is_at_work
from cdd_agent.engine.record import RunRecord
from cdd_agent.engine.whereabouts import load_own_tree
from cdd_agent.errors import CddError
from cdd_agent.events import (
    About,
    Notice,
    PlanOpened,
    RunFinished,
    StepStarted,
    to_json,
)
from cdd_agent.files.atomic import read_bytes, write_atomic
from cdd_agent.files.json_file import as_short_json, from_json
from cdd_agent.files.shared_json import json_read
from cdd_agent.fleet.board import Board, Row, RunState
from cdd_agent.fleet.place import TicketJob
from cdd_agent.llm.budget import Spent
from cdd_agent.redaction import Redactor
from cdd_agent.tickets.run_outcome import reasons_against
from cdd_agent.tickets.state import load_state
from cdd_agent.tickets.status import RunStatus, StepStatus
from cdd_agent.tickets.store import Ticket

_END_OF_LOG = 64 * 1024
"""Bytes in which a run says why it stopped."""
_WAITS_FOR = {
    About.NOT_APPROVED: RunState.NEEDS_YOU,
    About.NO_BUDGET: RunState.NO_BUDGET,
    About.COME_BACK_LATER: RunState.LATER,
}
TOGETHER, COMPARING = ".together", ".compare"


def folder_of(root: Path, name: str = TOGETHER) -> Path:
    """Where runs that are carried out together keep what they share: among the runs,
    and no slug.
    """
    return root / ".cdd" / "runs" / name


def prepare_folder(folder: Path) -> None:
    """Make the folder that runs share, ignored by git. Raises `BadInput`."""
    RunRecord.of(folder.parents[2], folder.name, Redactor()).prepare()


def record_of(
    root: Path, prefix: str, job: TicketJob, ticket: Ticket
) -> tuple[RunRecord, Ticket] | None:
    """A run's record, and the ticket as it has it: in its own tree, or once it has
    landed in the person's. `prefix` is the project's folder in its repository. None
    where it was not begun.
    """
    if job.variant:
        record = RunRecord.of(root, job.name, Redactor())
    else:
        record = RunRecord.of_ticket(ticket, Redactor())
    made = load_own_tree(record.folder)
    if made is not None and made.is_made:
        there = ticket.at(record.folder / "tree" / prefix)
        return RunRecord.of_ticket(there, Redactor()), there
    return None if job.variant else (record, ticket)


def known(
    root: Path,
    prefix: str,
    job: TicketJob,
    ticket: Ticket,
    require: Literal["verified"] | None = None,
) -> Row:
    """The row of a run as it is now. One that cannot be read is one that waits: who
    carries it out will say why.
    """
    row = Row(job)
    try:
        if (found := record_of(root, prefix, job, ticket)) is None:
            return row
        plan = ticket.read_plan()
        state = load_state(found[1], plan)
        if state is None:
            return row
        criteria = ticket.read_spec().acceptance_criteria
        opened = PlanOpened.of("", plan, state, criteria)
        row = row.told(to_json(opened))
        finished = RunFinished.of(plan, state, criteria, require)
        if finished.edited_criteria:
            why = "; ".join(reasons_against((), finished.edited_criteria))
            return replace(row, state=RunState.FAILED, why=why)
        match finished.status:
            case RunStatus.COMPLETED:
                return replace(row, state=RunState.DONE)
            case RunStatus.FAILED:
                failed = [
                    step for step in opened.steps if step.status is StepStatus.FAILED
                ]
                titles = {step.number: step.title for step in failed}
                return replace(
                    row,
                    state=RunState.FAILED,
                    steps=titles,
                    why=failed[0].error or "" if failed else "",
                )
            case RunStatus.IN_PROGRESS:
                begun = (
                    step
                    for step in opened.steps
                    if step.status is StepStatus.IN_PROGRESS
                )
                return replace(row, steps={step.number: step.title for step in begun})
    except CddError:
        return row


def spent_before(root: Path, prefix: str, job: TicketJob, ticket: Ticket) -> Spent:
    """What a run took so far, by its log. Raises `BadInput` where that cannot be
    read.
    """
    found = record_of(root, prefix, job, ticket)
    return (
        effort_of(found[0].log.entries()).spent
        if found and found[1].state_path.exists()
        else Spent()
    )


def planned(
    root: Path, tickets: Iterable[Ticket], folder: Path, prefix: str
) -> list[Ticket]:
    """The tickets whose plan waits to be carried out, or is being carried out in a tree
    of its own; with those that the same command began with and that are done by now, as
    long as not all of them are.
    """
    by_slug = {ticket.slug: ticket for ticket in tickets}
    before = [
        by_slug[slug]
        for slug in json_read(folder / "planned.json").get("slugs", [])
        if slug in by_slug
    ]

    def is_done(ticket: Ticket) -> bool:
        return (
            known(root, prefix, TicketJob(ticket.slug), ticket).state is RunState.DONE
        )

    if all(map(is_done, before)):
        before = []
    waiting = [
        ticket
        for ticket in by_slug.values()
        if ticket.plan_path.exists() and not ticket.state_path.exists()
    ]
    chosen = {*before, *(ticket for ticket in waiting if not is_done(ticket))}
    return sorted(chosen, key=lambda ticket: ticket.slug)


def remember_planned(folder: Path, tickets: Sequence[Ticket]) -> None:
    """For `planned`. Raises `BadInput` when the disk refuses."""
    write_atomic(
        folder / "planned.json",
        json.dumps({"slugs": [ticket.slug for ticket in tickets]}).encode(),
    )


def save_board(folder: Path, board: Board) -> None:
    """For the shell, which shows it. Raises `BadInput` when the disk refuses."""
    write_atomic(folder / "board.json", as_short_json(board))


def load_board(folder: Path) -> Board | None:
    """As it was saved last; None where there is none that can be read."""
    data = read_bytes(folder / "board.json")
    try:
        return None if data is None else from_json(data, Board)
    except ValueError:
        return None


def board_here(root: Path, tickets: Iterable[Ticket]) -> Board:
    """The runs of this project on this machine: those that are carried out together, as
    whoever does that tells; and all others that are under way, or have a tree of their
    own.
    """
    rows, by_slug = dict[str, Row](), {ticket.slug: ticket for ticket in tickets}
    for folder in (folder_of(root), folder_of(root, COMPARING)):
        if is_at_work(folder) and (board := load_board(folder)) is not None:
            rows |= board.rows
    prefix = next(
        (
            root.relative_to(top).as_posix()
            for top in (root, *root.parents)
            if (top / ".git").exists()
        ),
        ".",
    )
    for folder in sorted(folder_of(root).parent.glob("[!.]*")):
        slug, _, variant = folder.name.partition("--")
        if folder.name in rows or slug not in by_slug:
            continue
        job, ticket = TicketJob(slug, variant), by_slug[slug]
        with suppress(CddError):
            found = record_of(root, prefix, job, ticket)
            is_running = found is not None and is_at_work(found[0].folder)
            if not is_running and load_own_tree(folder) is None:
                continue
            row = known(root, prefix, job, ticket)
            if is_running:
                row = replace(row, state=RunState.RUNNING)
            elif found is not None and row.state is RunState.WAITING:
                row = replace(row, state=RunState.STOPPED)
                with suppress(CddError):  # of a log that cannot be read
                    row = _stopped(row, found[0])
            rows[folder.name] = row
    return Board(rows)


def _stopped(row: Row, record: RunRecord) -> Row:
    """The row of a run that has stopped, with what its log says of why. Raises
    `BadInput`.
    """
    for entry in record.log.latest(_END_OF_LOG):
        match entry.event:
            case StepStarted():
                row = replace(row, state=RunState.STOPPED, why="")
            case Notice(text=text, about=About() as about) if about in _WAITS_FOR:
                row = replace(row, state=_WAITS_FOR[about], why=text)
            case _:
                pass
    return row
