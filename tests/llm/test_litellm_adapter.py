"""litellm against a real server on loopback: its errors, its variables, its manners."""

import asyncio
import os
import subprocess
import sys

import pytest

from cdd_agent.errors import ExitCode
from cdd_agent.llm import litellm_adapter
from cdd_agent.llm.litellm_adapter import LitellmModel, missing_keys
from cdd_agent.llm.port import (
    AuthenticationFailed,
    BadAnswer,
    ConnectionFailed,
    ContextTooLong,
    Message,
    ModelError,
    ModelNotFound,
    RateLimited,
    Request,
    RequestRejected,
    TextDelta,
)
from tests.llm.server import Answer, LoopbackServer, Recorded, failure

# litellm silences this warning itself, at import; pytest puts its own filters back for every test.
pytestmark = [  # litellm's and OpenAI's own; pytest forgets the adapter's filters with each test
    pytest.mark.filterwarnings("ignore:Accessing the 'model_:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Item .* on TypedDict class:UserWarning"),
]

MODEL = "openai/test-model"
REQUEST = Request((Message("user", "Say hello."),))


async def reply_of(model: LitellmModel) -> str:
    return "".join([event.text async for event in model.stream(REQUEST) if isinstance(event, TextDelta)])


async def failure_of(model: LitellmModel) -> ModelError:
    with pytest.raises(ModelError) as raised:
        await reply_of(model)
    return raised.value


async def failure_on(answer: Answer, name: str = MODEL) -> ModelError:
    """What becomes of the server's `answer`, after exactly one request."""
    with LoopbackServer([answer]) as server:
        base = server.url if name == MODEL else server.url.removesuffix("/v1")
        error = await failure_of(LitellmModel(name, base))
    assert len(server.requests) == 1
    return error


REJECTED, LATER, BAD = ExitCode.FAILED, ExitCode.COME_BACK_LATER, ExitCode.BAD_INPUT


@pytest.mark.parametrize(
    ("answer", "becomes", "exit_code", "says"),
    [
        (failure(401, "Wrong key."), AuthenticationFailed, BAD, f"the key for {MODEL} (401): Wrong key."),
        (failure(403, "Not yours."), AuthenticationFailed, BAD, "(403): Not yours."),
        (failure(404, "No such model."), ModelNotFound, BAD, f"not know {MODEL} (404): No such model."),
        (failure(404, code="model_not_found"), ModelNotFound, BAD, "(404)"),
        (failure(400, "Bad parameter."), RequestRejected, REJECTED, "(400): Bad parameter."),
        (failure(400, "9 > 8.", "context_length_exceeded"), ContextTooLong, REJECTED, "too long for"),
        (failure(400, "maximum context length is 9."), ContextTooLong, REJECTED, "too long"),
        (failure(402, "Pay."), RequestRejected, REJECTED, "(402): Pay."),
        (failure(413, "Too large."), RequestRejected, REJECTED, "(413): Too large."),
        (failure(422, "Odd."), RequestRejected, REJECTED, "(422): Odd."),
        (failure(429, "Slow down."), RateLimited, LATER, "(429): Slow down."),
        (failure(503, "Busy."), RateLimited, LATER, "(503): Busy."),
        (failure(529, "Overloaded."), RateLimited, LATER, "(529): Overloaded."),
        (failure(408), ConnectionFailed, ExitCode.FAILED, "in time (408)"),
        (failure(504), ConnectionFailed, ExitCode.FAILED, "in time (504)"),
        (failure(500, "Boom."), BadAnswer, ExitCode.FAILED, "failed (500): Boom."),
        (failure(502, "Gone."), BadAnswer, ExitCode.FAILED, "failed (502): Gone."),
        (Answer(raw="This is not JSON."), BadAnswer, ExitCode.FAILED, "not a model's reply"),
        (Answer(raw="<html>Log in</html>", content_type="text/html"), BadAnswer, ExitCode.FAILED, "not a"),
        (Answer(raw=""), BadAnswer, ExitCode.FAILED, "not a model's reply"),
        (Answer("a b c", garbage=True), BadAnswer, ExitCode.FAILED, "cannot be understood"),
        (Answer("a b c", cut_after=0), ConnectionFailed, ExitCode.FAILED, "broke"),
        (Answer("a b c", cut_after=2), ConnectionFailed, ExitCode.FAILED, "broke"),
        (Answer("a b c", cut_after=2, chunked=False), ConnectionFailed, ExitCode.FAILED, "broke off"),
        (Answer("a b c", finish_reason=None), ConnectionFailed, ExitCode.FAILED, "broke off"),
    ],
)
async def test_what_a_server_does_wrong_has_a_name(
    answer: Answer, becomes: type[ModelError], exit_code: ExitCode, says: str
) -> None:
    error = await failure_on(answer)

    assert type(error) is becomes
    assert error.exit_code == exit_code
    assert says in error.message
    assert "litellm" not in error.message.lower()
    assert error.hint


