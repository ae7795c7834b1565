"""What agents are to the session: someone that plain text goes to."""

from collections.abc import AsyncGenerator
from typing import Protocol

from cdd_agent.events import Event


class Agent(Protocol):
    """An agent at work on a ticket."""

    name: str
    ticket_slug: str

    @property
    def done(self) -> bool:
        """Its work is over; the session goes back to chat."""
        ...

    def opening(self) -> AsyncGenerator[Event, None]:
        """What a person sees first."""
        ...

    def say(self, line: str) -> AsyncGenerator[Event, None]:
        """Take what the person typed. Raises `CddError` for what a person or the model has to mend."""
        ...

    def news(self) -> list[Event]:
        """What happened when it was stopped in the middle of something; told once."""
        ...

    def view(self) -> list[Event]:
        """Where the ticket is now, as `/status` shows it."""
        ...

    def close(self) -> None:
        """Let go of what it holds. The ticket's files stay as they are."""
        ...


class GeneralAgent(Protocol):
    """The one that plain text goes to while no other is active."""

    def say(self, line: str) -> AsyncGenerator[Event, None]:
        """Take what the person typed. Raises `CddError` for what a person or the model has to mend."""
        ...

    def hear(self, text: str) -> None:
        """Something that it has to know when it is asked next."""
        ...

    def news(self) -> list[Event]:
        """What nobody could be told yet; told once."""
        ...

    def begin_anew(self) -> None:
        """Begin a new conversation; what was said so far stays saved."""
        ...

    def resume(self) -> list[Event]:
        """Go on with the last conversation, if there is one and nothing was said yet; tell what it was."""
        ...
