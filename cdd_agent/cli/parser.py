"""The parser of what is typed after `cdd`."""

import difflib
import re
from argparse import SUPPRESS, ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from textwrap import dedent
from typing import Any, NoReturn

from cdd_agent.commands.terminal import (
    INTERRUPTED,
    MODEL_FLAGS,
    Argument,
    TerminalCommand,
)
from cdd_agent.commands.terminal_commands import TERMINAL_COMMANDS
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
"""Given before or after the command, like those of the model."""
_DESCRIPTION = (
    "A terminal shell in which a ticket becomes verified code. Without a command it"
    " opens the shell."
)
# as it is printed: a table
_EXAMPLES = """\
examples:
  cdd demo                         see the main job on a sample project: no key, no network
  cdd init && cdd new feature login
  cdd                              open the shell, then: /exec feature-login
  cdd --plain                      the same a line at a time: screen readers, editors, serial lines
  cdd exec feature-login --yes     the same without a screen
  cdd exec feature-login --json    one event a line, for scripts

exit codes:
  0 done   1 a step failed   2 bad input   3 not approved, or no budget left   75 come back later   130 interrupted
"""  # noqa: E501


class _Parser(ArgumentParser):
    """A parser whose error for a mistyped command names the probable one."""

    def error(self, message: str) -> NoReturn:
        if wrong := re.search(r"invalid choice: '(.*)' \(choose from (.*)\)$", message):
            near = difflib.get_close_matches(
                wrong[1], re.findall(r"'(.*?)'", wrong[2]), n=1
            )
            message += f"; did you mean {near[0]}?" if near else ""
        super().error(message)


class _CommandParser(_Parser):
    """The parser of one command, which refuses unknown arguments with its own usage."""

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
    parser = _Parser(
        "cdd",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=RawDescriptionHelpFormatter,
    )
    _add(parser.add_argument, _COMMON_FLAGS)
    parser.add_argument(
        "-V", "--version", action="version", version=f"cdd-shell {VERSION}"
    )
    parser.add_argument(
        "--plain",
        action="store_true",
        help="the shell a line at a time, without a screen",
    )
    text = (
        "open the shell where you were last, or in the session named; `list` shows"
        " which there are"
    )
    parser.add_argument("--resume", metavar="SESSION", nargs="?", const="", help=text)
    _add(parser.add_argument, MODEL_FLAGS)
    parser.set_defaults(
        project=Path(),
        debug=False,
        trust=False,
        model=None,
        api_base=None,
        record=None,
    )
    parser.set_defaults(carry_out=_open_shell, interrupted=INTERRUPTED)
    subparsers = parser.add_subparsers(
        title="commands", metavar="COMMAND", parser_class=_CommandParser
    )
    for name, command in TERMINAL_COMMANDS.items():
        examples = dedent(command.examples).strip().split("\n")
        subparser = subparsers.add_parser(
            name,
            help=command.help,
            description=f"{command.help[:1].upper()}{command.help[1:]}.",
            usage=command.usage,
            epilog="\n  ".join(["examples:", *examples]),
            formatter_class=RawDescriptionHelpFormatter,
        )
        _add(subparser.add_argument, (*_COMMON_FLAGS, *command.arguments))
        if command.one_of:
            group = subparser.add_mutually_exclusive_group()
            _add(group.add_argument, command.one_of)
        subparser.set_defaults(
            carry_out=partial(_carry_out, command), interrupted=command.interrupted
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
