"""Slash commands: a function with a name; its docstring is its help, what it yields are events.

Help, usage errors and completion are made from the registry. Commands work without a screen.
"""

from __future__ import annotations

import difflib
import inspect
import shlex
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cdd_agent.errors import BadInput
from cdd_agent.events import Event

if TYPE_CHECKING:
    from cdd_agent.session import Session

Run = Callable[..., AsyncGenerator[Event, None]]


@dataclass(frozen=True)
class Command:
    """`usage` names the arguments, optional ones in brackets, the last one with dots if it may be there many times;
    `SLUG` completes to ticket slugs."""

    name: str
    usage: str
    run: Run
    words: tuple[tuple[str, ...], ...] = ()
    """Groups of words: an argument can be one of each group. Completion offers them."""

    @property
    def help(self) -> str:
        return inspect.getdoc(self.run) or ""

    @property
    def synopsis(self) -> str:
        return f"/{self.name} {self.usage}".rstrip()


_registered: dict[str, Command] = {}


def commands() -> dict[str, Command]:
    """All commands by name. The built-in ones are imported when they are first asked for: the shell shows sooner."""
    from cdd_agent.commands import builtin

    assert builtin
    return _registered


def command(name: str, usage: str = "", words: tuple[tuple[str, ...], ...] = ()) -> Callable[[Run], Run]:
    """Register a function `(session, *arguments)` as `/name`."""

    def register(run: Run) -> Run:
        _registered[name] = Command(name, usage, run, words)
        return run

    return register


async def handle(session: Session, line: str) -> AsyncGenerator[Event, None]:
    """Carry out one line: a slash command, or words for the active agent. Raises `CddError`."""
    events = _events(session, line) if line.lstrip().startswith("/") else session.say(line)
    async with aclosing(events):
        async for event in events:
            yield event


def complete(session: Session, line: str) -> list[str]:
    """Whole lines that the line so far can become, best first."""
    if not line.startswith("/"):
        return []
    name, space, rest = line[1:].partition(" ")
    if not space:
        return [f"/{known}" for known in commands() if known.startswith(name) and known != name]
    known = commands().get(name)
    if known is not None and known.words:
        return _complete_word(known, line)
    if known is None or "SLUG" not in known.usage or " " in rest:
        return []
    slugs = [ticket.slug for ticket in session.project.tickets.list()]
    starting = [slug for slug in slugs if slug.startswith(rest)]
    within = [slug for slug in slugs if rest in slug and not slug.startswith(rest)]
    return [f"/{name} {slug}" for slug in starting + within if slug != rest]


def _complete_word(known: Command, line: str) -> list[str]:
    """The words that the last argument so far can become, of the groups that the ones before it leave."""
    before, _, last = line.rpartition(" ")
    typed = before.split()[1:]
    left = [group for group in known.words if not set(group) & set(typed)]
    if len(left) != len(known.words) - len(typed):  # some word before is of no group, or of the same as another
        return []
    return [f"{before} {word}" for group in left for word in group if word.startswith(last) and word != last]


def _events(session: Session, line: str) -> AsyncGenerator[Event, None]:
    try:
        name, *arguments = shlex.split(line.strip()[1:]) or [""]
    except ValueError as error:
        raise BadInput(f"{line.strip()}: {error}", hint="Close the quotation mark.") from error
    known = commands().get(name.lower())
    if known is None:
        near = [f"/{other}" for other in commands() if name and other.startswith(name.lower())]
        near = near or [f"/{other}" for other in difflib.get_close_matches(name, commands(), n=2)]
        hint = f"Did you mean {' or '.join(near)}?" if near else "/help lists them."
        raise BadInput(f"There is no command /{name}", hint=hint)
    required = sum(not word.startswith("[") for word in known.usage.split())
    most = len(arguments) if known.usage.endswith("...]") else len(known.usage.split())
    if not required <= len(arguments) <= most:
        many = len(arguments) > most
        hint = "Put words that belong together in quotation marks." if many else known.help.partition("\n")[0]
        raise BadInput(f"Usage: {known.synopsis}", hint=hint)
    return known.run(session, *arguments)
