"""`cdd compare`: run tickets with several models, and print a table of the results."""

from __future__ import annotations

import hashlib
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace
from rich.console import Console
from rich.text import Text

from cdd_agent.cli.invocation import Invocation
from cdd_agent.cli.many import Fleet, one_at_a_time, own_tree
from cdd_agent.cli.orders import ManyOrders, as_child, find_tickets
from cdd_agent.cli.trusting import open_for_work
from cdd_agent.cli.without_screen import print_json
from cdd_agent.engine.lock import locked
from cdd_agent.engine.whereabouts import load_own_tree
from cdd_agent.errors import BadInput, ExitCode
from cdd_agent.files.atomic import remove_folder, write_atomic
from cdd_agent.fleet.board import Board
from cdd_agent.fleet.board_lines import compared, line_to_json
from cdd_agent.fleet.job import TicketJob
from cdd_agent.fleet.local_runs import COMPARING, folder_of
from cdd_agent.fleet.order import RunOrder
from cdd_agent.fleet.table import comparison
from cdd_agent.session.open_project import Project
from cdd_agent.threads import waited_for
from cdd_agent.tickets.store import Ticket
from cdd_agent.travel.own_tree import OwnTree


def compare(
    invocation: Invocation,
    *,
    slugs: Sequence[str],
    models: str | None,
    jobs: int | None,
    max_attempts: int | None,
    yes: bool,
    clear: bool,
    as_json: bool,
) -> int:
    settings = {"max_attempts": max_attempts, "approval": "auto" if yes else None}
    project = open_for_work(invocation, settings, as_json=as_json)
    tickets = find_tickets(project.tickets, slugs)
    names = [name.strip() for name in (models or "").split(",") if name.strip()]
    if not clear and not (tickets and names):
        raise BadInput(
            "Which tickets, and which models?",
            hint="Type `cdd compare SLUG --models openai/gpt-5,ollama/qwen3`.",
        )
    folder, tree = folder_of(project.root, COMPARING), own_tree(project)
    with one_at_a_time(folder):
        if clear:
            return _clear(project, [ticket.slug for ticket in tickets])
        tickets_of_jobs = dict[TicketJob, Ticket]()
        for ticket in tickets:
            for job in _make_jobs(project, ticket, names):
                tickets_of_jobs[job] = ticket
        each = RunOrder(
            project=invocation.project,
            ticket="",
            api_base=invocation.api_base,
            max_attempts=max_attempts,
            approves_all=yes,
        )
        orders = ManyOrders(
            each=as_child(each), at_once=jobs, is_comparison=True, as_json=as_json
        )
        board, code = Fleet(project, tree, folder, tickets_of_jobs, orders).carry_out()
        _print_comparison(board, _write_diffs(project, folder, board), as_json=as_json)
    return code


def _make_jobs(
    project: Project, ticket: Ticket, models: Sequence[str]
) -> list[TicketJob]:
    """Return a run for each model. All start from the commit of earlier runs of this
    comparison, otherwise from HEAD.
    """
    jobs, base = list[TicketJob](), None
    for model in dict.fromkeys(models):
        job = TicketJob(ticket.slug, f"compare-{name_of(model)}", model)
        existing = load_own_tree(folder_of(project.root, job.name))
        if existing is not None:
            base = base or existing.base
        jobs.append(job)
    base = base or waited_for(own_tree(project).trees.commit_of("HEAD"))
    return [replace(job, base=base) for job in jobs]


def name_of(model: str) -> str:
    """Return a model's name as part of a branch's name, unique for each model."""
    name = re.sub(r"[^a-z0-9]+", "-", model.lower()).strip("-")[:80]
    is_plain = re.fullmatch(r"[a-z0-9]+/[a-z0-9]+(-[a-z0-9]+)*", model)
    if is_plain and len(model) <= 80:
        return name
    return f"{name}-{hashlib.sha256(model.encode()).hexdigest()[:6]}"


def _write_diffs(project: Project, folder: Path, board: Board) -> dict[str, Path]:
    trees, files = own_tree(project).trees, dict[str, Path]()

    async def write(name: str, job: TicketJob) -> None:
        tip = await trees.commit_of(f"refs/heads/{job.branch}")
        if tip is not None and job.base is not None:
            diff = await trees.git("diff", "--no-color", "--no-ext-diff", job.base, tip)
            files[name] = folder / f"{name}.diff"
            write_atomic(files[name], diff.stdout.encode(errors="surrogateescape"))

    for name, row in board.rows.items():
        waited_for(write(name, row.job))
    return files


def _print_comparison(board: Board, diffs: dict[str, Path], *, as_json: bool) -> None:
    if as_json:
        print_json(line_to_json(compared(board, diffs, time.time())))
        return
    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
    console.print()
    for line in comparison(board, console.width):
        console.print(line)
    console.print("\nChanges of each run:")
    for path in diffs.values():
        link = f"link {path.as_uri()}" if console.is_terminal else ""
        console.print(Text(f"  {path}", link))
    console.print("Take one: `git merge BRANCH`. Remove all: `cdd compare --clear`.")


def _clear(project: Project, slugs: Sequence[str]) -> ExitCode:
    removed = list[str]()

    async def remove(own: OwnTree) -> None:
        with locked(own.record.folder, own.record.slug):
            await own.trees.remove(own.place)
            await own.trees.delete_branch(own.branch)

    runs = sorted((project.root / ".cdd" / "runs").glob("*--compare-*/tree.json"))
    for folder in (path.parent for path in runs):
        if slugs and folder.name.partition("--compare-")[0] not in slugs:
            continue
        waited_for(remove(own_tree(project, folder.name)))
        remove_folder(folder)
        diff = folder_of(project.root, COMPARING) / f"{folder.name}.diff"
        diff.unlink(missing_ok=True)
        removed.append(folder.name)
    sys.stdout.write(f"Removed: {', '.join(removed) or 'nothing'}\n")
    return ExitCode.DONE
