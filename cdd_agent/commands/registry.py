"""The slash commands, and the meaning of lines. Commands work without a screen."""

from __future__ import annotations

import difflib
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cdd_agent.agents.line_guesses import LEAVING, shell_name
from cdd_agent.agents.meaning import LineKind, Meaning
from cdd_agent.commands.added_commands import ADDED
from cdd_agent.commands.catalogue import CATALOGUE
from cdd_agent.commands.declaration import Command
from cdd_agent.commands.slash_call import SlashCall, WrongUsage, read_call, split_line
from cdd_agent.errors import BadInput
from cdd_agent.events.notices import Notice, NoticeKind
from cdd_agent.text.completion import find_matches
from cdd_agent.tickets.slugs import SeveralTickets

if TYPE_CHECKING:
    from cdd_agent.session.session import Session

_OTHER_NAMES = {"quit": "exit", "q": "exit"}
"""Aliases that are not offered."""


def commands() -> dict[str, Command]:
    """Return all slash commands by name, in the catalogue's order, with those of other
    packages last.
    """
    builtin = {name: each for name, each in CATALOGUE.items() if each.slash}
    return builtin | ADDED.loaded


def find_command(name: str) -> Command | None:
    name = name.lower()
    return commands().get(_OTHER_NAMES.get(name, name))


def read_line(session: Session, line: str) -> Meaning:
    """Return the meaning of a line: a command, or a line for the active agent or
    chat.
    """
    command = read_command(line, session)
    # An agent answers `help` with its own words.
    is_for_agent = session.agent is not None and _is_help_word(line)
    if command is None or is_for_agent:
        return session.meaning(line)
    return command


def read_command(line: str, session: Session | None = None) -> Meaning | None:
    """Return the meaning of a slash command, a shell command, or a word that is a
    command everywhere; None for other lines. With `session`, the hint names the ticket
    of an argument.
    """
    text = line.strip()
    if text.startswith("!"):
        return Meaning(
            LineKind.SHELL,
            "shell",
            "Enter: run this shell command",
            partial(_run_own_command, session, line.lstrip()[1:]),
            about=text,
            line=line,
        )
    if text.lower() in LEAVING:
        text = "/exit"
    elif _is_help_word(text):
        text = "/help"
    if not text.startswith("/"):
        return None
    meaning = _read_slash_command(text, session)
    return replace(meaning, about=text, line=line)


async def carry_out(session: Session, meaning: Meaning) -> None:
    """Act on a line by the meaning that was sent. If the meaning has changed since,
    only report that. Raises `CddError`.
    """
    current = meaning
    if not meaning.runs_beside:
        current = read_line(session, meaning.line)
    if current != meaning:
        text = f"Not sent, because its meaning has changed: {meaning.line}"
        session.emit(Notice(text, kind=NoticeKind.NOT_DONE))
    elif current.is_for_agent:
        await session.carry_out(current)
    else:
        await current.act()


async def handle(session: Session, line: str) -> None:
    """Act on a line by its current meaning. Raises `CddError`."""
    await carry_out(session, read_line(session, line))


def _is_help_word(text: str) -> bool:
    return shell_name(text.strip()) == "help"


def _read_slash_command(text: str, session: Session | None) -> Meaning:
    name = text[1:].partition(" ")[0]
    command = find_command(name)
    if command is None and ADDED.is_expected(name):
        hint = f"Enter: run /{name} as soon as its package is loaded"
        act = partial(_run_when_loaded, text, session)
        return Meaning(LineKind.SLASH, name, hint, act)
    runs_beside = command is not None and command.any_time
    try:
        call = _parse_call(text)
    except BadInput as error:
        hint = "Type the name of a command" if text == "/" else _refusal(error)
        act = partial(_refuse, error)
        return Meaning(LineKind.SLASH, "/", hint, act, runs_beside=runs_beside)
    return Meaning(
        LineKind.SLASH,
        call.command.name,
        _hint_for_call(call, session),
        partial(_run_call, call, session),
        runs_beside=runs_beside,
    )


def _hint_for_call(call: SlashCall, session: Session | None) -> str:
    ticket = None
    if session is not None:
        try:
            ticket = call.find_ticket(session.project.tickets)
        except BadInput as error:
            return _refusal(error)
    if call.change:
        return f"Enter: {call.command.name} {call.change}"
    summary = call.command.summary
    effect = f"{summary[:1].lower()}{summary[1:]}"
    if ticket is None or ticket.slug in call.arguments:
        return f"Enter: {effect}"
    return f"Enter: /{call.command.name} {ticket.slug} · {effect}"


def _refusal(error: BadInput) -> str:
    match error:
        case WrongUsage():
            reason = error.message
        case SeveralTickets():
            reason = error.short_reason
        case _:
            # A narrow window drops the last part.
            parts = (error.message.rstrip("."), error.hint)
            reason = " · ".join(part for part in parts if part)
    return f"Enter does nothing · {reason}"


async def _refuse(error: BadInput) -> None:
    raise error


async def _run_call(call: SlashCall, session: Session | None) -> None:
    assert session is not None
    await call.run(session)


async def _run_when_loaded(text: str, session: Session | None) -> None:
    assert session is not None
    await ADDED.finish_loading(session.emit)
    await _parse_call(text).run(session)


async def _run_own_command(session: Session | None, command: str) -> None:
    # late: the first screen shows sooner
    from cdd_agent.commands.own_command import run_own_command  # noqa: PLC0415

    assert session is not None
    await run_own_command(session, command)


def _parse_call(line: str) -> SlashCall:
    """Raise `BadInput` for an unknown command or wrong arguments."""
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
