"""A server's answer over HTTP as JSON texts, whatever it looks like: bounded, and without trust in its headers."""

from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from cdd_agent.llm.direct.event_stream import EventStream, EventTooLong
from cdd_agent.llm.direct.json_values import read_json
from cdd_agent.llm.direct.protocol import NoReply
from cdd_agent.llm.direct.reported_failures import failure_of
from cdd_agent.llm.failures import Failure
from cdd_agent.llm.retry_after import seconds_to_wait

if TYPE_CHECKING:
    import httpx

LONGEST_DOCUMENT = 32 * 2**20
"""Bytes of an answer that is one document."""
LONGEST_COMPLAINT = 64 * 2**10
"""Bytes of a refusal that are read."""
_BLANK = b" \t\r\n\xef\xbb\xbf"
_DONE = "[DONE]"


async def documents(response: "httpx.Response") -> AsyncGenerator[str, None]:
    """Give the JSON texts of an answer: one an event, or a single one though a stream was asked for.

    Which of the two it is shows its first character: what headers say is often wrong. Raises `NoReply` for what is
    neither, or has no end.
    """
    async with aclosing(_bytes(response)) as pieces:
        start = b""
        async for piece in pieces:
            start += piece
            if start.strip(_BLANK):
                break
        match start.lstrip(_BLANK)[:1]:
            case b"<":
                raise NoReply("markup")
            case b"{" | b"[":
                yield await _document(start, pieces)
            case _:
                async with aclosing(_events(start, pieces)) as texts:
                    async for text in texts:
                        yield text


async def read_complaint(response: "httpx.Response") -> Failure:
    """The failure that an answer with another status than 200 stands for."""
    import httpx

    body = b""
    with suppress(httpx.HTTPError):  # the status says enough
        async with aclosing(_bytes(response)) as pieces:
            async for piece in pieces:
                body += piece
                if len(body) > LONGEST_COMPLAINT:
                    break
    text = body[:LONGEST_COMPLAINT].decode(errors="replace")
    if response.has_redirect_location:
        text = f"it names {response.headers['location']}"
    return replace(failure_of(text, response.status_code), retry_after=seconds_to_wait(response.headers))


def _bytes(response: "httpx.Response") -> AsyncGenerator[bytes, None]:
    return cast("AsyncGenerator[bytes, None]", response.aiter_bytes())


async def _document(start: bytes, pieces: AsyncGenerator[bytes, None]) -> str:
    parts, size = [start], len(start)
    async for piece in pieces:
        parts.append(piece)
        size += len(piece)
        if size > LONGEST_DOCUMENT:
            raise NoReply("no end")
    return b"".join(parts).decode("utf-8-sig", errors="replace")


async def _events(start: bytes, pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[str, None]:
    """The data of each event up to the one that says it was the last."""
    stream = EventStream()
    try:
        for text in stream.feed(start):
            if text.strip() == _DONE:
                return
            yield text
        async for piece in pieces:
            for text in stream.feed(piece):
                if text.strip() == _DONE:
                    return
                yield text
        for text in stream.end():
            if read_json(text) is not None:  # otherwise it was cut, as the connection was
                yield text
    except EventTooLong as error:
        raise NoReply("no end") from error
