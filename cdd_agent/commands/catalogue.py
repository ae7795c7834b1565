"""All commands of cdd, by name."""

from collections.abc import Iterator, Mapping

from cdd_agent.commands.declaration import Command, Group
from cdd_agent.commands.declarations.changes import CHANGES
from cdd_agent.commands.declarations.context import CONTEXT
from cdd_agent.commands.declarations.setup import SETUP
from cdd_agent.commands.declarations.shell import SHELL
from cdd_agent.commands.declarations.tickets import TICKETS
from cdd_agent.commands.declarations.work import WORK

CATALOGUE: dict[str, Command] = {
    command.name: command
    for command in (*TICKETS, *WORK, *CHANGES, *CONTEXT, *SETUP, *SHELL)
}


def terminal_commands() -> dict[str, Command]:
    return {name: each for name, each in CATALOGUE.items() if each.terminal}


def in_groups(commands: Mapping[str, Command]) -> Iterator[tuple[Group, list[Command]]]:
    for group in Group:
        members = [each for each in commands.values() if each.group is group]
        if members:
            yield group, members
