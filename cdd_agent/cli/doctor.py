"""`cdd doctor`: see `examining`."""

from argparse import Namespace

from cdd_agent.cli.examining import examine
from cdd_agent.open_project import accept_once, leave_out


def doctor(options: Namespace) -> int:
    return examine(
        options.project,
        {name: getattr(options, name) for name in ("model", "api_base")},
        decide=accept_once if options.trust else leave_out,
    )
