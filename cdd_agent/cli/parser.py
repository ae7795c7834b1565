"""Parses the words after `cdd`, as declared by the commands."""

import difflib
import shlex
from argparse import (
    SUPPRESS,
    ArgumentParser,
    ArgumentTypeError,
    Namespace,
    RawDescriptionHelpFormatter,
)
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from cdd_agent.cli.invocation import Invocation, ParsedCommand
from cdd_agent.cli.overview_help import command_notes, help_width, overview
from cdd_agent.commands.catalogue import terminal_commands
from cdd_agent.commands.declaration import (
    INTERRUPTED,
    MODEL_FLAGS,
    Command,
    Front,
    Parameter,
    Times,
    ValueKind,
    option,
    read_reference,
    switch,
)
from cdd_agent.pattern import Pattern
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.text.completion import find_matches
from cdd_agent.version import VERSION

COMMON_FLAGS = (
    option("-C --project", "DIR", "work in this folder", ValueKind.PATH),
    switch("--debug", "show tracebacks"),
    switch(
        "--trust", "accept the project's settings that need your trust, for this run"
    ),
)
"""Flags that may precede or follow the command, like those of the model."""
_RESUME = Parameter(
    "--resume",
    "open the last session again, or the named one; `list` shows the names",
    metavar="SESSION",
    times=Times.OPTIONAL,
)
_SHELL_FLAGS = (
    switch(
        "--plain",
        "open the shell without a screen, line by line: for screen readers, editors and"
        " serial lines",
    ),
    _RESUME,
)
_HELP = switch("-h --help", "show this help, or the help of a command")
_VERSION = switch("-V --version", "show the version")
_OPEN_SHELL = "cdd_agent.cli.shell:open_shell"
_OPEN_SHELL_WITH = "cdd_agent.cli.shell:open_shell_with"
_EXPLAIN = "cdd_agent.cli.refusal_help:print_refusal_help"
_PRINT_EVENTS = "cdd_agent.cli.print_events:print_events"
OPTIONS = (_HELP, _VERSION, *COMMON_FLAGS, *_SHELL_FLAGS, *MODEL_FLAGS)


_WRONG_COMMAND = Pattern(r"argument COMMAND: invalid choice: '(.*)' \(choose from")


