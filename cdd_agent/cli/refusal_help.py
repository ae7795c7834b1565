"""The help on a refusal: `cdd help outside-project`."""

import sys
from textwrap import fill

from cdd_agent.cli.invocation import Invocation
from cdd_agent.cli.overview_help import help_width
from cdd_agent.errors import ExitCode
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.wording.faces import Face


def print_refusal_help(invocation: Invocation, refusal_id: str) -> ExitCode:
    del invocation
    refusal = Refusal(Refusal.find(refusal_id))
    text = refusal.text
    remedy = Face.TERMINAL.name_commands(text.remedy)
    paragraphs = [
        refusal.id,
        _fill(text.message, indent="  "),
        _fill(text.reason),
        _fill(f"What to do: {remedy}"),
    ]
    sys.stdout.write("\n\n".join(filter(None, paragraphs)) + "\n")
    return ExitCode.DONE


def _fill(text: str, indent: str = "") -> str:
    return fill(
        text,
        help_width(),
        initial_indent=indent,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )
