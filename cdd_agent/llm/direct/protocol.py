"""The wire protocols: ways in which models are asked over HTTP, seen from the one place
that sends and receives.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from cdd_agent.llm.failures import Failure
from cdd_agent.llm.port import Done, ModelEvent, Request
from cdd_agent.partly_shown import PartlyShown


class ServerFailed(Exception):
    """The server reported a failure in place of a piece of the reply."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.words)
        self.failure = failure


class NoReply(Exception):
    """The server sent something that is no piece of a reply: the exception's text."""


class ReplyReader(Protocol):
    """Puts one reply together from the JSON texts of an answer."""

    finished: bool
    """The server itself said why the reply is over."""
    empty: bool
    """Nothing that looks like a reply has come."""

    def take(self, text: str) -> Iterator[ModelEvent]:
        """Give the text of an event, or of a whole answer. Raises `ServerFailed` and
        `NoReply`.
        """
        ...

    def end(self) -> Iterator[ModelEvent]:
        """The rest of the text, and the calls; once, after the last text of a reply
        that is `finished`.
        """
        ...

    @property
    def done(self) -> Done:
        """How a reply ended that is `finished`."""
        ...


class Call(PartlyShown, frozen=True):
    """The body and the headers that a protocol sends for a request."""

    hidden_fields = ("headers",)

    body: Mapping[str, Any]
    headers: Mapping[str, str]


class WireProtocol(Protocol):
    """How a request is written and how its answer is read, for one model at one
    endpoint.
    """

    @property
    def path(self) -> str:
        """The end of a call's address, as `/chat/completions`."""
        ...

    def call(self, request: Request) -> Call:
        """A request as it is sent; the key is among the headers."""
        ...

    def reader(self, request: Request) -> ReplyReader:
        """For the answer to one call."""
        ...

    def adapts_to(self, failure: Failure) -> bool:
        """Learn from a refused request; whether the same request, written anew, may be
        taken.
        """
        ...
