"""What every agent is to the session: someone that plain text goes to."""

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
