"""The interface of the wire protocols for models over HTTP."""

from typing import Protocol

from cdd_agent.llm.direct.protocol import Call
from cdd_agent.llm.direct.reply_reader import ReplyReader
from cdd_agent.llm.failures import Failure
from cdd_agent.llm.port import Request


class WireProtocol(Protocol):
    """Writes requests to one model at one endpoint, and reads the answers."""

    @property
    def path(self) -> str:
        """The end of a call's address, such as `/chat/completions`."""
        ...

    def call(self, request: Request) -> Call:
        """Return the body and headers of a request, including the key."""
        ...

    def reader(self, request: Request) -> ReplyReader: ...

    def adapts_to(self, failure: Failure) -> bool:
        """Learn from a refusal. True if the same request, rewritten, may be
        accepted.
        """
        ...
