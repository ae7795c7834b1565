"""The protocols of agents. An agent receives plain text, and reports its meaning before
the user sends it.
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
    """The placeholder of the prompt after a failed step."""

    @property
    def placeholder(self) -> str:
        """The placeholder of the prompt: the usual lines, in a few words."""
        ...

    @property
    def is_done(self) -> bool:
        """True if the work is over. The session then returns to chat."""
        ...

    @property
    def lock(self) -> TicketLock:
        """The lock of the ticket, which the agent holds."""
        ...

    async def begin(self) -> None:
        """Report what the user sees first."""
        ...

    def meaning(self, line: str) -> Meaning:
        """Return the meaning of a line in the present state. Reads and changes
        nothing.
        """
        ...

    async def carry_out(self, meaning: Meaning) -> None:
        """Do what a line means, and record the line. Raises `CddError`."""
        ...

    def steer(self, meaning: Meaning, take: Take) -> bool:
        """Pass a line to the running step. Return False if the model cannot receive
        it any more.

        Just before the model receives the line, the agent calls `take`, which returns
        False if the user has removed the line from the queue. Then it emits
        `GuidanceTaken`.
        """
        ...

    def view(self) -> list[Event]:
        """Return the ticket's progress for `/status`."""
        ...

    def closing(self) -> list[Event]:
        """Return the events that end the agent's work."""
        ...

    def close(self) -> None:
        """Release the ticket's lock. The ticket's files do not change."""
        ...


class GeneralAgent(Protocol):
    """The agent that gets plain text while no other agent is active."""

    async def say(self, line: str) -> None:
        """Answer the user's line. Raises `CddError`."""
        ...

    def add_context(self, text: str) -> None:
        """Add a text that the model receives with the user's next line."""
        ...

    def begin_conversation(self) -> None:
        """Begin a new conversation. The old one stays saved."""
        ...

    def resume(self, key: str = "", *, in_short: bool = False) -> bool:
        """Continue the conversation with this key. Without a key, continue the last
        one, unless the present one has messages. Show it, or `in_short` only its end.
        Return False if there is none.
        """
        ...

    @property
    def conversations(self) -> frozenset[str]:
        """The names of the conversations of this session, resumed ones included."""
        ...

    def describe(self) -> str:
        """Return the summary that replaces the older part of the conversation for
        the model. Empty if the model receives the whole conversation.
        """
        ...

    def earlier(self) -> tuple[SessionView, ...]:
        """Return the other saved conversations. Reads files: call it in a thread."""
        ...
