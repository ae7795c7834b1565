"""`cdd doctor`: see `examining`."""

from argparse import Namespace

from cdd_agent.cli.examining import examine


def doctor(options: Namespace) -> int:
    return examine(
        options.project,
        {name: getattr(options, name) for name in ("model", "api_base")},
    )
