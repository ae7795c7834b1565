"""The Responses API: what is asked, and how its events become a reply, byte for
byte.
"""

import json
from typing import Any

import pytest

from cdd_agent.llm.direct.model import DirectModel
from cdd_agent.llm.direct.openai_responses import OpenAIResponses
from cdd_agent.llm.direct.response_reader import ResponseReader
from cdd_agent.llm.failures import Failure
from cdd_agent.llm.options import Effort, ModelOptions
from cdd_agent.llm.port import (
    BadAnswer,
    ConnectionFailed,
    ContextTooLong,
    Done,
    Message,
    ModelError,
    ModelEvent,
    NotAReply,
    QuotaUsedUp,
    RateLimited,
    Request,
    RequestRejected,
    StopReason,
    TextDelta,
    ThoughtDelta,
    ToolCall,
    ToolDefinition,
    Usage,
    WebPageAnswered,
)
from cdd_agent.llm.providers import endpoint_of
from tests.llm.server import Answer, LoopbackServer, failure
from tests.support.replies import all_of
from tests.support.tables import each_row

Json = dict[str, Any]
REQUEST = Request((Message("system", "Be brief."), Message("user", "Say hello.")))
LOOK = ToolDefinition(
    "look",
    "Look around.",
    {"type": "object", "properties": {"path": {"type": "string"}}},
)


def model_at(
    base: str, name: str = "gpt-5.6", options: ModelOptions | None = None
) -> DirectModel:
    endpoint = endpoint_of(f"openai/responses/{name}", base)
    assert endpoint is not None
    return DirectModel(f"openai/responses/{name}", endpoint, options or ModelOptions())


async def events_on(
    *script: Answer, request: Request = REQUEST
) -> list[ModelEvent | Done]:
    with LoopbackServer(list(script)) as server:
        return await all_of(model_at(server.url), request)


def stream(*events: Json) -> Answer:
    return Answer(
        raw="".join(f"data: {json.dumps(one)}\n\n" for one in events),
        content_type="text/event-stream",
    )


def message(text: str, **more: object) -> Json:
    part = {"type": "output_text", "text": text, "annotations": []}
    return {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [part],
        **more,
    }


def call(number: int = 1, **more: object) -> Json:
    ids = {"id": f"fc_{number}", "call_id": f"call_{number}"}
    return {
        "type": "function_call",
        **ids,
        "name": "look",
        "arguments": "{}",
        "status": "completed",
        **more,
    }


def delta(
    piece: str, kind: str = "output_text", place: int = 0, **more: object
) -> Json:
    return {
        "type": f"response.{kind}.delta",
        "output_index": place,
        "delta": piece,
        **more,
    }


def done(item: Json, place: int = 0) -> Json:
    return {"type": "response.output_item.done", "output_index": place, "item": item}


def response(*output: Json, status: str = "completed", **more: object) -> Json:
    return {
        "object": "response",
        "id": "resp_1",
        "status": status,
        "output": list(output),
        "error": None,
        **more,
    }


def over(*output: Json, status: str = "completed", **more: object) -> Json:
    return {
        "type": f"response.{status}",
        "response": response(*output, status=status, **more),
    }


THOUGHT: Json = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [],
    "encrypted_content": "gAAA",
}
SUMMARY = [
    {"type": "summary_text", "text": "Hm."},
    {"type": "summary_text", "text": "So."},
]
HELLO = message("Hello")


