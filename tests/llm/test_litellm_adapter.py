"""litellm against a real server on loopback: its errors, its variables, its manners."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cdd_agent.dialogue.turns import Dialogue
from cdd_agent.errors import BadInput, ExitCode
from cdd_agent.llm import litellm_adapter
from cdd_agent.llm.litellm_adapter import LitellmModel, expect_provider, missing_keys
from cdd_agent.llm.port import (
    AuthenticationFailed,
    BadAnswer,
    Done,
    Message,
    ModelError,
    ModelNotFound,
    NotAReply,
    RateLimited,
    Request,
    TextDelta,
    ToolCall,
    Usage,
)
from cdd_agent.tools.read_only import read_only_tools
from tests.dialogue.talking import heard
from tests.llm.server import Answer, LoopbackServer, failure
from tests.llm.simulators.anthropic import Anthropic
from tests.llm.simulators.base import Bill, Json, Said
from tests.llm.simulators.chat import DeepSeek
from tests.llm.test_keep_alives import CHAT, MESSAGES, OLLAMA, keep_alives_of, written
from tests.support.commandline import STEPS, cdd
from tests.support.projects import SLUG, Sandbox
from tests.support.replies import all_of
from tests.support.tables import each_row

pytestmark = [
    pytest.mark.xdist_group("litellm"),  # which takes seconds to import: once is enough
]

MODEL = "openai/test-model"
REQUEST = Request((Message("user", "Say hello."),))


async def reply_of(model: LitellmModel) -> str:
    return "".join(
        [
            event.text
            for event in await all_of(model, REQUEST)
            if isinstance(event, TextDelta)
        ]
    )


async def failure_of(model: LitellmModel) -> ModelError:
    with pytest.raises(ModelError) as raised:
        await reply_of(model)
    return raised.value


async def failure_on(answer: Answer, name: str = MODEL) -> ModelError:
    """The outcome of the server's `answer`, after exactly one request."""
    with LoopbackServer([answer]) as server:
        base = server.url if name == MODEL else server.url.removesuffix("/v1")
        error = await failure_of(LitellmModel(name, base))
    assert len(server.requests) == 1
    return error


