"""The parser of what is typed after `cdd`."""

import difflib
import re
from argparse import SUPPRESS, ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from cdd_agent.cli.overview_help import examples_and_notes, help_width, overview
from cdd_agent.commands.catalogue import CATALOGUE
from cdd_agent.commands.terminal import (
    INTERRUPTED,
    MODEL_FLAGS,
    Argument,
    TerminalCommand,
)
from cdd_agent.commands.terminal_commands import TERMINAL_COMMANDS
from cdd_agent.completion import find_matches
from cdd_agent.version import VERSION

_COMMON_FLAGS = (
    Argument(
        "-C --project",
        "work in this folder",
        type=Path,
        metavar="DIR",
        default=SUPPRESS,
    ),
    Argument("--debug", "show tracebacks", action="store_true", default=SUPPRESS),
    Argument(
        "--trust",
        "accept the project's settings that need your trust, for this run",
        action="store_true",
        default=SUPPRESS,
    ),
)
"""Flags that may be given before or after the command, like those of the model."""
_SHELL_FLAGS = (
    Argument(
        "--plain",
        "open the shell without a screen, line by line: for screen readers, editors and"
        " serial lines",
        action="store_true",
    ),
    Argument(
        "--resume",
        "open the last session again, or the named one; `list` shows the names",
        metavar="SESSION",
        nargs="?",
        const="",
    ),
)
_HELP = Argument("-h --help", "show this help, or the help of a command")
_VERSION = Argument("-V --version", "show the version")
_OPTIONS = (_HELP, _VERSION, *_COMMON_FLAGS, *_SHELL_FLAGS, *MODEL_FLAGS)


class _Parser(ArgumentParser):
    """A parser whose error for a mistyped command names the probable one."""

    def error(self, message: str) -> NoReturn:
        if wrong := re.search(r"invalid choice: '(.*)' \(choose from (.*)\)$", message):
            message = f"There is no command {wrong[1]!r}"
            near = difflib.get_close_matches(wrong[1], TERMINAL_COMMANDS, n=1)
            near = near or list(find_matches(wrong[1], TERMINAL_COMMANDS).best)
            if near:
                message += f"; did you mean {near[0]}?"
        super().error(message)


class _MainParser(_Parser):
    """The parser of everything after `cdd`."""

    def format_help(self) -> str:
        return overview(TERMINAL_COMMANDS, _OPTIONS)

    def format_usage(self) -> str:
        return "usage: cdd [OPTIONS] [COMMAND ...]; see `cdd help`\n"


class _CommandParser(_Parser):
    """The parser of one command. It refuses unknown arguments with its own usage."""

    def parse_known_args(  # type: ignore[override]
        self,
        args: Sequence[str] | None = None,
        namespace: Namespace | None = None,
    ) -> tuple[Namespace, list[str]]:
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown


def parse_arguments(arguments: Sequence[str]) -> Namespace:
    """Return the arguments by name, with `carry_out`, the function that does what they
    ask for. Exits if they are wrong or ask for help.
    """
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:2], "--help"]
    parser = _MainParser("cdd")
    _add(parser.add_argument, (*_COMMON_FLAGS, *_SHELL_FLAGS, *MODEL_FLAGS))
    parser.add_argument(
        *_VERSION.names, action="version", version=f"cdd-shell {VERSION}"
    )
    parser.set_defaults(
        project=Path(),
        debug=False,
        trust=False,
        model=None,
        api_base=None,
        record=None,
    )
    parser.set_defaults(carry_out=_open_shell, interrupted=INTERRUPTED, command="")
    subparsers = parser.add_subparsers(metavar="COMMAND", parser_class=_CommandParser)
    for name, command in TERMINAL_COMMANDS.items():
        subparser = subparsers.add_parser(
            name,
            description=f"{CATALOGUE[name].summary}.",
            usage=command.usage,
            epilog=examples_and_notes(command.examples),
            formatter_class=partial(RawDescriptionHelpFormatter, width=help_width()),
        )
        _add(subparser.add_argument, (*_COMMON_FLAGS, *command.arguments))
        if command.one_of:
            group = subparser.add_mutually_exclusive_group()
            _add(group.add_argument, command.one_of)
        subparser.set_defaults(
            carry_out=partial(_carry_out, command),
            command=name,
            interrupted=command.interrupted,
        )
    return parser.parse_args(arguments)


def _add(add_argument: Callable[..., object], arguments: Iterable[Argument]) -> None:
    for argument in arguments:
        add_argument(*argument.names, **argument.options)


def _open_shell(options: Namespace) -> int:
    code: int = _imported("cdd_agent.cli.shell:open_shell")(options)
    return code


def _carry_out(command: TerminalCommand, options: Namespace) -> int:
    if command.run:
        code: int = _imported(command.run)(options)
    else:
        run_project_command = _imported("cdd_agent.cli.slash:run_project_command")
        code = run_project_command(command, _imported(command.of_project), options)
    return code


def _imported(address: str) -> Callable[..., Any]:
    """Import and return the function at an address, as `package.module:name`."""
    module, _, name = address.partition(":")
    # late: each command imports only what it needs itself
    function: Callable[..., Any] = getattr(import_module(module), name)
    return function