class _Parser(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        if wrong := _WRONG_COMMAND.match(message):
            message = f"There is no command {wrong[1]!r}"
            names = terminal_commands()
            near = difflib.get_close_matches(wrong[1], names, n=1)
            if wrong[1] and not near:
                near = list(find_matches(wrong[1], names).best)
            if near:
                message += f"; did you mean {near[0]}?"
        super().error(message)


class _MainParser(_Parser):
    def format_help(self) -> str:
        return overview(terminal_commands(), OPTIONS)

    def format_usage(self) -> str:
        return "usage: cdd [OPTIONS] [COMMAND ...]; see `cdd help`\n"


class _CommandParser(_Parser):
    """Refuses unknown arguments with the command's own usage."""

    def parse_known_args(  # type: ignore[override]
        self,
        args: Sequence[str] | None = None,
        namespace: Namespace | None = None,
    ) -> tuple[Namespace, list[str]]:
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return parsed, unknown


def parse_arguments(arguments: Sequence[str]) -> ParsedCommand:
    """Return the typed command. Exits after wrong arguments or help."""
    if arguments[:1] == ["help"]:
        if len(arguments) == 2 and Refusal.find(arguments[1]) is not None:
            values = {"refusal_id": arguments[1]}
            return ParsedCommand(_EXPLAIN, Invocation(), values, INTERRUPTED)
        arguments = [*arguments[1:2], "--help"]
    parser = _MainParser("cdd")
    for parameter in (*COMMON_FLAGS, *_SHELL_FLAGS, *MODEL_FLAGS):
        _add(parser.add_argument, parameter)
    parser.add_argument(
        *_VERSION.names.split(), action="version", version=f"cdd-shell {VERSION}"
    )
    parser.set_defaults(command=None)
    subparsers = parser.add_subparsers(metavar="COMMAND", parser_class=_CommandParser)
    for command in terminal_commands().values():
        _add_command(subparsers.add_parser, command)
    return _make_parsed(vars(parser.parse_args(arguments)))


def _add_command(add_parser: Callable[..., ArgumentParser], command: Command) -> None:
    front = command.terminal
    assert front is not None
    parser = add_parser(
        command.name,
        description=f"{command.summary}.",
        usage=front.usage,
        epilog=command_notes(front),
        formatter_class=partial(RawDescriptionHelpFormatter, width=help_width()),
    )
    exclusive = []
    for parameter in (*COMMON_FLAGS, *command.parameters_in(Front.TERMINAL)):
        if parameter.name in front.exclusive:
            exclusive.append(parameter)
        else:
            _add(parser.add_argument, parameter)
    if exclusive:
        group = parser.add_mutually_exclusive_group()
        for parameter in exclusive:
            _add(group.add_argument, parameter)
    parser.set_defaults(command=command)


def _add(add_argument: Callable[..., object], parameter: Parameter) -> None:
    options: dict[str, Any] = {"help": parameter.note}
    key = parameter.value_key
    # A missing flag after the command must not hide the same flag before it.
    is_common = key in Invocation._fields
    if parameter.is_flag:
        options["dest"] = key
        options["default"] = SUPPRESS if is_common else parameter.default
    if parameter.is_switch:
        options["action"] = "store_true"
        add_argument(*parameter.names.split(), **options)
        return
    if parameter.metavar:
        options["metavar"] = parameter.metavar
    if parameter.choices:
        options["choices"] = parameter.choices
    if parameter.times is not Times.ONCE:
        options["nargs"] = parameter.times.value
    if parameter.is_flag and parameter.times is Times.OPTIONAL:
        options["const"] = ""
    if parameter.kind in _READERS:
        options["type"] = _READERS[parameter.kind]
    names = parameter.names.split() if parameter.is_flag else [key]
    add_argument(*names, **options)


def _read_count(typed: str) -> int:
    if not typed.isdecimal() or int(typed) < 1:
        raise ArgumentTypeError(f"{typed!r} is not a whole number from 1")
    return int(typed)


_READERS: Mapping[ValueKind, Callable[[str], object]] = {
    ValueKind.TICKET: read_reference,
    ValueKind.PATH: Path,
    ValueKind.NUMBER: int,
    ValueKind.COUNT: _read_count,
}
"""Other kinds of values are text."""


def _make_parsed(typed: dict[str, Any]) -> ParsedCommand:
    command: Command | None = typed.pop("command")
    resume = typed.pop("resume")
    common = {key: typed.pop(key) for key in Invocation._fields if key in typed}
    invocation = Invocation(**common)
    if command is None or command.terminal is None:
        values = {"resume": resume}
        return ParsedCommand(_OPEN_SHELL, invocation, values, INTERRUPTED)
    front = command.terminal
    address, values = front.run, typed
    if front.opens_shell:
        address = _OPEN_SHELL_WITH
        values = {"line": _slash_line(command, typed)}
    elif not front.run:
        arguments, flags = _split_values(command, typed)
        address = _PRINT_EVENTS
        values = {
            "address": command.events,
            "arguments": arguments,
            "flags": flags,
            "as_json": typed.get("as_json", False),
        }
    return ParsedCommand(address, invocation, values, front.interrupted)


def _split_values(
    command: Command, typed: Mapping[str, Any]
) -> tuple[list[str], dict[str, bool | str]]:
    """Return the values as for a slash command: arguments in order, and flags by
    name.
    """
    arguments: list[str] = []
    flags: dict[str, bool | str] = {}
    for parameter in command.parameters_in(Front.TERMINAL):
        value = typed.get(parameter.value_key)
        if parameter.is_flag:
            if value and parameter.value_key != "as_json":
                flags[parameter.value_key] = value
        elif isinstance(value, list):
            # `argparse` also returns an empty list, for `--` as the last word.
            arguments += value
        elif value or (value == "" and not _is_optional_ticket(parameter)):
            arguments.append(value)
    return arguments, flags


def _is_optional_ticket(parameter: Parameter) -> bool:
    """True if an empty text, such as an unset variable of a script, means no ticket."""
    return parameter.kind is ValueKind.TICKET and not parameter.is_required


def _slash_line(command: Command, typed: Mapping[str, Any]) -> str:
    arguments, flags = _split_values(command, typed)
    words = [f"/{command.name}", *map(shlex.quote, arguments)]
    for name, flag in command.flags.items():
        if flags.get(flag.value_key):
            words.append(name)
    return " ".join(words)
