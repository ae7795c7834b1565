"""Requests of a wire protocol, and errors for answers that are no reply."""

from collections.abc import Mapping
from typing import Any

from cdd_agent.llm.failures import Failure
from cdd_agent.values.partly_shown import PartlyShown


class ServerFailed(Exception):
    """The server reported a failure instead of a piece of the reply."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.words)
        self.failure = failure


class NoReply(Exception):
    """The server sent something else than a piece of a reply: the exception's text."""


class Call(PartlyShown, frozen=True):
    hidden_fields = ("headers",)

    body: Mapping[str, Any]
    headers: Mapping[str, str]
