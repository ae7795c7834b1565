"""`cdd exec --worktree` and `cdd land`: a run in a tree of its own, and bringing it
over.
"""

from __future__ import annotations

import os
from argparse import Namespace
from typing import Any

from cdd_agent.cli.trusting import open_for_work
from cdd_agent.cli.without_screen import printer_for, reference
from cdd_agent.cli.working import Output, whoever_is_there
from cdd_agent.engine.whereabouts import load_own_tree
from cdd_agent.errors import ExitCode
from cdd_agent.fleet.known import folder_of
from cdd_agent.fleet.place import TicketJob
from cdd_agent.frontend import Nobody
from cdd_agent.open_project import Project, in_tree
from cdd_agent.printer import JsonPrinter
from cdd_agent.travel.own_tree import OwnTree
from cdd_agent.wiring import open_landing, open_own_tree


def land(options: Namespace) -> int:
    flags = {"approval": "auto"} if options.yes else {}
    project = open_for_work(options, flags)
    ticket = project.tickets.find(reference(options.slug))
    output = Output(printer_for(options.json))
    frontend = (
        Nobody()
        if isinstance(output.printer, JsonPrinter)
        else whoever_is_there(output.printer)
    )

    async def work() -> None:
        own = await open_own_tree(project, ticket)
        await open_landing(project, own, frontend, output.emit).land(
            rebase=options.rebase
        )

    output.carry_out(work())
    return ExitCode.DONE


def in_own_tree(
    project: Project,
    slug: str,
    *,
    as_json: bool,
    variant: str = "",
    base: str | None = None,
) -> tuple[Project, str]:
    """The project in the tree that is the run's own, which is made where it is not
    there, and the ticket's slug. Raises `CddError`.
    """
    ticket, output = project.tickets.find(slug), Output(printer_for(as_json))
    name = TicketJob(ticket.slug, variant).name
    if load_own_tree(folder_of(project.root, name)) is None:
        ticket.read_plan()  # without one no tree is made
    made = list["OwnTree"]()

    async def work() -> None:
        own = await open_own_tree(project, ticket, name)
        # this process is here for nothing but the run
        os.environ.update(await own.prepare(output.emit, base))
        made.append(own)

    output.carry_out(work())
    # what is named from the person's root; that of the run is another one
    here = dict[str, Any]()
    for kind in ("script:", "replay:"):
        if project.config.model and project.config.model.startswith(kind):
            here["model"] = (
                f"{kind}{project.root / project.config.model.removeprefix(kind)}"
            )
    if project.config.record:
        here["record"] = str(project.root / project.config.record)
    return in_tree(project, made[0].root, commit="step", **here), ticket.slug
