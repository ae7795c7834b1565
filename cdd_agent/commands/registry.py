"""Slash commands: functions that emit events. A docstring is the long help.

The catalogue has the rest: group, one-line summary, arguments, flags and an example.
Commands work without a screen.
"""

from __future__ import annotations

import asyncio
import difflib
import shlex
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from functools import partial, wraps
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from cdd_agent.agents.line_guesses import LEAVING, shell_name
from cdd_agent.agents.meaning import LineKind, Meaning
from cdd_agent.commands.catalogue import CATALOGUE, in_groups
from cdd_agent.commands.terminal_commands import TERMINAL_COMMANDS
from cdd_agent.completion import find_matches
from cdd_agent.errors import BadInput
from cdd_agent.events.notices import Notice, NoticeKind
from cdd_agent.tickets.plan import STEP_LABEL

if TYPE_CHECKING:
    from cdd_agent.events.stream import Event
    from cdd_agent.session import Session
    from cdd_agent.tickets.store import Ticket, TicketStore

Run = Callable[..., Coroutine[object, object, None]]
OfProject = Callable[..., "Iterator[Event]"]
"""A generator of events, `(project, *arguments, **flags)`. It needs no session and no
event loop.
"""
Words = Callable[[], tuple[tuple[str, ...], ...]]


class SlashCommand(NamedTuple):
    """A command of the shell. Its flags are passed to `run` by name, as `save=True`."""

    name: str
    run: Run
    words: Words = tuple
    """Groups of words that completion offers: an argument can be one of each group."""
    any_time: bool = False
    """The command may run while something else runs."""

    @property
    def usage(self) -> str:
        """The arguments, from the catalogue."""
        return CATALOGUE[self.name].usage or ""

    @property
    def required(self) -> str:
        """The arguments that must be given."""
        return " ".join(word for word in self.usage.split() if word[0] != "[")

    @property
    def summary(self) -> str:
        """One line for lists."""
        return CATALOGUE[self.name].summary

    @property
    def help(self) -> str:
        """The docstring, as one line."""
        return " ".join((self.run.__doc__ or "").split())

    @property
    def synopsis(self) -> str:
        return f"/{self.name} {self.usage}".rstrip()

    @property
    def needs_argument(self) -> bool:
        return bool(self.required)


class WrongUsage(BadInput):
    """A command got the wrong arguments. `usage` is its name with the right ones."""

    def __init__(self, usage: str, *, hint: str = "") -> None:
        super().__init__(f"Usage: /{usage}", hint=hint)
        self.usage = usage


_OTHER_NAMES = {"quit": "exit", "q": "exit"}
"""Aliases that work and are not offered."""
_registered: dict[str, SlashCommand] = {}


def commands() -> dict[str, SlashCommand]:
    """Return all commands by name, in the order of the catalogue."""
    # late: the commands register here when they are imported
    from cdd_agent.commands import builtin  # noqa: PLC0415

    assert builtin
    return {
        name: _registered[name] for _, names in in_groups(_registered) for name in names
    }


def find_command(name: str) -> SlashCommand | None:
    """Return the command of this name, or None if there is none."""
    name = name.lower()
    return commands().get(_OTHER_NAMES.get(name, name))


def command(
    name: str,
    words: Words = tuple,
    *,
    any_time: bool = False,
) -> Callable[[Run], Run]:
    """Register a function `(session, *arguments, **flags)` as the command `/name` of
    the catalogue. The options are fields of `SlashCommand`.
    """

    def register(run: Run) -> Run:
        _registered[name] = SlashCommand(name, run, words, any_time)
        return run

    return register


def project_command(
    name: str, words: Words = tuple, *, any_time: bool = False
) -> Callable[[OfProject], OfProject]:
    """Register a generator that needs only the project as `/name`."""

    def register(function: OfProject) -> OfProject:
        @wraps(function)
        async def run(session: Session, *arguments: str, **flags: bool | str) -> None:
            await emit_as_found(session, function(session.project, *arguments, **flags))

        command(name, words, any_time=any_time)(run)
        return function

    return register


async def emit_as_found(session: Session, events: Iterator[Event]) -> None:
    """Emit each event as soon as a thread yields it."""
    while (event := await asyncio.to_thread(next, events, None)) is not None:
        session.emit(event)


def read_line(session: Session, line: str) -> Meaning:
    """Return what a line means now: a command, or a line for the active agent or for
    chat. Nothing is done for it.
    """
    command = read_command(line, session)
    # an agent answers `help` with the words that it understands
    is_for_agent = session.agent is not None and _is_help_word(line)
    if command is None or is_for_agent:
        return session.meaning(line)
    return command


def read_command(line: str, session: Session | None = None) -> Meaning | None:
    """Return the meaning of a slash command, of a word that is one in every agent, or
    of a shell command; None for other lines. With `session`, the hint names the ticket
    that an argument means.
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
    """Do what a line meant when it was sent. If its meaning has changed since, report
    that and do nothing.

    Raises `CddError`.
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
    """Do what a line means now. Raises `CddError`."""
    await carry_out(session, read_line(session, line))


