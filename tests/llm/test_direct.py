"""Met by the direct adapter alone: servers as they are, byte for byte; proxies,
redirects, keys.
"""

import json

import pytest

from cdd_agent.llm import timeouts
from cdd_agent.llm.direct import json_texts
from cdd_agent.llm.direct.http_client import parse_url
from cdd_agent.llm.direct.json_texts import JsonTexts
from cdd_agent.llm.direct.model import DirectModel
from cdd_agent.llm.litellm_adapter import LitellmModel
from cdd_agent.llm.port import (
    AuthenticationFailed,
    BadAnswer,
    ConnectionFailed,
    ContextTooLong,
    Done,
    Message,
    ModelError,
    ModelEvent,
    ModelNotFound,
    NotAReply,
    RateLimited,
    Request,
    RequestRejected,
    StopReason,
    TextDelta,
    ThoughtDelta,
    ToolCall,
    Usage,
    WebPageAnswered,
)
from cdd_agent.llm.providers import endpoint_of
from tests.llm.listing import answering
from tests.llm.server import Answer, LoopbackServer, failure
from tests.support.replies import all_of
from tests.support.tables import each_row

MODEL = "openai/test-model"
REQUEST = Request((Message("user", "Say hello."),))


def model_at(base: str, name: str = MODEL) -> DirectModel:
    endpoint = endpoint_of(name, base)
    assert endpoint is not None
    return DirectModel(name, endpoint)


async def events_of(model: DirectModel) -> list[ModelEvent | Done]:
    return await all_of(model, REQUEST)


async def events_on(*script: Answer | str) -> list[ModelEvent | Done]:
    with LoopbackServer(list(script)) as server:
        return await events_of(model_at(server.url))


async def failure_on(*script: Answer | str) -> ModelError:
    with pytest.raises(ModelError) as raised:
        await events_on(*script)
    return raised.value


