"""Keep-alives at any place, any line ends and any chunks give the same reply, in each
protocol.
"""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdd_agent.llm import timeouts
from cdd_agent.llm.clean_streams import CleanTransport
from cdd_agent.llm.direct.answers import IncomingAnswer, read_complaint
from cdd_agent.llm.direct.anthropic_reply import MessageReader
from cdd_agent.llm.direct.chat_reply import ChatReply
from cdd_agent.llm.direct.json_texts import is_keep_alive
from cdd_agent.llm.direct.ollama_reply import OllamaReader
from cdd_agent.llm.direct.protocol import NoReply
from cdd_agent.llm.direct.reply_reader import ReplyReader
from cdd_agent.llm.direct.response_reader import ResponseReader
from cdd_agent.llm.incomplete_answers import explain_incomplete
from cdd_agent.llm.port import (
    ConnectionFailed,
    Done,
    ModelEvent,
    NotAReply,
    TextDelta,
    ThoughtDelta,
    ToolCall,
)
from tests.llm.server import Answer, LoopbackServer
from tests.support.tables import each_row

Json = dict[str, object]


@dataclass(frozen=True)
class Protocol:
    """A protocol with a complete reply in it, one JSON object for each piece."""

    make_reader: Callable[[], ReplyReader]
    pieces: Sequence[Json]
    end_mark: str = ""
    has_events: bool = True
    """Its pieces are events. Otherwise each is a line."""


def chat_piece(stop: str | None = None, **delta: object) -> Json:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": stop}]}


CALL = {"index": 0, "id": "a", "function": {"name": "look", "arguments": '{"x"'}}
MORE = {"index": 0, "function": {"arguments": ": 1}"}}
CHAT = Protocol(
    ChatReply,
    (
        chat_piece(role="assistant", reasoning_content="Hm."),
        chat_piece(content="Gr\u00fc\u00dfe, "),
        chat_piece(content="\u4e16\u754c \U0001f680\u2028\n"),
        chat_piece(tool_calls=[CALL]),
        chat_piece(tool_calls=[MORE]),
        chat_piece("tool_calls"),
        {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}},
    ),
    "data: [DONE]\n\n",
)
ITEM = {
    "type": "function_call",
    "call_id": "a",
    "name": "look",
    "arguments": '{"x": 1}',
}
RESPONSES = Protocol(
    lambda: ResponseReader("here"),
    (
        {"type": "response.created", "response": {"status": "in_progress"}},
        {
            "type": "response.reasoning_summary_text.delta",
            "output_index": 0,
            "delta": "Hm.",
        },
        {"type": "response.output_text.delta", "output_index": 1, "delta": "Gr\u00fc"},
        {"type": "response.output_text.delta", "output_index": 1, "delta": "\u00dfe\n"},
        {"type": "response.output_item.done", "output_index": 2, "item": ITEM},
        {
            "type": "response.completed",
            "response": {
                "status": "completed",
                "output": [],
                "usage": {"input_tokens": 3, "output_tokens": 2},
            },
        },
    ),
)
MESSAGES = Protocol(
    lambda: MessageReader("here"),
    (
        {"type": "message_start", "message": {"usage": {"input_tokens": 3}}},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "thinking", "thinking": ""},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "thinking_delta", "thinking": "Hm."},
        },
        {
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "text_delta", "text": "Gr\u00fc\u00dfe\n"},
        },
        {
            "type": "content_block_start",
            "index": 2,
            "content_block": {"type": "tool_use", "id": "a", "name": "look"},
        },
        {
            "type": "content_block_delta",
            "index": 2,
            "delta": {"type": "input_json_delta", "partial_json": '{"x": 1}'},
        },
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use"},
            "usage": {"output_tokens": 2},
        },
    ),
    'event: message_stop\ndata: {"type": "message_stop"}\n\n',
)
OLLAMA = Protocol(
    lambda: OllamaReader("here"),
    (
        {"message": {"thinking": "Hm."}, "done": False},
        {"message": {"content": "Gr\u00fc\u00dfe, "}, "done": False},
        {"message": {"content": "\u4e16\u754c\u2028\n"}, "done": False},
        {
            "message": {
                "tool_calls": [{"function": {"name": "look", "arguments": {"x": 1}}}]
            },
            "done": False,
        },
        {
            "message": {"content": ""},
            "done": True,
            "done_reason": "stop",
            "prompt_eval_count": 3,
            "eval_count": 2,
        },
    ),
    has_events=False,
)
PROTOCOLS = {
    "chat completions": CHAT,
    "responses": RESPONSES,
    "messages": MESSAGES,
    "ollama": OLLAMA,
}

