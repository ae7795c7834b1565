"""Slash commands: a function with a name; its docstring is its help, what it tells are
events.

Help, usage errors and completion (`completing.py`) are made from the registry. Commands
work without a screen.
"""

from __future__ import annotations

import asyncio
import difflib
import shlex
from collections.abc import Callable, Coroutine, Iterator, Sequence
from functools import wraps
from typing import TYPE_CHECKING, NamedTuple

from cdd_agent.commands.terminal_commands import TERMINAL_COMMANDS
from cdd_agent.errors import BadInput

if TYPE_CHECKING:
    from cdd_agent.events.stream import Event
    from cdd_agent.session import Session

Run = Callable[..., Coroutine[object, object, None]]
OfProject = Callable[..., "Iterator[Event]"]
"""A generator `(project, *arguments, **flags)`: what it yields is told. It needs no
session and no event loop.
"""
Words = Callable[[], tuple[tuple[str, ...], ...]]


class SlashCommand(NamedTuple):
    """`usage` names the arguments, optional ones in brackets, the last one with dots if
    it may be there many times. A flag, as `[--save]`, may be typed anywhere, and is
    given to the function by its name, as `save=True`; one with a value is written
    `[--slug=SLUG]`.

    `SLUG` completes to ticket slugs, `MODEL` to the models that were found on this
    computer.
    """

    name: str
    usage: str
    run: Run
    words: Words = tuple
    """Groups of words: an argument can be one of each group. Completion offers them."""
    any_time: bool = False
    """It disturbs nothing that runs, so it need not wait for its end."""

    @property
    def help(self) -> str:
        """Its docstring, as one line."""
        return " ".join((self.run.__doc__ or "").split())

    @property
    def synopsis(self) -> str:
        return f"/{self.name} {self.usage}".rstrip()


class WrongUsage(BadInput):
    """A command was given too little, too much or something else. `usage` is how it is
    written, in whichever face.
    """

    def __init__(self, usage: str, *, hint: str = "") -> None:
        super().__init__(f"Usage: /{usage}", hint=hint)
        self.usage = usage


_OTHER_NAMES = {"quit": "exit"}
"""Names that are understood and not offered."""
_registered: dict[str, SlashCommand] = {}


def commands() -> dict[str, SlashCommand]:
    """Return all commands by name."""
    # late: the commands register here when they are imported
    from cdd_agent.commands import builtin  # noqa: PLC0415

    assert builtin
    return _registered


def find_command(name: str) -> SlashCommand | None:
    """Return the command of this name, or None if there is none."""
    name = name.lower()
    return commands().get(_OTHER_NAMES.get(name, name))


def command(
    name: str,
    usage: str = "",
    words: Words = tuple,
    *,
    any_time: bool = False,
) -> Callable[[Run], Run]:
    """Register a function `(session, *arguments, **flags)` as `/name`. `any_time`: also
    while something else runs.
    """

    def register(run: Run) -> Run:
        _registered[name] = SlashCommand(name, usage, run, words, any_time)
        return run

    return register


def project_command(
    name: str, usage: str = "", words: Words = tuple, *, any_time: bool = False
) -> Callable[[OfProject], OfProject]:
    """Register a generator that needs no more than the project as `/name`."""

    def register(function: OfProject) -> OfProject:
        @wraps(function)
        async def run(session: Session, *arguments: str, **flags: bool | str) -> None:
            await tell_as_found(session, function(session.project, *arguments, **flags))

        command(name, usage, words, any_time=any_time)(run)
        return function

    return register


async def tell_as_found(session: Session, events: Iterator[Event]) -> None:
    """Tell each event as it comes; finding it is the work of a thread."""
    while (event := await asyncio.to_thread(next, events, None)) is not None:
        session.emit(event)


def can_run_now(line: str) -> bool:
    """Whether a line need not wait for the end of what runs: a command that looks, or
    that is for what comes later.
    """
    name = line.strip().partition(" ")[0]
    known = find_command(name[1:]) if name.startswith("/") else None
    return known is not None and known.any_time


async def handle(session: Session, line: str) -> None:
    """Carry out one line: a slash command, a command of the person's own, or words for
    the active agent, or for chat.

    Raises `CddError`.
    """
    match line.lstrip()[:1]:
        case "/":
            _, call = _called(line)
            await call(session)
        case "!":
            # late: the first screen shows sooner
            from cdd_agent.commands.own_command import run_own_command  # noqa: PLC0415

            await run_own_command(session, line.lstrip()[1:])
        case _:
            await session.say(line)


def hint_for(line: str) -> str:
    """The effect of Enter on a slash command, or on a command of the person's own, in
    words; empty for other lines.
    """
    if line.lstrip().startswith("!"):
        return "Enter runs that as a command of your own"
    if not line.lstrip().startswith("/") or line.strip() == "/":
        return ""
    try:
        known, _ = _called(line)
    except WrongUsage as error:
        return f"Enter does nothing. {error.message}"
    except BadInput as error:
        return f"Enter does nothing. {error.message}. {error.hint}".rstrip()
    return f"Enter: {known.help[:1].lower()}{known.help[1:]}"


def _hint_for_unknown(name: str) -> str:
    if name in TERMINAL_COMMANDS:
        return f"In a terminal: `cdd {name}`."
    near = [other for other in commands() if name and other.startswith(name.lower())]
    if not near:
        near = difflib.get_close_matches(name, commands(), n=2)
    if not near:
        return "/help lists them."
    return f"Did you mean {' or '.join(f'/{other}' for other in near)}?"


def _called(line: str) -> tuple[SlashCommand, Run]:
    """Return the command of a line, and its function with the arguments of the line.
    Raises `BadInput`.
    """
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
    flags = [name.strip("[]") for name in names if name.startswith("[--")]
    arguments, options = _split_flags(known, flags, typed)
    required = sum(not name.startswith("[") for name in names)
    most = len(arguments) if known.usage.endswith("...]") else len(names) - len(flags)
    if not required <= len(arguments) <= most:
        many = len(arguments) > most
        hint = (
            "Put words that belong together in quotation marks."
            if many
            else known.help.partition("\n")[0]
        )
        raise WrongUsage(known.synopsis.removeprefix("/"), hint=hint)
    return known, lambda session: known.run(session, *arguments, **options)


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
                f"There is no {word!r} of /{known.name}",
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
