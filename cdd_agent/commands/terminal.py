"""The declaration of a command of `cdd`: its examples, arguments and flags."""

from argparse import SUPPRESS, ArgumentTypeError
from typing import Any

INTERRUPTED = "The work so far is saved. Run the same command again to continue."


class Argument:
    """An argument or a flag, in the words of `argparse`. A flag may have two names."""

    def __init__(self, names: str, help_: str, **options: Any) -> None:
        self.names, self.options = names.split(), {**options, "help": help_}


def flag(name: str, help_: str) -> Argument:
    return Argument(name, help_, action="store_true")


def at_least_one(typed: str) -> int:
    """The type of an argument: a whole number from 1."""
    if not typed.isdecimal() or int(typed) < 1:
        raise ArgumentTypeError(f"{typed!r} is not a whole number from 1")
    return int(typed)


SLUG_HELP = "a ticket: its slug, unique words of it, or its path"
SLUG = Argument("slug", SLUG_HELP, metavar="SLUG")
OPTIONAL_SLUG = Argument("slug", SLUG_HELP, metavar="SLUG", nargs="?")
JSON = flag("--json", "print one JSON event a line")
# A flag after the command that is missing must not hide the same one before it.
MODEL_FLAGS = (
    Argument(
        "--model",
        "a litellm model string, script:FILE or replay:FILE",
        metavar="M",
        default=SUPPRESS,
    ),
    Argument(
        "--record",
        "record prompts and replies in FILE, for replay:FILE",
        metavar="FILE",
        default=SUPPRESS,
    ),
    Argument(
        "--api-base",
        "the address of your own model server",
        metavar="URL",
        default=SUPPRESS,
    ),
)


class TerminalCommand:
    """The arguments of a command of `cdd`, and the function that carries it out. Its
    summary is in the catalogue.
    """

    def __init__(
        self,
        examples: str,
        *arguments: Argument,
        run: str = "",
        of_project: str = "",
        one_of: tuple[Argument, ...] = (),
        usage: str | None = None,
        interrupted: str = INTERRUPTED,
    ) -> None:
        """Notes, such as special exit codes, may follow `examples`.

        `run` and `of_project` are addresses of functions, as `package.module:name`.
        `run` gets the parsed arguments and returns the exit code, or raises `CddError`.
        `of_project` is a generator of events; it gets the project and the arguments in
        their order. Flags of `one_of` exclude each other. `usage` replaces the line
        that `argparse` makes. `interrupted` is printed after Ctrl+C.
        """
        self.examples, self.arguments = examples, arguments
        self.run, self.of_project, self.one_of = run, of_project, one_of
        self.usage, self.interrupted = usage, interrupted
