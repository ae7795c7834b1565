"""`cdd exec` of several tickets: each in a tree and a process of its own, one board and
one budget for all.
"""

from __future__ import annotations

import os
import sys
import time
from argparse import Namespace
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Literal

from msgspec.structs import replace

from cdd_agent.cli.boards import board_face
from cdd_agent.cli.trusting import open_for_work
from cdd_agent.cli.without_screen import reference
from cdd_agent.cli.working import Output
from cdd_agent.engine.lock import TicketLock, TicketTaken
from cdd_agent.engine.record import RunRecord
from cdd_agent.engine.whereabouts import load_own_tree
from cdd_agent.errors import BadInput, ExitCode
from cdd_agent.events import About, Notice, Tone
from cdd_agent.fleet.board import Board, Row, RunState
from cdd_agent.fleet.coordinator import Coordinator
from cdd_agent.fleet.known import (
    folder_of,
    known,
    planned,
    remember_planned,
    save_board,
    spent_before,
)
from cdd_agent.fleet.place import Place, TicketJob
from cdd_agent.fleet.this_machine import ThisMachine
from cdd_agent.fleet.work_check import check_work
from cdd_agent.llm.budget import Limit
from cdd_agent.llm.shared import Shared
from cdd_agent.open_project import Project
from cdd_agent.process.child import Children
from cdd_agent.redaction import Redactor
from cdd_agent.threads import waited_for
from cdd_agent.tickets.store import Ticket
from cdd_agent.travel.own_tree import OwnTree
from cdd_agent.travel.travelling import utc_now
from cdd_agent.wiring import open_own_tree

AT_ONCE = 3
"""Runs, where nobody says how many: they wait for a model most of the time, but tests
are run on this machine.
"""
_SAVED_EVERY = 0.5
"""Seconds between two times that the board is saved while it only goes on."""


def execute_many(options: Namespace, flags: Mapping[str, Any]) -> int:
    """Carry out the tickets that are named, or with `--all` those that are planned."""
    project = open_for_work(options, flags)
    if options.all and options.slugs:
        raise BadInput("Name tickets, or `--all planned`, not both")
    if options.start_over:
        raise BadInput(
            "Several tickets cannot be started over at once",
            hint="`cdd exec SLUG --start-over` does one.",
        )
    if project.config.record and Path(project.config.record).is_absolute():
        raise BadInput(
            "Several runs cannot record into one file",
            hint="Give `record` a path in the project.",
        )
    tickets = list(
        {
            t.slug: t
            for t in (project.tickets.find(reference(s)) for s in options.slugs)
        }.values()
    )
    folder, own = folder_of(project.root), own_tree(project)
    with one_at_a_time(folder):
        if options.all:
            tickets = planned(project.root, project.tickets.list(), folder, own.prefix)
            remember_planned(folder, tickets)
        if not tickets and not options.json:
            sys.stderr.write(
                "cdd: no ticket has a plan that is not carried out; `cdd list` shows"
                " them all\n"
            )
            return ExitCode.DONE
        given = [
            word
            for name in ("model", "api_base", "max_attempts", "require", "record")
            for word in _flag(options, name)
        ]
        given += ["--yes"] if options.yes else []
        given += accepted_flag(project)
        jobs = {TicketJob(ticket.slug): ticket for ticket in tickets}
        board, code = carry_out(project, own, folder, jobs, given, options)
        if not options.json:
            _tell_what_next(project.root, board)
    return code


def carry_out(
    project: Project,
    own: OwnTree,
    folder: Path,
    jobs: Mapping[TicketJob, Ticket],
    flags: Iterable[str],
    options: Namespace,
    *,
    failed_is_over: bool = False,
) -> tuple[Board, ExitCode]:
    """See the runs to their end, and show their board meanwhile; `own` is what their
    trees have in common. Raises `KeyboardInterrupt` when interrupted; the board is
    shown then, too.
    """
    config = project.config
    require: Literal["verified"] | None = (
        "verified" if config.require == "verified" else None
    )
    limit = Limit(config.budget.tokens, config.budget.usd)
    rows = [
        known(project.root, own.prefix, job, ticket, require)
        for job, ticket in jobs.items()
    ]
    rows = rows if failed_is_over else [_again(row) for row in rows]
    spent = {
        job.name: spent_before(project.root, own.prefix, job, ticket)
        for job, ticket in jobs.items()
    }
    Shared.begin(folder, limit, spent)
    face, children = board_face(options.json, limit), Children()
    output, saved_at = Output(face), 0.0

    def changed(row: Row, event: Mapping[str, Any] | None) -> None:
        nonlocal saved_at
        output.write(lambda: face.changed(coordinator.board, row, event))
        if event is None or time.monotonic() - saved_at >= _SAVED_EVERY:
            save_board(folder, coordinator.board)
            saved_at = time.monotonic()

    coordinator = Coordinator(
        Board({row.job.name: row for row in rows}),
        ThisMachine(project.root, folder, children, tuple(flags)),
        options.jobs or (len(jobs) if getattr(options, "on", None) else AT_ONCE),
        changed,
        limit,
        stop_on_failure=options.stop_on_failure,
    )

    async def work() -> None:
        for row in rows:
            if row.state is RunState.DONE:
                ticket = jobs[row.job]
                checked = await check_work(project.root, own.prefix, row, ticket)
                coordinator.board = coordinator.board.with_row(checked)
        new = [
            job
            for job in jobs
            if load_own_tree(folder_of(project.root, job.name)) is None
        ]
        # else each run tells
        if (
            new
            and not options.json
            and await own.trees.changed(own.trees.top, untracked=False)
        ):
            text = (
                "What you have changed and not committed is not in the trees that are"
                " made now."
            )
            output.emit(Notice(text, Tone.WARNING, about=About.OWN_TREE))
        output.write(lambda: face.begin(coordinator.board))
        save_board(folder, coordinator.board)
        code = ExitCode.INTERRUPTED
        try:
            async with cluster(project, folder, options, len(jobs)) as place:
                coordinator.place = place or coordinator.place
                code = await coordinator.carry_out()
        finally:
            await children.close()
            save_board(folder, coordinator.board)
            output.write(lambda: face.end(coordinator.board, code))

    output.carry_out(work())
    board = coordinator.board
    if failed_is_over:
        board = Board(
            {
                name: row
                for name, row in board.rows.items()
                if row.state is not RunState.FAILED
            }
        )
    return coordinator.board, board.exit_code


