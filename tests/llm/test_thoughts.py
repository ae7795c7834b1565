"""Thoughts by both adapters: told apart from the reply, sent back with calls to the
model that had them, waited for.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec import structs

from cdd_agent.dialogue.turns import Dialogue, definitions
from cdd_agent.llm import timeouts
from cdd_agent.llm.direct.model import DirectModel
from cdd_agent.llm.known_models import UNKNOWN, known_model
from cdd_agent.llm.litellm_adapter import LitellmModel
from cdd_agent.llm.port import (
    Done,
    Message,
    Model,
    ModelError,
    ModelEvent,
    Request,
    TextDelta,
    ThoughtDelta,
    ToolCall,
    ToolDefinition,
)
from cdd_agent.llm.providers import endpoint_of
from cdd_agent.llm.timeouts import silence_timeout
from cdd_agent.tools.read_only import read_only_tools
from tests.dialogue.talking import heard
from tests.llm.server import Answer, LoopbackServer, directly
from tests.llm.simulators.anthropic import Anthropic
from tests.llm.simulators.base import Said, Simulator
from tests.llm.simulators.chat import (
    ClaudeBehindOpenRouter,
    DeepSeek,
    Kimi,
    MiniMax,
    MiniMaxBehindOpenRouter,
    OpenRouter,
)
from tests.llm.simulators.gemini_native import GeminiNative
from tests.support.replies import all_of
from tests.support.tables import each_row

MODEL = "openai/test-model"
ASKED = (Message("system", "Be brief."), Message("user", "Say hello."))
MakeServed = Callable[[str], Model]
LITELLM = pytest.mark.xdist_group("litellm")


def through_litellm(base: str) -> Model:
    return LitellmModel(MODEL, base)


@pytest.fixture(
    params=[
        pytest.param(through_litellm, marks=[pytest.mark.adapters, LITELLM]),
        directly,
    ]
)
def served(request: pytest.FixtureRequest) -> MakeServed:
    make: MakeServed = request.param
    return make


def streamed(*deltas: dict[str, object], stop: str = "stop") -> Answer:
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": stop})
    chunk = {
        "id": "1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "test-model",
    }
    lines = [
        f"data: {json.dumps({**chunk, 'choices': [choice]})}\n\n" for choice in choices
    ]
    return Answer(
        raw="".join([*lines, "data: [DONE]\n\n"]), content_type="text/event-stream"
    )


async def events_of(
    model: Model,
    request: Request = Request(ASKED),  # noqa: B008 - it is frozen
) -> list[ModelEvent]:
    return await all_of(model, request)


def joined(events: list[ModelEvent], kind: type[TextDelta | ThoughtDelta]) -> str:
    return "".join(event.text for event in events if isinstance(event, kind))


@each_row(
    "deltas",
    [
        (
            {"reasoning_content": "They "},
            {"reasoning_content": "greet."},
            {"content": "Hello."},
        ),
        (
            {"content": "<think>They "},
            {"content": "greet.</thi"},
            {"content": "nk>Hello."},
        ),
        (
            {"content": "<|channel|>analysis<|message|>They greet.<|end|>"},
            {"content": "Hello."},
        ),
    ],
    ids=["field", "tag", "channel"],
)
async def test_thoughts_are_not_part_of_the_text(
    served: MakeServed, deltas: tuple[dict[str, object], ...]
) -> None:
    with LoopbackServer([streamed(*deltas)]) as server:
        events = await events_of(served(server.url))

    assert (joined(events, ThoughtDelta), joined(events, TextDelta)) == (
        "They greet.",
        "Hello.",
    )


async def test_a_tool_call_in_the_text_is_made_or_an_error(
    served: MakeServed,
) -> None:
    whole = streamed({"content": '<tool_call>{"name": "list_files"}</tool_call>'})
    with LoopbackServer(
        [whole, streamed({"content": "<tool_call>list files!</tool_call>"})]
    ) as server:
        model = served(server.url)
        with_tools = Request(ASKED, (ToolDefinition("list_files", "Lists.", {}),))
        events = await events_of(model, with_tools)
        with pytest.raises(ModelError, match="cannot be read"):
            await events_of(model, with_tools)

    assert (joined(events, TextDelta), events[0]) == (
        "",
        ToolCall("call_1", "list_files", "{}"),
    )


async def test_without_tools_a_tool_call_is_text(served: MakeServed) -> None:
    call = '<tool_call>{"name": "list_files"}</tool_call>'
    with LoopbackServer([streamed({"content": call})]) as server:
        events = await events_of(served(server.url))

    assert joined(events, TextDelta) == call
    assert not any(isinstance(event, ToolCall) for event in events)


async def test_thoughts_are_sent_back_with_their_calls_to_their_model_only(
    served: MakeServed,
) -> None:
    call = {
        "index": 0,
        "id": "c1",
        "type": "function",
        "function": {"name": "look", "arguments": "{}"},
    }
    asks = streamed(
        {"reasoning_content": "I look."}, {"tool_calls": [call]}, stop="tool_calls"
    )
    with LoopbackServer(
        [asks, streamed({"content": "Fine."}), streamed({"content": "Fine."})]
    ) as server:
        *calls, done = await events_of(served(server.url))
        assert isinstance(done, Done)
        made = tuple(event for event in calls if isinstance(event, ToolCall))
        said = Message("assistant", "", made, provider_data=done.provider_data)
        assert said.provider_data is not None
        other = structs.replace(
            said,
            provider_data=structs.replace(said.provider_data, origin="another model"),
        )
        for message in (said, other):
            request = Request(
                (*ASKED, message, Message("tool", "{}", tool_call_id="c1"))
            )
            await events_of(served(server.url), request)
        sent = [recorded.body["messages"][2] for recorded in server.requests[1:]]

    assert [message.get("reasoning_content") for message in sent] == ["I look.", None]


@pytest.mark.adapters
@LITELLM
@each_row(
    ("name", "simulated", "end"),
    [
        ("anthropic/claude-opus-5", Anthropic, "/v1"),
        ("deepseek/deepseek-v4", DeepSeek, ""),
        ("gemini/gemini-3-pro", GeminiNative, "/v1"),
        ("moonshot/kimi-k3", Kimi, ""),
        ("minimax/MiniMax-M2.5", MiniMax, ""),
        ("minimax/MiniMax-M3", partial(MiniMax, mirrors=True), ""),
        ("openai/MiniMaxAI/MiniMax-M2", MiniMax, ""),
        ("hosted_vllm/MiniMaxAI/MiniMax-M2.5", MiniMax, ""),
        ("openrouter/minimax/minimax-m2.5", MiniMaxBehindOpenRouter, ""),
        ("openrouter/google/gemini-3-pro", OpenRouter, ""),
        ("openrouter/anthropic/claude-opus-5", ClaudeBehindOpenRouter, ""),
    ],
)
async def test_a_loop_through_litellm_keeps_its_thoughts(
    name: str,
    simulated: Callable[[list[Said]], Simulator],
    end: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(f"{name.partition('/')[0].upper()}_API_KEY", "a-key")
    (tmp_path / "a.txt").write_text("alpha")
    looks = [
        Said(f"Look {n}.", f"Perhaps {n}.", (("read_file", {"path": "a.txt"}),))
        for n in range(2)
    ]
    last = Said("It says alpha.", "So it is.")
    with simulated([*looks, last]) as simulator:
        model = LitellmModel(name, simulator.url.removesuffix(end))
        result = await heard(Dialogue(model, read_only_tools(tmp_path), "on"))

    assert (result.turn.text, simulator.refusals) == (last.text, [])


@LITELLM
@pytest.mark.adapters
async def test_another_model_gets_no_signature_of_gemini_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "a-key")
    calls = (("read_file", {"path": "a.txt"}), ("list_files", {}))
    tools = definitions(read_only_tools(tmp_path))
    with GeminiNative([Said("", "Perhaps.", calls), Said("Fine.")]) as simulator:
        model = LitellmModel("gemini/gemini-3-pro", simulator.url.removesuffix("/v1"))
        *made, done = await all_of(model, Request(ASKED, tools))
        assert isinstance(done, Done)
        asked = tuple(event for event in made if isinstance(event, ToolCall))
        messages = (
            *ASKED,
            Message("assistant", "", asked, provider_data=done.provider_data),
            *(Message("tool", "No.", tool_call_id=call.id) for call in asked),
        )
        await all_of(model, Request(messages, tools))
        with LoopbackServer(["Fine."]) as server:
            await all_of(through_litellm(server.url), Request(messages, tools))

    assert simulator.refusals == []
    (signature,) = simulator.signatures
    assert signature in json.dumps(simulator.sent[1].body)
    assert signature not in json.dumps(server.requests[0].body)


async def test_a_model_that_thinks_may_be_silent_for_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert (
        silence_timeout(known_model("anthropic/claude-opus-5"))
        == 6 * silence_timeout(UNKNOWN)
        == 1800
    )
    allowed: list[float] = []

    class Client(httpx.AsyncClient):
        def __init__(self, **settings: Any) -> None:
            allowed.append(settings["timeout"].read)
            super().__init__(**settings)

    monkeypatch.setattr(httpx, "AsyncClient", Client)
    with LoopbackServer(["Hello."] * 2) as server:
        for name in ("openai/gpt-5", "openai/test-model"):
            endpoint = endpoint_of(name, server.url, {})
            assert endpoint is not None
            await events_of(DirectModel(name, endpoint))
    assert allowed == [1800, 300]


@pytest.mark.adapters
@LITELLM
async def test_both_adapters_wait_longer_for_a_model_that_thinks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(timeouts, "SILENCE_TIMEOUT", 1.0)
    with LoopbackServer(
        [replace(streamed({"content": "Hello."}), wait=1.5)] * 2
    ) as server:
        endpoint = endpoint_of("openai/gpt-5", server.url, {})
        assert endpoint is not None
        for model in (
            DirectModel("openai/gpt-5", endpoint),
            LitellmModel("openai/gpt-5", server.url),
        ):
            assert joined(await events_of(model), TextDelta) == "Hello."
