"""The help on one kind of refusal: `cdd help outside-project`."""

import sys
from textwrap import fill

from cdd_agent.cli.invocation import Invocation
from cdd_agent.cli.overview_help import help_width
from cdd_agent.errors import ExitCode
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.wording.faces import Face


def print_refusal_help(invocation: Invocation, refusal_id: str) -> ExitCode:
    """Print the message, its reason and what to do, as wide as the terminal."""
    del invocation
    refusal = Refusal(Refusal.find(refusal_id))
    text = refusal.text
    width = help_width()
    paragraphs = [
        fill(text.message, width, initial_indent="  ", subsequent_indent="  "),
        fill(text.reason, width),
        fill(f"What to do: {Face.TERMINAL.name_commands(text.remedy)}", width),
    ]
    sys.stdout.write("\n\n".join([refusal.id, *paragraphs]) + "\n")
    return ExitCode.DONE