@pytest.mark.fork
def test_known_providers_are_known_without_importing_litellm() -> None:
    names = (
        "anthropic/claude-99",
        "claude-sonnet-4-5",
        "gemini/g",
        "azure_ai/a",
        "huggingface/a/b",
        "litellm_proxy/a",
    )
    code = f"""
import sys
from cdd_agent.llm.litellm_adapter import expect_provider
for name in {names}:
    expect_provider(name, None)
print(*{{"litellm"}} & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("", "")


def test_a_provider_is_recognized_by_its_address() -> None:
    expect_provider("any-name", "https://api.groq.com/openai/v1")  # by the address


@each_row("name", ["nix", "nix/foo", "/x"])
def test_a_name_without_a_known_provider_is_refused_without_a_call(name: str) -> None:
    with pytest.raises(BadInput, match=f" {name}$") as refused:
        expect_provider(name, None)
    assert "provider/model" in refused.value.hint


@each_row(
    ("name", "api_base"),
    [
        ("openai/gpt-5.3-codex", None),
        ("openai/gpt-5.6", None),
        ("gpt-5-pro", "https://api.openai.com/v1"),
        ("openai/responses/anything", "http://127.0.0.1:9/v1"),
        ("azure/gpt-5-codex", "https://example.openai.azure.com"),
        ("azure/responses/a-deployment", "https://example.openai.azure.com"),
    ],
)
def test_a_model_whose_thoughts_litellm_loses_is_refused_without_a_call(
    name: str, api_base: str | None
) -> None:
    with pytest.raises(BadInput, match=name) as refused:
        expect_provider(name, api_base)
    assert "model_adapter" in refused.value.hint


def test_doctor_and_a_run_name_a_model_whose_thoughts_litellm_loses(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox.write(STEPS[0])
    (sandbox.root / ".cdd" / "config.yaml").write_text(
        "model: openai/gpt-5.3-codex\nmodel_adapter: litellm\n"
    )
    for command in (["doctor"], ["exec", SLUG]):
        assert cdd(sandbox, *command) == ExitCode.BAD_INPUT
        output = capsys.readouterr()
        assert "litellm cannot call openai/gpt-5.3-codex" in output.out + output.err


@each_row(
    ("name", "calls_tools"),
    [
        ("azure/gpt-5.1", True),
        ("azure/gpt-5.6", False),
        ("azure/eu/gpt-5.4", False),
    ],
)
def test_tools_that_need_the_responses_api_are_not_offered(
    name: str, calls_tools: bool
) -> None:
    expect_provider(name, None)
    assert LitellmModel(name).calls_tools is calls_tools


STREAMS = {
    "openai/test-model": (CHAT, ""),
    "deepseek/deepseek-v4": (CHAT, ""),
    "anthropic/claude-test": (MESSAGES, "/v1"),
    "ollama_chat/test-model": (OLLAMA, "/v1"),
}
"""Models of litellm: the protocol, and the end of an address that litellm adds."""


async def reply_to(name: str, end: str, body: str, content_type: str) -> object:
    """Return the text and the calls of a reply through litellm."""
    with LoopbackServer([Answer(raw=body, content_type=content_type)]) as server:
        model = LitellmModel(name, server.url.removesuffix(end))
        events = await all_of(model, REQUEST)
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    return text, [event for event in events if isinstance(event, ToolCall)]


@pytest.mark.adapters
@each_row("name", STREAMS)
async def test_keep_alives_change_nothing_in_a_reply_through_litellm(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in ("ANTHROPIC_API_KEY", "DEEPSEEK_API_KEY"):
        monkeypatch.setenv(key, "a-key")
    protocol, end = STREAMS[name]
    head = {"model": "m"}
    pieces = written(replace(protocol, pieces=[head | one for one in protocol.pieces]))
    content_type = (
        "text/event-stream" if protocol.has_events else "application/x-ndjson"
    )
    plain = await reply_to(name, end, "".join(pieces), content_type)
    assert "Gr\u00fc\u00dfe" in str(plain)

    # only litellm's ids of calls differ
    keep_alives = [one for one in keep_alives_of(protocol) if '": ' not in one]
    for number, keep_alive in enumerate(keep_alives[::2]):
        place = number % (len(pieces) + 1)
        body = "".join([*pieces[:place], keep_alive, *pieces[place:]])
        reply = await reply_to(name, end, body, content_type)
        assert _without_ids(reply) == _without_ids(plain), (keep_alive, place)


def _without_ids(reply: object) -> str:
    return re.sub("id='[^']*'", "", repr(reply))


@pytest.mark.adapters
async def test_keep_alives_alone_are_shown_through_litellm() -> None:
    error = await failure_on(
        Answer(raw="data: ping\n\n" * 3, content_type="text/event-stream")
    )

    assert type(error) is NotAReply
    assert "data: ping" in error.message
    assert "API base" not in error.hint


@each_row(
    ("status", "becomes"),
    [
        (401, AuthenticationFailed),
        (404, ModelNotFound),
        (429, RateLimited),
        (529, RateLimited),
        (500, BadAnswer),
    ],
)
async def test_errors_of_other_providers_have_the_same_types(
    status: int, becomes: type[ModelError], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-key-for-tests")

    error = await failure_on(failure(status, "No way."), "anthropic/claude-test")

    assert type(error) is becomes
    assert error.message.endswith(f"({status}): No way.")


# As Azure begins a stream: with what its filter thinks of the prompt.
FILTERED = {
    "choices": [],
    "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": {}}],
}
FIRST_OF_AZURE = {
    "without an id": FILTERED,
    "with an empty id": {"id": "", "object": "", "model": "", "created": 0, **FILTERED},
    "with an id": {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "model": "m",
        "created": 1,
        **FILTERED,
    },
}


@each_row("name", ["azure/gpt-5", "openai/gpt-5"])
@each_row("first", FIRST_OF_AZURE.values(), ids=FIRST_OF_AZURE)
async def test_a_first_piece_without_choices_is_ignored(
    name: str, first: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_API_KEY", "a-key-for-tests")
    monkeypatch.setenv("AZURE_API_VERSION", "2026-10-01")
    head = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "gpt-5",
    }
    call = {
        "index": 0,
        "id": "call_1",
        "type": "function",
        "function": {"name": "look", "arguments": "{}"},
    }
    pieces = [
        first,
        {
            **head,
            "choices": [
                {"index": 0, "delta": {"role": "assistant", "content": "Hello."}}
            ],
        },
        {**head, "choices": [{"index": 0, "delta": {"tool_calls": [call]}}]},
        {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
        {
            **head,
            "choices": [],
            "usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11},
        },
    ]
    raw = (
        "".join(f"data: {json.dumps(piece)}\n\n" for piece in pieces)
        + "data: [DONE]\n\n"
    )
    with LoopbackServer([Answer(raw=raw, content_type="text/event-stream")]) as server:
        base = (
            server.url if name.startswith("openai") else server.url.removesuffix("/v1")
        )
        events = await all_of(LitellmModel(name, base), REQUEST)

    assert events == [
        TextDelta("Hello."),
        ToolCall("call_1", "look", "{}"),
        Done(usage=Usage(9, 2)),
    ]


@each_row("name", ["frobnicate", "frobnicate/model", ""])
async def test_a_model_string_without_a_provider_is_an_error(name: str) -> None:
    error = await failure_of(LitellmModel(name))

    assert type(error) is ModelNotFound
    assert "provider/model" in error.hint


@each_row(
    ("name", "variable"),
    [
        (MODEL, "OPENAI_API_KEY"),
        ("gpt-4o", "OPENAI_API_KEY"),
        ("anthropic/claude-test", "ANTHROPIC_API_KEY"),
        ("gemini/gemini-test", "GEMINI_API_KEY"),
    ],
)
async def test_a_missing_key_is_named(name: str, variable: str) -> None:
    error = await failure_of(LitellmModel(name))

    assert type(error) is AuthenticationFailed
    assert variable in error.hint
    assert variable in missing_keys(name)


async def test_a_refused_key_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-wrong-key")

    error = await failure_on(failure(401))

    assert "OPENAI_API_KEY" in error.hint
    assert missing_keys(MODEL) == []


async def test_a_bug_in_cdd_keeps_its_type() -> None:
    with pytest.raises(AttributeError):
        await all_of(
            LitellmModel(MODEL, "http://127.0.0.1:9"),
            Request(("not a message",)),  # type: ignore[arg-type]
        )


@each_row("variable", ["OPENAI_API_BASE", "OPENAI_BASE_URL"])
@each_row("name", [MODEL, "gpt-4o"])
@each_row("key", ["a-key-for-tests", "", None])
async def test_the_endpoint_comes_from_the_environment(
    variable: str, name: str, key: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if key is not None:
        monkeypatch.setenv("OPENAI_API_KEY", key)
    with LoopbackServer(["Hello"]) as server:
        monkeypatch.setenv(variable, server.url)
        assert await reply_of(LitellmModel(name)) == "Hello"

    (recorded,) = server.requests
    assert recorded.path == "/v1/chat/completions"
    assert (
        recorded.headers["Authorization"]
        == f"Bearer {key or litellm_adapter.DUMMY_KEY}"
    )


async def test_the_api_base_of_the_configuration_wins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_BASE", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    with LoopbackServer(["Hello"]) as server:
        assert await reply_of(LitellmModel(MODEL, server.url)) == "Hello"

    assert server.requests[0].body["messages"] == [
        {"role": "user", "content": "Say hello."}
    ]
    assert server.requests[0].body["stream_options"] == {"include_usage": True}


async def usage_of(name: str, base: str) -> Usage:
    *_, done = await all_of(LitellmModel(name, base), REQUEST)
    assert isinstance(done, Done)
    assert done.usage is not None
    return done.usage


async def test_cached_and_thinking_tokens_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DEEPSEEK_API_KEY", "a-key")
    with DeepSeek([Said("Hello.", "They greet me.")] * 2) as simulator:
        counted = [
            await usage_of("deepseek/deepseek-v4-pro", simulator.url) for _ in range(2)
        ]

    assert counted == [
        Usage(
            bill.prompt,
            bill.completion,
            cached_tokens=bill.cached,
            thinking_tokens=bill.reasoning,
        )
        for bill in simulator.bills
    ]
    assert counted[1].cached_tokens > 0


async def test_tokens_that_claude_writes_to_its_cache_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-key")

    class Written(Anthropic):
        def bill(self, body: Json, said: Said) -> Bill:
            return Bill(10, 200, 30, 4, 2)

    with Written([Said("Hello.", "They greet me.")]) as simulator:
        usage = await usage_of(
            "anthropic/claude-opus-5", simulator.url.removesuffix("/v1")
        )

    assert usage == Usage(
        240, 4, cached_tokens=200, cache_write_tokens=30, thinking_tokens=2
    )


async def test_claude_reads_earlier_rounds_from_the_cache(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-key")
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    looks = tuple(("read_file", {"path": f"{n}.txt"}) for n in range(25))
    script = [
        Said("I look.", "Where?", looks[:1]),
        Said("", "", looks),
        Said("", "There.", looks[:1]),
        Said("Done."),
    ]
    with Anthropic(script) as simulator:
        model = LitellmModel(
            "anthropic/claude-opus-5", simulator.url.removesuffix("/v1")
        )
        await heard(Dialogue(model, read_only_tools(tmp_path), "on"))

    assert simulator.refusals == []
    assert [bill.cached for bill in simulator.bills[1:]] == [
        bill.prompt for bill in simulator.bills[:-1]
    ]


def run_python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("LITELLM_")
    }
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        env=clean,
    )


@pytest.mark.fork
def test_importing_the_adapter_imports_no_vendor() -> None:
    code = """
