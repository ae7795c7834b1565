"""`cdd verify`: run the checks of a ticket's completed steps again; with `--strength`,
with small faults in the steps' lines.
"""

from __future__ import annotations

from cdd_agent.cli.invocation import Invocation
from cdd_agent.cli.trusting import open_for_work
from cdd_agent.cli.without_screen import printer_for
from cdd_agent.cli.working import Output, frontend_for
from cdd_agent.errors import BadInput, ExitCode
from cdd_agent.events.verify_events import VerifyFinished
from cdd_agent.wiring.projects import open_commands
from cdd_agent.wiring.runs import measure_ticket, verify_ticket


def verify(
    invocation: Invocation,
    *,
    slug: str,
    strength: bool,
    faults: int | None,
    seconds: int | None,
    as_json: bool,
) -> int:
    limits = {}
    if faults is not None:
        limits["strength_faults"] = faults
    if seconds is not None:
        limits["strength_seconds"] = seconds
    if limits and not strength:
        raise BadInput("--faults and --seconds need --strength")
    project = open_for_work(invocation, limits, as_json=as_json)
    ticket = project.tickets.find(slug)
    output = Output(printer_for(as_json))
    commands = open_commands(project, frontend_for(output.printer))
    if strength:
        output.carry_out(measure_ticket(project, ticket, commands, output.emit))
        return ExitCode.DONE
    finished: list[VerifyFinished] = []

    async def work() -> None:
        finished.append(await verify_ticket(project, ticket, commands, output.emit))

    output.carry_out(work())
    return ExitCode.FAILED if finished[0].broken else ExitCode.DONE