async def test_an_error_in_the_middle_of_a_stream_counts_as_what_it_says() -> None:
    event = 'data: {"error": {"message": "No capacity.", "code": 503}}\n\n'

    error = await failure_on(Answer(raw=event, content_type="text/event-stream"))

    assert type(error) is RateLimited
    assert error.message.endswith("(503): No capacity.")


async def test_the_hint_says_how_long_to_wait() -> None:
    error = await failure_on(failure(429, headers={"Retry-After": "7"}))

    assert error.hint == "It asks to wait for 7 s."
    assert isinstance(error, RateLimited)
    assert error.retry_after == 7


@pytest.mark.parametrize(
    ("status", "becomes"),
    [
        (401, AuthenticationFailed),
        (404, ModelNotFound),
        (429, RateLimited),
        (529, RateLimited),
        (500, BadAnswer),
    ],
)
async def test_another_provider_s_errors_have_the_same_names(
    status: int, becomes: type[ModelError], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-key-for-tests")

    error = await failure_on(failure(status, "No way."), "anthropic/claude-test")

    assert type(error) is becomes
    assert error.message.endswith(f"({status}): No way.")


@pytest.mark.parametrize(
    ("base", "says"),
    [
        ("http://127.0.0.1:9/v1", "could not be reached"),
        ("http://[::1", "not a URL"),
        ("localhost:9", "not a URL"),
    ],
)
async def test_a_server_that_is_not_there(base: str, says: str) -> None:
    error = await failure_of(LitellmModel(MODEL, base))

    assert type(error) is ConnectionFailed
    assert says in error.message
    assert base in error.hint


@pytest.mark.parametrize("answer", [Answer("a b", wait=1.0), Answer("a b", pause=1.0)])
async def test_silence_is_a_failed_connection(answer: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(litellm_adapter, "SILENCE_TIMEOUT", 0.2)

    error = await failure_on(answer)

    assert type(error) is ConnectionFailed
    assert "did not answer in time" in error.message


@pytest.mark.parametrize("name", ["frobnicate", "frobnicate/model", ""])
async def test_a_model_string_without_a_provider(name: str) -> None:
    error = await failure_of(LitellmModel(name))

    assert type(error) is ModelNotFound
    assert "provider/model" in error.hint


@pytest.mark.parametrize(
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
    assert error.message == f"There is no key for {name}."
    assert variable in error.hint
    assert variable in missing_keys(name)


async def test_a_refused_key_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-wrong-key")

    error = await failure_on(failure(401))

    assert "Check OPENAI_API_KEY" in error.hint
    assert missing_keys(MODEL) == []


@pytest.mark.parametrize(
    "leak",
    [
        "Incorrect API key provided: sk-proj-Ab3.",
        "You sent Bearer abc.",
        "Token 0123456789abcdefghijklmnop is old.",
        "The key correct-horse is wrong.",
        "http://me:hunter2@proxy refused.",
    ],
)
async def test_no_key_reaches_a_message(leak: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_API_KEY", "correct-horse")

    error = await failure_on(failure(401, leak))

    for secret in ("sk-proj-Ab3", "abc", "0123456789abcdefghijklmnop", "correct-horse", "hunter2"):
        assert secret not in error.message
    assert "[redacted]" in error.message


async def test_a_server_s_words_are_one_short_plain_line() -> None:
    page = f"<html><style>b {{}}</style><b>Sorry</b>\n\x1b[31m{'very ' * 200}</html>"

    error = await failure_on(Answer(status=500, raw=page, content_type="text/html"))

    quote = error.message.partition(": ")[2]
    assert quote.startswith("Sorry [31mvery very")
    assert len(quote) == 300


async def test_what_the_caller_was_handling_does_not_count() -> None:
    try:
        raise ConnectionRefusedError("an earlier attempt")
    except ConnectionRefusedError:
        error = await failure_on(failure(500, "Boom."))

    assert type(error) is BadAnswer


async def test_a_bug_of_ours_keeps_its_own_type() -> None:
    with pytest.raises(AttributeError):
        await anext(LitellmModel(MODEL, "http://127.0.0.1:9").stream(Request(("not a message",))))  # type: ignore[arg-type]


@pytest.mark.parametrize("variable", ["OPENAI_API_BASE", "OPENAI_BASE_URL"])
@pytest.mark.parametrize("name", [MODEL, "gpt-4o"])
@pytest.mark.parametrize("key", ["a-key-for-tests", None])
async def test_the_endpoint_comes_from_the_environment(
    variable: str, name: str, key: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if key:
        monkeypatch.setenv("OPENAI_API_KEY", key)
    with LoopbackServer(["Hello"]) as server:
        monkeypatch.setenv(variable, server.url)
        assert await reply_of(LitellmModel(name)) == "Hello"

    (recorded,) = server.requests
    assert recorded.path == "/v1/chat/completions"
    assert recorded.headers["Authorization"] == f"Bearer {key or litellm_adapter.DUMMY_KEY}"


async def test_the_api_base_of_the_configuration_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_BASE", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    with LoopbackServer(["Hello"]) as server:
        assert await reply_of(LitellmModel(MODEL, server.url)) == "Hello"

    assert server.requests[0].body["messages"] == [{"role": "user", "content": "Say hello."}]
    assert server.requests[0].body["stream_options"] == {"include_usage": True}


async def ended(recorded: Recorded) -> bool:
    return await asyncio.to_thread(recorded.ended.wait, 5)


async def test_closing_early_closes_the_connection() -> None:
    with LoopbackServer([Answer("word " * 50, pause=0.05)]) as server:
        stream = LitellmModel(MODEL, server.url).stream(REQUEST)
        await anext(stream)
        await stream.aclose()

        assert await ended(server.requests[0])
    assert server.requests[0].client_left


@pytest.mark.parametrize("answer", [Answer("a b c d", wait=0.3, pause=0.1), Answer("word " * 50, pause=0.05)])
async def test_cancelling_closes_the_connection(answer: Answer) -> None:
    with LoopbackServer([answer]) as server:
        call = asyncio.create_task(reply_of(LitellmModel(MODEL, server.url)))
        while not server.requests:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

        assert await ended(server.requests[0])
    assert server.requests[0].client_left


def run_python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LITELLM_")}
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, env=clean)


def test_starting_up_imports_no_vendor() -> None:
    code = """
import sys
import cdd_agent.llm.litellm_adapter, cdd_agent.llm.scripted
print(*{"litellm", "openai", "httpx", "yaml", "pydantic"} & sys.modules.keys())
"""
    assert run_python(code).stdout == "\n"


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
    try:
        return [event async for event in model.stream(Request((Message("user", "Hello."),)))]
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


def test_litellm_neither_writes_to_the_screen_nor_calls_home() -> None:
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