@each_row(
    "answer",
    [
        stream(delta("Hel"), delta("lo"), done(HELLO), over(HELLO)),
        stream(delta("Hel"), delta("lo"), done(HELLO), over()),
        stream(delta("Hel"), delta("lo"), over(HELLO)),
        stream(done(HELLO), over()),
        stream(over(HELLO)),
        stream(
            {"type": "response.created", "response": response(status="in_progress")},
            over(HELLO),
        ),
        stream(
            {"type": "response.output_text.delta", "delta": "Hello"},
            {"type": "ping"},
            over(HELLO),
        ),
        stream(
            delta("Hello"),
            {"type": "response.new_thing.delta", "delta": "?"},
            {"type": "response.completed"},
        ),
        Answer(raw=json.dumps(response(HELLO))),
        Answer(raw=json.dumps(response(HELLO, output_text="Hello"), indent=1)),
    ],
)
async def test_a_reply_is_read_in_every_way_that_servers_write_it(
    answer: Answer,
) -> None:
    events = await events_on(answer)

    assert (
        "".join(event.text for event in events if isinstance(event, TextDelta))
        == "Hello"
    )
    assert events[-1] == Done()


@each_row(
    ("last", "reason", "word"),
    [
        (
            over(
                status="incomplete", incomplete_details={"reason": "max_output_tokens"}
            ),
            StopReason.LENGTH,
            "",
        ),
        (
            over(status="incomplete", incomplete_details={"reason": "content_filter"}),
            StopReason.REFUSED,
            "",
        ),
        (
            over(status="incomplete", incomplete_details={"reason": "max_time"}),
            StopReason.UNKNOWN,
            "max_time",
        ),
        (
            over(status="incomplete", incomplete_details={"reason": "stop"}),
            StopReason.UNKNOWN,
            "stop",
        ),
        (over(status="incomplete"), StopReason.UNKNOWN, "incomplete"),
        (over(status="cancelled"), StopReason.UNKNOWN, "cancelled"),
        (over(call(status="incomplete")), StopReason.UNKNOWN, "incomplete"),
        (
            {"type": "response.completed", "response": response(status="unheard_of")},
            StopReason.UNKNOWN,
            "unheard_of",
        ),
    ],
)
async def test_only_a_completed_response_is_complete_and_makes_calls(
    last: Json, reason: StopReason, word: str
) -> None:
    events = await events_on(stream(delta("Half"), done(call(), 1), last))

    assert (events[0], events[-1]) == (TextDelta("Half"), Done(reason, stop_word=word))
    assert not [event for event in events if isinstance(event, ToolCall)]


@each_row(
    "events",
    [
        [delta("I can", "refusal"), delta("not.", "refusal"), over()],
        [over(message("", content=[{"type": "refusal", "refusal": "I cannot."}]))],
    ],
)
async def test_a_refusal_of_the_model_is_shown_and_not_a_reply(
    events: list[Json],
) -> None:
    told = await events_on(stream(*events))

    assert (
        "".join(event.text for event in told if isinstance(event, TextDelta))
        == "I cannot."
    )
    assert told[-1] == Done(StopReason.REFUSED)


async def test_thoughts_and_texts_in_two_items_become_paragraphs() -> None:
    thoughts = [
        delta(part["text"], "reasoning_summary_text", summary_index=n)
        for n, part in enumerate(SUMMARY)
    ]
    says = [
        delta("I look.", place=1),
        delta("It is ", place=2),
        delta("there.", place=2),
    ]
    streamed = await events_on(stream(*thoughts, *says, over()))
    whole = await events_on(
        Answer(
            raw=json.dumps(
                response(
                    {**THOUGHT, "summary": SUMMARY},
                    message("I look."),
                    message("It is there."),
                )
            )
        )
    )

    for events in (streamed, whole):
        assert (
            "".join(event.text for event in events if isinstance(event, ThoughtDelta))
            == "Hm.\n\nSo."
        )
        assert (
            "".join(event.text for event in events if isinstance(event, TextDelta))
            == "I look.\n\nIt is there."
        )


async def test_thoughts_of_private_servers_are_not_part_of_the_text() -> None:
    harmony = "<|channel|>analysis<|message|>Hm.<|end|>Hello"
    events = await events_on(
        stream(
            delta("Hm. ", "reasoning_text", content_index=0),
            delta(harmony, place=1),
            over(),
        )
    )

    assert (
        "".join(event.text for event in events if isinstance(event, ThoughtDelta))
        == "Hm. Hm."
    )
    assert (
        "".join(event.text for event in events if isinstance(event, TextDelta))
        == "Hello"
    )


