"""All commands of `cdd`, and the parser of what is typed after it."""

import os
import sys
from argparse import (
    SUPPRESS,
    ArgumentParser,
    Namespace,
    RawDescriptionHelpFormatter,
    _ActionsContainer,
)
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from textwrap import dedent
from typing import Any, NoReturn

from cdd_agent.commands.registry import commands
from cdd_agent.commands.terminal import (
    MODEL_FLAGS,
    OF_CDD,
    Argument,
    Run,
    TerminalForm,
    declared,
)
from cdd_agent.version import VERSION

_FIRST = ("demo", "init", "new", "list", "status", "plan", "exec", "criteria", "board")
"""In the help, which is in the order in which one gets to know them."""
_COMMON_FLAGS = (
    Argument(
        "-C --project",
        "work in this folder",
        type=Path,
        metavar="DIR",
        default=SUPPRESS,
    ),
    Argument("--debug", "show tracebacks", action="store_true", default=SUPPRESS),
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


class _Formatter(RawDescriptionHelpFormatter):
    """As wide as the terminal. `argparse` makes one for each argument, and asks
    `shutil` for the width, whose import, with three compressors, takes longer than all
    of the parsing.
    """

    def __init__(self, prog: str) -> None:
        told = os.environ.get("COLUMNS", "")
        columns = int(told) if told.isdecimal() else 0
        # there is no output, or it is no terminal
        with suppress(AttributeError, OSError, ValueError):
            columns = columns or os.get_terminal_size(sys.__stdout__.fileno()).columns  # type: ignore[union-attr]
        super().__init__(prog, width=(columns or 80) - 2)


class _Parser(ArgumentParser):
    """Its words for a mistyped command name the one that was probably meant."""

    def error(self, message: str) -> NoReturn:
        import difflib
        import re

        if wrong := re.search(r"invalid choice: '(.*)' \(choose from (.*)\)$", message):
            near = difflib.get_close_matches(
                wrong[1], re.findall(r"'(.*?)'", wrong[2]), n=1
            )
            message += f"; did you mean {near[0]}?" if near else ""
        super().error(message)


def parsed(arguments: Sequence[str]) -> Namespace:
    """The arguments by name; `carry_out` does what they ask for. Exits where they are
    wrong, or ask for help.
    """
    parser = _Parser(
        "cdd", description=_DESCRIPTION, epilog=_EXAMPLES, formatter_class=_Formatter
    )
    _add(parser, _COMMON_FLAGS)
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
    _add(parser, MODEL_FLAGS)
    parser.set_defaults(
        project=Path(), debug=False, model=None, api_base=None, record=None
    )
    parser.set_defaults(carry_out=_open_shell, interrupted=TerminalForm("").interrupted)
    later: Any = _ParserMadeLater
    added = parser.add_subparsers(
        title="commands", metavar="COMMAND", parser_class=later
    )
    shared = {
        name: known for name, known in commands().items() if known.terminal is not None
    }
    for name in dict.fromkeys((*_FIRST, *OF_CDD, *shared)):
        text = OF_CDD[name][1] if name in OF_CDD else shared[name].terminal_help
        added.add_parser(
            name,
            help=text,
            description=f"{text[:1].upper()}{text[1:]}.",
            find=partial(_find, name),
        )
    return parser.parse_args(arguments)


def _open_shell(options: Namespace) -> int:
    from cdd_agent.cli.shell import open_shell

    return open_shell(options)


def _find(name: str) -> tuple[TerminalForm, Run]:
    """A command's form and its code. What that needs is imported when it runs."""
    if name in OF_CDD:
        import_module(f"cdd_agent.cli.{OF_CDD[name][0]}")
        return declared[name]
    known = commands()[name]
    assert known.terminal is not None

    def run(options: Namespace) -> int:
        from cdd_agent.cli.slash import run_slash_command

        return run_slash_command(known, options)

    return known.terminal, run


class _ParserMadeLater:
    """A command's parser for `argparse`, which uses no more of it than this: made only
    when it is the one to parse.
    """

    def __init__(
        self, find: Callable[[], tuple[TerminalForm, Run]], **options: Any
    ) -> None:
        self._find, self._options = find, options

    def parse_known_args(
        self, arguments: Sequence[str], namespace: Namespace | None
    ) -> tuple[Namespace, list[str]]:
        form, run = self._find()
        parser = _Parser(
            usage=form.usage,
            epilog="\n  ".join(
                ["examples:", *dedent(form.examples).strip().split("\n")]
            ),
            formatter_class=_Formatter,
            **self._options,
        )
        _add(parser, (*_COMMON_FLAGS, *form.arguments))
        if form.one_of:
            _add(parser.add_mutually_exclusive_group(), form.one_of)
        parser.set_defaults(carry_out=run, interrupted=form.interrupted)
        # refuses what it does not know with its own usage
        return (
            parser.parse_args(arguments, namespace),
            [],
        )


def _add(parser: _ActionsContainer, arguments: Iterable[Argument]) -> None:
    for argument in arguments:
        parser.add_argument(*argument.names, **argument.options)
