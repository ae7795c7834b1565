"""Errors for an answer that ended before its reply was complete."""

from msgspec import Struct

from cdd_agent.llm.failure_rules import explain_failure
from cdd_agent.llm.failures import Failure
from cdd_agent.llm.port import ConnectionFailed, ModelError, NotAReply
from cdd_agent.llm.quoting import quoted
from cdd_agent.llm.web_page import title_of_page

_TOO_LONG = (
    "Some servers stop like this if a request is longer than the model's context."
)


class Received(Struct, frozen=True):
    """The part of an answer that arrived."""

    is_reply: bool
    is_stream: bool = False
    """True for an event stream without any other protocol in it."""
    beginning: str = ""
    unused: str = ""
    """The last text in the answer that is no part of a reply."""


def explain_incomplete(model: str, received: Received) -> ModelError:
    if received.is_reply:
        return ConnectionFailed(
            _with_quote(
                f"The reply of {model} broke off before its end", received.unused
            ),
            hint="Try again.",
        )
    title = title_of_page(received.beginning)
    if title is not None:
        page = Failure(status=200, page=title)
        return explain_failure(page, model)
    if received.is_stream:
        return NotAReply(
            _with_quote(
                f"The server of {model} ended its response before the reply began",
                received.beginning,
            ),
            hint=f"Try again. {_TOO_LONG}",
        )
    content = received.beginning.strip() or "it is empty"
    return NotAReply(
        _with_quote(
            f"The server's response for {model} is not a model's reply", content
        ),
        hint=f"Check the API base, which often ends in /v1. {_TOO_LONG}",
    )


def _with_quote(message: str, text: str) -> str:
    quote = quoted(text)
    return f"{message}: {quote}" if quote else f"{message}."
