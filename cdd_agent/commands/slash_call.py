"""A typed slash command, checked against its declaration."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from cdd_agent.commands.declaration import (
    Command,
    Group,
    Parameter,
    ValueKind,
    load_address,
)
from cdd_agent.errors import BadInput
from cdd_agent.threads import in_thread
from cdd_agent.tickets.plan import STEP_LABEL
from cdd_agent.tickets.slugs import EnoughOfSlug, is_change_name

if TYPE_CHECKING:
    from cdd_agent.events.stream import Event
    from cdd_agent.session.session import Session
    from cdd_agent.tickets.store import Ticket, TicketStore

QUOTE_HINT = "Put words that belong together in quotation marks."


class WrongUsage(BadInput):
    """The arguments of a command are wrong. `usage` shows the right ones."""

    def __init__(self, usage: str, *, hint: str = "") -> None:
        super().__init__(f"Usage: /{usage}", hint=hint)
        self.usage = usage


class SlashCall(NamedTuple):
    """A slash command with its arguments and flags. Flags are passed by name, such as
    `save=True`.
    """

    command: Command
    arguments: Sequence[str]
    flags: Mapping[str, bool | str]

    async def run(self, session: Session) -> None:
        front = self.command.slash
        assert front is not None
        if front.run:
            function = load_address(front.run)
            await function(session, *self.arguments, **self.flags)
            return
        make_events = load_address(self.command.events)
        events = make_events(session.project, *self.arguments, **self.flags)
        await emit_as_found(session, events)

    def find_ticket(self, tickets: TicketStore) -> Ticket | None:
        """Return the ticket of the first argument, if it names one. Raises
        `BadInput`.
        """
        kinds = [each.kind for each in self.command.arguments]
        if not self.arguments or kinds[0] is not ValueKind.TICKET:
            return None
        first = self.arguments[0]
        if ValueKind.STEP in kinds and STEP_LABEL.fullmatch(first):
            return None
        if self.change:
            return None
        return tickets.find(first, EnoughOfSlug.PART)

    @property
    def change(self) -> str:
        """The change outside of tickets that the first argument names, if any."""
        is_about_changes = self.command.group is Group.CHANGES
        first = self.arguments[0] if self.arguments else ""
        return first if is_about_changes and is_change_name(first) else ""


async def emit_as_found(session: Session, events: Iterator[Event]) -> None:
    """Emit events as a thread yields them. If the user stops the command, the thread is
    abandoned.
    """
    find_next = partial(next, events, None)
    while (event := await in_thread(find_next, name="command")) is not None:
        session.emit(event)


def split_line(line: str) -> tuple[str, list[str]]:
    """Return the command's name and the words after it. Raises `BadInput`."""
    try:
        name, *words = shlex.split(line.strip()[1:]) or [""]
    except ValueError as error:
        raise BadInput(
            f"{line.strip()}: {error}", hint="Close the quotation mark."
        ) from error
    return name, words


def read_call(command: Command, words: Sequence[str]) -> SlashCall:
    """Return the call for the words after a command's name. Raises `BadInput`."""
    arguments, flags = _split_flags(command, words)
    declared = command.arguments
    is_open_ended = bool(declared) and declared[-1].repeats
    if len(arguments) > len(declared) and not is_open_ended:
        no_arguments = f"`/{command.name}` takes no arguments."
        raise WrongUsage(command.usage, hint=QUOTE_HINT if declared else no_arguments)
    if len(arguments) < sum(each.is_required for each in declared):
        assert command.slash is not None
        hint = f"{command.slash.help} Example: `{command.slash.example}`"
        raise WrongUsage(command.usage, hint=hint)
    return SlashCall(command, arguments, flags)


def _split_flags(
    command: Command, words: Sequence[str]
) -> tuple[list[str], dict[str, bool | str]]:
    """Raise `BadInput` for unknown or incomplete flags."""
    arguments: list[str] = []
    flags: dict[str, bool | str] = {}
    rest = iter(words)
    for word in rest:
        if not command.flags or not word.startswith("--"):
            arguments.append(word)
            continue
        flag, value = _read_flag(command, word)
        if value is None:
            value = next(rest, "")
        if value == "":
            raise WrongUsage(command.usage, hint=f"{flag.name} needs a value.")
        flags[flag.value_key] = value
    return arguments, flags


def _read_flag(command: Command, word: str) -> tuple[Parameter, bool | str | None]:
    """Return the flag in a word, and its value; None if the next word is the value.
    Raises `BadInput`.
    """
    name, equals, value = word.partition("=")
    flag = command.flags.get(name)
    if flag is None or (equals and flag.is_switch):
        raise BadInput(
            f"/{command.name} has no flag {word!r}", hint=f"Usage: {command.synopsis}"
        )
    if flag.is_switch:
        return flag, True
    return flag, value if equals else None