def chunk(finish_reason: str | None = None, **delta: object) -> str:
    return json.dumps(
        {"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]},
        ensure_ascii=False,
    )


def sse(*texts: str, end: str = "\n\n") -> str:
    return "".join(f"data: {text}{end}" for text in texts)


def raw(body: str, content_type: str = "text/event-stream") -> Answer:
    return Answer(raw=body, content_type=content_type)


HELLO, STOP = chunk(content="Hello"), chunk("stop")
WHOLE = {"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}]}
SPREAD = json.dumps(json.loads(HELLO), indent=1)


def test_json_in_lines_may_have_any_line_ends() -> None:
    body = '{"a": "\u00fc"}\n\n{"b": [\n{"c": 1}\r\n{"d": '
    texts = JsonTexts()

    assert [*texts.feed(body.encode()), *texts.end()] == [
        '{"a": "\u00fc"}',
        '{"b": [',
        '{"c": 1}',
    ]
    assert texts.is_cut
    assert texts.unused == '{"d": '


@each_row(
    "body",
    [
        sse(HELLO, STOP, "[DONE]"),
        sse(HELLO, STOP),
        sse(HELLO, STOP).rstrip(),
        sse(HELLO, STOP, end="\r\n\r\n"),
        sse(HELLO, STOP, end="\r\r"),
        "\ufeff" + sse(HELLO, STOP),
        ": PROCESSING\n\n" + sse(HELLO) + ": keep-alive\n\n:\n" + sse(STOP, "[DONE]"),
        "event: chunk\nid: 1\nretry: 10\n" + sse(HELLO) + "\n\n\n" + sse(STOP),
        sse(HELLO, STOP).replace("data: ", "data:"),
        "".join(f"data: {line}\n" for line in SPREAD.split("\n")) + "\n" + sse(STOP),
        sse(chunk(role="assistant", content=None), HELLO, chunk("stop", content=None)),
        sse(chunk(reasoning_content="Hm."), chunk(reasoning="Hm."), HELLO, STOP),
        sse(
            chunk(
                content=[
                    {"type": "thinking", "thinking": []},
                    {"type": "text", "text": "Hello"},
                ]
            ),
            STOP,
        ),
        sse('{"choices": []}', HELLO, '{"type": "ping"}', STOP),
        sse(HELLO, STOP, "[DONE]", "what comes now is not read"),
        sse(HELLO, chunk("eos")),
        "".join(f"{line}\n" for line in (HELLO, "", STOP)),
        f"\ufeff{HELLO}\r\n{STOP}",
        json.dumps(WHOLE),
        json.dumps(WHOLE) + "\n",
        "\n " + json.dumps({**WHOLE, "error": None}, indent=2),
        json.dumps({"choices": [{"message": {"content": "Hello"}}]}),
    ],
)
async def test_a_reply_is_read_in_every_way_that_servers_write_it(body: str) -> None:
    for content_type in (
        "text/event-stream",
        "application/json",
        "text/plain; charset=latin-1",
    ):
        events = await events_on(raw(body, content_type))

        text = [event for event in events if not isinstance(event, ThoughtDelta)]
        assert text == [
            TextDelta("Hello"),
            Done(StopReason.STOP, None, text[-1].provider_data),
        ]


@each_row(
    ("body", "becomes", "says"),
    [
        ("", NotAReply, "not a model's reply"),
        ("   \n\n", NotAReply, "not a model's reply"),
        (
            "<!doctype html><html>Log in</html>",
            WebPageAnswered,
            "(200): the server sent a web page",
        ),
        ("<?xml version='1.0'?><error/>", NotAReply, "not a model's reply"),
        ("Ollama is running", NotAReply, "not a model's reply"),
        ('{"models": []}', NotAReply, "not a model's reply"),
        ('{"choices": [', ConnectionFailed, "broke off"),
        ("[1, 2]", NotAReply, "not a model's reply"),
        (sse("[DONE]"), NotAReply, "before the reply began"),
        (sse(HELLO), ConnectionFailed, "broke off"),
        (sse(HELLO) + 'data: {"choices": [{"del', ConnectionFailed, "broke off"),
        (sse(HELLO, "<b>oops", STOP), BadAnswer, "cannot be read"),
        (sse(HELLO, "[" * 100_000, STOP), BadAnswer, "cannot be read"),
        (
            sse(HELLO, chunk("error")),
            BadAnswer,
            "no usable answer: it stopped with `error`",
        ),
        (sse(HELLO, chunk("insufficient_system_resource")), RateLimited, "(503)"),
        (
            sse(HELLO, '{"error": {"message": "Boom.", "type": "server_error"}}'),
            BadAnswer,
            "(500): Boom.",
        ),
        (
            sse('{"error": {"message": "Slow.", "code": "rate_limit_exceeded"}}'),
            RateLimited,
            "Slow.",
        ),
        (
            sse('{"error": {"message": "Slow.", "code": "429"}}'),
            RateLimited,
            "(429): Slow.",
        ),
        (
            sse('{"object": "error", "message": "No.", "code": 400}'),
            RequestRejected,
            "(400): No.",
        ),
        ('event: error\ndata: {"error": "Gone."}\n\n', BadAnswer, "Gone."),
        (
            '{"error": {"message": "Long.", "code": "context_length_exceeded"}}',
            ContextTooLong,
            "too long",
        ),
        (
            sse('{"error": {"message": "No.", "code": "content_filter"}}'),
            RequestRejected,
            "content filter",
        ),
        (
            sse('{"error": {"code": 502, "metadata": {"raw": "upstream"}}}'),
            BadAnswer,
            "(502): upstream",
        ),
    ],
)
async def test_everything_that_is_not_a_reply_has_an_error_type(
    body: str, becomes: type[ModelError], says: str
) -> None:
    error = await failure_on(raw(body))

    assert type(error) is becomes
    assert says in error.message
    assert error.hint


@each_row(
    "wording",
    [
        "This model's maximum context length is 8192 tokens.",
        (
            "This model's maximum prompt length is 131072 but the request contains"
            " 200000 tokens."
        ),
        (
            "the request exceeds the available context size. try increasing the context"
            " size"
        ),
        "prompt is too long: 215000 tokens > 200000 maximum",
        (
            "The input token count (2000000) exceeds the maximum number of tokens"
            " allowed (1048576)."
        ),
        "Your request exceeded model token limit: 8192",
        (
            "Prompt contains 40000 tokens, too large for model with 32768 maximum"
            " context length"
        ),
        (
            "The number of tokens to keep from the initial prompt is greater than the"
            " context length"
        ),
        "However, the model is loaded with context length of only 4096 tokens",
        (
            "Request too large for gpt-4o on tokens per min (TPM): Limit 30000,"
            " Requested 40000."
        ),
        (
            "<400> InternalError.Algo.InvalidParameter: Range of input length should"
            " be [1, 983616]"
        ),
        "Input length 203743 exceeds the maximum length 202752",
        "Your input exceeds the context window of this model.",
        "invalid params, context window exceeds limit (2013)",
        "prompt token count of 5000 exceeds the limit of 4096",
        "Prompt has 5000 tokens, but the configured context size is 4096 tokens",
        "The input (210000 tokens) is longer than the model's context length (200000)",
        "Please reduce the length of the messages or completion.",
        "Prompt exceeds max length",
        "prompt too long; exceeded max context length by 12 tokens",
        "Input is too long for requested model.",
        "`inputs` must have less than 4096 tokens. Given: 5000",
        "`inputs` tokens + `max_new_tokens` must be <= 8193",
        "too many tokens: total number of tokens in the prompt cannot exceed 4081",
    ],
)
async def test_every_wording_for_a_context_that_is_too_long_is_known(
    wording: str,
) -> None:
    assert type(await failure_on(failure(400, wording))) is ContextTooLong
    assert type(await failure_on(failure(429, wording))) is ContextTooLong


@each_row(
    ("body", "says"),
    [
        ('{"error": "No such model."}', "(404): No such model."),
        ('{"detail": "Not Found"}', "(404): Not Found"),
        ('{"message": "Unknown."}', "(404): Unknown."),
        ('{"detail": [{"msg": "odd"}]}', '(404): [{"msg": "odd"}]'),
        ('[{"error": {"message": "In a list."}}]', "(404): In a list."),
        (
            "<html><body>Nothing here</body></html>",
            (
                "(404): the server sent a web page instead of an API response:"
                " Nothing here"
            ),
        ),
        ("", "(404)."),
        ("x" * 200_000, "xxx…"),
    ],
)
async def test_a_refusal_of_any_form_is_quoted(body: str, says: str) -> None:
    error = await failure_on(Answer(status=404, raw=body))

    assert error.message.endswith(says)
    assert len(error.message) < 400


async def test_usage_is_read_with_or_after_the_last_piece() -> None:
    counted = {"usage": {"prompt_tokens": 3, "completion_tokens": 2}}
    for last in (
        sse(STOP, json.dumps({"choices": [], **counted})),
        sse(json.dumps({**json.loads(STOP), **counted})),
    ):
        events = await events_on(raw(sse(HELLO) + last))
        assert events[-1] == Done(StopReason.STOP, Usage(3, 2))


ZEROS = {"choices": [], "usage": {"prompt_tokens": 0, "completion_tokens": 0}}


async def test_zeros_at_the_end_do_not_replace_earlier_counts() -> None:
    counted = {"usage": {"prompt_tokens": 3, "completion_tokens": 2}}
    first = json.dumps({**json.loads(HELLO), **counted})
    events = await events_on(raw(sse(first, STOP, json.dumps(ZEROS))))
    assert events[-1] == Done(StopReason.STOP, Usage(3, 2))

    events = await events_on(raw(sse(HELLO, STOP, json.dumps(ZEROS))))
    assert events[-1] == Done(StopReason.STOP, Usage(0, 0))


@each_row(
    "garbage", ["<html>504</html>", '{"choices": [', "[[1]]", '{"a": 1}', "x" * 200]
)
async def test_garbage_after_a_complete_reply_changes_nothing(garbage: str) -> None:
    events = await events_on(raw(sse(HELLO, STOP, garbage)))
    assert events == [TextDelta("Hello"), Done()]


async def test_an_error_within_a_choice_is_quoted() -> None:
    choice = {
        "delta": {"content": ""},
        "finish_reason": "error",
        "error": {"code": 429, "message": "The host is busy."},
    }
    error = await failure_on(raw(sse(HELLO, json.dumps({"choices": [choice]}))))
    assert isinstance(error, RateLimited)
    assert "The host is busy." in error.message


async def test_a_complete_reply_counts_even_if_the_connection_breaks_afterwards() -> (
    None
):
    events = await events_on(Answer("Hello there", cut_after=3))

    assert events == [TextDelta("Hello "), TextDelta("there"), Done()]


@each_row("status", [400, 422])
async def test_a_server_that_refuses_to_count_is_asked_again_without_usage(
    status: int,
) -> None:
    refusal = failure(status, "Unrecognized request argument: stream_options")
    with LoopbackServer([refusal, "Hello", "Hello"]) as server:
        model = model_at(server.url)
        await events_of(model)
        await events_of(model)

    assert ["stream_options" in request.body for request in server.requests] == [
        True,
        False,
        False,
    ]


def piece(
    index: int | None = None,
    id_: str | None = None,
    name: str | None = None,
    arguments: object = "",
) -> str:
    call = {
        "index": index,
        "id": id_,
        "function": {"name": name, "arguments": arguments},
    }
    return chunk(
        tool_calls=[{key: value for key, value in call.items() if value is not None}]
    )


A, B = ToolCall("a", "read", '{"x": 1}'), ToolCall("b", "list", "{}")
BEGUN = [piece(0, "a", "read"), piece(1, "b", "list")]


@each_row(
    "pieces",
    [
        [
            *BEGUN,
            piece(0, arguments='{"x"'),
            piece(1, arguments="{}"),
            piece(0, arguments=": 1}"),
        ],
        [piece(0, "a", "read", '{"x": 1}'), piece(0, "b", "list", "{}")],
        [
            piece(None, "a", "read", '{"x"'),
            piece(arguments=": 1}"),
            piece(None, "b", "list", "{}"),
        ],
        [
            piece(0, "a", "read", '{"x"'),
            piece(0, "a", "read", ": 1}"),
            piece(1, "b", "list", "{}"),
        ],
        [
            piece(0, "a", "read", '{"x"'),
            piece(0, "another", None, ": 1}"),
            piece(1, "b", "list", "{}"),
        ],
        [piece(0, "a", "read", {"x": 1}), piece(1, "b", "list", {})],
    ],
    ids=[
        "interleaved",
        "all are number 0",
        "no numbers",
        "id and name in each",
        "another id in each",
        "objects",
    ],
)
async def test_tool_calls_are_assembled_from_pieces_of_any_form(
    pieces: list[str],
) -> None:
    assert (await events_on(raw(sse(*pieces, chunk("tool_calls")))))[:-1] == [A, B]


async def test_a_provider_s_data_stays_with_its_call() -> None:
    signed = {"index": 0, "extra_content": {"signature": "s"}}
    pieces = [*BEGUN, chunk(tool_calls=[signed]), piece(1, arguments="{}")]
    *_, done = await events_on(raw(sse(*pieces, chunk("tool_calls"))))

    assert isinstance(done, Done)
    assert done.provider_data is not None
    assert json.loads(done.provider_data.data)["calls"] == [{"signature": "s"}, None]


async def test_tool_calls_without_ids_get_distinct_ids() -> None:
    pieces = [piece(0, None, "read", "{}"), piece(1, "", "list", "{}")]
    first, second, _ = await events_on(raw(sse(*pieces, chunk("tool_calls"))))

    assert isinstance(first, ToolCall)
    assert isinstance(second, ToolCall)
    assert first.id != second.id


async def test_an_endless_line_is_not_kept_in_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(json_texts, "LONGEST_TEXT", 10_000)
    endless = "x" * 20_000
    for body in (
        f"{sse(HELLO)}data: {endless}",
        "data: x\n" * 5_000,
        f'{{"choices": "{endless}',
        f"{HELLO}\n{endless}",
    ):
        assert isinstance(await failure_on(raw(body)), BadAnswer)


@each_row(
    "base",
    [
        "http://127.0.0.1:99999/v1",
        "http://a..b/v1",
        "http://\udcff/",
        "ftp://127.0.0.1/",
        "http://127.0.0.1/\0",
    ],
)
async def test_an_unusable_address_is_an_error(base: str) -> None:
    with pytest.raises(ModelNotFound, match="URL"):
        await events_of(model_at(base))


@each_row(
    ("base", "url"),
    [
        ("http://h:1/v1", "http://h:1/v1/chat/completions"),
        ("http://h:1/v1/?key=a%2Fb#x", "http://h:1/v1/chat/completions?key=a%2Fb#x"),
        ("http://h:1/a%2Fb%20c/v1", "http://h:1/a%2Fb%20c/v1/chat/completions"),
        ("http://h:1/é/v1", "http://h:1/%C3%A9/v1/chat/completions"),
        ("http://h:1/v1/chat/completions/", "http://h:1/v1/chat/completions"),
        ("http://h:1", "http://h:1/chat/completions"),
    ],
)
def test_the_address_of_calls_keeps_what_the_user_wrote(base: str, url: str) -> None:
    assert str(parse_url(base, "/chat/completions")) == url


async def test_headers_that_never_end_have_a_time_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(timeouts, "KEEP_ALIVE_TIMEOUT", 0.2)
    headers = [b"HTTP/1.1 200 OK\r\n", *[b"X-More: 1\r\n"] * 600]
    with answering(headers, pause=0.02) as (port, _):
        model = model_at(f"http://127.0.0.1:{port}/v1")
        with pytest.raises(ConnectionFailed, match="did not answer in time"):
            await events_of(model)


async def test_a_redirect_is_not_followed() -> None:
    with LoopbackServer(["Hello"]) as elsewhere:
        error = await failure_on(
            Answer(status=307, raw="", headers={"Location": elsewhere.url})
        )

    assert type(error) is ModelNotFound
    assert elsewhere.url in error.message
    assert not elsewhere.requests


@each_row(
    ("key", "sent"),
    [("a-key-for-tests", "Bearer a-key-for-tests"), (" k \n", "Bearer k"), ("", None)],
)
async def test_the_key_is_sent_if_there_is_one(
    key: str, sent: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with LoopbackServer(["Hello"]) as server:
        await events_of(model_at(server.url))

    assert server.requests[0].headers.get("Authorization") == sent


async def test_a_missing_key_is_named_before_anything_is_sent() -> None:
    endpoint = endpoint_of("groq/llama")
    assert endpoint is not None
    with pytest.raises(AuthenticationFailed, match="groq/llama") as raised:
        await events_of(DirectModel("groq/llama", endpoint))

    assert "GROQ_API_KEY" in raised.value.hint


@each_row("key", ["sk-\N{CYRILLIC SMALL LETTER A}bc", "sk-a\nsk-b"])
async def test_a_key_that_no_header_can_hold_is_refused_and_not_shown(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with LoopbackServer(["Hello"]) as server:
        for model in (model_at(server.url), LitellmModel(MODEL, server.url)):
            with pytest.raises(AuthenticationFailed, match="characters") as raised:
                await all_of(model, REQUEST)
            assert "sk-" not in raised.value.message + raised.value.hint
            assert "OPENAI_API_KEY" in raised.value.hint


async def test_a_conversation_may_contain_invalid_unicode() -> None:
    with LoopbackServer(["Hello"]) as server:
        request = Request((Message("user", "odd: \udcff"),))
        events = await all_of(model_at(server.url), request)

    assert isinstance(events[-1], Done)
