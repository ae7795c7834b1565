"""The slash commands, and what a line in the shell means. Commands work without a
screen.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from cdd_agent.agents.words import LEAVING, shell_name
from cdd_agent.commands.added_commands import ADDED
from cdd_agent.commands.catalogue import CATALOGUE
from cdd_agent.commands.declaration import Command
from cdd_agent.commands.slash_call import SlashCall, WrongUsage, read_call, split_line
from cdd_agent.completion import find_matches
from cdd_agent.errors import BadInput

if TYPE_CHECKING:
    from cdd_agent.session import Session
    from cdd_agent.tickets.store import TicketStore

_OTHER_NAMES = {"quit": "exit", "q": "exit"}
"""Aliases that work and are not offered."""


def commands() -> dict[str, Command]:
    """Return all slash commands by name, in the order of the catalogue. Those of other
    packages come last.
    """
    builtin = {name: each for name, each in CATALOGUE.items() if each.slash}
    return builtin | ADDED.loaded


def find_command(name: str) -> Command | None:
    """Return the slash command of this name, or None if there is none."""
    name = name.lower()
    return commands().get(_OTHER_NAMES.get(name, name))


def leaves(line: str) -> bool:
    """True if the line leaves the shell, in every agent and while something runs."""
    return _as_command(line).strip().lower() == "/exit"


def asks_for_help(line: str) -> bool:
    """True if the line is the word `help`, or what other programs call it, or `/help`
    alone.
    """
    return _as_command(line).strip().lower() == "/help"


def _as_command(line: str) -> str:
    """Return `/exit` or `/help` for a line that is a word for it, else the line."""
    text = line.strip().lower()
    if text in LEAVING or text in ("/quit", "/q"):
        return "/exit"
    return "/help" if shell_name(text) == "help" else line


def can_run_now(line: str) -> bool:
    """True if a line may run while something else runs."""
    name = _as_command(line).strip().partition(" ")[0]
    known = find_command(name[1:]) if name.startswith("/") else None
    return known is not None and known.any_time


async def handle(session: Session, line: str) -> None:
    """Carry out one line: a slash command, a shell command of the user, or text for the
    active agent or for chat.

    Raises `CddError`.
    """
    # an agent answers `help` with what it understands
    if leaves(line) or (session.agent is None and asks_for_help(line)):
        line = _as_command(line)
    match line.lstrip()[:1]:
        case "/":
            name, _ = split_line(line)
            if find_command(name) is None and not ADDED.is_complete:
                await ADDED.finish_loading(session.emit)
            await _parse_call(line).run(session)
        case "!":
            # late: the first screen shows sooner
            from cdd_agent.commands.own_command import run_own_command  # noqa: PLC0415

            await run_own_command(session, line.lstrip()[1:])
        case _:
            await session.say(line)


def hint_for(line: str, tickets: TicketStore | None = None) -> str:
    """Return the effect of Enter on a slash command, on a word that is one, or on a
    shell command; empty for other lines. With `tickets`, the hint names the ticket that
    an argument means.
    """
    line = _as_command(line)
    if line.lstrip().startswith("!"):
        return "Enter: run this shell command"
    if line.strip() == "/":
        return "Type the name of a command"
    if not line.lstrip().startswith("/"):
        return ""
    try:
        call = _parse_call(line)
        ticket = None if tickets is None else call.find_ticket(tickets)
    except WrongUsage as error:
        return f"Enter does nothing · {error.message}"
    except BadInput as error:
        return f"Enter does nothing · {error.in_a_line}"
    summary = call.command.summary
    effect = f"{summary[:1].lower()}{summary[1:]}"
    if ticket is None or ticket.slug in call.arguments:
        return f"Enter: {effect}"
    return f"Enter: /{call.command.name} {ticket.slug} · {effect}"


def _parse_call(line: str) -> SlashCall:
    """Return the command of a line. Raises `BadInput`."""
    name, words = split_line(line)
    command = find_command(name)
    if command is None:
        raise BadInput(f"There is no command /{name}", hint=_hint_for_unknown(name))
    return read_call(command, words)


def _hint_for_unknown(name: str) -> str:
    if name in CATALOGUE:
        return f"Run it in a terminal, or here as `!cdd {name}`."
    if reason := ADDED.explain_missing(name):
        return reason
    near = find_matches(name, commands()).best if name else ()
    if not near:
        near = difflib.get_close_matches(name, commands(), n=2)
    if not near:
        return "Type `/help` for the commands."
    return f"Did you mean {' or '.join(f'/{other}' for other in near[:3])}?"
