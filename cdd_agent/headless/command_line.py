"""A slash command, carried out from the command line."""

from collections.abc import Iterable

from cdd_agent.commands.registry import WrongUsage, commands
from cdd_agent.errors import BadInput, ExitCode
from cdd_agent.frontend import Nobody
from cdd_agent.headless.showing import Output, printer_for
from cdd_agent.session import Project
from cdd_agent.wiring import open_session


def run_command_line(project: Project, name: str, arguments: Iterable[str], *, as_json: bool) -> ExitCode:
    """Carry out a slash command."""
    output = Output(printer_for(as_json))
    session = open_session(project, Nobody(), output.emit)
    try:
        output.carry_out(commands()[name].run(session, *arguments))
    except WrongUsage as error:
        raise BadInput(f"Usage: cdd {error.usage}", hint=error.hint) from error
    return ExitCode.DONE