def _again(row: Row) -> Row:
    """A run that has failed is tried again."""
    return (
        row
        if row.state is RunState.DONE
        else replace(row, state=RunState.WAITING, steps={}, why="")
    )


@asynccontextmanager
async def cluster(
    project: Project, folder: Path, options: Namespace, count: int
) -> AsyncIterator[Place | None]:
    """The cluster that `--on` names; None where it names none. Raises `BadInput`."""
    if not (on := getattr(options, "on", None)):
        yield None
        return
    try:
        # late: Dask is optional
        from cdd_agent.cluster.place import ClusterPlace  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("distributed", "dask"):
            raise
        raise BadInput(
            "`--on` needs a library that is not installed",
            hint=(
                'Where cdd is installed: pip install "cdd-shell[cluster]", or pipx'
                " inject cdd-shell distributed."
            ),
        ) from error
    async with ClusterPlace.open(
        project, folder, on, options.jobs or min(count, os.cpu_count() or 1)
    ) as place:
        yield place


def own_tree(project: Project, name: str = "") -> OwnTree:
    """The tree of the run with this name, made or not; without one, for what all of
    them have in common: the folder of the project in its repository, and git. Raises
    `BadInput` where there is no repository, or none with a commit.
    """
    return waited_for(
        open_own_tree(project, Ticket("", project.root, project.root), name)
    )


@contextmanager
def one_at_a_time(folder: Path) -> Iterator[None]:
    """Hold the folder that runs share. Raises `BadInput` where somebody else does."""
    RunRecord.of(folder.parents[2], folder.name, Redactor()).prepare()
    try:
        lock = TicketLock.take(
            folder, folder.name, utc_now().replace(microsecond=0).isoformat()
        )
    except TicketTaken as taken:
        raise BadInput(
            f"Another cdd carries out several tickets of this project{taken.who}",
            hint=(
                "Wait for it, or stop it there; a single `cdd exec SLUG --worktree` can"
                " go on beside it."
            ),
        ) from taken
    try:
        yield
    finally:
        lock.release()


def accepted_flag(project: Project) -> list[str]:
    """The flag by which a run inherits the user's trust in the settings."""
    return ["--accepted", ",".join(project.trust.accepted)]


def _flag(options: Namespace, name: str) -> list[str]:
    value = getattr(options, name)
    return [] if value is None else [f"--{name.replace('_', '-')}", str(value)]


def _tell_what_next(root: Path, board: Board) -> None:
    done = [row.job.slug for row in board.rows.values() if row.state is RunState.DONE]
    # others have landed
    done = [slug for slug in done if load_own_tree(folder_of(root, slug)) is not None]
    left = [row for row in board.rows.values() if row.state is not RunState.DONE]
    if done:
        sys.stdout.write(
            "Bring over what is done:"
            f" {' && '.join(f'cdd land {slug}' for slug in done[:3])}"
        )
        sys.stdout.write(" ...\n" if len(done) > 3 else "\n")
    if waiting := next(
        (row.job.slug for row in left if row.state is RunState.NEEDS_YOU), None
    ):
        sys.stdout.write(
            f"For a yes: cdd exec {waiting} --worktree, which asks you; or the same"
            " command with --yes\n"
        )
    if any(row.state is RunState.NO_BUDGET for row in left):
        sys.stdout.write(
            "The budget is used up: raise `budget` in .cdd/config.yaml to go on.\n"
        )
    if left:
        sys.stdout.write("The same command goes on with what is not done.\n")
