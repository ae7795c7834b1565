"""How it is declared what can be typed after `cdd`: a command's examples, arguments and
flags.
"""

from argparse import SUPPRESS, ArgumentTypeError, Namespace
from collections.abc import Callable
from typing import Any

Run = Callable[[Namespace], int]


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


class TerminalForm:
    """A command as it is typed after `cdd`."""

    def __init__(
        self,
        examples: str,
        *arguments: Argument,
        one_of: tuple[Argument, ...] = (),
        usage: str | None = None,
        interrupted: str = (
            "What was done is saved; the same command goes on from here."
        ),
    ) -> None:
        """`examples` may be followed by notes, such as exit codes of its own; flags of
        `one_of` exclude each other. `usage` is how it is written where `argparse`
        cannot tell; `interrupted` is what whoever ends it is told.
        """
        self.examples, self.arguments, self.one_of = examples, arguments, one_of
        self.usage, self.interrupted = usage, interrupted


OF_CDD = {
    "demo": ("demo", "see the main job on a sample project"),
    "plan": ("plan", "make, show or check a ticket's plan"),
    "exec": ("runs", "carry out a ticket's plan to its end"),
    "undo": ("runs", "go back to before a ticket's last step, or the one named"),
    "redo": ("runs", "undo the last undo of a ticket"),
    "diff": ("runs", "show what a ticket's last step, or the one named, changed"),
    "push": ("travel", "send a ticket's run to a git remote, to go on elsewhere"),
    "pull": ("travel", "take a ticket's run from a git remote, to go on here"),
    "land": (
        "land",
        (
            "bring a run over from its own tree: merge, check, and only then count it"
            " landed"
        ),
    ),
    "board": (
        "board",
        (
            "show the runs of this project: how far each is, what it took, what it"
            " waits for"
        ),
    ),
    "compare": (
        "compare",
        "carry tickets out by several models beside each other, and compare",
    ),
    "run": ("run", "carry out an action plan: a list of actions in YAML"),
    "apply": ("apply", "apply one saved reply of a model, all of it or nothing"),
    "context": ("context", "print the project context that a model would get"),
    "serve": ("serve", "open the shell in a browser"),
    "doctor": ("doctor", "show what is set up and what is missing"),
}
"""The commands of `cdd` that are no slash commands, or not the same: the module of
`cli` that declares each, and its help.
"""
declared: dict[str, tuple[TerminalForm, Run]] = {}
"""Those of them whose modules are imported."""


def terminal_command(
    name: str, examples: str, *arguments: Argument, **others: Any
) -> Callable[[Run], Run]:
    """Make a function the command `cdd NAME`, of this `TerminalForm`: it gets the
    arguments by name and returns the exit code, or raises `CddError`.
    """

    def declare(run: Run) -> Run:
        declared[name] = TerminalForm(examples, *arguments, **others), run
        return run

    return declare
