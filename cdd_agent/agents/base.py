"""The protocols of agents."""

from typing import Protocol

from cdd_agent.agents.meaning import Meaning
from cdd_agent.engine.lock import TicketLock
from cdd_agent.engine.steering import Take
from cdd_agent.events.shell_events import SessionView
from cdd_agent.events.stream import Emit, Event


class Agent(Protocol):
    """An agent that works on a ticket. It receives plain text, and can describe a
    line's meaning before the user sends it.
    """

    name: str
    ticket_slug: str
    emit: Emit
    after_a_failure: str
    """The prompt's placeholder after a failed step."""

    @property
    def placeholder(self) -> str: ...

    @property
    def is_done(self) -> bool:
        """True if the work is over. The session then returns to chat."""
        ...

    @property
    def lock(self) -> TicketLock: ...

    async def begin(self) -> None: ...

    def meaning(self, line: str) -> Meaning:
        """Return the meaning of a line in the current state, without reading files or
        changing anything.
        """
        ...

    async def carry_out(self, meaning: Meaning) -> None:
        """Act on a line, and record it. Raises `CddError`."""
        ...

    def steer(self, meaning: Meaning, take: Take) -> bool:
        """Pass a line to the running step. False if the model can no longer receive it.

        Just before the model receives the line, the agent calls `take`, which returns
        False if the user has withdrawn the line. Otherwise the agent emits
        `GuidanceTaken`.
        """
        ...

    def view(self) -> list[Event]:
        """Return the ticket's progress, for `/status`."""
        ...

    def closing(self) -> list[Event]: ...

    def close(self) -> None: ...


class GeneralAgent(Protocol):
    """The agent for plain text while no other agent is active."""

    async def say(self, line: str) -> None:
        """Answer the user's line. Raises `CddError`."""
        ...

    def add_context(self, text: str) -> None:
        """Add a text that the model receives with the user's next line."""
        ...

    def begin_conversation(self) -> None:
        """Start a new conversation. The old one stays saved."""
        ...

    def resume(self, key: str = "", *, in_short: bool = False) -> bool:
        """Continue the conversation with this key; without a key the last one, unless
        the current one has messages. Show it, or only its end if `in_short`. False if
        there is none.
        """
        ...

    @property
    def conversations(self) -> frozenset[str]:
        """The names of this session's conversations, including resumed ones."""
        ...

    def describe(self) -> str:
        """Return the summary that replaces older messages for the model; empty if the
        model receives the whole conversation.
        """
        ...

    def earlier(self) -> tuple[SessionView, ...]:
        """Return the other saved conversations. Reads files: call it in a thread."""
        ...