import sys
import cdd_agent.llm.litellm_adapter, cdd_agent.llm.scripted
print(*{"litellm", "openai", "pydantic"} & sys.modules.keys())
"""
    assert run_python(code).stdout == "\n"


@pytest.mark.fork
def test_leaving_during_the_early_import_is_quiet() -> None:
    code = """
from cdd_agent.llm.litellm_adapter import LitellmModel
LitellmModel("openai/x").warm_up()
"""
    done = run_python(code)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


MANNERS = """
import asyncio, os, sys

network = []
def note(event, arguments):
    if event == "socket.getaddrinfo":
        network.append(str(arguments[0]))
    elif event == "socket.connect" and isinstance(arguments[1], tuple):
        network.append(str(arguments[1][0]))
sys.addaudithook(note)

from cdd_agent.llm.litellm_adapter import LitellmModel
from cdd_agent.llm.port import Message, ModelError, Request

async def call(name, base):
    model = LitellmModel(name, base)
    model.warm_up()
    hello = Request((Message("user", "Hello."),))
    try:
        return await model.reply(hello, lambda event: None)
    except ModelError as error:
        return error

async def main(base):
    for _ in range(5):
        await call("openai/test-model", base)
    await call("openai/test-model", "http://127.0.0.1:9/v1")
    await call("anthropic/claude-test", base)
    await call("frobnicate", None)

