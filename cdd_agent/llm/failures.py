"""The facts of a failed call, from an exception of httpx or litellm.

Exceptions are recognised by class name, so that no provider's package is imported.
"""

import os
import re
import socket
from collections.abc import Iterator
from typing import Self

from msgspec import Struct

from cdd_agent.llm.port import ModelEvent, OnEvent
from cdd_agent.llm.retry_after import wait_in_headers, wait_in_words
from cdd_agent.llm.web_page import title_of_page
from cdd_agent.pattern import Pattern

NAME_NOT_FOUND = "NameNotFound"
"""A kind of failure: no host has the name, and a retry is useless."""
NO_ANSWER_IN_TIME = frozenset({"TimeoutException", "TimeoutError"})
NO_CONNECTION = frozenset(
    {"TransportError", "ClientConnectionError", "ConnectionError"}
)
_LITELLM_STATUSES = frozenset({408, 500})
"""litellm also sets these if no server has answered."""
_LITELLM_PREFIXES = Pattern(
    r"^(?:(?:litellm\.)?\w*(?:Error|Exception|Timeout)(?: \w+){0,2}(?:: | - |$))+"
)
_NO_REASON = "Connect call failed"
_CODES = Pattern(r"^\[(?:SSL|Errno)[^\]]*\] |(?<=.) \(_ssl\.c:\d+\)$")
"""Codes of OpenSSL and the operating system around their messages."""
_STATUS_OF_NAME = {
    "authentication_error": 401,
    "invalid_api_key": 401,
    "permission_error": 403,
    "model_not_found": 404,
    "not_found_error": 404,
    "invalid_request_error": 400,
    "invalid_prompt": 400,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "server_error": 500,
    "api_error": 500,
    "internal_server_error": 500,
    "overloaded_error": 529,
}
"""For errors within a stream, which have no number."""


class Failure(Struct, frozen=True):
    kinds: frozenset[str] = frozenset()
    """Class names of all exceptions involved."""
    status: int | None = None
    """The HTTP status, also for an error within a stream."""
    words: str = ""
    """The message of the server or the operating system."""
    all_words: str = ""
    """All messages and codes, which the rules search."""
    retry_after: float | None = None
    """Seconds that the server asks to wait."""
    page: str | None = None
    """The title of a web page that arrived instead of an answer."""

    @classmethod
    def from_exception(
        cls, error: BaseException, outer: BaseException | None = None
    ) -> Self:
        """Collect the facts of an exception and its causes, up to `outer`, which the
        caller was already handling.

        Class and status of litellm's exception are often wrong (a refused connection is
        an `InternalServerError`, 500), so the first cause counts most.
        """
        chain = list(causes(error, outer))
        kinds = _kinds(chain)
        status = _status(chain)
        words = _words(chain, kinds, status)
        all_words = "\n".join(map(str, chain))
        wait = _wait(chain)
        if wait is None:
            wait = wait_in_words(all_words)
        return cls(kinds, status, words, all_words, wait, title_of_page(words))


class Listener:
    """Passes events on. Remembers an error of `on_event`, because that is no failed
    call.
    """

    def __init__(self, on_event: OnEvent) -> None:
        self._on_event = on_event
        self.raised: Exception | None = None

    def __call__(self, event: ModelEvent) -> None:
        try:
            self._on_event(event)
        except Exception as error:
            self.raised = error
            raise


def status_of(*codes: object) -> int | None:
    """Return the HTTP status of the first code that is a status or a known name."""
    for code in codes:
        if isinstance(code, str) and code in _STATUS_OF_NAME:
            return _STATUS_OF_NAME[code]
        # int() refuses thousands of digits
        if isinstance(code, str) and re.fullmatch(r"[45]\d\d", code, re.ASCII):
            return int(code)
        if isinstance(code, int) and 400 <= code < 600:
            return code
    return None


def causes(
    error: BaseException | None, outer: BaseException | None
) -> Iterator[BaseException]:
    """Yield the error and its causes, up to `outer`."""
    while error is not None and error is not outer:
        # litellm's MidStreamFallbackError
        wrapped: BaseException | None = getattr(error, "original_exception", None)
        if wrapped is not None:
            error = wrapped
            continue
        yield error
        error = error.__cause__ or error.__context__


def _kinds(chain: list[BaseException]) -> frozenset[str]:
    kinds: set[str] = set()
    for error in chain:
        kinds.update(kind.__name__ for kind in type(error).__mro__)
        # not EAI_AGAIN and others: there the name server did not answer
        if isinstance(error, socket.gaierror) and error.errno in _NO_SUCH_NAME:
            kinds.add(NAME_NOT_FOUND)
    return frozenset(kinds)


# some systems lack EAI_NODATA
_NO_SUCH_NAME = (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))


def _status(chain: list[BaseException]) -> int | None:
    for error in reversed(chain):
        # from httpx
        if type(error).__name__ == "HTTPStatusError":
            return int(error.response.status_code)  # type: ignore[attr-defined]
        body = getattr(error, "body", None)
        if isinstance(body, dict) and (status := status_of(body.get("code"))):
            return status
    for error in reversed(chain):
        claim = getattr(error, "status_code", None)
        if isinstance(claim, int) and claim not in _LITELLM_STATUSES:
            return claim
    return None


def _wait(chain: list[BaseException]) -> float | None:
    for error in reversed(chain):
        response = getattr(error, "response", None)
        if response is not None:
            wait = wait_in_headers(response.headers)
            if wait is not None:
                return wait
    return None


def _words(
    chain: list[BaseException], kinds: frozenset[str], status: int | None
) -> str:
    if kinds & NO_ANSWER_IN_TIME and status is None:
        return ""
    if kinds & NO_CONNECTION:
        for error in reversed(chain):
            # asyncio names the address instead of the reason
            if isinstance(error, OSError) and error.errno and _NO_REASON in str(error):
                return os.strerror(error.errno)
            if str(error):
                return _CODES.sub("", str(error))
        return ""
    text = str(chain[0]).split("\nTraceback (most recent call last)")[0]
    if quoted := re.search(r'"message": *"((?:[^"\\]|\\.)*)"', text):
        text = quoted[1].replace('\\"', '"')
    return _LITELLM_PREFIXES.sub("", text)
