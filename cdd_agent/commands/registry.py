"""Slash commands: a function with a name; its docstring is its help, what it tells are events.

Help, usage errors and completion (`completing.py`) are made from the registry. Commands work without a screen.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, NamedTuple

from cdd_agent.commands.terminal import TerminalForm
from cdd_agent.errors import BadInput

if TYPE_CHECKING:
    from cdd_agent.session import Session

_ONLY_IN_A_TERMINAL = ("apply", "demo", "doctor", "run")
Run = Callable[..., Coroutine[object, object, None]]
Words = Callable[[], tuple[tuple[str, ...], ...]]


class SlashCommand(NamedTuple):
    """`usage` names the arguments, optional ones in brackets, the last one with dots if it may be there many times;
    `SLUG` completes to ticket slugs, `MODEL` to the models that were found on this computer."""

    name: str
    usage: str
    run: Run
    words: Words = tuple
    """Groups of words: an argument can be one of each group. Completion offers them."""
    terminal: TerminalForm | None = None
    """How the same is typed after `cdd`, where it can be; `cdd --help` shows `terminal_help`."""
    terminal_help: str = ""

    @property
    def help(self) -> str:
        return self.run.__doc__ or ""

    @property
    def synopsis(self) -> str:
        return f"/{self.name} {self.usage}".rstrip()


class WrongUsage(BadInput):
    """A command was given too little, too much or something else. `usage` is how it is written, in whichever face."""

    def __init__(self, usage: str, *, hint: str = "") -> None:
        super().__init__(f"Usage: /{usage}", hint=hint)
        self.usage = usage


_registered: dict[str, SlashCommand] = {}


def commands() -> dict[str, SlashCommand]:
    """All commands by name. The built-in ones are imported when they are first asked for: the shell shows sooner."""
    from cdd_agent.commands import builtin

    assert builtin
    return _registered


def command(
    name: str, usage: str = "", words: Words = tuple, terminal: TerminalForm | None = None, terminal_help: str = ""
) -> Callable[[Run], Run]:
    """Register a function `(session, *arguments)` as `/name`; with a `terminal` form as `cdd name`, too, where it gets
    its arguments in the order in which the form has them."""

    def register(run: Run) -> Run:
        _registered[name] = SlashCommand(name, usage, run, words, terminal, terminal_help)
        return run

    return register


async def handle(session: Session, line: str) -> None:
    """Carry out one line: a slash command, a command of the person's own, or words for the active agent, or for chat.

    Raises `CddError`.
    """
    match line.lstrip()[:1]:
        case "/":
            known, arguments = _command_of(line)
            await known.run(session, *arguments)
        case "!":
            from cdd_agent.commands.own_command import run_own_command  # not for the shell's first screen

            await run_own_command(session, line.lstrip()[1:])
        case _:
            await session.say(line)


def hint_for(line: str) -> str:
    """What Enter does with a slash command, or with a command of the person's own; empty for other lines."""
    if line.lstrip().startswith("!"):
        return "Enter runs that as a command of your own"
    if not line.lstrip().startswith("/") or line.strip() == "/":
        return ""
    try:
        known, _ = _command_of(line)
    except WrongUsage as error:
        return f"Enter does nothing. {error.message}"
    except BadInput as error:
        return f"Enter does nothing. {error.message}. {error.hint}".rstrip()
    return f"Enter: {known.help[:1].lower()}{known.help[1:]}"


def _command_of(line: str) -> tuple[SlashCommand, list[str]]:
    """The command that a line calls, with its arguments."""
    import shlex

    try:
        name, *arguments = shlex.split(line.strip()[1:]) or [""]
    except ValueError as error:
        raise BadInput(f"{line.strip()}: {error}", hint="Close the quotation mark.") from error
    known = commands().get(name.lower())
    if known is None:
        import difflib

        near = [f"/{other}" for other in commands() if name and other.startswith(name.lower())]
        near = near or [f"/{other}" for other in difflib.get_close_matches(name, commands(), n=2)]
        hint = f"Did you mean {' or '.join(near)}?" if near else "/help lists them."
        hint = f"In a terminal: `cdd {name}`." if name in _ONLY_IN_A_TERMINAL else hint
        raise BadInput(f"There is no command /{name}", hint=hint)
    required = sum(not word.startswith("[") for word in known.usage.split())
    most = len(arguments) if known.usage.endswith("...]") else len(known.usage.split())
    if not required <= len(arguments) <= most:
        many = len(arguments) > most
        hint = "Put words that belong together in quotation marks." if many else known.help.partition("\n")[0]
        raise WrongUsage(known.synopsis.removeprefix("/"), hint=hint)
    return known, arguments
