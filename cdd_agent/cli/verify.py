"""`cdd verify`: the checks of a ticket's completed steps run again, or with
`--strength` with small faults in the lines of its steps.
"""

from __future__ import annotations

from argparse import Namespace

from cdd_agent.cli.trusting import open_for_work
from cdd_agent.cli.without_screen import printer_for, reference
from cdd_agent.cli.working import Output, whoever_answers
from cdd_agent.errors import BadInput, ExitCode
from cdd_agent.events.verify_events import VerifyFinished
from cdd_agent.wiring import measure_ticket, open_commands, verify_ticket


def verify(options: Namespace) -> int:
    limits = {"strength_faults": options.faults, "strength_seconds": options.seconds}
    given = {key: value for key, value in limits.items() if value is not None}
    if given and not options.strength:
        raise BadInput("--faults and --seconds need --strength")
    project = open_for_work(options, given)
    ticket = project.tickets.find(reference(options.slug))
    output = Output(printer_for(options.json))
    commands = open_commands(project, whoever_answers(output.printer))
    if options.strength:
        output.carry_out(measure_ticket(project, ticket, commands, output.emit))
        return ExitCode.DONE
    finished: list[VerifyFinished] = []

    async def work() -> None:
        finished.append(await verify_ticket(project, ticket, commands, output.emit))

    output.carry_out(work())
    return ExitCode.FAILED if finished[0].broken else ExitCode.DONE
