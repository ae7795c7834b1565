"""The way of a first ticket: after each turn the line that comes next stands in the
prompt, and Enter alone sends it.

Nothing is sent by itself; what is typed instead, or Escape, is as good.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from cdd_agent.commands.listing import view
from cdd_agent.commands.overview import next_line
from cdd_agent.errors import CddError
from cdd_agent.tickets.slugs import to_kebab

if TYPE_CHECKING:
    from cdd_agent.session import Session

_WORDS = 6
"""Of what is wanted, those that name the ticket."""
_LONGEST = 48
# a list of strings would be a screen long
_SMALL = frozenset(
    """
    a an and are for i in is it me my of on please should that the to want we with would
    """.split()  # noqa: SIM905
)
_HINTS = {
    "/socrates": "Enter: Socrates asks until the ticket is clear",
    "/plan": (
        "Enter: the Planner makes a plan; nothing is written before you approve it"
    ),
    "/exec": "Enter: opens the run; its first step waits for another Enter",
}


class Guide:
    """A person's wish, on its way from their words to a run."""

    def __init__(self, words: str) -> None:
        self._words = " ".join(words.split())
        kind = (
            "bug"
            if re.match(r"(fix|bug|repair)\b", self._words.casefold())
            else "feature"
        )
        self._kind, self._name = kind, _named(self._words)
        self._offered: set[str] = set()

    @property
    def first_line(self) -> str:
        """The command that makes the ticket."""
        return f"/new {self._kind} {shlex.quote(self._name)}"

    def next(self, session: Session) -> tuple[str, str] | None:
        """The line that comes next and what Enter does with it; None where there is
        none, or it was offered before.
        """
        slug = f"{self._kind}-{self._name}"
        if (agent := session.agent) is not None:
            told = (self._words, "Enter: says it to Socrates")
            return (
                self._once(*told)
                if agent.name == "socrates" and agent.ticket_slug == slug
                else None
            )
        try:
            ticket = session.project.tickets.find(slug)
        except CddError:  # it was not made, or is gone
            return None
        line = next_line(ticket, view(ticket))
        return (
            self._once(line, _HINTS[line.split()[0]])
            if line.split()[0] in _HINTS
            else None
        )

    def _once(self, line: str, hint: str) -> tuple[str, str] | None:
        if line in self._offered:
            return None
        self._offered.add(line)
        return line, hint


def _named(words: str) -> str:
    """A name for the ticket, of the words that say something."""
    # `\w` has no vowel signs, as words of many scripts need them.
    found = re.findall(r"[^\s!-/:-@\[-`{-~]+", words)
    telling = [word for word in found if word.casefold() not in _SMALL]
    try:
        return to_kebab(" ".join(telling[:_WORDS])[:_LONGEST])
    except CddError:  # nothing is left, or only letters that no name has
        return "first-ticket"
