"""A slash command that can be typed after `cdd`, too: carried out without a screen, a
session or an event loop.
"""

from argparse import Namespace

from cdd_agent.cli.without_screen import open_project_of, printer_for, reference
from cdd_agent.commands.registry import OfProject, WrongUsage
from cdd_agent.commands.terminal import OPTIONAL_SLUG, SLUG, TerminalCommand
from cdd_agent.errors import BadInput, ExitCode


def run_project_command(
    command: TerminalCommand, events_of: OfProject, options: Namespace
) -> ExitCode:
    """Print the events of a command. It gets what was typed in the order of its
    arguments, and flags by their names.
    """
    typed, words, flags = vars(options), list[str](), dict[str, bool | str]()
    for argument in command.arguments:
        name = argument.names[-1].removeprefix("--").replace("-", "_")
        match typed[name]:
            case "" if argument.options.get("nargs") == "?":
                pass  # as if it was not there
            case True if name != "json":
                flags[name] = True
            case str(word) if argument.names[-1].startswith("--"):
                flags[name] = word
            case str(word):
                words.append(
                    reference(word) if argument in (SLUG, OPTIONAL_SLUG) else word
                )
            case list(several):
                words += several
    printer = printer_for(typed.get("json", False))
    try:
        for event in events_of(open_project_of(options), *words, **flags):
            printer.show(event)
    except WrongUsage as error:
        raise BadInput(f"Usage: cdd {error.usage}", hint=error.hint) from error
    finally:
        printer.close()
    return ExitCode.DONE
