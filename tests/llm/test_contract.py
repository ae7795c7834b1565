"""The contract of every model adapter: the same script, played by each; then that of
those that ask a server.
"""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from cdd_agent.context.finder import CodeFinder
from cdd_agent.dialogue.turns import definitions
from cdd_agent.errors import BudgetExhausted, ExitCode, NotApproved
from cdd_agent.llm import timeouts
from cdd_agent.llm.budget import CEILING, Budgeted, Limit
from cdd_agent.llm.direct.anthropic_messages import AnthropicMessages
from cdd_agent.llm.direct.anthropic_reply import MessageReader
from cdd_agent.llm.direct.call_pieces import CallPieces
from cdd_agent.llm.direct.chat_reply import ChatReply
from cdd_agent.llm.direct.ollama_reply import OllamaReader
from cdd_agent.llm.direct.reply_reader import ReplyReader
from cdd_agent.llm.direct.response_reader import ResponseReader
from cdd_agent.llm.litellm_adapter import LitellmModel
from cdd_agent.llm.port import (
    AuthenticationFailed,
    BadAnswer,
    ConnectionFailed,
    ContextTooLong,
    Done,
    Message,
    Model,
    ModelError,
    ModelEvent,
    ModelNotFound,
    NotAReply,
    ProviderData,
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
)
from cdd_agent.llm.providers import Speaks, endpoint_of
from cdd_agent.llm.scripted import ScriptedModel
from cdd_agent.llm.scripted_reply import ScriptedReply
from cdd_agent.process.policy import CommandRunner
from cdd_agent.tools.acting import acting_tools
from cdd_agent.tools.action_runner import ActionRunner
from cdd_agent.tools.base import Tool
from cdd_agent.tools.read_only import read_only_tools
from cdd_agent.web.pages import PageReader
from cdd_agent.web.search import ScriptedSearcher
from tests.llm.server import Answer, LoopbackServer, Recorded, directly, failure
from tests.support.replies import all_of, stopped
from tests.support.tables import each_row

MakeModel = Callable[[Sequence[str | ModelError | ScriptedReply]], Model]
MakeServed = Callable[[str], Model]
MODEL = "openai/test-model"
REQUEST = Request((Message("system", "Be brief."), Message("user", "Say hello.")))


def through_litellm(base: str) -> Model:
    return LitellmModel(MODEL, base)


def by_responses(base: str) -> Model:
    return directly(base, Speaks.OPENAI_RESPONSES)


def by_messages(base: str) -> Model:
    return directly(base, Speaks.ANTHROPIC_MESSAGES)


def by_ollama_chat(base: str) -> Model:
    return directly(base, Speaks.OLLAMA_CHAT)


SERVED = {
    "litellm": through_litellm,
    "direct": directly,
    "responses": by_responses,
    "messages": by_messages,
    "ollama": by_ollama_chat,
}
# One worker alone imports litellm, which takes seconds.
SAMPLED_LITELLM = pytest.param("litellm", marks=pytest.mark.xdist_group("litellm"))
LITELLM = pytest.param(
    "litellm", marks=[pytest.mark.adapters, pytest.mark.xdist_group("litellm")]
)
DIRECT = ["direct", "responses", "messages", "ollama"]
ADAPTERS = [LITELLM, *DIRECT]
sampled = pytest.mark.parametrize("served", [SAMPLED_LITELLM, *DIRECT], indirect=True)
sampled_model = pytest.mark.parametrize(
    "model", ["scripted", SAMPLED_LITELLM, *DIRECT], indirect=True
)
"""Both mark rules that `make test` tries with litellm too."""
in_chat_completions = pytest.mark.parametrize(
    "served", [SAMPLED_LITELLM, "direct"], indirect=True
)
with_words_of_others = pytest.mark.parametrize(
    "served", [LITELLM, "direct", "messages", "ollama"], indirect=True
)


@pytest.fixture(params=ADAPTERS)
def served(request: pytest.FixtureRequest) -> MakeServed:
    """Make a model that asks the server at an API base."""
    return SERVED[request.param]


