"""Suggests a line in the prompt after a turn. Enter sends it, a letter replaces it,
Escape removes it.
"""

from __future__ import annotations

import asyncio
import re
import shlex
from typing import TYPE_CHECKING

from cdd_agent.errors import CddError
from cdd_agent.pattern import Pattern
from cdd_agent.tickets.slugs import to_kebab

if TYPE_CHECKING:
    from cdd_agent.session.session import Session

_WORDS = 6
_LONGEST = 48
_LONGEST_TITLE = 72
_COMMANDS = {"socrates": "/socrates", "planner": "/plan", "executor": "/exec"}
# A list of strings would fill a screen.
_SMALL = frozenset(
    """
    a an and are for i in is it me my of on please should that the to want we with would
    """.split()  # noqa: SIM905
)


_SENTENCE_END = Pattern(r"[.:;!?]\s|[。！？]")


class NamedWish:
    """The user's wish, and the name of its ticket."""

    def __init__(self, words: str) -> None:
        self.words = " ".join(words.split())
        is_bug = re.match(r"(fix|bug|repair)\b", self.words.casefold())
        self._kind = "bug" if is_bug else "feature"
        sentence = _choose_sentence(self.words)
        self._name = _make_name(sentence)
        self._title = _make_title(sentence)

    @property
    def first_line(self) -> str:
        title = shlex.quote(self._title or self._name)
        return f"/new {self._kind} {title} --slug={self._name}"

    @property
    def ticket_slug(self) -> str:
        return f"{self._kind}-{self._name}"


class Guide:
    """Finds the next line after a turn: the next command for a ticket that was created
    or completed, or the wish when Socrates asks for it.
    """

    def __init__(self) -> None:
        self.wish: NamedWish | None = None

    async def find_next(self, session: Session) -> str | None:
        """Return the next line; None if nothing was completed. Raises nothing."""
        completed = session.take_completed()
        if self.wish is not None and self._is_asked_for_wish(session):
            words, self.wish = self.wish.words, None
            return words
        if completed is None or session.agent is not None:
            return None
        # late: the first screen shows sooner
        from cdd_agent.commands.overview import next_command  # noqa: PLC0415

        try:
            ticket = session.project.tickets.find_slug(completed.ticket_slug)
            line = await asyncio.to_thread(next_command, ticket)
        except CddError:  # the ticket was deleted
            return None
        # Do not suggest the command of work that was just approved with gaps.
        is_repeated = line.split()[0] == _COMMANDS.get(completed.agent or "")
        return None if is_repeated else line

    def _is_asked_for_wish(self, session: Session) -> bool:
        assert self.wish is not None
        agent = session.agent
        return (
            agent is not None
            and agent.name == "socrates"
            and agent.ticket_slug == self.wish.ticket_slug
        )


def _choose_sentence(words: str) -> str:
    sentences = _SENTENCE_END.split(words)
    for sentence in sentences:
        if len(_telling_words(sentence)) > 1:
            return sentence
    return words


def _make_name(sentence: str) -> str:
    words = _telling_words(sentence)
    try:
        return to_kebab(" ".join(words[:_WORDS])[:_LONGEST])
    except CddError:  # no letter is left that a name can have
        return "first-ticket"


def _make_title(sentence: str) -> str:
    # A leading dash would make the title a flag of `/new`.
    title = sentence.strip(" -.:;!?。！？")
    if len(title) > _LONGEST_TITLE:
        title = f"{title[:_LONGEST_TITLE].rsplit(maxsplit=1)[0]} …"
    return title[:1].upper() + title[1:]


def _telling_words(text: str) -> list[str]:
    # `\w` does not match vowel signs, which many scripts need.
    words = re.findall(r"[^\s!-/:-@\[-`{-~]+", text)
    return [word for word in words if word.casefold() not in _SMALL]
