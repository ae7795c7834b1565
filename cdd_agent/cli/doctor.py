"""`cdd doctor`: see `examining`."""

from argparse import Namespace

from cdd_agent.commands.terminal import terminal_command


@terminal_command("doctor", "cdd doctor")
def doctor(options: Namespace) -> int:
    from cdd_agent.cli.examining import examine

    return examine(
        options.project,
        {name: getattr(options, name) for name in ("model", "api_base")},
    )