os.environ["ANTHROPIC_API_KEY"] = "a-key-for-tests"
before = os.environ.get("LITELLM_MODE")
asyncio.run(main(sys.argv[1]))
assert network, "the audit hook saw nothing"
assert set(network) <= {"127.0.0.1"}, network
assert os.environ.get("LITELLM_MODE") == before, "leaks into the commands of a project"
"""


@pytest.mark.fork
def test_litellm_prints_nothing_and_contacts_no_other_server() -> None:
    script: list[str | Answer] = [
        "Hello",
        failure(401),
        Answer("a b c", cut_after=1),
        Answer("a b c", garbage=True),
        Answer(raw="<html>"),
        failure(500),
    ]
    with LoopbackServer(script) as server:
        done = run_python(MANNERS, server.url)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert len(server.requests) == 6


LOOPS = """
import asyncio, os, sys
from cdd_agent.llm.litellm_adapter import LitellmModel
from cdd_agent.llm.port import Message, ModelError, Request

async def call():
    try:
        model = LitellmModel("anthropic/claude-test", sys.argv[1])
        await model.reply(Request((Message("user", "Hello."),)), lambda event: None)
    except ModelError as error:
        print(type(error).__name__, flush=True)

os.environ["ANTHROPIC_API_KEY"] = "a-key-for-tests"
for _ in range(3):
    asyncio.new_event_loop().run_until_complete(call())
os._exit(0)  # without the complaints of loops that nobody closes
"""


@pytest.mark.fork
def test_no_call_uses_a_connection_of_another_event_loop() -> None:
    with LoopbackServer([failure(401)] * 3) as server:
        done = run_python(LOOPS, server.url.removesuffix("/v1"))

    assert done.stdout.split() == ["AuthenticationFailed"] * 3, done.stderr