DATA_OF_KEEP_ALIVES = (
    "",
    "  ",
    "null",
    "true",
    "17",
    "1795767000.25",
    "ping",
    '"ping"',
    "keep alive, please wait",
    ": OPENROUTER PROCESSING",
    "2026-11-27T08:10:00.000Z",
    "Fri, 27 Nov 2026 08:10:00 GMT",
    "{}",
    "{ }",
    "[]",
    "[ ]",
    "[PING]",
    "[2026-11-27T08:10:00+00:00]",
    '{"type": "ping"}',
    '{"time": 1795767000}',
)
EVENTS_BETWEEN = (
    *(f"data: {data}\n\n" for data in DATA_OF_KEEP_ALIVES),
    *(f"event: ping\ndata: {data}\n\n" for data in DATA_OF_KEEP_ALIVES[:7]),
    "data:\n\n",
    "data\n\n",
    "data:\ndata:\n\n",
    "event: ping\n\n",
    "event: ping\nid: 7\n\n",
    "retry: 3000\n\n",
    ":\n",
    ":\n\n",
    ": keep-alive\n\n",
    ": 2026-11-27T08:10:00Z\n",
    "\n",
    "\n\n\n",
)
LINES_BETWEEN = (
    *(f"{data}\n" for data in DATA_OF_KEEP_ALIVES),
    *("\n", "\n\n", " \t\n"),
)


def keep_alives_of(protocol: Protocol) -> Sequence[str]:
    return EVENTS_BETWEEN if protocol.has_events else LINES_BETWEEN


def written(protocol: Protocol) -> list[str]:
    """Return the pieces of a protocol as a server sends them."""
    texts = [json.dumps(piece, ensure_ascii=False) for piece in protocol.pieces]
    if not protocol.has_events:
        return [f"{text}\n" for text in texts]
    events = []
    for piece, text in zip(protocol.pieces, texts, strict=True):
        name = f"event: {piece['type']}\n" if "type" in piece else ""
        events.append(f"{name}data: {text}\n\n")
    return [*events, protocol.end_mark]


