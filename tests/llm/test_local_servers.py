"""Model servers of this computer, and whatever else listens where they usually do."""

import itertools
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

from cdd_agent.llm.direct.model import DirectModel
from cdd_agent.llm.fetched_json import fetch_json
from cdd_agent.llm.local_servers import (
    LocalServer,
    NoModelList,
    find_local_servers,
    models_at,
)
from cdd_agent.llm.offered_model import OfferedModel
from cdd_agent.llm.port import ConnectionFailed, Message, Request
from cdd_agent.llm.providers import endpoint_of
from tests.llm.listing import HEAD, answering, listing
from tests.llm.simulators.base import Said
from tests.llm.simulators.ollama_chat import OllamaChat
from tests.support.replies import all_of
from tests.support.tables import each_row


@contextmanager
def deserted_port() -> Iterator[int]:
    """Nobody listens there, and nobody else can meanwhile."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


async def test_each_server_is_found_with_its_models() -> None:
    with (
        answering(listing("qwen3-coder:30b", "llama3.2", "nomic-embed-text")) as (
            first,
            heads,
        ),
        answering(listing("SmolLM2 135M.gguf")) as (second, _),
        deserted_port() as nobodys,
    ):
        found = await find_local_servers(
            {"Ollama": first, "nobody": nobodys, "llama.cpp": second}
        )

    assert found == (
        # not what only embeds
        LocalServer(
            "Ollama", f"http://127.0.0.1:{first}/v1", ("qwen3-coder:30b", "llama3.2")
        ),
        LocalServer(
            "llama.cpp", f"http://127.0.0.1:{second}/v1", ("SmolLM2 135M.gguf",)
        ),
    )
    # in any order
    assert {head.partition(" HTTP/1.1")[0] for head in heads} == {
        "GET /v1/models",
        "GET /api/version",
    }
    assert (
        OfferedModel("llama3.2", "Ollama", "http://127.0.0.1:1/v1").model
        == "openai/llama3.2"
    )


async def test_ollama_is_offered_by_its_own_api() -> None:
    with OllamaChat([Said("Hello.")]) as simulator:
        (server,) = await find_local_servers(
            {"Ollama": int(simulator.url.rpartition(":")[2])}
        )
        offered = OfferedModel(server.models[0], server.name, server.api_base)
        endpoint = endpoint_of(offered.model, offered.api_base, {})
        assert endpoint is not None
        await all_of(
            DirectModel(offered.model, endpoint), Request((Message("user", "Hello."),))
        )

    assert (offered.model, len(simulator.bills)) == ("ollama/qwen3:8b", 1)


@each_row(
    "data", [b'{"object": "list", "data": null}', b'{"object": "list", "data": []}']
)
async def test_a_server_without_models_is_a_server(data: bytes) -> None:
    with answering(HEAD + data) as (port, _):
        assert await models_at(f"http://127.0.0.1:{port}/v1") == ()


@each_row(
    "answer",
    [
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n",
        (
            b"HTTP/1.1 307 Away\r\n"
            b"Location: http://127.0.0.1:9/\r\n"
            b"Content-Length: 0\r\n"
            b"\r\n"
        ),
        (
            b"HTTP/1.1 200 OK\r\n"
            b"Content-Encoding: gzip\r\n"
            b"Connection: close\r\n"
            b"\r\n"
            b"\x1f\x8b\x08"
        ),
        HEAD + b"<!doctype html><title>It works!</title>",
        HEAD + b"null",
        HEAD + b"[]",
        HEAD + b'"data"',
        HEAD + b'{"data": "models"}',
        HEAD + b'{"models": []}',
        HEAD + b"\xff\xfe{",
        HEAD + b"[" * 100_000,
        HEAD + b'{"data": ' + b"9" * 10_000 + b"}",
    ],
)
async def test_a_server_without_a_list_of_models_is_not_a_model_server(
    answer: bytes,
) -> None:
    with answering(answer) as (port, heads):
        with pytest.raises(NoModelList):
            await models_at(f"http://127.0.0.1:{port}/v1")
        assert await find_local_servers({"vLLM": port}) == ()
    assert len(heads) == 2


@each_row(
    "answer",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n{",
    ],
)
async def test_an_incomplete_answer_is_not_a_server(answer: bytes) -> None:
    with answering(answer) as (port, _):
        with pytest.raises(ConnectionFailed):
            await models_at(f"http://127.0.0.1:{port}/v1")
        assert await find_local_servers({"vLLM": port}) == ()


@each_row(
    "name",
    [
        None,
        7,
        [],
        {},
        "",
        " a",
        "two\nlines",
        "\x1b[31mred",
        "\u202egnp",
        "x" * 201,
        "\ud800",
    ],
)
async def test_unprintable_names_are_left_out(name: object) -> None:
    with answering(listing("good", name, "good")) as (port, _):
        assert await models_at(f"http://127.0.0.1:{port}/v1") == ("good",)


async def test_entries_without_an_id_are_left_out() -> None:
    with answering(
        HEAD + b'{"data": [1, null, "x", [], {}, {"name": "y"}, {"id": "good"}]}'
    ) as (port, _):
        assert await models_at(f"http://127.0.0.1:{port}/v1") == ("good",)


@each_row(
    "pieces",
    [
        [b""],  # takes the call and says nothing
        # a byte now and then, for ever
        itertools.chain([HEAD], itertools.repeat(b" ")),
    ],
)
async def test_a_slow_server_is_not_waited_for(pieces: Iterable[bytes]) -> None:
    with answering(itertools.chain(pieces, itertools.repeat(b"")), pause=0.02) as (
        port,
        _,
    ):
        began = time.monotonic()
        with pytest.raises(ConnectionFailed):
            await models_at(f"http://127.0.0.1:{port}/v1", time_limit=0.1)
        assert time.monotonic() - began < 60


async def test_an_endless_answer_is_not_kept() -> None:
    with (
        answering(itertools.chain([HEAD], itertools.repeat(b" " * 65_536))) as (
            port,
            _,
        ),
        pytest.raises(NoModelList),
    ):
        await models_at(f"http://127.0.0.1:{port}/v1", time_limit=30)


async def test_a_closed_port_is_a_refused_connection() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        with pytest.raises(ConnectionFailed, match=r"reached: Connection refused$"):
            await models_at(f"http://127.0.0.1:{port}/v1")


async def test_all_servers_are_asked_at_the_same_time() -> None:
    all_are_asked = threading.Barrier(20)

    def slow() -> Iterator[bytes]:
        all_are_asked.wait()
        yield listing("a")

    with ExitStack() as servers:
        ports = [servers.enter_context(answering(slow()))[0] for _ in range(20)]
        assert len(await find_local_servers({str(port): port for port in ports})) == 20


async def test_no_server_receives_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")
    with answering(listing("a")) as (port, heads):
        await find_local_servers({"Ollama": port})
    assert "0123456789abcdef" not in heads[0]
    assert "authorization" not in heads[0].lower()


async def test_a_key_that_no_header_can_hold_is_not_sent() -> None:
    with answering(listing("a")) as (port, heads):
        base = f"http://127.0.0.1:{port}/v1"
        assert await models_at(base, "sk-\N{CYRILLIC SMALL LETTER A}bc") == ("a",)
        assert fetch_json(f"{base}/models", "sk-a\nsk-b", 10.0) is not None
    assert "sk-" not in "".join(heads)


async def test_a_password_in_an_address_is_not_shown() -> None:
    with deserted_port() as port, pytest.raises(ConnectionFailed) as raised:
        await models_at(f"http://me:a-password@127.0.0.1:{port}/v1")
    assert "a-password" not in raised.value.message + raised.value.hint