@each_row(
    ("answer", "becomes", "says"),
    [
        (
            stream(
                over(
                    status="failed", error={"code": "server_error", "message": "Boom."}
                )
            ),
            BadAnswer,
            "(500): Boom.",
        ),
        (
            stream(
                over(
                    status="failed",
                    error={"code": "rate_limit_exceeded", "message": "Slow."},
                )
            ),
            RateLimited,
            "(429): Slow.",
        ),
        (
            stream(
                over(
                    status="failed", error={"code": "invalid_prompt", "message": "No."}
                )
            ),
            RequestRejected,
            "(400): No.",
        ),
        (
            stream(
                over(status="failed", error={"code": "bio_policy", "message": "No."})
            ),
            RequestRejected,
            "filter",
        ),
        (stream(over(status="failed")), BadAnswer, "the response failed"),
        (
            Answer(raw=json.dumps(response(status="failed"))),
            BadAnswer,
            "the response failed",
        ),
        (
            stream({"type": "error", "code": "insufficient_quota", "message": "Pay."}),
            QuotaUsedUp,
            "(429): Pay.",
        ),
        (
            stream(
                {"type": "error", "error": {"code": "server_error", "message": "Boom."}}
            ),
            BadAnswer,
            "Boom.",
        ),
        (
            stream(
                delta("He"),
                {
                    "type": "error",
                    "code": "context_length_exceeded",
                    "message": "Long.",
                },
            ),
            ContextTooLong,
            "too long",
        ),
        (stream(delta("Hello"), done(HELLO)), ConnectionFailed, "broke off"),
        (
            Answer(raw=json.dumps(response(status="in_progress"))),
            ConnectionFailed,
            "broke off",
        ),
        (Answer(raw='{"choices": []}'), NotAReply, "not a model's reply"),
        (
            stream({"choices": [{"delta": {"content": "Hello"}}]}),
            NotAReply,
            "not a model's reply",
        ),
        (
            Answer(raw="<html>Log in</html>"),
            WebPageAnswered,
            "(200): the server sent a web page",
        ),
        (
            Answer(raw='data: {"type": "response.created"}\n\ndata: oops\n\n'),
            ConnectionFailed,
            "broke off before its end: oops",
        ),
    ],
)
async def test_everything_that_is_not_a_reply_has_an_error_type(
    answer: Answer, becomes: type[ModelError], says: str
) -> None:
    with pytest.raises(ModelError) as raised:
        await events_on(answer)

    assert type(raised.value) is becomes
    assert says in raised.value.message


async def test_tool_calls_arrive_complete_with_the_ids_for_their_results() -> None:
    odd = call(3, call_id="", name="look<|channel|>commentary", arguments={"path": "a"})
    events = await events_on(
        stream(done(call(1)), done(call(2), 1), done(odd, 2), over())
    )

    assert events[:-1] == [
        ToolCall("call_1", "look", "{}"),
        ToolCall("call_2", "look", "{}"),
        ToolCall("call_3", "look", '{"path": "a"}'),
    ]


async def test_usage_includes_cached_written_and_thinking_tokens() -> None:
    usage = {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 15},
    }
    assert (await events_on(stream(over(HELLO, usage=usage))))[-1] == Done(
        usage=Usage(100, 20, False, None, 60, 30, 15)
    )
    assert (await events_on(stream(over(HELLO, usage={"input_tokens": 3}))))[
        -1
    ] == Done(usage=Usage(3, 0))


def data_of(*output: Json) -> list[Json] | None:
    reader = ResponseReader("here")
    list(reader.read_text(json.dumps(response(*output))))
    list(reader.end())
    data = reader.done.provider_data
    return None if data is None else json.loads(data.data)


