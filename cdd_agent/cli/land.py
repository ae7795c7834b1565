"""`cdd exec --worktree` and `cdd land`: run in a separate worktree, and merge the
run.
"""

from __future__ import annotations

import os
from typing import Any

from msgspec.structs import replace

from cdd_agent.cli.invocation import Invocation
from cdd_agent.cli.trusting import open_for_work
from cdd_agent.cli.without_screen import printer_for
from cdd_agent.cli.working import Output, frontend_for
from cdd_agent.engine.whereabouts import load_own_tree
from cdd_agent.errors import ExitCode
from cdd_agent.fleet.local_runs import folder_of
from cdd_agent.fleet.order import RunOrder
from cdd_agent.session.open_project import Project, in_tree
from cdd_agent.travel.own_tree import OwnTree
from cdd_agent.wiring.runs import open_landing, open_own_tree


def land(
    invocation: Invocation, *, slug: str, rebase: bool, yes: bool, as_json: bool
) -> int:
    settings = {"approval": "auto"} if yes else {}
    project = open_for_work(invocation, settings, as_json=as_json)
    ticket = project.tickets.find(slug)
    output = Output(printer_for(as_json))
    frontend = frontend_for(output.printer)

    async def work() -> None:
        own_tree = await open_own_tree(project, ticket)
        landing = open_landing(project, own_tree, frontend, output.emit)
        await landing.land(rebase=rebase)

    output.carry_out(work())
    return ExitCode.DONE


def in_own_tree(
    project: Project, order: RunOrder, output: Output
) -> tuple[Project, str]:
    """Return the project in the run's worktree, which is created if necessary, and the
    ticket's slug. Raises `CddError`.
    """
    ticket = project.tickets.find(order.ticket)
    name = replace(order, ticket=ticket.slug).job.name
    if load_own_tree(folder_of(project.root, name)) is None:
        ticket.read_plan()  # without a plan, no tree is made
    own_trees = list[OwnTree]()

    async def work() -> None:
        own_tree = await open_own_tree(project, ticket, name)
        # This process serves only the run.
        os.environ.update(await own_tree.prepare(output.emit, order.base))
        own_trees.append(own_tree)

    output.carry_out(work())
    # Paths in the settings are relative to the user's root, not the run's.
    settings = dict[str, Any]()
    for kind in ("script:", "replay:"):
        if project.config.model and project.config.model.startswith(kind):
            path = project.config.model.removeprefix(kind)
            settings["model"] = f"{kind}{project.root / path}"
    if project.config.record:
        settings["record"] = str(project.root / project.config.record)
    return in_tree(project, own_trees[0].root, commit="step", **settings), ticket.slug
