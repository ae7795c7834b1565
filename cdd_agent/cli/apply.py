"""`cdd apply`: see `applying`."""

from argparse import Namespace
from pathlib import Path

from cdd_agent.commands.terminal import Argument, flag, terminal_command


@terminal_command(
    "apply",
    """
    cdd apply reply.md --dry-run
    cdd apply reply.md --root ~/src/shop --json
    pbpaste | cdd apply -

    Whole files in code blocks, search/replace blocks, unified diffs, `*** Begin Patch`
    and lists of actions are understood, also mixed; see docs/replies.md.
    Exit codes: 0 applied, 1 an edit failed and nothing was written, 2 bad input.
    """,
    Argument(
        "reply", "the reply as text; - reads it from standard input", metavar="REPLY"
    ),
    Argument(
        "--root",
        "the folder that no edit leaves (default: the project)",
        type=Path,
        metavar="DIR",
    ),
    flag("--dry-run", "write nothing; show the changes as a diff"),
    flag(
        "--json", "created, modified, deleted, failed, explanation as one JSON object"
    ),
    interrupted="Nothing was left half done.",
)
def apply(options: Namespace) -> int:
    from cdd_agent.cli.applying import apply_reply
    from cdd_agent.open_project import open_project

    project = open_project(
        options.root or options.project, {}, exactly=options.root is not None
    )
    return apply_reply(
        project, options.reply, dry_run=options.dry_run, as_json=options.json
    )
