"""The words that complete a line after `cdd`, from the commands' declarations."""

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from cdd_agent.cli.parser import COMMON_FLAGS, OPTIONS
from cdd_agent.commands.catalogue import terminal_commands
from cdd_agent.commands.declaration import (
    Command,
    Front,
    Parameter,
    ValueKind,
    load_address,
)


class Source(StrEnum):
    """A source of values that a script reads while completing. No declared word begins
    with `@`.
    """

    TICKETS = "@tickets"
    FILES = "@files"
    FOLDERS = "@folders"


_SOURCES = {
    ValueKind.TICKET: Source.TICKETS,
    ValueKind.SESSION: Source.TICKETS,
    ValueKind.PATH: Source.FOLDERS,
    ValueKind.FILE: Source.FILES,
}


class FlagWords(NamedTuple):
    names: tuple[str, ...]
    note: str
    is_switch: bool
    value_name: str
    values: tuple[str, ...]


class CommandWords(NamedTuple):
    name: str
    """Empty for a line without a command."""
    summary: str
    flags: tuple[FlagWords, ...]
    places: tuple[tuple[str, ...], ...]
    """The words and sources of each positional argument."""
    repeats: bool = False
    """True if the last argument may be repeated."""


def read_commands() -> list[CommandWords]:
    """Return the words of every command, including `help`. The first entry is the line
    without a command.
    """
    commands = [_read_command(each) for each in terminal_commands().values()]
    names = tuple(each.name for each in commands)
    help_words = CommandWords("help", "Explain a command", (), (names,))
    start = CommandWords("", "", _read_flags(OPTIONS), ((*names, "help"),))
    return [start, *commands, help_words]


def flags_with_values(commands: Iterable[CommandWords]) -> list[str]:
    names: set[str] = set()
    for command in commands:
        for flag in command.flags:
            if not flag.is_switch:
                names.update(flag.names)
    return sorted(names)


def _read_command(command: Command) -> CommandWords:
    declared = command.parameters_in(Front.TERMINAL)
    arguments = [each for each in declared if not each.is_flag]
    flags = [each for each in (*COMMON_FLAGS, *declared) if each.is_flag]
    places = tuple(_place(arguments[number:]) for number in range(len(arguments)))
    repeats = bool(arguments) and arguments[-1].repeats
    return CommandWords(
        command.name, command.summary, _read_flags(flags), places, repeats
    )


def _read_flags(flags: Iterable[Parameter]) -> tuple[FlagWords, ...]:
    return tuple(
        FlagWords(
            tuple(flag.names.split()),
            flag.note,
            flag.is_switch,
            flag.value_name,
            _values(flag),
        )
        for flag in flags
    )


def _place(arguments: Iterable[Parameter]) -> tuple[str, ...]:
    """Return the values of the first argument, and of later ones that may take its
    place because earlier ones are optional.
    """
    values: list[str] = []
    for argument in arguments:
        values += _values(argument)
        if argument.is_required:
            break
    return tuple(dict.fromkeys(values))


def _values(parameter: Parameter) -> tuple[str, ...]:
    if parameter.choices:
        return parameter.choices
    words: tuple[str, ...] = ()
    if parameter.offers:
        offers = load_address(parameter.offers)
        words = offers() if callable(offers) else offers
    source = _SOURCES.get(parameter.kind)
    return words if source is None else (source.value, *words)
