"""`cdd exec --worktree` and `cdd land`: a run in a tree of its own, and bringing it over."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from cdd_agent.commands.terminal import JSON, SLUG, flag, terminal_command
from cdd_agent.errors import ExitCode

if TYPE_CHECKING:
    from pathlib import Path

    from cdd_agent.session import Project
    from cdd_agent.travel.own_tree import OwnTree


@terminal_command(
    "land",
    """
    cdd exec feature-user-auth --worktree && cdd land feature-user-auth
    cdd land feature-user-auth --rebase            # the run's commits on top of yours, no merge commit

    The result is made and checked in a tree beside yours. A conflict, or a check that fails, changes nothing:
    exit code 1. See docs/worktrees.md.
    """,
    SLUG,
    flag("--rebase", "put the run's commits on top of your branch, instead of merging"),
    flag("--yes", "approve everything (`approval: auto`)"),
    JSON,
    interrupted="Nothing is lost; the same command goes on from here.",
)
def land(options: Namespace) -> int:
    from cdd_agent.cli.without_screen import Output, printer_for, reference, whoever_is_there
    from cdd_agent.engine.whereabouts import load_own_tree
    from cdd_agent.errors import BadInput
    from cdd_agent.frontend import Nobody
    from cdd_agent.printer import JsonPrinter
    from cdd_agent.wiring import open_landing, open_own_tree, open_project

    project = open_project(options.project, {"approval": "auto"} if options.yes else {})
    ticket = project.tickets.find(reference(options.slug))
    output = Output(printer_for(options.json))
    frontend = Nobody() if isinstance(output.printer, JsonPrinter) else whoever_is_there(output.printer)

    async def work() -> None:
        own = await open_own_tree(project, ticket)
        if load_own_tree(own.record.folder) is None:
            raise BadInput(
                f"{ticket.slug} has no tree of its own", hint=f"`cdd exec {ticket.slug} --worktree` makes one."
            )
        await _bring_in(project, own)
        with _locked(own.record.folder, ticket.slug):
            landing = open_landing(project, own, frontend, output.emit)
            with _locked(landing.record.folder, ticket.slug) if own.place.exists() else nullcontext():
                await landing.land(rebase=options.rebase)

    output.carry_out(work())
    return ExitCode.DONE


def in_own_tree(
    project: Project, slug: str, flags: Mapping[str, Any], *, as_json: bool, variant: str = "", base: str | None = None
) -> tuple[Project, str]:
    """The project in the tree that is the run's own, which is made where it is not there, and the ticket's slug.
    Raises `CddError`."""
    from cdd_agent.cli.without_screen import Output, printer_for
    from cdd_agent.fleet.place import TicketJob
    from cdd_agent.wiring import open_own_tree, open_project

    ticket = project.tickets.find(slug)
    output = Output(printer_for(as_json))
    made = list["OwnTree"]()

    async def work() -> None:
        own = await open_own_tree(project, ticket, TicketJob(ticket.slug, variant).name)
        own.record.prepare()
        await _bring_in(project, own)
        with _locked(own.record.folder, own.record.slug):
            await own.make(output.emit, base)
            await own.expect_own_packages(own.place, output.emit)
        made.append(own)

    output.carry_out(work())
    return open_project(made[0].root, {**flags, "commit": "step"}, exactly=True), ticket.slug


async def _bring_in(project: Project, own: OwnTree) -> None:
    """What another machine has done of the run, where this one died before it could."""
    if (own.record.folder / "cluster.json").exists():
        from cdd_agent.cluster.desk import bring_in

        await bring_in(project, own)


@contextmanager
def _locked(folder: Path, slug: str) -> Iterator[None]:
    from cdd_agent.engine.lock import TicketLock
    from cdd_agent.travel.travelling import utc_now

    lock = TicketLock.take(folder, slug, utc_now().replace(microsecond=0).isoformat())
    try:
        yield
    finally:
        lock.release()
