"""Agents as the session knows them: plain text goes to them, and they report beforehand
what they will do with it.
"""

from typing import Protocol

from cdd_agent.agents.meaning import Meaning
from cdd_agent.engine.lock import TicketLock
from cdd_agent.engine.steering import Take
from cdd_agent.events.shell_events import SessionView
from cdd_agent.events.stream import Emit, Event


class Agent(Protocol):
    """An agent at work on a ticket."""

    name: str
    ticket_slug: str
    emit: Emit
    after_a_failure: str
    """`placeholder` once a step has failed, where that is different."""

    @property
    def placeholder(self) -> str:
        """The most usual of what can be typed, in a few words."""
        ...

    @property
    def done(self) -> bool:
        """Its work is over; the session goes back to chat."""
        ...

    @property
    def lock(self) -> TicketLock:
        """The ticket's, which it holds."""
        ...

    async def begin(self) -> None:
        """Report what the user sees first."""
        ...

    def meaning(self, line: str) -> Meaning:
        """Return the effect of this line now. Nothing is done, read or written for
        it.
        """
        ...

    async def carry_out(self, meaning: Meaning) -> None:
        """Do what a line means, and record the line. Raises `CddError` for what the
        user or the model must fix.
        """
        ...

    def steer(self, meaning: Meaning, take: Take) -> bool:
        """Handle a line that came while the agent is at work. Return True if the
        model can still receive it: then `take` is called just before, which returns
        whether the line still waits, and `GuidanceTaken` is emitted.
        """
        ...

    def view(self) -> list[Event]:
        """Return the ticket's progress, as `/status` shows it."""
        ...

    def closing(self) -> list[Event]:
        """Return what the user sees when the agent's work is over."""
        ...

    def close(self) -> None:
        """Release what it holds. The ticket's files do not change."""
        ...


class GeneralAgent(Protocol):
    """The agent that gets plain text while no other agent is active."""

    async def say(self, line: str) -> None:
        """Handle the user's line. Raises `CddError` for what the user or the model
        must fix.
        """
        ...

    def hear(self, text: str) -> None:
        """Add a text that the model gets with the next line."""
        ...

    def begin_anew(self) -> None:
        """Begin a new conversation; what was said so far stays saved."""
        ...

    def resume(self, key: str = "", *, in_short: bool = False) -> bool:
        """Continue the conversation with this key, or the last one if nothing was
        said yet. Show it, or `in_short` only its end. Return False if there is none.
        """
        ...

    @property
    def conversations(self) -> frozenset[str]:
        """The names of the conversations that this session held or resumed."""
        ...

    def describe(self) -> str:
        """Return what the model gets in place of the older part of the conversation;
        empty if it gets all of the conversation.
        """
        ...

    def earlier(self) -> tuple[SessionView, ...]:
        """The conversations that there are, but for the present one. Reads files: to be
        called in a thread.
        """
        ...
