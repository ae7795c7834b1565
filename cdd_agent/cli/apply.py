"""`cdd apply`: see `applying`."""

from argparse import Namespace

from cdd_agent.cli.applying import apply_reply
from cdd_agent.open_project import open_project


def apply(options: Namespace) -> int:
    project = open_project(
        options.root or options.project, {}, exactly=options.root is not None
    )
    return apply_reply(
        project, options.reply, dry_run=options.dry_run, as_json=options.json
    )
