"""Read a server's HTTP answer, bounded and without trust in its headers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import httpx
from msgspec.structs import replace

from cdd_agent.llm import timeouts
from cdd_agent.llm.direct.json_texts import JsonTexts
from cdd_agent.llm.direct.protocol import NoReply
from cdd_agent.llm.direct.reply_reader import ReplyReader
from cdd_agent.llm.direct.reported_failures import read_failure
from cdd_agent.llm.failures import Failure, Listener
from cdd_agent.llm.incomplete_answers import Received, explain_incomplete
from cdd_agent.llm.port import ModelEvent, OnEvent

_NO_LONGER_READABLE = (
    httpx.TransportError,
    httpx.DecodingError,
    TimeoutError,
    NoReply,
)
"""Errors that no longer matter once a reply is complete."""
LONGEST_COMPLAINT = 64 * 2**10


class IncomingAnswer:
    """An answer as it arrives: bytes become JSON texts, which become events."""

    def __init__(self, reader: ReplyReader, on_event: OnEvent) -> None:
        self.reader = reader
        self.listener = Listener(on_event)
        self._texts = JsonTexts()
        self._has_other_protocol = False
        """True if JSON arrived that is neither part of a reply nor a keep-alive."""

    async def read(self, pieces: AsyncIterator[bytes]) -> None:
        """Read the answer to its end. Raises `ServerFailed`, the listener's errors,
        and, before the reply is complete, `NoReply` and connection errors.
        """
        try:
            await self._read(pieces)
        except _NO_LONGER_READABLE as error:
            is_from_listener = error is self.listener.raised
            if is_from_listener or not self.reader.is_finished:
                raise

    async def _read(self, pieces: AsyncIterator[bytes]) -> None:
        """Raises `TimeoutError` if only keep-alives arrive for too long."""
        clock = asyncio.get_running_loop().time
        async with asyncio.timeout(timeouts.KEEP_ALIVE_TIMEOUT) as limit:
            async for piece in pieces:
                for text in self._texts.feed(piece):
                    self._read_text(text)
                    silence = timeouts.KEEP_ALIVE_TIMEOUT
                    if self.reader.is_finished:
                        silence = timeouts.AFTER_END_TIMEOUT
                    limit.reschedule(clock() + silence)
                if self._texts.is_over:
                    return
        for text in self._texts.end():
            self._read_text(text)

    def end(self, model: str) -> list[ModelEvent]:
        """Return the last events of a complete reply. Raises `ModelError` for another
        answer, and `ServerFailed` for an unreadable tool call.
        """
        if not self.reader.is_finished:
            raise explain_incomplete(model, self.received)
        return list(self.reader.end())

    def _read_text(self, text: str) -> None:
        for event in self.reader.read_text(text):
            self.listener(event)
        if self.reader.is_empty:
            is_nested = any(bracket in text.strip()[1:] for bracket in "{[")
            self._has_other_protocol |= is_nested

    @property
    def received(self) -> Received:
        """The part of an incomplete answer to show in an error message."""
        received = self._texts.received(is_reply=not self.reader.is_empty)
        is_stream = received.is_stream and not self._has_other_protocol
        return replace(received, is_stream=is_stream)


async def read_complaint(
    response: "httpx.Response", pieces: AsyncIterator[bytes]
) -> Failure:
    """Return the failure in an answer with a status other than 2xx. `pieces` are the
    bytes of its body.
    """
    body = await read_refusal(pieces)
    text = body.decode(errors="replace")
    if response.has_redirect_location:
        text = f"it names {response.headers['location']}"
    return read_failure(text, response.status_code, response.headers)


async def read_refusal(pieces: AsyncIterator[bytes]) -> bytes:
    """Return the body of a refusal, as far as it arrives in time."""
    body = b""
    # the status is enough
    with suppress(httpx.HTTPError, TimeoutError):
        async with asyncio.timeout(timeouts.COMPLAINT_TIMEOUT):
            async for piece in pieces:
                body += piece
                if len(body) > LONGEST_COMPLAINT:
                    break
    return body[:LONGEST_COMPLAINT]
