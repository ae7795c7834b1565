"""A session: the project, who plain text goes to, and the person at the other end."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

from cdd_agent.agents.base import Agent
from cdd_agent.config import Config
from cdd_agent.errors import CddError
from cdd_agent.events import AgentChanged, Event, Notice
from cdd_agent.llm.budget import Tally
from cdd_agent.tickets.store import Ticket, TicketStore


@dataclass(frozen=True)
class Project:
    """The folder that everything happens in, its settings and its tickets."""

    root: Path
    config: Config
    tickets: TicketStore


Opener = Callable[..., Agent]
"""Opens an agent at work on a `Ticket`, its first argument; options of its own come by name. Raises `CddError`."""


class Session:
    """One person's way through a project. At most one agent is active; lines go to it or to commands."""

    def __init__(self, project: Project, openers: Mapping[str, Opener], tally: Tally | None = None) -> None:
        """`openers` are those of the agents that work on tickets, by the agent's name."""
        self.project = project
        self.tally = tally or Tally()
        """What all model calls of this session took."""
        self.agent: Agent | None = None
        self.last_ticket: str | None = None
        """The slug of the ticket that an agent was at work on last."""
        self._openers = openers

    async def engage(self, name: str, ticket: Ticket, **options: object) -> AsyncGenerator[Event, None]:
        """Make an agent the active one, at work on a ticket. If it has nothing to do, that is told and it is left."""
        async with aclosing(self._switch_to(name, ticket, **options)) as switched:
            async for event in switched:
                yield event
        assert self.agent is not None
        async with aclosing(self.agent.opening()) as events:
            async for event in events:
                yield event
        for event in self._leave_if_done():
            yield event

    async def _switch_to(self, name: str, ticket: Ticket, **options: object) -> AsyncGenerator[Event, None]:
        if self.agent is not None and self.agent.ticket_slug == ticket.slug:  # it may hold the ticket's lock
            for event in self.leave():
                yield event
        agent = self._openers[name](ticket, **options)  # if that fails, whoever is active stays so
        for event in self.leave():
            yield event
        self.agent, self.last_ticket = agent, ticket.slug
        yield AgentChanged(agent.name, agent.ticket_slug)

    async def tell(self, ticket: Ticket, line: str) -> AsyncGenerator[Event, None]:
        """Say something to the Executor of a ticket, who is the active agent from then on if there is work left."""
        if self.agent is None or (self.agent.name, self.agent.ticket_slug) != ("executor", ticket.slug):
            async with aclosing(self._switch_to("executor", ticket)) as switched:
                async for event in switched:
                    yield event
            assert self.agent is not None
            for event in self.agent.view():
                yield event
        async with aclosing(self.say(line)) as events:
            async for event in events:
                yield event

    async def say(self, line: str) -> AsyncGenerator[Event, None]:
        """Plain text: for the active agent."""
        if self.agent is None:
            if line.strip():
                text = "This version has no chat. `/exec SLUG` carries out a plan; `/help` lists the commands."
                last = f" `/undo`, `/redo` and `/diff` are for {self.last_ticket}." if self.last_ticket else ""
                yield Notice(text + last)
            return
        try:
            async with aclosing(self.agent.say(line)) as events:
                async for event in events:
                    yield event
        except CddError:
            if self.agent is not None and self.agent.done:  # nothing more can be said to it
                for event in self.leave():
                    yield event
            raise
        for event in self._leave_if_done():
            yield event

    def leave(self) -> list[Event]:
        """Back to chat, if an agent is active."""
        if self.agent is None:
            return []
        self.agent.close()
        self.agent = None
        return [AgentChanged(None)]

    def _leave_if_done(self) -> list[Event]:
        return self.leave() if self.agent is not None and self.agent.done else []
