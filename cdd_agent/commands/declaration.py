"""The declaration of a command with its two fronts: `/exec` in the shell, and `cdd
exec` in a terminal.

Lists, parsers, completions and help are derived from it. It consists of named tuples,
because `cdd --help` must not wait for a library.
"""

from collections.abc import Callable
from enum import Enum, StrEnum
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from cdd_agent.collector import paused_collector

INTERRUPTED = "The work so far is saved. Run the same command again to continue."


class Group(StrEnum):
    """Groups of commands, in the order of lists."""

    TICKETS = "Tickets"
    WORK = "Work"
    CHANGES = "Changes"
    CONTEXT = "Context and model"
    SETUP = "Set up"
    SHELL = "Shell"
    ADDED = "From other packages"


class Front(Enum):
    SHELL = "shell"
    TERMINAL = "terminal"


class ValueKind(Enum):
    """The kind of a value. It decides how the value is read and completed."""

    TEXT = "text"
    SWITCH = "switch"
    """A flag without a value."""
    TICKET = "ticket"
    STEP = "step"
    """A step's number in the plan."""
    MODEL = "model"
    SESSION = "session"
    PIN = "pin"
    """A file after `+` or `-`, a path, or words."""
    PATH = "path"
    """A folder."""
    FILE = "file"
    """A file's name, or `-` for standard input. It stays text."""
    NUMBER = "number"
    COUNT = "count"
    """A whole number from 1."""


class Times(Enum):
    """The number of values of an argument, as in `argparse`."""

    ONCE = None
    OPTIONAL = "?"
    ANY = "*"
    SOME = "+"


class Parameter(NamedTuple):
    """An argument or a flag. A flag may have two names: `-C --project`."""

    names: str
    note: str
    kind: ValueKind = ValueKind.TEXT
    metavar: str = ""
    """The word for the value in usage lines; by default the name in capitals."""
    times: Times = Times.ONCE
    choices: tuple[str, ...] = ()
    """The only values that a terminal accepts."""
    offers: str = ""
    """The address of words for completion, or of a function that returns them."""
    default: object = None
    key: str = ""
    """The value's name in functions, if it differs from the parameter's."""
    only: Front | None = None
    """The only front with this parameter; None: both fronts."""

    @property
    def is_flag(self) -> bool:
        return self.names.startswith("-")

    @property
    def is_switch(self) -> bool:
        return self.kind is ValueKind.SWITCH

    @property
    def is_required(self) -> bool:
        return not self.is_flag and self.times in (Times.ONCE, Times.SOME)

    @property
    def repeats(self) -> bool:
        return self.times in (Times.ANY, Times.SOME)

    @property
    def name(self) -> str:
        """The last name, such as `--project`."""
        return self.names.split()[-1]

    @property
    def value_key(self) -> str:
        """The value's name in the command's functions."""
        return self.key or self.name.removeprefix("--").replace("-", "_")

    @property
    def value_name(self) -> str:
        return self.metavar or self.value_key.upper()

    @property
    def in_usage(self) -> str:
        if self.is_switch:
            return f"[{self.name}]"
        if self.is_flag:
            return f"[{self.name}={self.value_name}]"
        dots = "..." if self.repeats else ""
        if self.is_required:
            return f"{self.value_name}{dots}"
        return f"[{self.value_name}{dots}]"


Function = Callable[..., Any]


class SlashFront(NamedTuple):
    help: str
    """Sentences for `/help NAME`."""
    example: str
    run: str | Function = ""
    """The address of a coroutine function `(session, *arguments, **flags)`. If empty,
    the command's events are emitted.
    """
    any_time: bool = False
    """True if the command may run during a turn."""


class TerminalFront(NamedTuple):
    examples: str
    run: str = ""
    """The address of a function `(invocation, **values)` that returns the exit code. If
    empty, the command's events are printed.
    """
    opens_shell: bool = False
    """True if the command opens the shell, with the slash command as its first line."""
    notes: str = ""
    exit_codes: tuple[tuple[int, str], ...] = ()
    """Exit codes with a meaning specific to this command."""
    exclusive: tuple[str, ...] = ()
    usage: str | None = None
    """Replaces the usage line of `argparse`."""
    interrupted: str = INTERRUPTED
    """Printed after Ctrl+C."""


