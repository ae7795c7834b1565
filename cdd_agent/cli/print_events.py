"""Prints the events of a command without a session. The shell uses the same
function.
"""

from collections.abc import Mapping, Sequence

from cdd_agent.cli.invocation import Invocation
from cdd_agent.cli.without_screen import open_for_reading, printer_for
from cdd_agent.commands.declaration import load_address
from cdd_agent.commands.slash_call import WrongUsage
from cdd_agent.errors import BadInput, ExitCode


def print_events(
    invocation: Invocation,
    *,
    address: str,
    arguments: Sequence[str],
    flags: Mapping[str, bool | str],
    as_json: bool,
) -> ExitCode:
    make_events = load_address(address)
    printer = printer_for(as_json)
    try:
        project = open_for_reading(invocation)
        for event in make_events(project, *arguments, **flags):
            printer.show(event)
    except WrongUsage as error:
        raise BadInput(f"Usage: cdd {error.usage}", hint=error.hint) from error
    finally:
        printer.close()
    return ExitCode.DONE
