"""Streams as litellm can read them.

litellm and OpenAI's client fail at keep-alives that are not comments. After a text that
is not JSON, or at a line separator (U+2028) within a text, litellm even drops pieces of
a reply without an error.
"""

import asyncio
from collections.abc import AsyncIterator
from contextvars import ContextVar

import httpx

from cdd_agent.llm import timeouts
from cdd_agent.llm.direct.json_texts import JsonTexts

_LINE_BREAKS = {
    ord("\n"): " ",
    ord("\r"): " ",
    0x85: r"\u0085",
    0x2028: r"\u2028",
    0x2029: r"\u2029",
}
"""Characters that end a line for httpx. Raw line feeds are between the values of JSON,
the others within its strings.
"""

_PATTERNS = {
    "text/event-stream": "data: {}\n\n",
    "application/x-ndjson": "{}\n",
}
"""The form of a text in a stream, by the type of the stream's content."""

received_texts: ContextVar[list[JsonTexts]] = ContextVar("received_texts")
"""A list to which each stream that is read in this context is added."""


class CleanTransport(httpx.AsyncBaseTransport):
    """Sends requests by another transport. A stream in the answer has no keep-alives,
    and one line for each text.
    """

    def __init__(self, sender: httpx.AsyncBaseTransport) -> None:
        self._sender = sender

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        # a compressed stream cannot be read here
        request.headers["Accept-Encoding"] = "identity"
        response = await self._sender.handle_async_request(request)
        content_type = response.headers.get("Content-Type", "")
        pattern = _PATTERNS.get(content_type.partition(";")[0].strip().lower())
        if response.is_success and pattern:
            assert isinstance(response.stream, httpx.AsyncByteStream)
            response.stream = _CleanStream(response.stream, pattern)
        return response

    async def aclose(self) -> None:
        await self._sender.aclose()


class _CleanStream(httpx.AsyncByteStream):
    def __init__(self, stream: httpx.AsyncByteStream, pattern: str) -> None:
        self._stream = stream
        self._pattern = pattern

    async def __aiter__(self) -> AsyncIterator[bytes]:
        texts = JsonTexts()
        received_texts.get([]).append(texts)
        clock = asyncio.get_running_loop().time
        time_of_text = clock()
        async for piece in self._stream:
            for text in texts.feed(piece):
                yield self._encode(text)
                time_of_text = clock()
            if clock() - time_of_text > timeouts.KEEP_ALIVE_TIMEOUT:
                raise httpx.ReadTimeout("only keep-alives arrived")
            if texts.is_over:
                yield self._encode("[DONE]")
                return
        for text in texts.end():
            yield self._encode(text)
        if texts.is_cut:
            yield self._encode(texts.unused)

    def _encode(self, text: str) -> bytes:
        return self._pattern.format(text.translate(_LINE_BREAKS)).encode()

    async def aclose(self) -> None:
        await self._stream.aclose()