def test_provider_data_is_sent_back_completely_or_not_at_all() -> None:
    unreadable = {**THOUGHT, "encrypted_content": None}
    commentary = message("I look.", phase="commentary")

    assert data_of(THOUGHT, commentary, call()) == [THOUGHT, commentary, call()]
    assert data_of(commentary) == [commentary]
    # nothing came of the last thoughts
    assert data_of(THOUGHT, HELLO, THOUGHT) == [THOUGHT, HELLO]
    assert data_of(HELLO, call()) is None  # it can be said in our own words
    assert data_of(unreadable, HELLO, call()) is None
    assert data_of(THOUGHT) is None


def body_of(
    *messages: Message,
    name: str = "gpt-5.6",
    options: ModelOptions | None = None,
    tools: bool = False,
) -> Json:
    endpoint = endpoint_of(f"openai/responses/{name}", "http://127.0.0.1:9/v1", {})
    assert endpoint is not None
    protocol = OpenAIResponses(f"openai/{name}", endpoint, options or ModelOptions())
    body = protocol.call(
        Request(messages or REQUEST.messages, (LOOK,) if tools else ())
    ).body
    return {key: value for key, value in body.items() if key != "prompt_cache_key"}


def test_a_request_disables_storage_and_has_flat_tools() -> None:
    assert body_of(tools=True) == {
        "model": "gpt-5.6",
        "instructions": "Be brief.",
        "input": [{"role": "user", "content": "Say hello."}],
        "tools": [
            {
                "type": "function",
                "name": "look",
                "description": "Look around.",
                "parameters": LOOK.parameters,
                "strict": False,
            }
        ],
        "include": ["reasoning.encrypted_content"],
        "store": False,
        "stream": True,
    }


def test_messages_of_another_model_have_no_item_ids() -> None:
    long = "call_" + "x" * 100
    made = (ToolCall("a", "look", '{"path": '), ToolCall(long, "look", "{}"))
    answers = (
        Message("tool", "No.", tool_call_id="a"),
        Message("tool", "There.", tool_call_id=long),
    )
    said = Message("assistant", "I look.", made)

    items = body_of(Message("user", "Look."), said, *answers)["input"]

    assert items[1:3] == [
        {"role": "assistant", "content": "I look."},
        {
            "type": "function_call",
            "call_id": "a",
            "name": "look",
            "arguments": '{"not_json": "{\\"path\\": "}',
        },
    ]
    assert items[3]["call_id"] == items[5]["call_id"]
    assert len(items[3]["call_id"]) <= 64


@each_row(
    ("name", "effort", "word"),
    [
        *(
            ("gpt-5.6", effort, effort.value)
            for effort in (Effort.NONE, Effort.LOW, Effort.MEDIUM, Effort.HIGH)
        ),
        ("gpt-5.6", Effort.MAX, "xhigh"),
        ("gpt-6-sol", Effort.MAX, "max"),
        ("gpt-5", Effort.NONE, "minimal"),
        ("gpt-5", Effort.MAX, "high"),
        ("gpt-5-codex", Effort.NONE, "low"),
        ("o3", Effort.NONE, "low"),
        ("unheard-of", Effort.NONE, "none"),
        ("gpt-4o", Effort.HIGH, None),
    ],
)
def test_the_nearest_effort_that_the_model_supports_is_sent(
    name: str, effort: Effort, word: str | None
) -> None:
    body = body_of(name=name, options=ModelOptions(effort=effort))

    assert body.get("reasoning", {}).get("effort") == word


def test_summaries_of_thoughts_are_requested_only_if_watched() -> None:
    assert body_of(options=ModelOptions(watched=True))["reasoning"] == {
        "summary": "auto"
    }
    assert body_of(options=ModelOptions(watched=True, effort=Effort.NONE))[
        "reasoning"
    ] == {"effort": "none"}
    assert "reasoning" not in body_of()
    assert "reasoning" not in body_of(name="gpt-4o", options=ModelOptions(watched=True))


