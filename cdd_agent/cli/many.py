"""`cdd exec` of several tickets: a worktree and a process each, one board and one
budget.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.cli.boards import board_face
from cdd_agent.cli.invocation import Invocation
from cdd_agent.cli.orders import ExecOptions, ManyOrders, find_tickets, read_many_orders
from cdd_agent.cli.trusting import open_for_work
from cdd_agent.cli.working import Output
from cdd_agent.engine.lock import TicketLock, TicketTaken
from cdd_agent.engine.whereabouts import load_own_tree
from cdd_agent.errors import BadInput, ExitCode
from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.fleet.board import Board, Row, RunState
from cdd_agent.fleet.coordinator import Coordinator
from cdd_agent.fleet.job import TicketJob
from cdd_agent.fleet.local_runs import (
    find_planned,
    folder_of,
    load_row,
    load_spent,
    prepare_folder,
    save_board,
    save_planned,
)
from cdd_agent.fleet.order import Place
from cdd_agent.fleet.this_machine import ThisMachine
from cdd_agent.fleet.work_check import check_work
from cdd_agent.llm.budget import Limit, Tally
from cdd_agent.llm.port import Usage
from cdd_agent.llm.purse import Purse
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.session.open_project import Project
from cdd_agent.threads import waited_for
from cdd_agent.tickets.store import Ticket
from cdd_agent.travel.own_tree import OwnTree
from cdd_agent.travel.transfer import utc_now
from cdd_agent.wiring.runs import open_own_tree

AT_ONCE = 3
"""The default number of parallel runs. They mostly wait for a model, but their tests
use this machine.
"""
_SAVED_EVERY = 0.5
"""Minimum seconds between two saves of the board without news."""


def execute_many(invocation: Invocation, options: ExecOptions) -> int:
    _refuse_wrong_options(options)
    many = read_many_orders(invocation, options)
    # `--jobs` is the number of tickets here.
    settings = {**many.each.settings, "jobs": None}
    project = open_for_work(invocation, settings, as_json=many.as_json)
    if project.config.record and Path(project.config.record).is_absolute():
        raise BadInput(
            "Several runs cannot record to the same file",
            hint="Set `record` to a path in the project.",
        )
    tickets = find_tickets(project.tickets, options.slugs)
    folder, tree = folder_of(project.root), own_tree(project)
    with one_at_a_time(folder):
        if options.selection:
            tickets = find_planned(
                project.root, project.tickets.list(), folder, tree.prefix
            )
            save_planned(folder, tickets)
        if not tickets and not many.as_json:
            sys.stderr.write(
                "cdd: No planned ticket remains. List all tickets with `cdd list`.\n"
            )
            return ExitCode.DONE
        jobs = {
            many.order_for(TicketJob(ticket.slug)).job: ticket for ticket in tickets
        }
        board, code = Fleet(project, tree, folder, jobs, many).carry_out()
        if not many.as_json:
            _show_next_commands(project.root, board)
    return code


def _refuse_wrong_options(options: ExecOptions) -> None:
    if options.selection and options.slugs:
        raise BadInput("Name tickets, or `--all planned`, not both")
    if options.start_over:
        raise BadInput(
            "Only one ticket at a time can start over",
            hint="Run `cdd exec SLUG --start-over` for each.",
        )
    if options.driven or options.variant:
        raise BadInput("`--driven` and `--variant` take only one ticket")


class Fleet(Struct):
    """Runs that share a board, a budget and a folder."""

    project: Project
    tree: OwnTree
    folder: Path
    jobs: Mapping[TicketJob, Ticket]
    many: ManyOrders

    def carry_out(self) -> tuple[Board, ExitCode]:
        """Finish the runs, and show their board. Raises `KeyboardInterrupt` after an
        interrupt, with the board shown.
        """
        budget = self.project.config.budget
        purse = Purse(Limit(budget.tokens, budget.usd), self._spent_before())
        face = board_face(self.many.as_json, purse.limit)
        output = Output(face)
        saving = BoardSaving(self.folder)

        def on_change(row: Row, event: Mapping[str, Any] | None) -> None:
            output.write(lambda: face.changed(coordinator.board, row, event))
            saving.note(coordinator.board, is_news=event is None)

        coordinator = Coordinator(
            Board({row.job.name: row for row in self._rows()}),
            {job.name: self.many.order_for(job) for job in self.jobs},
            ThisMachine(purse, tuple(self.project.trust.accepted)),
            self._number_at_once(),
            on_change,
            stop_on_failure=self.many.stops_on_failure,
        )

        async def work() -> None:
            await self._check_work(coordinator)
            await self._warn_of_changes(output)
            output.write(lambda: face.begin(coordinator.board))
            save_board(self.folder, coordinator.board)
            code = ExitCode.INTERRUPTED
            try:
                async with self._cluster(purse) as place:
                    coordinator.place = place or coordinator.place
                    code = await coordinator.carry_out()
            finally:
                save_board(self.folder, coordinator.board)
                output.write(lambda: face.end(coordinator.board, code))

        output.carry_out(work())
        return coordinator.board, self._exit_code(coordinator.board)

    def _rows(self) -> list[Row]:
        """Return the current rows. Except in a comparison, failed runs are tried
        again.
        """
        config, rows = self.project.config, list[Row]()
        require = None if config.require == "off" else config.require
        for job, ticket in self.jobs.items():
            row = load_row(self.project.root, self.tree.prefix, job, ticket, require)
            if not row.state.is_completed and not self.many.is_comparison:
                row = replace(row, state=RunState.WAITING, steps={}, why="")
            rows.append(row)
        return rows

    def _spent_before(self) -> Tally:
        """Return the cost of the runs in earlier processes. Raises `BadInput` if a log
        is unreadable.
        """
        tally = Tally()
        for job, ticket in self.jobs.items():
            spent = load_spent(self.project.root, self.tree.prefix, job, ticket)
            tally.add(Usage(spent.tokens, 0, spent.estimated, spent.usd))
        return tally

    def _number_at_once(self) -> int:
        if self.many.at_once is not None:
            return self.many.at_once
        return len(self.jobs) if self.many.cluster else AT_ONCE

    async def _check_work(self, coordinator: Coordinator) -> None:
        root, prefix = self.project.root, self.tree.prefix
        for row in coordinator.board.rows.values():
            if row.state.is_completed:
                checked = await check_work(root, prefix, row, self.jobs[row.job])
                coordinator.board = coordinator.board.with_row(checked)

    async def _warn_of_changes(self, output: Output) -> None:
        """Warn about changes that are missing in new trees. With `--json`, each run
        warns.
        """
        root = self.project.root
        trees = [load_own_tree(folder_of(root, job.name)) for job in self.jobs]
        if self.many.as_json or None not in trees:
            return
        if await self.tree.trees.changed(self.tree.trees.top, untracked=False):
            text = (
                "Your uncommitted changes are not in the new worktrees. Commit them"
                " first if the runs need them."
            )
            output.emit(Notice(text, Tone.WARNING, kind=NoticeKind.OWN_TREE))

    def _exit_code(self, board: Board) -> ExitCode:
        if not self.many.is_comparison:
            return board.exit_code
        rows = board.rows.items()
        over = {name: row for name, row in rows if row.state is not RunState.FAILED}
        return Board(over).exit_code

    @asynccontextmanager
    async def _cluster(self, purse: Purse) -> AsyncIterator[Place | None]:
        """Open the cluster of `--on`, if any. Raises `BadInput`."""
        where = self.many.cluster
        if not where:
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
        workers = self.many.at_once or min(len(self.jobs), os.cpu_count() or 1)
        async with ClusterPlace.open(self.project, purse, where, workers) as place:
            yield place


class BoardSaving(Struct):
    """Saves the board for the shell: news at once, progress rarely."""

    folder: Path
    saved_at: float = 0.0

    def note(self, board: Board, *, is_news: bool) -> None:
        """Raise `BadInput` if the disk refuses."""
        if is_news or time.monotonic() - self.saved_at >= _SAVED_EVERY:
            save_board(self.folder, board)
            self.saved_at = time.monotonic()


def own_tree(project: Project, name: str = "") -> OwnTree:
    """Return the tree of a run, which may not exist yet; without a name, the common
    part of all trees. Raises `BadInput` without a repository that has a commit.
    """
    ticket = Ticket("", project.root, project.root)
    return waited_for(open_own_tree(project, ticket, name))


@contextmanager
def one_at_a_time(folder: Path) -> Iterator[None]:
    """Lock the folder that runs share. Raises `BadInput` if another process holds
    it.
    """
    prepare_folder(folder)
    try:
        lock = TicketLock.take(
            folder, folder.name, utc_now().replace(microsecond=0).isoformat()
        )
    except TicketTaken as taken:
        raise BadInput(
            f"Another cdd is running several tickets of this project{taken.who}",
            hint=(
                "Wait for it, or stop it there. A single `cdd exec SLUG --worktree` can"
                " run at the same time."
            ),
            refusal=Refusal.IN_USE,
        ) from taken
    try:
        yield
    finally:
        lock.release()


def _show_next_commands(root: Path, board: Board) -> None:
    rows = list(board.rows.values())
    states = {row.state for row in rows}
    completed = [row.job.slug for row in rows if _can_be_landed(root, row)]
    if completed:
        commands = " && ".join(f"cdd land {slug}" for slug in completed[:3])
        more = " ..." if len(completed) > 3 else ""
        sys.stdout.write(f"Merge the completed runs: {commands}{more}\n")
    waiting = [row.job.slug for row in rows if row.state is RunState.NEEDS_YOU]
    if waiting:
        sys.stdout.write(
            f"To approve, run `cdd exec {waiting[0]} --worktree`. To approve"
            " everything, add --yes.\n"
        )
    if RunState.NO_BUDGET in states:
        sys.stdout.write(
            "The budget is spent. Raise `budget` in .cdd/config.yaml to continue.\n"
        )
    if not all(state.is_completed for state in states):
        sys.stdout.write("Run the same command again to continue the other tickets.\n")


def _can_be_landed(root: Path, row: Row) -> bool:
    has_tree = load_own_tree(folder_of(root, row.job.slug)) is not None
    return row.state.is_completed and has_tree
