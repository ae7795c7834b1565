"""Clean up streams so that litellm can read them.

litellm and OpenAI's client fail at keep-alives that are not comments. After text that
is not JSON, or at a line separator (U+2028) in a text, litellm even loses parts of a
reply without an error.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextvars import ContextVar

import httpx

from cdd_agent.llm import timeouts
from cdd_agent.llm.direct.answers import read_refusal
from cdd_agent.llm.direct.json_texts import JsonTexts
from cdd_agent.llm.direct.json_values import as_dict, dicts_in, read_json
from cdd_agent.pattern import Pattern

_LINE_BREAKS = {
    ord("\n"): " ",
    ord("\r"): " ",
    0x85: r"\u0085",
    0x2028: r"\u2028",
    0x2029: r"\u2029",
}
"""Characters that end a line for httpx. Raw line feeds are between JSON values, the
others in strings.
"""

_PATTERNS = {
    "text/event-stream": "data: {}\n\n",
    "application/x-ndjson": "{}\n",
}
"""The format of a text in a stream, by content type."""
_WRONG_TYPES = Pattern(r"|text/.*|application/(?:json|octet-stream)")
"""Types that servers also give to event streams. An answer that is no stream, such as
an error in JSON, becomes one event.
"""
_ASKS_FOR_STREAM = Pattern(rb'"stream":\s*true')

received_texts: ContextVar[list[JsonTexts]] = ContextVar("received_texts")
"""Each stream that is read in this context is added to this list."""


class CleanTransport(httpx.AsyncBaseTransport):
    """Wraps another transport. Removes keep-alives from streams and puts each text on
    one line. A refusal ends in time, and a redirect is a refusal.
    """

    def __init__(self, sender: httpx.AsyncBaseTransport) -> None:
        self._sender = sender

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        # a compressed stream arrives late
        request.headers["Accept-Encoding"] = "identity"
        response = await self._sender.handle_async_request(request)
        is_redirect = response.has_redirect_location and request.method != "GET"
        if is_redirect or response.is_error:
            return await _read_refusal(response, is_redirect=is_redirect)
        pattern = _pattern_for(request, response)
        if response.is_success and pattern:
            stream = _CleanStream(_decoded(response), pattern)
            response.headers.pop("Content-Encoding", None)
            response.stream = stream
        return response

    async def aclose(self) -> None:
        await self._sender.aclose()


async def _read_refusal(
    response: httpx.Response, *, is_redirect: bool
) -> httpx.Response:
    """Return a refusal with the body that arrives in time. A redirect's text names the
    new address: it is not followed, because key and prompt are for the configured
    server alone.
    """
    body = await read_refusal(_decoded(response).aiter_bytes())
    headers = response.headers.copy()
    for name in ("Content-Encoding", "Content-Length", "Transfer-Encoding"):
        headers.pop(name, None)
    if is_redirect:
        body = f"it names {headers.pop('Location')}".encode()
    await response.aclose()
    return httpx.Response(response.status_code, headers=headers, content=body)


def _pattern_for(request: httpx.Request, response: httpx.Response) -> str | None:
    """Return the format for the texts of an answer; None if it is no stream."""
    content_type = response.headers.get("Content-Type", "")
    content_type = content_type.partition(";")[0].strip().lower()
    if content_type in _PATTERNS:
        return _PATTERNS[content_type]
    if _WRONG_TYPES.fullmatch(content_type) and _asks_for_stream(request):
        return _PATTERNS["text/event-stream"]
    return None


def _asks_for_stream(request: httpx.Request) -> bool:
    try:
        return _ASKS_FOR_STREAM.search(request.content) is not None
    # its body is not that of a model call
    except httpx.RequestNotRead:
        return False


def _decoded(response: httpx.Response) -> httpx.Response:
    """Wrap a response to decode its bytes: some servers compress although cdd asks them
    not to.
    """
    return httpx.Response(
        response.status_code, headers=response.headers, stream=response.stream
    )


def _as_piece(text: str) -> str:
    if '"message"' not in text and '"reasoning_details"' not in text:
        return text
    document = as_dict(read_json(text))
    is_changed = False
    for choice in dicts_in(document.get("choices")):
        # some servers send a whole reply despite the request for a stream
        if "message" in choice:
            choice["delta"] = choice.pop("message")
            calls = dicts_in(as_dict(choice["delta"]).get("tool_calls"))
            for number, call in enumerate(calls):
                call.setdefault("index", number)
            is_changed = True
        delta = as_dict(choice.get("delta"))
        # litellm drops a piece that has only OpenRouter's details of thoughts
        if delta.get("reasoning_details") and delta.get("reasoning") is None:
            delta["reasoning"] = ""
            is_changed = True
    return json.dumps(document) if is_changed else text


class _CleanStream(httpx.AsyncByteStream):
    def __init__(self, source: httpx.Response, pattern: str) -> None:
        self._source = source
        self._pattern = pattern

    async def __aiter__(self) -> AsyncIterator[bytes]:
        texts = JsonTexts()
        received_texts.get([]).append(texts)
        clock = asyncio.get_running_loop().time
        time_of_text = clock()
        async for piece in self._source.aiter_bytes():
            for text in texts.feed(piece):
                yield self._encode(_as_piece(text))
                time_of_text = clock()
            if clock() - time_of_text > timeouts.KEEP_ALIVE_TIMEOUT:
                raise httpx.ReadTimeout("only keep-alives arrived")
            if texts.is_over:
                yield self._encode("[DONE]")
                return
        for text in texts.end():
            yield self._encode(_as_piece(text))

    def _encode(self, text: str) -> bytes:
        return self._pattern.format(text.translate(_LINE_BREAKS)).encode()

    async def aclose(self) -> None:
        await self._source.aclose()