def test_sampling_parameters_go_to_models_that_do_not_think() -> None:
    options = ModelOptions(
        temperature=0.2, max_output_tokens=99, body={"service_tier": "flex"}
    )

    assert body_of(name="gpt-4o", options=options)["temperature"] == 0.2
    assert "include" not in body_of(name="gpt-4o", options=options)
    assert "temperature" not in body_of(options=options)
    assert (
        body_of(options=options)["max_output_tokens"],
        body_of(options=options)["service_tier"],
    ) == (99, "flex")


def test_the_cache_key_stays_the_same_during_a_run() -> None:
    endpoint = endpoint_of("openai/gpt-5.6", None, {})
    assert endpoint is not None
    protocol = OpenAIResponses("openai/gpt-5.6", endpoint)
    first, second = (protocol.call(REQUEST).body["prompt_cache_key"] for _ in range(2))

    assert (
        first
        == second
        != OpenAIResponses("openai/gpt-5.6", endpoint)
        .call(REQUEST)
        .body["prompt_cache_key"]
    )


@each_row(
    ("refusal", "gone"),
    [
        ("Unknown parameter: 'prompt_cache_key'.", "prompt_cache_key"),
        (
            "Unsupported parameter: 'temperature' is not supported with this model.",
            "temperature",
        ),
        ("Encrypted content is not supported with this model.", "include"),
        ("Invalid value for 'include[0]'.", "include"),
        ("Unknown parameter: 'reasoning'.", "reasoning"),
        ("Your organization must be verified to stream this model.", "stream"),
        ("Unsupported parameter: 'max_output_tokens'", "max_output_tokens"),
    ],
)
async def test_parameters_that_a_server_refuses_are_left_out_afterwards(
    refusal: str, gone: str
) -> None:
    options = ModelOptions(
        effort=Effort.HIGH, temperature=0.5, max_output_tokens=99, watched=True
    )
    with LoopbackServer(
        [failure(400, refusal), stream(over(HELLO)), stream(over(HELLO))]
    ) as server:
        model = model_at(server.url, "of-ones-own", options)
        for _ in range(2):
            events = await all_of(model, REQUEST)
            assert events[0] == TextDelta("Hello")

    first, *others = (request.body for request in server.requests)
    assert [first.keys() - other.keys() for other in others] == [{gone}] * 2


@each_row(
    ("param", "left"),
    [
        ("reasoning.effort", {"summary": "auto"}),
        ("reasoning.summary", {"effort": "high"}),
    ],
)
async def test_a_refused_part_of_the_reasoning_is_left_out_alone(
    param: str, left: Json
) -> None:
    refusal = Answer(
        status=400,
        raw=json.dumps({"error": {"message": "Unsupported value.", "param": param}}),
    )
    with LoopbackServer([refusal, stream(over(HELLO))]) as server:
        model = model_at(
            server.url, options=ModelOptions(effort=Effort.HIGH, watched=True)
        )
        assert await all_of(model, REQUEST)

    assert server.requests[1].body["reasoning"] == left


@each_row(
    "words",
    [
        "The model is not there.",
        "Invalid type for 'input[0].content'.",
        "Unknown parameter: 'store'.",
    ],
)
async def test_a_refusal_of_a_required_parameter_is_not_repeated(words: str) -> None:
    with (
        LoopbackServer([failure(400, words)]) as server,
        pytest.raises(RequestRejected),
    ):
        assert await all_of(model_at(server.url), REQUEST)

    assert len(server.requests) == 1


def test_a_second_identical_refusal_teaches_nothing() -> None:
    endpoint = endpoint_of("openai/gpt-5.6", None, {})
    assert endpoint is not None
    protocol = OpenAIResponses("openai/gpt-5.6", endpoint)
    for words in (
        "invalid_encrypted_content",
        "Unknown parameter: 'prompt_cache_key'.",
    ):
        refused = Failure(status=400, words=words, all_words=words)
        assert [protocol.adapts_to(refused) for _ in range(2)] == [True, False]
