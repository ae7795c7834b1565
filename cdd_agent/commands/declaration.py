"""The declaration of a command, with its two fronts: `/exec` in the shell, and `cdd
exec` in a terminal.

Everything that lists, parses, completes or explains commands is derived from it. It is
made of named tuples, because `cdd --help` must not wait for a library.
"""

from collections.abc import Callable
from enum import Enum, StrEnum
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

INTERRUPTED = "The work so far is saved. Run the same command again to continue."


class Group(StrEnum):
    """The use of commands, in the order of lists."""

    TICKETS = "Tickets"
    WORK = "Work"
    CHANGES = "Changes"
    CONTEXT = "Context and model"
    SETUP = "Set up"
    SHELL = "Shell"
    ADDED = "From other packages"


class Front(Enum):
    """The place where a command is typed."""

    SHELL = "shell"
    TERMINAL = "terminal"


class ValueKind(Enum):
    """The meaning of a value. It decides how the value is read and completed."""

    TEXT = "text"
    SWITCH = "switch"
    """A flag without a value."""
    TICKET = "ticket"
    STEP = "step"
    """The number of a step, as the plan writes it."""
    MODEL = "model"
    SESSION = "session"
    PIN = "pin"
    """A file with `+` or `-` before it, a path, or words."""
    PATH = "path"
    """A folder."""
    FILE = "file"
    """The name of a file, or `-` for standard input. It stays text."""
    NUMBER = "number"
    COUNT = "count"
    """A whole number from 1."""


class Times(Enum):
    """The number of values of an argument, in the words of `argparse`."""

    ONCE = None
    OPTIONAL = "?"
    ANY = "*"
    SOME = "+"


class Parameter(NamedTuple):
    """An argument or a flag of a command. A flag may have two names: `-C --project`."""

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
    """The name of the value in functions, if it is not that of the parameter."""
    only: Front | None = None
    """The only front that has this parameter; None if both have it."""

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
        """The last name, as `--project`."""
        return self.names.split()[-1]

    @property
    def value_key(self) -> str:
        """The name of the value in the functions of the command."""
        return self.key or self.name.removeprefix("--").replace("-", "_")

    @property
    def value_name(self) -> str:
        """The word for the value in usage lines."""
        return self.metavar or self.value_key.upper()

    @property
    def in_usage(self) -> str:
        """The parameter in the usage line of the shell."""
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
    """The command in the shell."""

    help: str
    """Sentences for `/help NAME`."""
    example: str
    run: str | Function = ""
    """The address of a coroutine function `(session, *arguments, **flags)`. If it is
    empty, the events of the command are emitted.
    """
    any_time: bool = False
    """The command may run while something else runs."""


class TerminalFront(NamedTuple):
    """The command in a terminal."""

    examples: str
    run: str = ""
    """The address of a function `(invocation, **values)` that returns the exit code. If
    it is empty, the events of the command are printed.
    """
    opens_shell: bool = False
    """The shell is opened, with the slash command as its first line."""
    notes: str = ""
    exit_codes: tuple[tuple[int, str], ...] = ()
    """The exit codes that mean something specific to this command."""
    exclusive: tuple[str, ...] = ()
    """Flags of which only one may be given."""
    usage: str | None = None
    """Replaces the usage line that `argparse` makes."""
    interrupted: str = INTERRUPTED
    """Printed after Ctrl+C."""


class Command(NamedTuple):
    """A command with its arguments and flags, and its fronts."""

    name: str
    group: Group
    summary: str
    """An imperative line for lists. It fits beside the name at 60 columns."""
    parameters: tuple[Parameter, ...] = ()
    slash: SlashFront | None = None
    terminal: TerminalFront | None = None
    events: str | Function = ""
    """The address of a generator of events, `(project, *arguments, **flags)`. It needs
    no session and no event loop.
    """

    def parameters_in(self, front: Front) -> tuple[Parameter, ...]:
        return tuple(each for each in self.parameters if each.only in (None, front))

    @property
    def arguments(self) -> tuple[Parameter, ...]:
        in_shell = self.parameters_in(Front.SHELL)
        return tuple(each for each in in_shell if not each.is_flag)

    @property
    def flags(self) -> dict[str, Parameter]:
        """The flags of the slash command, by name."""
        in_shell = self.parameters_in(Front.SHELL)
        return {each.name: each for each in in_shell if each.is_flag}

    @property
    def usage(self) -> str:
        """The name, the arguments and the flags of the slash command."""
        parameters = (*self.arguments, *self.flags.values())
        return " ".join([self.name, *(each.in_usage for each in parameters)])

    @property
    def synopsis(self) -> str:
        return f"/{self.usage}"

    @property
    def required(self) -> str:
        """The arguments that the slash command must have."""
        return " ".join(each.in_usage for each in self.arguments if each.is_required)

    @property
    def any_time(self) -> bool:
        """True if the slash command may run while something else runs."""
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
    """Declare a flag without a value."""
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
    """Declare a flag with a value."""
    return Parameter(
        names, note, kind, metavar, choices=choices, default=default, key=key, only=only
    )


def load_address(address: str | Function) -> Any:
    """Import and return the value at an address, as `package.module:name`. A function
    of another package is no address, and is returned.
    """
    if not isinstance(address, str):
        return address
    module, _, name = address.partition(":")
    return getattr(import_module(module), name)


def read_reference(typed: str) -> str:
    """Return a ticket that was typed in a terminal. A path is relative to the current
    folder.
    """
    is_path = "/" in typed or typed in (".", "..")
    return str(Path(typed).resolve()) if is_path and Path(typed).exists() else typed


TICKET_NOTE = "a ticket: its slug, unique words of it, or its path"
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
    "--yes", "approve everything, as `approval: auto` does", only=Front.TERMINAL
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
SAVE = switch("--save", "keep it for this project, in .cdd/config.yaml")
MAX_ATTEMPTS = option(
    "--max-attempts",
    "N",
    "attempts for each step, including the first",
    ValueKind.NUMBER,
)
REPEAT_TO_CONTINUE = "Nothing is lost. Run the same command again to continue."


def described_json(note: str) -> Parameter:
    """Return the flag `--json` with a note about what is printed."""
    return JSON._replace(note=note)
