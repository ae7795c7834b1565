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
    """Give the JSON texts of an answer: one an event, one a line, or a single one though a stream was asked for.

    Which of them it is shows how it begins: what headers say is often wrong. Raises `NoReply` for what is
    none of them, or has no end.
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
                async with aclosing(_documents(start, pieces)) as texts:
                    async for text in texts:
                        yield text
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


async def _documents(start: bytes, pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[str, None]:
    """Each line of JSON, where the first line is one; else all of it as one text."""
    parts, by_lines = _Unfinished(start.lstrip(_BLANK)), None
    while True:
        if by_lines is None and b"\n" in parts.last:
            by_lines = read_json(_text(parts.whole().partition(b"\n")[0])) is not None
        if by_lines and b"\n" in parts.last:
            *lines, rest = parts.whole().split(b"\n")
            parts = _Unfinished(rest)
            for line in filter(bytes.strip, lines):
                yield _text(line)
        if (piece := await anext(pieces, None)) is None:
            break
        parts.add(piece)
    end = _text(parts.whole())
    if not by_lines or read_json(end) is not None:  # otherwise it was cut, as the connection was
        yield end


class _Unfinished:
    """Bytes of a text that is not all there, up to a limit."""

    def __init__(self, start: bytes) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self.add(start)

    @property
    def last(self) -> bytes:
        return self._parts[-1]

    def add(self, piece: bytes) -> None:
        self._parts.append(piece)
        self._size += len(piece)
        if self._size > LONGEST_DOCUMENT:
            raise NoReply("no end")

    def whole(self) -> bytes:
        return b"".join(self._parts)


def _text(data: bytes) -> str:
    return data.decode("utf-8-sig", errors="replace")


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