class Command(NamedTuple):
    name: str
    group: Group
    summary: str
    """An imperative line for lists, short enough for 60 columns."""
    parameters: tuple[Parameter, ...] = ()
    slash: SlashFront | None = None
    terminal: TerminalFront | None = None
    events: str | Function = ""
    """The address of a generator of events, `(project, *arguments, **flags)`, which
    needs no session and no event loop.
    """

    def parameters_in(self, front: Front) -> tuple[Parameter, ...]:
        return tuple(each for each in self.parameters if each.only in (None, front))

    @property
    def arguments(self) -> tuple[Parameter, ...]:
        in_shell = self.parameters_in(Front.SHELL)
        return tuple(each for each in in_shell if not each.is_flag)

    @property
    def flags(self) -> dict[str, Parameter]:
        in_shell = self.parameters_in(Front.SHELL)
        return {each.name: each for each in in_shell if each.is_flag}

    @property
    def usage(self) -> str:
        parameters = (*self.arguments, *self.flags.values())
        return " ".join([self.name, *(each.in_usage for each in parameters)])

    @property
    def synopsis(self) -> str:
        return f"/{self.usage}"

    @property
    def required(self) -> str:
        return " ".join(each.in_usage for each in self.arguments if each.is_required)

    @property
    def any_time(self) -> bool:
        return self.slash is not None and self.slash.any_time


def argument(
    name: str,
    metavar: str,
    note: str,
    kind: ValueKind = ValueKind.TEXT,
    times: Times = Times.ONCE,
    *,
    offers: str = "",
    only: Front | None = None,
) -> Parameter:
    return Parameter(name, note, kind, metavar, times, offers=offers, only=only)


def switch(
    names: str, note: str, *, key: str = "", only: Front | None = None
) -> Parameter:
    return Parameter(names, note, ValueKind.SWITCH, default=False, key=key, only=only)


def option(
    names: str,
    metavar: str,
    note: str,
    kind: ValueKind = ValueKind.TEXT,
    *,
    choices: tuple[str, ...] = (),
    default: object = None,
    key: str = "",
    only: Front | None = Front.TERMINAL,
) -> Parameter:
    return Parameter(
        names, note, kind, metavar, choices=choices, default=default, key=key, only=only
    )


def load_address(address: str | Function) -> Any:
    """Import and return the value at an address such as `package.module:name`.
    Functions of other packages are returned unchanged.
    """
    if not isinstance(address, str):
        return address
    module, _, name = address.partition(":")
    with paused_collector():
        return getattr(import_module(module), name)


def read_reference(typed: str) -> str:
    """Return a ticket typed in a terminal. A path is relative to the current folder."""
    is_path = "/" in typed or typed in (".", "..")
    return str(Path(typed).resolve()) if is_path and Path(typed).exists() else typed


TICKET_NOTE = "a ticket: its slug or its path"
TICKET = argument("slug", "SLUG", TICKET_NOTE, ValueKind.TICKET)
OPTIONAL_TICKET = TICKET._replace(times=Times.OPTIONAL)
TICKET_IN_TERMINAL = TICKET._replace(only=Front.TERMINAL)
OPTIONAL_TICKET_IN_SHELL = OPTIONAL_TICKET._replace(only=Front.SHELL)
JSON = switch(
    "--json",
    "print one JSON event a line, and nothing else",
    key="as_json",
    only=Front.TERMINAL,
)
YES = switch(
    "--yes",
    "approve all changes of files, but no commands off the list",
    only=Front.TERMINAL,
)
MODEL_FLAGS = (
    option("--model", "M", "a litellm model string, script:FILE or replay:FILE"),
    option(
        "--record",
        "FILE",
        "record prompts and replies in FILE, for replay:FILE",
        ValueKind.FILE,
    ),
    option("--api-base", "URL", "the address of your own model server"),
)
SAVE = switch("--save", "keep the choice for this project, in .cdd/config.yaml")
MAX_ATTEMPTS = option(
    "--max-attempts",
    "N",
    "attempts for each step, including the first",
    ValueKind.NUMBER,
)
REPEAT_TO_CONTINUE = "Nothing is lost. Run the same command again to continue."


def described_json(note: str) -> Parameter:
    """Return the flag `--json` with a note about its output."""
    return JSON._replace(note=note)
