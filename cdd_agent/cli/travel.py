"""`cdd push` and `cdd pull`: continue a run in another copy of the project."""

from __future__ import annotations

from argparse import Namespace

from cdd_agent.cli.without_screen import open_project_of, printer_for, reference
from cdd_agent.cli.working import Output
from cdd_agent.errors import BadInput, ExitCode
from cdd_agent.tickets.slugs import is_folder_name
from cdd_agent.travel.travelling import Travel
from cdd_agent.wiring import open_travel


def push(options: Namespace) -> int:
    travel, output = _open(options, may_be_new=False)

    async def work() -> None:
        await travel.push(options.remote, by_word=options.take_over)

    output.carry_out(work())
    return ExitCode.DONE


def pull(options: Namespace) -> int:
    travel, output = _open(options, may_be_new=True)

    async def work() -> None:
        await travel.pull(
            options.remote, by_word=options.take_over, replace=options.replace
        )

    output.carry_out(work())
    return ExitCode.DONE


def _open(options: Namespace, *, may_be_new: bool) -> tuple[Travel, Output]:
    project, output = open_project_of(options), Output(printer_for(options.json))
    try:
        ticket = project.tickets.find(reference(options.slug))
    except BadInput:
        if not may_be_new or not is_folder_name(options.slug):
            raise
        ticket = project.tickets.new_ticket(options.slug)
    return open_travel(project, ticket, output.emit), output
