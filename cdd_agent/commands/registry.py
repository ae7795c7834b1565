"""Slash commands: functions that emit events. A docstring is the long help.

The catalogue has the rest: group, one-line summary, arguments, flags and an example.
Commands work without a screen.
"""

from __future__ import annotations

import asyncio
import difflib
import shlex
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, NamedTuple

from cdd_agent.agents.words import LEAVING, shell_name
from cdd_agent.commands.catalogue import CATALOGUE, in_groups
from cdd_agent.commands.terminal_commands import TERMINAL_COMMANDS
from cdd_agent.completion import find_matches
from cdd_agent.errors import BadInput
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
    is_refused_at_work: bool = False
    """While something else runs, the command is refused, and not queued."""

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
    is_refused_at_work: bool = False,
) -> Callable[[Run], Run]:
    """Register a function `(session, *arguments, **flags)` as the command `/name` of
    the catalogue. The options are fields of `SlashCommand`.
    """

    def register(run: Run) -> Run:
        _registered[name] = SlashCommand(name, run, words, any_time, is_refused_at_work)
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


def is_refused_at_work(session: Session, line: str) -> bool:
    """True for a line that undoes or redoes changes. It is refused while something
    runs, because by its end another change is the newest.
    """
    text = line.strip()
    if text.startswith("/"):
        known = find_command(text[1:].partition(" ")[0])
        return known is not None and known.is_refused_at_work
    meaning = session.meaning(line)
    return meaning is not None and meaning.name in ("undo", "redo")


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
