"""`cdd completion`: print a completion script, or the tickets for a script."""

import sys

from cdd_agent.cli.completion_scripts.bash import bash_script
from cdd_agent.cli.completion_scripts.fish import fish_script
from cdd_agent.cli.completion_scripts.zsh import zsh_script
from cdd_agent.cli.invocation import Invocation
from cdd_agent.cli.without_screen import open_for_reading
from cdd_agent.errors import ExitCode
from cdd_agent.text.sanitize import sanitize_for_display

_SCRIPTS = {"bash": bash_script, "fish": fish_script, "zsh": zsh_script}


def completion(invocation: Invocation, *, shell: str) -> int:
    if shell == "tickets":
        _print_tickets(invocation)
    else:
        sys.stdout.write(_SCRIPTS[shell]())
    return ExitCode.DONE


def _print_tickets(invocation: Invocation) -> None:
    """Print slug, tab and summary of each ticket. Slugs with control characters are
    omitted.
    """
    for ticket in open_for_reading(invocation).tickets.list():
        slug = ticket.slug
        if slug == sanitize_for_display(slug) and slug.isprintable():
            summary = " ".join(sanitize_for_display(ticket.summary()).split())
            sys.stdout.write(f"{slug}\t{summary}\n")