def _is_help_word(text: str) -> bool:
    return shell_name(text.strip()) == "help"


def _read_slash_command(text: str, session: Session | None) -> Meaning:
    known = find_command(text[1:].partition(" ")[0])
    runs_beside = known is not None and known.any_time
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


def _hint_for_call(call: _Call, session: Session | None) -> str:
    ticket = None
    if session is not None:
        try:
            ticket = call.find_ticket(session.project.tickets)
        except BadInput as error:
            return _refusal(error)
    summary = call.command.summary
    effect = f"{summary[:1].lower()}{summary[1:]}"
    if ticket is None or ticket.slug in call.arguments:
        return f"Enter: {effect}"
    return f"Enter: /{call.command.name} {ticket.slug} · {effect}"


def _refusal(error: BadInput) -> str:
    reason = error.message if isinstance(error, WrongUsage) else error.in_a_line
    return f"Enter does nothing · {reason}"


async def _refuse(error: BadInput) -> None:
    raise error


async def _run_call(call: _Call, session: Session | None) -> None:
    assert session is not None
    await call.run(session)


async def _run_own_command(session: Session | None, command: str) -> None:
    # late: the first screen shows sooner
    from cdd_agent.commands.own_command import run_own_command  # noqa: PLC0415

    assert session is not None
    await run_own_command(session, command)


def _hint_for_unknown(name: str) -> str:
    if name in TERMINAL_COMMANDS:
        return f"Run it in a terminal, or here as `!cdd {name}`."
    near = find_matches(name, commands()).best if name else ()
    if not near:
        near = difflib.get_close_matches(name, commands(), n=2)
    if not near:
        return "Type `/help` for the commands."
    return f"Did you mean {' or '.join(f'/{other}' for other in near[:3])}?"


class _Call(NamedTuple):
    """A slash command with its arguments and flags."""

    command: SlashCommand
    arguments: Sequence[str]
    flags: Mapping[str, bool | str]

    async def run(self, session: Session) -> None:
        await self.command.run(session, *self.arguments, **self.flags)

    def find_ticket(self, tickets: TicketStore) -> Ticket | None:
        """Return the ticket that the first argument means; None if it means none.
        Raises `BadInput`.
        """
        usage = self.command.usage.split()
        if not self.arguments or usage[0] not in ("SLUG", "[SLUG]"):
            return None
        first = self.arguments[0]
        if "[STEP]" in usage and STEP_LABEL.fullmatch(first):
            return None
        return tickets.find(first, by_part=True)


def _parse_call(line: str) -> _Call:
    """Return the command of a line. Raises `BadInput`."""
    try:
        name, *typed = shlex.split(line.strip()[1:]) or [""]
    except ValueError as error:
        raise BadInput(
            f"{line.strip()}: {error}", hint="Close the quotation mark."
        ) from error
    known = find_command(name)
    if known is None:
        raise BadInput(f"There is no command /{name}", hint=_hint_for_unknown(name))
    names = known.usage.split()
    declared = [name.strip("[]") for name in names if name.startswith("[--")]
    arguments, flags = _split_flags(known, declared, typed)
    required = len(known.required.split())
    limit = len(names) - len(declared)
    if known.usage.endswith("...]"):
        limit = len(arguments)
    if len(arguments) > limit:
        hint = "Put words that belong together in quotation marks."
        raise WrongUsage(known.synopsis.removeprefix("/"), hint=hint)
    if len(arguments) < required:
        hint = f"{known.help} Example: `{CATALOGUE[known.name].example}`"
        raise WrongUsage(known.synopsis.removeprefix("/"), hint=hint)
    return _Call(known, arguments, flags)


def _split_flags(
    known: SlashCommand, flags: Sequence[str], typed: Sequence[str]
) -> tuple[list[str], dict[str, bool | str]]:
    """Return the arguments and the flags of a line. Raises `BadInput`."""
    has_value = {}
    for flag in flags:
        name, equals, _ = flag.partition("=")
        has_value[name] = bool(equals)
    arguments: list[str] = []
    options: dict[str, bool | str] = {}
    words = iter(typed)
    for word in words:
        if not flags or not word.startswith("--"):
            arguments.append(word)
            continue
        name, equals, value = word.partition("=")
        if name not in has_value or (equals and not has_value[name]):
            raise BadInput(
                f"/{known.name} has no flag {word!r}",
                hint=f"Usage: {known.synopsis}",
            )
        if has_value[name] and not equals:
            value = next(words, "")
        if has_value[name] and not value:
            raise WrongUsage(
                known.synopsis.removeprefix("/"), hint=f"{name} needs a value."
            )
        key = name.removeprefix("--").replace("-", "_")
        options[key] = value if has_value[name] else True
    return arguments, options
