"""`cdd verify`: the checks of a ticket's completed steps run again."""

from __future__ import annotations

from argparse import Namespace

from cdd_agent.cli.trusting import open_for_work
from cdd_agent.cli.without_screen import printer_for, reference
from cdd_agent.cli.working import Output, whoever_answers
from cdd_agent.errors import ExitCode
from cdd_agent.events.verify_events import VerifyFinished
from cdd_agent.wiring import open_commands, verify_ticket


def verify(options: Namespace) -> int:
    project = open_for_work(options, {})
    ticket = project.tickets.find(reference(options.slug))
    output = Output(printer_for(options.json))
    commands = open_commands(project, whoever_answers(output.printer))
    finished: list[VerifyFinished] = []

    async def work() -> None:
        finished.append(await verify_ticket(project, ticket, commands, output.emit))

    output.carry_out(work())
    return ExitCode.FAILED if finished[0].broken else ExitCode.DONE
