"""The check before a call: what it finds out, and that nothing is paid for."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from cdd_agent.llm import timeouts
from cdd_agent.llm.direct.model import DirectModel
from cdd_agent.llm.fallbacks import WithFallbacks
from cdd_agent.llm.litellm_adapter import LitellmModel
from cdd_agent.llm.port import (
    AuthenticationFailed,
    ConnectionFailed,
    Model,
    ModelError,
    ModelNotFound,
)
from cdd_agent.llm.providers import endpoint_of
from cdd_agent.llm.scripted import ScriptedModel
from tests.support.tables import each_row


def direct(base: str | None, name: str = "openai/m", **variables: str) -> Model:
    endpoint = endpoint_of(name, base, variables)
    assert endpoint is not None
    return DirectModel(name, endpoint)


@asynccontextmanager
async def server(answer: bytes) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server that answers each request with these bytes; its requests."""
    requests: list[bytes] = []
    talks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            requests.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(answer)
            if not answer:
                await reader.read()  # until the client gives up
        finally:
            writer.close()
            await writer.wait_closed()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talks.add(asyncio.create_task(serve(reader, writer)))

    listening = await asyncio.start_server(accept, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}/v1", requests
    finally:
        listening.close()
        # a connection that stays open would be reported in a later test
        for talk in talks:
            talk.cancel()
        await asyncio.gather(*talks, return_exceptions=True)
        await listening.wait_closed()


def closed_port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}/v1"


async def test_a_missing_key_is_found_without_a_call() -> None:
    for model in (direct(None), direct(None, "anthropic/m")):
        for connect in (False, True):
            with pytest.raises(AuthenticationFailed) as caught:
                await model.check(connect=connect)
            assert "API_KEY" in caught.value.hint


@pytest.mark.adapters
async def test_litellm_finds_a_missing_key_and_a_server_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for variable in ("OPENAI_API_KEY", "GROQ_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    for name in ("openai/gpt-4o", "groq/m"):
        with pytest.raises(AuthenticationFailed) as caught:
            await LitellmModel(name).check(connect=False)
        assert "API_KEY" in caught.value.hint
    # a server of one's own needs no key
    model = LitellmModel("openai/m", closed_port())
    await model.check(connect=False)
    with pytest.raises(ConnectionFailed):
        await model.check(connect=True)


@pytest.mark.adapters
async def test_a_provider_with_other_ways_to_log_in_is_left_to_the_call() -> None:
    for name in ("bedrock/m", "vertex_ai/gemini-2.5-pro", "azure/m"):
        await LitellmModel(name).check(connect=False)


@each_row(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 500 Sorry\r\ncontent-length: 0\r\n\r\n",
        b"nonsense\r\n\r\n",
    ],
)
async def test_a_server_that_answers_anything_is_there_and_gets_no_key(
    answer: bytes,
) -> None:
    async with server(answer) as (base, requests):
        await direct(base, OPENAI_API_KEY="sk-1").check(connect=True)
    (request,) = requests
    assert request.startswith(b"HEAD ")
    assert b"sk-1" not in request


async def test_a_server_that_is_slow_is_left_to_the_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(timeouts, "SERVER_CHECK_TIMEOUT", 0.05)
    async with server(b"") as (base, _):
        await direct(base).check(connect=True)


async def test_a_server_that_is_not_there_is_found_only_where_it_is_looked_for() -> (
    None
):
    model = direct(closed_port())
    await model.check(connect=False)
    with pytest.raises(ConnectionFailed) as caught:
        await model.check(connect=True)
    assert "127.0.0.1" in caught.value.hint


@each_row(
    ("base", "error"),
    [
        ("http://no-such-name.invalid/v1", ConnectionFailed),
        ("http://[::1", ModelNotFound),
    ],
)
async def test_an_address_that_leads_nowhere_is_found(
    base: str, error: type[ModelError]
) -> None:
    with pytest.raises(error):
        await direct(base).check(connect=True)


class Away(ScriptedModel):
    def __init__(self, error: ModelError) -> None:
        super().__init__([])
        self.error = error

    async def check(self, *, connect: bool) -> None:
        raise self.error


@each_row(
    ("first", "second", "raised"),
    [
        (ConnectionFailed("gone"), None, None),
        (ConnectionFailed("gone"), ConnectionFailed("gone too"), "gone too"),
        (AuthenticationFailed("no key"), None, "no key"),
    ],
)
async def test_of_several_models_one_has_to_be_there(
    first: ModelError, second: ModelError | None, raised: str | None
) -> None:
    other = Away(second) if second else ScriptedModel([])
    model = WithFallbacks(Away(first), [other])
    if raised is None:
        await model.check(connect=True)
        return
    with pytest.raises(ModelError, match=raised):
        await model.check(connect=True)