@pytest.fixture(params=["scripted", *ADAPTERS])
def model(request: pytest.FixtureRequest) -> Iterator[MakeModel]:
    """Make a model that plays a script."""
    with ExitStack() as servers:

        def scripted(script: Sequence[str | ModelError | ScriptedReply]) -> Model:
            return ScriptedModel(script)

        def asking_a_server(
            script: Sequence[str | ModelError | ScriptedReply],
        ) -> Model:
            server = servers.enter_context(LoopbackServer(ScriptedModel(script)))
            return SERVED[request.param](server.url)

        yield scripted if request.param == "scripted" else asking_a_server


async def events_of(
    model: Model, request: Request = REQUEST
) -> list[ModelEvent | Done]:
    return await all_of(model, request)


@sampled_model
def text_of(events: list[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


@sampled_model
async def test_text_arrives_in_pieces_and_ends_with_one_done(model: MakeModel) -> None:
    events = await events_of(model(["Hello there, you."]))

    assert events[:-1] == [TextDelta("Hello "), TextDelta("there, "), TextDelta("you.")]
    assert isinstance(events[-1], Done)


async def test_usage_is_what_the_provider_counted(model: MakeModel) -> None:
    *_, last = await events_of(model(["Hello there."]))

    assert last == Done(StopReason.STOP, Usage(prompt_tokens=4, completion_tokens=2))


@sampled_model
@each_row("reason", list(StopReason))
async def test_the_reply_names_the_reason_why_the_model_stopped(
    model: MakeModel, reason: StopReason
) -> None:
    *_, last = await events_of(model([ScriptedReply("Hello", stop=reason)]))

    assert isinstance(last, Done)
    assert last.stop_reason is reason


async def test_thoughts_and_calls_in_the_text_are_separated_from_it(
    served: MakeServed,
) -> None:
    text = '<think>Hm.</think>\nI look.\n<tool_call>\n{"name": "ls"}\n</tool_call>'
    with LoopbackServer([Answer(text)]) as server:
        offered = replace(REQUEST, tools=(ToolDefinition("ls", "List files.", {}),))
        events = await events_of(served(server.url), offered)

    assert text_of(events) == "I look.\n"
    thoughts = [event.text for event in events if isinstance(event, ThoughtDelta)]
    assert "".join(thoughts) == "Hm."
    calls = [event for event in events if isinstance(event, ToolCall)]
    assert calls == [ToolCall("call_1", "ls", "{}")]


async def test_an_unknown_stop_reason_makes_a_reply_incomplete_without_calls(
    served: MakeServed,
) -> None:
    call = ToolCall("call_1", "read_file", "{}")
    for word in (
        "max_time",
        "FINISH_REASON_UNSPECIFIED",
        "TOO_MANY_TOOL_CALLS",
        "pause_turn",
        "Stopped early",
    ):
        with LoopbackServer(
            [Answer("half a", finish_reason=word, tool_calls=(call,))]
        ) as server:
            events = await events_of(served(server.url))

        assert events[-1] == Done(
            StopReason.UNKNOWN, events[-1].usage, stop_word=word
        ), word
        assert not [event for event in events if isinstance(event, ToolCall)], word


@with_words_of_others
@each_row(
    ("word", "reason"),
    [
        *(
            (word, StopReason.STOP)
            for word in ("stop", "STOP", "tool_calls", "end_turn", "eos", "COMPLETE")
        ),
        *(
            (word, StopReason.LENGTH)
            for word in ("length", "MAX_TOKENS", "model_context_window_exceeded")
        ),
        *(
            (word, StopReason.REFUSED)
            for word in ("content_filter", "refusal", "SAFETY", "sensitive")
        ),
    ],
)
async def test_the_stop_reasons_of_many_providers_are_known(
    served: MakeServed, word: str, reason: StopReason
) -> None:
    with LoopbackServer([Answer("Hello", finish_reason=word)]) as server:
        *_, last = await events_of(served(server.url))

    assert isinstance(last, Done)
    assert (last.stop_reason, last.stop_word) == (reason, "")


@each_row(
    "word",
    [
        "error",
        "network_error",
        "MALFORMED_FUNCTION_CALL",
        "insufficient_system_resource",
    ],
)
async def test_a_stop_reason_that_reports_a_failure_is_a_transient_error(
    served: MakeServed, word: str
) -> None:
    error = await failure_on(served, Answer("half a", finish_reason=word))

    assert error.is_transient
    assert word in error.message


async def test_an_empty_reply_is_only_a_done(model: MakeModel) -> None:
    events = await events_of(model([""]))

    assert [type(event) for event in events] == [Done]


@each_row(
    "reply",
    [
        "Grüße, 世界! \N{ROCKET}\n",
        "  indented\n\n\ttabs  and  spaces \r\n",
        f"{'=' * 999}\n" * 200,
    ],
    ids=["not ASCII", "white space", "200 kB"],
)
async def test_a_reply_arrives_as_it_was_written(model: MakeModel, reply: str) -> None:
    assert text_of(await events_of(model([reply]))) == reply


@each_row(
    "error",
    [
        AuthenticationFailed,
        ModelNotFound,
        RequestRejected,
        ContextTooLong,
        RateLimited,
        ConnectionFailed,
        BadAnswer,
    ],
)
async def test_a_failure_is_a_model_error_with_a_hint(
    model: MakeModel, error: type[ModelError]
) -> None:
    with pytest.raises(ModelError) as raised:
        await events_of(model([error("Scripted.", hint="Do something.")]))

    assert type(raised.value) is error
    assert raised.value.message
    assert raised.value.hint


async def test_a_model_answers_again_after_a_failure(model: MakeModel) -> None:
    tried = model([RateLimited("Later."), "Hello"])
    with pytest.raises(RateLimited):
        await events_of(tried)

    assert text_of(await events_of(tried)) == "Hello"


THREE = "one two three"


async def test_a_cancelled_call_can_be_made_again(
    model: MakeModel,
) -> None:
    tried = model([THREE, THREE])

    assert (await stopped(tried, REQUEST))[0] == TextDelta("one ")
    assert text_of(await events_of(tried)) == THREE


async def test_the_error_has_the_provider_s_waiting_time(
    model: MakeModel,
) -> None:
    with pytest.raises(RateLimited) as raised:
        await events_of(model([RateLimited("Later.", retry_after=1.5)]))

    assert raised.value.retry_after == 1.5


CALLS = (
    ToolCall("call_a", "read_file", '{"path": "a.py"}'),
    ToolCall("call_b", "grep_files", '{"pattern": "\u00fc \\" }'),
    ToolCall("call_c", "git_status", "{}"),
)


@sampled_model
@each_row("text", ["", "Let me look."])
async def test_tool_calls_arrive_complete_after_the_text(
    model: MakeModel, text: str
) -> None:
    events = await events_of(model([ScriptedReply(text, tool_calls=CALLS)]))

    assert text_of(events) == text
    assert tuple(event for event in events if isinstance(event, ToolCall)) == CALLS
    assert [type(event) for event in events[-4:]] == [
        ToolCall,
        ToolCall,
        ToolCall,
        Done,
    ]
    assert isinstance(events[-1], Done)
    assert events[-1].stop_reason is StopReason.STOP


@each_row("stop", [StopReason.LENGTH, StopReason.REFUSED])
async def test_an_incomplete_reply_has_no_tool_calls(
    model: MakeModel, stop: StopReason
) -> None:
    events = await events_of(
        model([ScriptedReply("Let me", stop=stop, tool_calls=CALLS)])
    )

    assert not [event for event in events if isinstance(event, ToolCall)]


# From here on: models that ask a server.


async def failure_of(model: Model) -> ModelError:
    with pytest.raises(ModelError) as raised:
        await events_of(model)
    return raised.value


@sampled
async def failure_on(served: MakeServed, answer: Answer) -> ModelError:
    """The outcome of the server's `answer`, after exactly one request."""
    with LoopbackServer([answer]) as server:
        error = await failure_of(served(server.url))
    assert len(server.requests) == 1
    return error


async def test_a_conversation_with_tools_is_sent_unchanged(served: MakeServed) -> None:
    tool = ToolDefinition(
        "read_file",
        "Read a file.",
        {"type": "object", "properties": {"path": {"type": "string"}}},
    )
    broken = ToolCall("call_d", "read_file", '{"path": ')
    conversation = (
        Message("user", "What is in a.py?"),
        Message("assistant", "Let me look.", (CALLS[0], broken)),
        Message("tool", "print(1)", tool_call_id="call_a"),
        Message("tool", "That was not JSON.", tool_call_id="call_d"),
    )
    with LoopbackServer(["A print."]) as server:
        await events_of(served(server.url), Request(conversation, (tool,)))

    repaired = ToolCall("call_d", "read_file", '{"not_json": "{\\"path\\": "}')
    said = Message("assistant", "Let me look.", (CALLS[0], repaired))
    assert server.requests[0].request == Request(
        (conversation[0], said, *conversation[2:]), (tool,)
    )


@each_row(("text", "size"), [("naïve ├──", 16), ("half: \ud83d", 12)])
async def test_a_request_is_sent_as_compact_json(text: str, size: int) -> None:
    with LoopbackServer(["Fine.", "Fine."]) as server:
        for said in ("", text):
            await events_of(directly(server.url), Request((Message("user", said),)))
    without, with_text = (
        int(request.headers["Content-Length"]) for request in server.requests
    )
    assert server.requests[1].body["messages"][0]["content"] == text
    assert with_text - without == size
    assert without == len(json.dumps(server.requests[0].body, separators=(",", ":")))


@in_chat_completions
async def test_every_tool_is_sent_with_its_own_definition(
    served: MakeServed, tmp_path: Path
) -> None:
    tools = all_tools(tmp_path)
    with LoopbackServer(["I have seen them."]) as server:
        await events_of(
            served(server.url),
            Request((Message("user", "Look around."),), definitions(tools)),
        )

    assert server.requests[0].body["tools"] == [
        tool.get_openrouter_tool_definition() for tool in tools
    ]


@sampled
async def test_every_description_is_sent(served: MakeServed, tmp_path: Path) -> None:
    tools = all_tools(tmp_path)
    with LoopbackServer(["I have seen them."]) as server:
        await events_of(
            served(server.url),
            Request((Message("user", "Look around."),), definitions(tools)),
        )
    for tool, sent in zip(tools, server.requests[0].body["tools"], strict=True):
        function = sent.get("function", sent)
        parameters = function.get("parameters", function.get("input_schema"))
        assert function["name"] == tool.name
        assert function["description"] == tool.description
        assert parameters["properties"] == tool.parameters_schema["properties"]


def all_tools(root: Path) -> list[Tool[Any]]:
    commands = CommandRunner(root)
    runner = ActionRunner(root, commands, PageReader(), ScriptedSearcher(), no_answer)
    tools = (*read_only_tools(root, CodeFinder(root)), *acting_tools(runner, commands))
    return list(tools)


async def no_answer(question: str) -> str:
    raise NotApproved(question)


@in_chat_completions
async def test_a_request_without_tools_does_not_mention_tools(
    served: MakeServed,
) -> None:
    with LoopbackServer(["Hello"]) as server:
        await events_of(served(server.url))

    assert server.requests[0].body == {
        "model": "test-model",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Say hello."},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


REJECTED, LATER, BAD = ExitCode.FAILED, ExitCode.COME_BACK_LATER, ExitCode.BAD_INPUT


@sampled
@each_row(
    ("answer", "becomes", "exit_code", "says"),
    [
        (failure(401, "Wrong key."), AuthenticationFailed, BAD, "(401): Wrong key."),
        (failure(403, "Not yours."), AuthenticationFailed, BAD, "(403): Not yours."),
        (failure(404, "No such model."), ModelNotFound, BAD, "(404): No such model."),
        (failure(404, code="model_not_found"), ModelNotFound, BAD, "(404)"),
        (
            failure(400, "Bad parameter."),
            RequestRejected,
            REJECTED,
            "(400): Bad parameter.",
        ),
        (
            failure(400, "9 > 8.", "context_length_exceeded"),
            ContextTooLong,
            REJECTED,
            "9 > 8.",
        ),
        (
            failure(400, "maximum context length is 9."),
            ContextTooLong,
            REJECTED,
            "is 9.",
        ),
        (failure(402, "Pay."), QuotaUsedUp, LATER, "(402): Pay."),
        (failure(413, "Too large."), ContextTooLong, REJECTED, ": Too large."),
        (failure(422, "Odd."), RequestRejected, REJECTED, "(422): Odd."),
        (failure(429, "Slow down."), RateLimited, LATER, "(429): Slow down."),
        (failure(503, "Busy."), RateLimited, LATER, "(503): Busy."),
        (failure(529, "Overloaded."), RateLimited, LATER, "(529): Overloaded."),
        (failure(408), ConnectionFailed, ExitCode.FAILED, "(408)"),
        (failure(504), ConnectionFailed, ExitCode.FAILED, "(504)"),
        (failure(500, "Boom."), BadAnswer, ExitCode.FAILED, "(500): Boom."),
        (failure(502, "Gone."), BadAnswer, ExitCode.FAILED, "(502): Gone."),
        (Answer(raw="This is not JSON."), NotAReply, ExitCode.FAILED, MODEL),
        (Answer(raw=""), NotAReply, ExitCode.FAILED, MODEL),
        (Answer("a b c", garbage=True), BadAnswer, ExitCode.FAILED, MODEL),
        (Answer("a b c", cut_after=0), ConnectionFailed, ExitCode.FAILED, MODEL),
        (Answer("a b c", cut_after=2), ConnectionFailed, ExitCode.FAILED, MODEL),
        (
            Answer("a b c", cut_after=2, chunked=False),
            ConnectionFailed,
            ExitCode.FAILED,
            MODEL,
        ),
        (Answer("a b c", finish_reason=None), ConnectionFailed, ExitCode.FAILED, MODEL),
    ],
)
async def test_every_server_failure_has_an_error_type(
    served: MakeServed,
    answer: Answer,
    becomes: type[ModelError],
    exit_code: ExitCode,
    says: str,
) -> None:
    error = await failure_on(served, answer)

    assert type(error) is becomes
    assert error.exit_code == exit_code
    assert says in error.message
    assert "litellm" not in error.message.lower()
    assert error.hint


async def test_an_error_in_a_stream_keeps_its_status(
    served: MakeServed,
) -> None:
    event = 'data: {"error": {"message": "No capacity.", "code": 503}}\n\n'

    error = await failure_on(
        served, Answer(raw=event, content_type="text/event-stream")
    )

    assert type(error) is RateLimited
    assert error.message.endswith("(503): No capacity.")


async def test_the_hint_names_the_waiting_time(served: MakeServed) -> None:
    error = await failure_on(served, failure(429, headers={"Retry-After": "7"}))

    assert "7 s" in error.hint
    assert isinstance(error, RateLimited)
    assert error.retry_after == 7


@each_row(
    ("base", "becomes"),
    [
        ("http://127.0.0.1:9/v1", ConnectionFailed),
        ("http://[::1", ModelNotFound),
        ("localhost:9", ModelNotFound),
        ("http//foo", ModelNotFound),
    ],
)
async def test_an_unreachable_server_is_an_error_with_its_address(
    served: MakeServed, base: str, becomes: type[ModelError]
) -> None:
    error = await failure_of(served(base))

    assert type(error) is becomes
    # what is no address will not become one
    assert error.is_transient is (becomes is ConnectionFailed)
    assert base.removesuffix("/v1") in error.hint


@each_row("answer", [Answer("a b", wait=60), Answer("a b", pause=60)])
async def test_silence_is_a_failed_connection(
    served: MakeServed, answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeouts, "SILENCE_TIMEOUT", 0.05)

    error = await failure_on(served, answer)

    assert type(error) is ConnectionFailed
    assert len(error.message) < 80  # no words of a library


@sampled
@each_row(
    "leak",
    [
        "Incorrect API key provided: sk-proj-Ab3.",
        "You sent Bearer abc.",
        "Token 0123456789abcdefghijklmnop is old.",
        "The key correct-horse is wrong.",
        "http://me:hunter2@proxy refused.",
    ],
)
async def test_no_error_message_contains_a_key(
    served: MakeServed, leak: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTHER_API_KEY", "correct-horse")

    error = await failure_on(served, failure(401, leak))

    for secret in (
        "sk-proj-Ab3",
        "abc",
        "0123456789abcdefghijklmnop",
        "correct-horse",
        "hunter2",
    ):
        assert secret not in error.message
    assert "[redacted" in error.message


async def test_a_server_s_page_is_quoted_as_one_short_plain_line(
    served: MakeServed,
) -> None:
    page = f"<html><style>b {{}}</style><b>Sorry</b>\n\x1b[31m{'very ' * 200}</html>"

    error = await failure_on(
        served, Answer(status=500, raw=page, content_type="text/html")
    )

    quote = error.message.rpartition(": ")[2]
    assert quote.split()[:2] == ["Sorry", "[31mvery"]
    assert len(quote) == 300


async def test_an_error_that_the_caller_handles_is_not_the_cause(
    served: MakeServed,
) -> None:
    try:
        raise ConnectionRefusedError("an earlier attempt")
    except ConnectionRefusedError:
        error = await failure_on(served, failure(500, "Boom."))

    assert type(error) is BadAnswer


@sampled
async def ended(recorded: Recorded) -> bool:
    return await asyncio.to_thread(recorded.ended.wait, 60)


async def test_cancelling_during_a_reply_closes_the_connection(
    served: MakeServed,
) -> None:
    with LoopbackServer([Answer("word " * 50, pause=0.02)]) as server:
        assert await stopped(served(server.url), REQUEST) == [TextDelta("word ")]

        assert await ended(server.requests[0])
    assert server.requests[0].client_left


async def test_an_error_of_the_listener_is_raised_and_ends_the_call(
    served: MakeServed,
) -> None:
    def on_event(event: ModelEvent) -> None:
        raise BrokenPipeError("whoever read the output has left")

    with LoopbackServer([Answer("word " * 50, pause=0.02)]) as server:
        with pytest.raises(BrokenPipeError):
            await served(server.url).reply(REQUEST, on_event)

        assert await ended(server.requests[0])
    assert server.requests[0].client_left


async def test_a_reply_that_is_stopped_by_its_budget_closes_the_connection(
    served: MakeServed,
) -> None:
    with LoopbackServer([Answer(cut_at=("word " * 5_000,) * 50, pause=0.05)]) as server:
        with pytest.raises(BudgetExhausted, match="and was stopped"):
            await events_of(Budgeted(served(server.url), Limit(tokens=CEILING + 1_000)))

        assert await ended(server.requests[0])
    assert server.requests[0].client_left


async def test_cancelling_before_the_reply_closes_the_connection(
    served: MakeServed,
) -> None:
    with LoopbackServer([Answer("word " * 50, wait=0.1, pause=0.02)]) as server:
        call = asyncio.create_task(events_of(served(server.url)))
        while not server.requests:
            await asyncio.sleep(0.01)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

        assert await ended(server.requests[0])
    assert server.requests[0].client_left


async def test_surrogate_halves_in_pieces_are_joined(served: MakeServed) -> None:
    """JSON may hold half of a character; what cannot be made whole must not stop
    whoever writes it down.
    """
    pieces = ("one \ud83d", "\ude00 two \ud83d", "three \ude00", " end \ud83d")
    with LoopbackServer([Answer(cut_at=pieces)]) as server:
        text = text_of(await events_of(served(server.url)))
    assert text == "one \U0001f600 two \ufffdthree \ufffd end \ufffd"


def test_surrogate_halves_in_a_tool_call_are_joined() -> None:
    calls = CallPieces()
    first = {"name": "read_file", "arguments": '{"path": "\ud83d'}
    calls.add({"index": 0, "id": "1", "function": first})
    calls.add({"index": 0, "function": {"arguments": '\ude00 \ud83d"}'}})
    assert calls.calls() == [
        ToolCall("1", "read_file", '{"path": "\U0001f600 \ufffd"}')
    ]


HALVES = ("Hm \ud83d", "\ude00 \ud83d")
SAID = {
    "type": "message",
    "phase": "final_answer",
    "content": [{"type": "output_text", "text": "".join(HALVES)}],
}


@each_row(
    ("reader", "documents"),
    [
        (
            ChatReply(),
            [
                *(
                    {"choices": [{"delta": {"reasoning_content": half}}]}
                    for half in HALVES
                ),
                {"choices": [{"delta": {}, "finish_reason": "stop"}]},
            ],
        ),
        (
            MessageReader("here"),
            [
                {
                    "type": "content_block_start",
                    "index": 0,
                    "content_block": {"type": "thinking", "thinking": ""},
                },
                *(
                    {
                        "type": "content_block_delta",
                        "delta": {"type": "thinking_delta", "thinking": h},
                    }
                    for h in HALVES
                ),
                {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
            ],
        ),
        (
            ResponseReader("here"),
            [{"object": "response", "status": "completed", "output": [SAID]}],
        ),
        (
            OllamaReader("here"),
            [
                *({"message": {"thinking": half}} for half in HALVES),
                {"done": True, "done_reason": "stop"},
            ],
        ),
    ],
    ids=["chat completions", "messages", "responses", "ollama"],
)
def test_provider_data_can_be_saved(
    reader: ReplyReader, documents: list[object]
) -> None:
    for document in documents:
        list(reader.read_text(json.dumps(document)))
    list(reader.end())

    assert reader.done.provider_data is not None
    assert "Hm \U0001f600 \ufffd" in reader.done.provider_data.data


NAMES = (
    *(
        "type",
        "response",
        "item",
        "output",
        "content",
        "summary",
        "output_index",
        "status",
        "call_id",
        "arguments",
    ),
    *(
        "index",
        "content_block",
        "delta",
        "message",
        "text",
        "thinking",
        "usage",
        "stop_reason",
        "name",
        "phase",
    ),
    *("done", "done_reason", "arguments", "prompt_eval_count"),
    *(
        "choices",
        "tool_calls",
        "function",
        "reasoning_details",
        "finish_reason",
        "object",
        "incomplete_details",
    ),
)
KINDS = {
    "chat completions": ("",),
    "messages": (
        "message_start",
        "content_block_start",
        "content_block_delta",
        "message_delta",
        "message",
    ),
    "ollama": ("",),
    "responses": (
        "response.output_text.delta",
        "response.output_item.done",
        "response.reasoning_text.delta",
        "response.completed",
        "response.incomplete",
    ),
}
READERS: dict[str, Callable[[], ReplyReader]] = {
    "chat completions": ChatReply,
    "messages": lambda: MessageReader("here"),
    "responses": lambda: ResponseReader("here"),
    "ollama": lambda: OllamaReader("here"),
}
WORDS = st.sampled_from(
    ["message", "text", "tool_use", "function_call", "incomplete", "\ud83d"]
)
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4)
    ),
    max_leaves=15,
)
PIECE = st.tuples(
    st.integers(0, 4), st.dictionaries(st.sampled_from(NAMES), ANY, max_size=5)
)


@given(st.lists(PIECE, max_size=4))
@example(
    [(1, {"item": {"type": []}, "content_block": {"type": []}, "index": 1}), (3, {})]
)
def test_pieces_of_any_shape_break_no_reader(
    pieces: list[tuple[int, dict[str, object]]],
) -> None:
    for protocol, make_reader in READERS.items():
        kinds, reader = KINDS[protocol], make_reader()
        for number, fields in pieces:
            kind = kinds[number % len(kinds)]
            list(reader.read_text(json.dumps({**fields, "type": kind})))

        list(reader.end())
        if (data := reader.done.provider_data) is not None:
            data.data.encode()


@each_row(
    ("calls", "sent"),
    [
        (("t1",), ["thinking", "tool_use"]),
        # a call in the text, which the answer of a tool follows
        (("t1", "call_1"), ["tool_use", "tool_use"]),
        (("call_1",), ["tool_use"]),
        # a call that was cut has no answer
        ((), ["text"]),
    ],
)
def test_claude_gets_its_blocks_back_only_with_calls_that_are_answered(
    calls: tuple[str, ...], sent: list[str]
) -> None:
    endpoint = endpoint_of("anthropic/claude-opus-5", None, {})
    assert endpoint is not None
    blocks = [
        {"type": "thinking", "thinking": "Hm.", "signature": "s"},
        {"type": "tool_use", "id": "t1", "name": "look", "input": {}},
    ]
    made = tuple(ToolCall(id_, "look", "{}") for id_ in calls)
    data = ProviderData(endpoint.origin(), json.dumps(blocks))
    answers = [Message("tool", "Seen.", tool_call_id=id_) for id_ in calls]
    request = Request(
        (
            Message("user", "Look."),
            Message("assistant", "", made, provider_data=data),
            *answers,
            Message("user", "Go on."),
        )
    )
    body = AnthropicMessages("anthropic/claude-opus-5", endpoint).call(request).body
    assert [block["type"] for block in body["messages"][1]["content"]] == sent


def test_a_zero_does_not_replace_a_count_of_claude_s() -> None:
    reader = MessageReader("here")
    start = {"input_tokens": 7, "cache_read_input_tokens": 5, "output_tokens": 1}
    end = {"input_tokens": 0, "cache_read_input_tokens": None, "output_tokens": 4}
    for document in (
        {"type": "message_start", "message": {"usage": start}},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": end,
        },
    ):
        list(reader.read_object(document))
    assert reader.done.usage == Usage(12, 4, cached_tokens=5)
