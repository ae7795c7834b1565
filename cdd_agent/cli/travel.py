"""`cdd push` and `cdd pull`: a run goes on in another copy of the project."""

from __future__ import annotations

import re
from argparse import Namespace
from typing import TYPE_CHECKING

from cdd_agent.commands.terminal import JSON, SLUG, Argument, flag, terminal_command
from cdd_agent.errors import ExitCode

if TYPE_CHECKING:
    from cdd_agent.cli.working import Output
    from cdd_agent.travel.travelling import Travel

_REMOTE = Argument(
    "remote",
    "a git remote, or an address (default: the one it last came from, else origin)",
    metavar="REMOTE",
    nargs="?",
)
_AGAIN = "Nothing is lost; the same command goes on from here."


@terminal_command(
    "push",
    """
    cdd push feature-user-auth                 # to origin
    cdd push feature-user-auth git@example.org:team/runs.git
    cdd push feature-user-auth --take-over     # replace what is there, whoever holds it

    The ticket, its state, record and checkpoints go to refs/cdd/runs/SLUG; see
    docs/travelling.md.
    """,
    SLUG,
    _REMOTE,
    flag("--take-over", "also where another run is there, or somebody else holds it"),
    JSON,
    interrupted=_AGAIN,
)
def push(options: Namespace) -> int:
    travel, output = _open(options, may_be_new=False)

    async def work() -> None:
        await travel.push(options.remote, by_word=options.take_over)

    output.carry_out(work())
    return ExitCode.DONE


@terminal_command(
    "pull",
    """
    cdd pull feature-user-auth && cdd exec feature-user-auth
    cdd pull feature-user-auth upstream --json
    cdd pull feature-user-auth --take-over         # the machine that holds it is dead

    The project's files become what they were there; where that would lose something of
    yours, nothing is done.
    """,
    Argument("slug", "the ticket's slug", metavar="SLUG"),
    _REMOTE,
    flag("--take-over", "also while somebody else holds it: that machine is dead"),
    flag("--replace", "set aside another run of the ticket that is here"),
    JSON,
    interrupted=_AGAIN,
)
def pull(options: Namespace) -> int:
    travel, output = _open(options, may_be_new=True)

    async def work() -> None:
        await travel.pull(
            options.remote, by_word=options.take_over, replace=options.replace
        )

    output.carry_out(work())
    return ExitCode.DONE


def _open(options: Namespace, *, may_be_new: bool) -> tuple[Travel, Output]:
    from cdd_agent.cli.without_screen import open_project_of, printer_for, reference
    from cdd_agent.cli.working import Output
    from cdd_agent.errors import BadInput
    from cdd_agent.tickets.store import Ticket
    from cdd_agent.wiring import open_travel

    project, output = open_project_of(options), Output(printer_for(options.json))
    try:
        ticket = project.tickets.find(reference(options.slug))
    except BadInput:
        if not may_be_new or not re.fullmatch(
            r"[A-Za-z0-9][A-Za-z0-9_-]{0,150}", options.slug
        ):
            raise
        root = project.root
        ticket = Ticket(
            options.slug, root / project.tickets.tickets_dir / options.slug, root
        )
    return open_travel(project, ticket, output.emit), output
