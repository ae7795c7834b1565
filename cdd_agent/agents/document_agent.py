"""The base of agents that write a document of a ticket after the user's approval."""

from abc import abstractmethod
from collections.abc import Collection
from functools import partial
from typing import Any, ClassVar

from cdd_agent.agents.document_conversation import DocumentConversation
from cdd_agent.agents.meaning import LineKind, Meaning
from cdd_agent.agents.ticket_agent import TicketAgent
from cdd_agent.engine.lock import TicketLock
from cdd_agent.engine.spec_notices import spec_notices
from cdd_agent.tickets.store import Ticket


class DocumentAgent(TicketAgent):
    ADDRESS: ClassVar[str]
    """The agent's name in a sentence."""
    NEAR = 0.8

    def __init__(
        self,
        conversation: DocumentConversation[Any],
        ticket: Ticket,
        slash: Collection[str],
    ) -> None:
        self._conversation = conversation
        self._ticket = ticket
        self.ticket_slug = ticket.slug
        self.slash = slash
        self.emit = conversation.emit
        self.is_done = False

    @property
    def lock(self) -> TicketLock:
        return self._conversation.file.lock

    @property
    def to_the_model(self) -> str:
        return f"send it to {self.ADDRESS}"

    def close(self) -> None:
        self._conversation.close()

    def report_ticket(self) -> None:
        self.report(*self._conversation.file.news, *spec_notices(self._ticket))

    @property
    def text_hint(self) -> str:
        return f"Enter: send it to {self.ADDRESS}"

    def read_text(self, text: str) -> Meaning:
        act = partial(self.use_text, text)
        return Meaning(LineKind.TEXT, "words", self.text_hint, act)

    @abstractmethod
    async def use_text(self, text: str) -> None:
        """Take a turn with the user's text."""