async def in_chunks(chunks: Sequence[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def answer_of(
    protocol: Protocol, *chunks: str | bytes
) -> tuple[IncomingAnswer, list[ModelEvent]]:
    events: list[ModelEvent] = []
    answer = IncomingAnswer(protocol.make_reader(), events.append)
    encoded = [chunk.encode() if isinstance(chunk, str) else chunk for chunk in chunks]
    await answer.read(in_chunks(encoded))
    return answer, events


async def reply_in(
    protocol: Protocol, *chunks: str | bytes
) -> tuple[str, str, list[ToolCall], Done]:
    """Return the text, the thoughts, the calls and the end of a complete reply."""
    answer, events = await answer_of(protocol, *chunks)
    assert answer.reader.is_finished, "no legal end"
    events += answer.reader.end()
    return (
        "".join(event.text for event in events if isinstance(event, TextDelta)),
        "".join(event.text for event in events if isinstance(event, ThoughtDelta)),
        [event for event in events if isinstance(event, ToolCall)],
        answer.reader.done,
    )


@each_row("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
async def test_a_keep_alive_at_any_place_changes_nothing(protocol: Protocol) -> None:
    pieces = written(protocol)
    plain = await reply_in(protocol, *pieces)
    assert plain[0].startswith("Gr\u00fc\u00dfe")
    assert plain[1] == "Hm."
    assert [call.arguments for call in plain[2]] == ['{"x": 1}']

    for keep_alive in keep_alives_of(protocol):
        for place in range(len(pieces) + 1):
            body = [*pieces[:place], keep_alive, *pieces[place:]]
            assert await reply_in(protocol, *body) == plain, (keep_alive, place)


@each_row("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
async def test_keep_alives_alone_are_shown_and_no_address_is_blamed(
    protocol: Protocol,
) -> None:
    for keep_alive in keep_alives_of(protocol):
        answer, events = await answer_of(protocol, keep_alive * 3)
        error = explain_incomplete("some/model", answer.received)

        words = keep_alive.split()
        is_stream = bool(words) and (protocol.has_events or words[0] == ":")
        assert type(error) is NotAReply, keep_alive
        assert not events
        assert not words or words[-1] in error.message
        assert ("API base" in error.hint) is not is_stream


@each_row("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
async def test_a_reply_that_was_cut_shows_the_words_that_are_no_piece(
    protocol: Protocol,
) -> None:
    pieces = written(protocol)
    last = "data: upstream timed out\n\n" if protocol.has_events else "timed out\n"
    for body, shown in (
        ([*pieces[:2], last], "timed out"),
        ([*pieces[:2], pieces[2][:-9]], pieces[2][:-9].split()[-1]),
        ([pieces[0][:-5]], pieces[0][:-5].split()[-1]),
    ):
        answer, _ = await answer_of(protocol, *body)
        assert not answer.reader.is_finished

        error = explain_incomplete("some/model", answer.received)
        assert type(error) is ConnectionFailed
        assert shown in error.message
        assert "API base" not in error.hint


@each_row(
    "damaged",
    [
        '{"choices": [{"delta": {"content": "lost',
        'data: {"choices": [{"delta": {"content": "lost"}}]}',
        "[1, 2]",
        "<b>oops",
        "a long sentence that is lost " * 4,
    ],
)
async def test_a_damaged_piece_is_an_error_even_before_a_legal_end(
    damaged: str,
) -> None:
    assert not is_keep_alive(damaged)
    for protocol in (CHAT, RESPONSES, MESSAGES):
        pieces = written(protocol)
        with pytest.raises(NoReply) as raised:
            await reply_in(protocol, *pieces[:2], f"data: {damaged}\n\n", *pieces[2:])
        assert damaged[:20] in str(raised.value)


@st.composite
def bodies(draw: st.DrawFn) -> tuple[Protocol, list[bytes]]:
    """Draw a protocol, and its reply with keep-alives, line ends and cuts."""
    protocol = draw(st.sampled_from(list(PROTOCOLS.values())))
    keep_alive = st.sampled_from(keep_alives_of(protocol))
    parts = []
    for piece in [*written(protocol), ""]:
        parts += draw(st.lists(keep_alive, max_size=2))
        parts.append(piece)
    line_end = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    body = "".join(parts).replace("\n", line_end)
    if draw(st.booleans()):
        body = body.rstrip()
    encoded = (draw(st.sampled_from(["", "\ufeff"])) + body).encode()
    cuts = draw(st.lists(st.integers(0, len(encoded)), max_size=30))
    places = [0, *sorted(cuts), len(encoded)]
    return protocol, [encoded[start:end] for start, end in pairwise(places)]


@given(bodies())
async def test_any_chunks_line_ends_and_keep_alives_give_the_same_reply(
    body: tuple[Protocol, list[bytes]],
) -> None:
    protocol, chunks = body

    assert await reply_in(protocol, *chunks) == await reply_in(
        protocol, *written(protocol)
    )


async def test_events_without_empty_lines_between_them_are_read() -> None:
    pieces = written(CHAT)
    body = "data: ping\n" + "".join(pieces).replace("\n\n", "\n")

    assert await reply_in(CHAT, body) == await reply_in(CHAT, *pieces)


async def test_keep_alives_without_end_have_a_time_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:

    async def forever(*beginning: str) -> AsyncIterator[bytes]:
        for piece in beginning:
            yield piece.encode()
        while True:
            await asyncio.sleep(0.001)
            yield b": keep-alive\n\ndata: ping\n\n"

    for beginning, limit in (
        ([], "KEEP_ALIVE_TIMEOUT"),
        (written(CHAT)[:-1], "AFTER_END_TIMEOUT"),
    ):
        answer = IncomingAnswer(ChatReply(), lambda event: None)
        with monkeypatch.context() as limits:
            limits.setattr(timeouts, limit, 0.05)
            async with asyncio.timeout(30):
                if beginning:
                    await answer.read(forever(*beginning))
                else:
                    with pytest.raises(TimeoutError):
                        await answer.read(forever())
        assert answer.reader.is_finished is bool(beginning)


async def test_a_refusal_whose_body_does_not_end_has_a_time_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(timeouts, "COMPLAINT_TIMEOUT", 0.05)

    async def forever() -> AsyncIterator[bytes]:
        yield b'{"error": {"message": "No money.", "retryDelay": "3s"}}'
        await asyncio.sleep(60)

    async with asyncio.timeout(30):
        failure = await read_complaint(httpx.Response(429), forever())
    assert (failure.status, failure.words) == (429, "No money.")
    assert failure.retry_after == 3


async def ask_through_litellm_s_transport(body: str) -> httpx.Response:
    answer = Answer(raw=body, content_type="text/event-stream; charset=utf-8")
    with LoopbackServer([answer]) as server:
        transport = CleanTransport(httpx.AsyncHTTPTransport())
        async with httpx.AsyncClient(transport=transport) as client:
            return await client.post(
                f"{server.url}/chat/completions",
                json={"model": "m", "messages": [], "stream": True},
            )


async def test_litellm_s_transport_sends_on_one_clean_line_for_each_event() -> None:
    pieces = written(CHAT)
    response = await ask_through_litellm_s_transport(
        "".join(f"{one}data: ping\n\n: keep-alive\n\n" for one in pieces)
    )

    lines = [line for line in response.text.splitlines() if line]
    assert lines[-1] == "data: [DONE]"
    assert [json.loads(line[6:]) for line in lines[:-1]] == list(CHAT.pieces)


async def test_keep_alives_without_end_have_a_time_limit_for_litellm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(timeouts, "KEEP_ALIVE_TIMEOUT", -1.0)

    with pytest.raises(httpx.ReadTimeout):
        await ask_through_litellm_s_transport("data: ping\n\n")


class Sender(httpx.AsyncBaseTransport):
    """Answers each request with the same bytes, and never ends if `hangs`."""

    def __init__(
        self, status: int, headers: dict[str, str], body: bytes, *, hangs: bool = False
    ) -> None:
        self.status, self.headers, self.body = status, headers, body
        self.hangs = hangs
        self.requests: list[httpx.Request] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        return httpx.Response(self.status, headers=self.headers, content=self._pieces())

    async def _pieces(self) -> AsyncIterator[bytes]:
        yield self.body
        if self.hangs:
            await asyncio.sleep(60)

    async def post(self, **body: object) -> httpx.Response:
        transport = CleanTransport(self)
        async with (
            asyncio.timeout(30),
            httpx.AsyncClient(transport=transport, follow_redirects=True) as client,
        ):
            return await client.post("http://a.example/v1", json=body)


BODY = "".join(f"data: ping\n\n{one}" for one in written(CHAT)).encode()


@each_row(
    ("headers", "body"),
    [
        ({"Content-Type": "Text/Event-Stream; charset=UTF-8"}, BODY),
        ({"Content-Type": "application/json"}, BODY),
        ({"Content-Type": "text/plain"}, BODY),
        ({}, BODY),
        (
            {"Content-Type": "text/event-stream", "Content-Encoding": "gzip"},
            gzip.compress(BODY),
        ),
    ],
)
async def test_litellm_s_transport_cleans_streams_with_wrong_headers(
    headers: dict[str, str], body: bytes
) -> None:
    response = await Sender(200, headers, body).post(stream=True)
    lines = [line for line in response.text.splitlines() if line]
    assert [json.loads(line[6:]) for line in lines[:-1]] == list(CHAT.pieces)


@each_row(
    ("content_type", "sent"),
    [
        ("application/vnd.amazon.eventstream", {"stream": True}),
        ("application/json", {"stream": False}),
        ("application/json", {"text": "stream"}),
    ],
)
async def test_litellm_s_transport_leaves_other_answers_as_they_are(
    content_type: str, sent: dict[str, object]
) -> None:
    body = b'{\n "a": 1}\n\xff'
    response = await Sender(200, {"Content-Type": content_type}, body).post(**sent)
    assert response.content == body


@each_row(
    ("body", "event"),
    [
        ('{"error":\n {"message": "No."}}', {"error": {"message": "No."}}),
        (
            '{"choices": [{"message": {"tool_calls": [{"id": "a"}]}}]}',
            {"choices": [{"delta": {"tool_calls": [{"id": "a", "index": 0}]}}]},
        ),
        (
            '{"choices": [{"delta": {"reasoning_details": [{"data": "x"}]}}]}',
            {
                "choices": [
                    {"delta": {"reasoning_details": [{"data": "x"}], "reasoning": ""}}
                ]
            },
        ),
        ('{"message": "No."}', {"message": "No."}),
    ],
)
async def test_a_document_instead_of_a_stream_is_one_event_for_litellm(
    body: str, event: object
) -> None:
    sender = Sender(200, {"Content-Type": "application/json"}, body.encode())
    response = await sender.post(stream=True)
    assert json.loads(response.text.removeprefix("data: ")) == event


@each_row("status", [301, 302, 303, 307, 308])
async def test_litellm_s_transport_follows_no_redirect(status: int) -> None:
    sender = Sender(status, {"Location": "http://b.example/"}, b"")
    response = await sender.post(stream=True)
    assert (response.status_code, len(sender.requests)) == (status, 1)
    assert "http://b.example/" in response.text


async def test_a_refusal_without_end_has_a_time_limit_for_litellm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(timeouts, "COMPLAINT_TIMEOUT", 0.05)
    headers = {"Retry-After": "3", "Content-Length": "900"}
    sender = Sender(429, headers, b'{"error": "slow"}', hangs=True)
    response = await sender.post(stream=True)
    assert response.json() == {"error": "slow"}
    assert response.headers["Retry-After"] == "3"
