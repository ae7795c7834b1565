"""How it is declared what can be typed after `cdd`: a command's examples, arguments and
flags.
"""

from argparse import SUPPRESS, ArgumentTypeError
from typing import Any

INTERRUPTED = "What was done is saved; the same command goes on from here."


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


SLUG_HELP = "a ticket's slug, a unique prefix, or a path"
SLUG = Argument("slug", SLUG_HELP, metavar="SLUG")
OPTIONAL_SLUG = Argument("slug", SLUG_HELP, metavar="SLUG", nargs="?")
JSON = flag("--json", "one event a line")
MODEL_FLAGS = (  # one that is not given leaves alone what was given before the command
    Argument(
        "--model",
        "any litellm model string, script:FILE or replay:FILE",
        metavar="M",
        default=SUPPRESS,
    ),
    Argument(
        "--record",
        "keep what the model is asked and answers, for replay:FILE",
        metavar="FILE",
        default=SUPPRESS,
    ),
    Argument(
        "--api-base",
        "the endpoint, for a server of your own",
        metavar="URL",
        default=SUPPRESS,
    ),
)


class TerminalCommand:
    """A command as it is typed after `cdd`, and the function that carries it out."""

    def __init__(
        self,
        help_: str,
        examples: str,
        *arguments: Argument,
        run: str = "",
        of_project: str = "",
        one_of: tuple[Argument, ...] = (),
        usage: str | None = None,
        interrupted: str = INTERRUPTED,
    ) -> None:
        """`examples` may be followed by notes, such as special exit codes.

        `run` and `of_project` are addresses of functions, as `package.module:name`.
        `run` gets the parsed arguments and returns the exit code, or raises `CddError`.
        `of_project` is a generator of events: it gets the project and the arguments in
        their order. Flags of `one_of` exclude each other. `usage` is for where
        `argparse` cannot make it. `interrupted` is shown after Ctrl+C.
        """
        self.help, self.examples, self.arguments = help_, examples, arguments
        self.run, self.of_project, self.one_of = run, of_project, one_of
        self.usage, self.interrupted = usage, interrupted
