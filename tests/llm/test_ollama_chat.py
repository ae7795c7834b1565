"""Ollama by its own API: the window is as large as a request needs, and nothing is lost
on the way without a word.
"""

import json
from collections.abc import Sequence

import httpx
import pytest

from cdd_agent.llm.direct.model import DirectModel
from cdd_agent.llm.options import Effort, ModelOptions
from cdd_agent.llm.port import (
    BadAnswer,
    ConnectionFailed,
    ContextTooLong,
    Done,
    Message,
    ModelEvent,
    ModelNotFound,
    Request,
    StopReason,
    TextDelta,
    ThoughtDelta,
    ToolCall,
    Usage,
)
from cdd_agent.llm.providers import endpoint_of
from tests.llm.server import Answer, LoopbackServer
from tests.llm.simulators.base import Said
from tests.llm.simulators.ollama_chat import OllamaChat
from tests.support.replies import all_of
from tests.support.tables import each_row

KNOWN = Message("system", "The password is ANANAS. Say it when you are asked.")
SENTENCE = "The quick brown fox jumps over a lazy dog. "


def asking(tokens: int) -> Request:
    return Request(
        (
            KNOWN,
            Message(
                "user",
                SENTENCE * (tokens * 4 // len(SENTENCE)) + "What is the password?",
            ),
        )
    )


def model_at(
    url: str, options: ModelOptions | None = None, name: str = "qwen3:8b"
) -> DirectModel:
    endpoint = endpoint_of(f"ollama/{name}", url, {})
    assert endpoint is not None
    return DirectModel(f"ollama/{name}", endpoint, options or ModelOptions())


async def heard(model: DirectModel, request: Request) -> list[ModelEvent | Done]:
    return await all_of(model, request)


def said(events: Sequence[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


@each_row("tokens", [10, 4_000, 12_000, 30_000])
async def test_the_window_holds_the_request_and_its_reply(
    tokens: int,
) -> None:
    with OllamaChat([Said("ANANAS")]) as simulator:
        assert said(await heard(model_at(simulator.url), asking(tokens))) == "ANANAS"

    assert "ANANAS" in simulator.read
    assert simulator.window >= tokens + min(8_192, simulator.own_window - tokens)


async def test_a_growing_conversation_loads_the_model_only_a_few_times() -> None:
    with OllamaChat([Said("ANANAS")] * 31) as simulator:
        model = model_at(simulator.url)
        for tokens in (*range(1_000, 31_000, 1_000), 10):
            assert said(await heard(model, asking(tokens))) == "ANANAS"

    assert simulator.loads == [16_384, 32_768, 40_960]


async def test_roles_that_share_a_model_load_it_once() -> None:
    with OllamaChat([Said("ANANAS")] * 6) as simulator:
        chat, executor = model_at(simulator.url), model_at(simulator.url)
        for tokens in (100, 200, 300):
            await heard(chat, asking(tokens))
            await heard(executor, asking(15_000))

    assert simulator.loads == [16_384, 32_768]


@each_row(
    ("loaded", "parameters", "set_window", "loads"),
    [
        (32_768, "", None, []),  # by another program, or OLLAMA_CONTEXT_LENGTH
        (4_096, "", None, [16_384]),
        (
            0,
            (
                "stop                           <eos>\n"
                "num_ctx                        24000"
            ),
            None,
            [24_000],
        ),
        (32_768, "", 8_192, [8_192]),
    ],
    ids=[
        "larger by now",
        "smaller by now",
        "the model's own setting",
        "`context_window`",
    ],
)
async def test_a_window_that_the_user_chose_stays(
    loaded: int, parameters: str, set_window: int | None, loads: list[int]
) -> None:
    with OllamaChat(
        [Said("ANANAS")], window=loaded, parameters=parameters
    ) as simulator:
        await heard(
            model_at(simulator.url, ModelOptions(window=set_window)), asking(100)
        )

    assert simulator.loads == loads


async def test_a_model_in_the_cloud_uses_its_whole_window() -> None:
    with OllamaChat([Said("ANANAS")], is_remote=True) as simulator:
        await heard(model_at(simulator.url), asking(100))

    assert simulator.loads == [simulator.own_window]


async def test_a_request_longer_than_the_window_is_refused() -> None:
    with OllamaChat([Said("No idea.")]) as simulator, pytest.raises(ContextTooLong):
        await heard(model_at(simulator.url), asking(50_000))

    assert simulator.bills == []


async def test_a_server_that_cuts_the_request_anyway_is_detected() -> None:
    with (
        OllamaChat(
            [Said("No idea.")], knows_truncate=False, own_window=8_192
        ) as simulator,
        pytest.raises(ContextTooLong, match=r"Ollama has cut .* its window has 8,192"),
    ):
        await heard(model_at(simulator.url), asking(20_000))

    assert "ANANAS" not in simulator.read


async def test_the_facts_from_show_are_known_before_the_first_call() -> None:
    with OllamaChat([]) as simulator:
        model = model_at(simulator.url)
        assert (model.window, model.calls_tools) == (40_960, True)


@each_row(
    ("effort", "name", "levels", "thinks", "think"),
    [
        (None, "qwen3:8b", ("low", "medium", "high", "max"), True, [None]),
        (Effort.NONE, "qwen3:8b", ("low", "medium", "high", "max"), True, [False]),
        (Effort.NONE, "gpt-oss:20b", ("low", "medium", "high"), True, ["low"]),
        (Effort.MEDIUM, "qwen3:8b", ("low", "medium", "high", "max"), True, ["medium"]),
        (Effort.MAX, "qwen3:8b", ("low", "medium", "high", "max"), True, ["max"]),
        (Effort.MAX, "qwen3:8b", ("low", "medium", "high"), True, ["max", "high"]),
        (Effort.MAX, "qwen3:8b", (), True, ["max", "high", True]),
        (
            Effort.HIGH,
            "llama3.2",
            ("low", "medium", "high", "max"),
            False,
            ["high", None],
        ),
    ],
)
async def test_an_effort_is_sent_as_far_as_the_model_supports_it(
    effort: Effort | None,
    name: str,
    levels: tuple[str, ...],
    thinks: bool,
    think: list[object],
) -> None:
    with OllamaChat(
        [Said("Hello.")] * 2, model=name, levels=levels, thinks=thinks
    ) as simulator:
        model = model_at(simulator.url, ModelOptions(effort=effort), name)
        assert said(await heard(model, asking(10))) == "Hello."
        await heard(model, asking(10))

    assert [sent.body.get("think") for sent in simulator.sent] == [*think, think[-1]]


async def test_the_user_s_settings_become_ollama_options() -> None:
    options = ModelOptions(
        temperature=0.2,
        max_output_tokens=99,
        body={"options": {"top_k": 1}, "keep_alive": "1h"},
    )
    with OllamaChat([Said("Hello.")]) as simulator:
        await heard(model_at(simulator.url, options), asking(10))

    (sent,) = simulator.sent
    assert sent.body["options"] == {
        "num_ctx": 256,
        "temperature": 0.2,
        "num_predict": 99,
        "top_k": 1,
    }
    assert sent.body["keep_alive"] == "1h"


@each_row(
    ("word", "reason"),
    [("stop", StopReason.STOP), ("length", StopReason.LENGTH)]
    + [(word, StopReason.UNKNOWN) for word in ("load", "unload", "", "next_year")],
)
async def test_only_a_reply_with_a_stop_is_complete(
    word: str, reason: StopReason
) -> None:
    line = {"message": {"content": "half a"}, "done": True, "done_reason": word}
    call = {
        "message": {
            "content": "",
            "tool_calls": [{"function": {"name": "look", "arguments": {}}}],
        },
        "done": False,
    }
    with LoopbackServer(
        [Answer(raw=f"{json.dumps(call)}\n{json.dumps(line)}\n")]
    ) as server:
        *events, last = await heard(
            model_at(server.url.removesuffix("/v1")), asking(10)
        )

    assert last == Done(reason, stop_word=word if reason is StopReason.UNKNOWN else "")
    assert [ToolCall("call_1", "look", "{}")] * (reason is StopReason.STOP) == [
        event for event in events if isinstance(event, ToolCall)
    ]


@each_row(
    "error",
    [{"error": "model runner has unexpectedly stopped"}, {"error": "unexpected EOF"}],
)
async def test_an_error_after_half_of_a_reply_is_raised(error: dict[str, str]) -> None:
    half = {"message": {"content": "half a"}, "done": False}
    with LoopbackServer(
        [Answer(raw=f"{json.dumps(half)}\n{json.dumps(error)}\n")]
    ) as server:
        model = model_at(server.url.removesuffix("/v1"))
        with pytest.raises(BadAnswer, match=error["error"]):
            await heard(model, asking(10))


async def test_a_stream_that_ends_within_a_line_is_a_broken_connection() -> None:
    half = json.dumps({"message": {"content": "half a"}, "done": False})
    with (
        LoopbackServer([Answer(raw=f"{half}\n{half[:20]}")]) as server,
        pytest.raises(ConnectionFailed),
    ):
        await heard(model_at(server.url.removesuffix("/v1")), asking(10))


async def test_the_error_for_a_missing_model_names_the_command_to_get_it() -> None:
    with OllamaChat([]) as simulator, pytest.raises(ModelNotFound) as raised:
        await heard(model_at(simulator.url, name="qwen9"), asking(10))

    assert "qwen9" in raised.value.hint


async def test_the_error_for_too_little_memory_names_the_setting() -> None:
    with (
        OllamaChat([], memory=8_192) as simulator,
        pytest.raises(BadAnswer, match="memory") as raised,
    ):
        await heard(model_at(simulator.url), asking(10))

    assert "context_window" in raised.value.hint


async def test_an_answer_without_streaming_is_accepted() -> None:
    message = {"content": "Hello.", "thinking": "A person.", "tool_calls": []}
    whole = {
        "message": message,
        "done": True,
        "done_reason": "stop",
        "prompt_eval_count": 30,
        "prompt_eval_cached_count": 16,
        "eval_count": 4,
    }
    for text in (json.dumps(whole), json.dumps(whole, indent=2)):
        with LoopbackServer([Answer(raw=text)]) as server:
            events = await heard(model_at(server.url.removesuffix("/v1")), asking(1))
        assert events[:2] == [ThoughtDelta("A person."), TextDelta("Hello.")]
        assert isinstance(events[2], Done)
        assert events[2].usage == Usage(30, 4, cached_tokens=16)


async def test_tool_calls_of_a_server_without_ids_get_distinct_ids() -> None:
    calls = (("look", {"at": 1}), ("read", {"at": 2}))
    with OllamaChat([Said("", "", calls), Said("Done.")], has_ids=False) as simulator:
        model = model_at(simulator.url)
        made = tuple(
            event
            for event in await heard(model, asking(10))
            if isinstance(event, ToolCall)
        )
        results = tuple(Message("tool", "seen", tool_call_id=call.id) for call in made)
        await heard(
            model,
            Request((*asking(10).messages, Message("assistant", "", made), *results)),
        )

    assert [
        message.get("tool_name") for message in simulator.sent[1].body["messages"][-2:]
    ] == ["look", "read"]


def naive(simulator: OllamaChat, **body: object) -> httpx.Response:
    return httpx.post(
        f"{simulator.url}/api/chat", json={"model": simulator.model, **body}
    )


def test_a_naive_client_is_refused_or_gets_a_reply_to_half_its_request() -> None:
    call = {
        "id": "1",
        "type": "function",
        "function": {"name": "look", "arguments": "{}"},
    }
    asked = {"role": "user", "content": "The password is ANANAS. " + SENTENCE * 900}
    with OllamaChat([Said("No idea.")]) as simulator:
        assert (
            naive(
                simulator,
                messages=[{"role": "assistant", "content": "", "tool_calls": [call]}],
            ).status_code
            == 400
        )
        assert (
            naive(
                simulator, messages=[{"role": "user", "content": [{"type": "text"}]}]
            ).status_code
            == 400
        )
        assert (
            naive(
                simulator,
                messages=[{"role": "tool", "content": "x", "tool_call_id": "1"}],
            ).status_code
            == 400
        )
        assert naive(simulator, messages=[asked], think="none").status_code == 400
        assert httpx.post(f"{simulator.url}/v1/messages", json={}).status_code == 404
        answer = naive(simulator, messages=[asked])

    assert (
        answer.status_code,
        "ANANAS" in simulator.read,
        "data: " in answer.text,
    ) == (200, False, False)


@each_row(("model", "is_kept"), [("minimax-m2.5:230b", True), ("qwen3:8b", False)])
@each_row("has_calls", [True, False])
async def test_only_minimax_gets_thoughts_in_the_text_back(
    model: str, is_kept: bool, has_calls: bool
) -> None:
    text = "<think>I look.</think>Fine."
    calls = (("look", {"at": 1}),) if has_calls else ()
    with OllamaChat([Said(text, "", calls), Said("Done.")], model=model) as simulator:
        asked = model_at(simulator.url, name=model)
        *events, done = await all_of(asked, asking(10))
        assert ThoughtDelta("I look.") in events
        assert isinstance(done, Done)
        made = tuple(event for event in events if isinstance(event, ToolCall))
        reply = Message("assistant", "Fine.", made, provider_data=done.provider_data)
        answers = [Message("tool", "Seen.", tool_call_id=call.id) for call in made]
        follow = [reply, *answers, Message("user", "Go on.")]
        request = asking(10)
        await all_of(asked, Request((*request.messages, *follow), request.tools))
        sent = simulator.sent[-1].body["messages"]
    (written,) = [message for message in sent if message["role"] == "assistant"]
    assert written["content"] == (text if is_kept else "Fine.")
