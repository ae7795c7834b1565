"""Calls through proxies, with authorities of their own, and past firewalls."""

import asyncio
import gc
import ssl
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import trustme

from cdd_agent.llm.direct.model import DirectModel
from cdd_agent.llm.litellm_adapter import LitellmModel
from cdd_agent.llm.local_servers import models_at
from cdd_agent.llm.port import (
    AuthenticationFailed,
    ConnectionFailed,
    Done,
    Message,
    Model,
    ModelError,
    NotReachable,
    Request,
    TextDelta,
    WebPageAnswered,
)
from cdd_agent.llm.providers import endpoint_of
from cdd_agent.llm.retrying import Retrying
from tests.llm.server import Answer, LoopbackServer, failure
from tests.support.projects import FakeTime
from tests.support.proxies import LoopbackProxy
from tests.support.replies import all_of
from tests.support.tables import each_row

REQUEST = Request((Message("user", "Say hello."),))
HOST = "models.example"
LITELLM = pytest.param("litellm", marks=pytest.mark.xdist_group("litellm"))


def model_at(base: str, adapter: str = "direct") -> Model:
    if adapter == "litellm":
        return LitellmModel("openai/m", base)
    endpoint = endpoint_of("openai/m", base)
    assert endpoint is not None
    return DirectModel("openai/m", endpoint)


async def assert_replies(model: Model) -> None:
    first, *_, last = await all_of(model, REQUEST)
    assert first == TextDelta("Hello")
    assert isinstance(last, Done)


async def failure_of(model: Model) -> ModelError:
    with pytest.raises(ModelError) as raised:
        await all_of(model, REQUEST)
    return raised.value


class Authority:
    """An authority that the test makes, in a file."""

    def __init__(self, folder: Path) -> None:
        self._authority = trustme.CA()
        self.file = folder / "authority.pem"
        self._authority.cert_pem.write_to_path(str(self.file))

    def server_context(self, *names: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._authority.issue_cert(*(names or ("127.0.0.1", HOST))).configure_cert(
            context
        )
        return context


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@contextmanager
def tls_server(context: ssl.SSLContext) -> Iterator[LoopbackServer]:
    with LoopbackServer(lambda _: Answer("Hello"), tls=context) as server:
        yield server


# Proxies


@pytest.mark.parametrize("adapter", ["direct", LITELLM])
async def test_plain_calls_go_through_an_http_proxy(
    adapter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LoopbackServer(["Hello"]) as server:
        proxy = LoopbackProxy(server.port, user="me:pa ss")
        async with proxy.serve_http() as port:
            monkeypatch.setenv("http_proxy", f"me:pa%20ss@127.0.0.1:{port}")
            # neither is used for http, and one cannot be
            monkeypatch.setenv("ALL_PROXY", "socks4://old.example")
            monkeypatch.setenv("NO_PROXY", "localhost,fe80::/10,[::1]")
            await assert_replies(model_at(f"http://{HOST}/v1", adapter))
    assert proxy.asked == [f"http://{HOST}/v1/chat/completions"]


@pytest.mark.parametrize("adapter", ["direct", LITELLM])
async def test_tls_calls_go_through_a_tunnel(
    adapter: str, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    with tls_server(authority.server_context()) as server:
        proxy = LoopbackProxy(server.port)
        async with proxy.serve_http() as port:
            monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{port}")
            await assert_replies(model_at(f"https://{HOST}/v1", adapter))
    assert proxy.asked == [f"{HOST}:443"]


@each_row("scheme", ["socks5", "socks5h", "socks"])
@pytest.mark.parametrize("adapter", ["direct", LITELLM])
async def test_calls_go_through_a_socks_proxy(
    adapter: str, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LoopbackServer(["Hello"]) as server:
        proxy = LoopbackProxy(server.port, user="me:secret")
        async with proxy.serve_socks() as port:
            monkeypatch.setenv("ALL_PROXY", f"{scheme}://me:secret@127.0.0.1:{port}")
            await assert_replies(model_at(f"http://{HOST}/v1", adapter))
    assert proxy.asked == [f"{HOST}:80"]


@pytest.mark.parametrize("adapter", ["direct", LITELLM])
async def test_no_proxy_is_used_for_this_computer(
    adapter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9")
    with LoopbackServer(["Hello"]) as server:
        await assert_replies(model_at(server.url, adapter))


async def test_a_certificate_of_the_proxy_is_checked(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tls_server(authority.server_context()) as server:
        monkeypatch.setenv("HTTPS_PROXY", f"https://127.0.0.1:{server.port}")
        error = await failure_of(model_at(f"https://{HOST}/v1"))
        assert isinstance(error, NotReachable)
        assert "SSL_CERT_FILE" in error.hint


@each_row(
    ("refusal", "is_final", "says"),
    [
        ("407 Proxy Authentication Required", True, "user and password"),
        ("403 Forbidden", True, "403 Forbidden"),
        ("405 Method Not Allowed", True, "405"),
        ("502 Bad Gateway", False, "502 Bad Gateway"),
        ("503 Service Unavailable", False, "503"),
    ],
)
@pytest.mark.parametrize("adapter", ["direct", LITELLM])
async def test_a_proxy_that_refuses_is_named_with_its_variable(
    adapter: str,
    refusal: str,
    is_final: bool,
    says: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proxy = LoopbackProxy(0, refusal=refusal)
    async with proxy.serve_http() as port:
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:secret@127.0.0.1:{port}")
        error = await failure_of(model_at(f"https://{HOST}/v1", adapter))
    assert f"http://127.0.0.1:{port} (HTTPS_PROXY)" in error.message
    assert says in error.message
    assert "secret" not in f"{error.message}{error.hint}"
    assert isinstance(error, ConnectionFailed)
    assert error.is_transient is not is_final


@each_row(("refusal", "calls"), [("403 Forbidden", 1), ("502 Bad Gateway", 3)])
async def test_only_what_may_change_is_asked_for_again(
    refusal: str, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = LoopbackProxy(0, refusal=refusal)
    async with proxy.serve_http() as port:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{port}")
        await failure_of(Retrying(model_at(f"https://{HOST}/v1"), FakeTime().clock))
    assert len(proxy.asked) == calls


async def test_a_socks_proxy_that_refuses_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for proxy in (LoopbackProxy(0, refusal="no"), LoopbackProxy(0, user="me:secret")):
        async with proxy.serve_socks() as port:
            monkeypatch.setenv("ALL_PROXY", f"socks5://me:wrong@127.0.0.1:{port}")
            error = await failure_of(model_at(f"http://{HOST}/v1"))
        assert isinstance(error, NotReachable)
        assert f"socks5://127.0.0.1:{port} (ALL_PROXY)" in error.message
        del error
        with warnings.catch_warnings():
            # httpcore leaves a connection open if SOCKS refuses
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()


async def test_a_plain_proxy_that_wants_a_password_is_no_wrong_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proxy = LoopbackProxy(0, user="me:secret", page="<html><h1>Log in</h1></html>")
    async with proxy.serve_http() as port:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{port}")
        error = await failure_of(model_at(f"http://{HOST}/v1"))
    assert type(error) is NotReachable
    assert "HTTP_PROXY" in error.message
    assert "Log in" in error.message


@each_row(
    ("value", "is_final"),
    [
        ("http://127.0.0.1:9", False),
        ("http://no-such-host.invalid:3128", True),
        ("gopher://127.0.0.1", True),
        ("socks4://127.0.0.1:1080", True),
        ("http://127.0.0.1:port", True),
        ("http://127.0.0.1:99999", True),
        ("socks5://127.0.0.1:65536", True),
    ],
)
@pytest.mark.parametrize("adapter", ["direct", LITELLM])
async def test_a_proxy_that_is_not_there_is_named_with_its_variable(
    adapter: str, value: str, is_final: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", value)
    for base in (f"http://{HOST}/v1", f"https://{HOST}/v1"):
        model = model_at(base, adapter)
        error = await failure_of(model)
        assert isinstance(error, ConnectionFailed)
        assert "ALL_PROXY" in error.message
        assert error.is_transient is not is_final
        with pytest.raises(ConnectionFailed, match="ALL_PROXY"):
            await model.check(connect=True)


@each_row("scheme", ["socks5", "socks5h", "https"])
@pytest.mark.parametrize("adapter", ["direct", LITELLM])
async def test_a_proxy_of_another_protocol_is_named_with_its_variable(
    adapter: str, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    proxy = await asyncio.start_server(refuse, "127.0.0.1", 0)
    async with proxy:
        port = proxy.sockets[0].getsockname()[1]
        monkeypatch.setenv("ALL_PROXY", f"{scheme}://me:secret@127.0.0.1:{port}")
        model = model_at(f"https://{HOST}/v1", adapter)
        errors = [await failure_of(model)]
        with pytest.raises(NotReachable) as raised:
            await model.check(connect=True)
        errors.append(raised.value)
        with pytest.raises(NotReachable):
            await models_at(f"https://{HOST}/v1")
    for error in errors:
        assert isinstance(error, NotReachable)
        assert (
            f"{scheme}://127.0.0.1:{port} (ALL_PROXY) does not support" in error.message
        )
        assert "http://" in error.hint
    monkeypatch.undo()
    del error, errors, raised
    with warnings.catch_warnings():
        # httpcore leaves a connection open if SOCKS fails
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


async def test_a_list_of_models_names_a_proxy_that_cannot_be_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ALL_PROXY", "gopher://127.0.0.1")
    with pytest.raises(ConnectionFailed, match="ALL_PROXY"):
        await models_at(f"http://{HOST}/v1")


# Certificates


@pytest.mark.parametrize("adapter", ["direct", LITELLM])
async def test_an_authority_of_a_company_is_trusted_if_a_variable_names_it(
    adapter: str, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tls_server(authority.server_context()) as server:
        error = await failure_of(model_at(server.url, adapter))
        assert type(error) is NotReachable
        assert "SSL_CERT_FILE" in error.hint
        for variable in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
            with monkeypatch.context() as variables:
                variables.setenv(variable, str(authority.file))
                await assert_replies(model_at(server.url, adapter))


async def test_the_certificate_of_the_server_itself_may_be_trusted(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "server.pem"
    with tls_server(authority.server_context()) as server:
        port = httpx.URL(server.url).port or 0
        file.write_text(ssl.get_server_certificate(("127.0.0.1", port)))
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
        await assert_replies(model_at(server.url))
    with tls_server(authority.server_context()) as other:
        assert type(await failure_of(model_at(other.url))) is NotReachable


async def test_a_folder_without_the_authority_is_named(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "authorities"
    folder.mkdir()
    for variable in ("SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"):
        with monkeypatch.context() as variables:
            variables.setenv(variable, str(folder))
            with tls_server(authority.server_context()) as server:
                error = await failure_of(model_at(server.url))
            assert type(error) is NotReachable
            assert f"{folder} ({variable})" in error.hint


@each_row("variable", ["SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"])
@pytest.mark.parametrize("adapter", ["direct", LITELLM])
async def test_certificates_that_cannot_be_read_are_named_with_their_variable(
    adapter: str, variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nonsense = tmp_path / "nonsense.pem"
    nonsense.write_text("-----BEGIN")
    for path in (tmp_path / "stale.pem", nonsense):
        monkeypatch.setenv(variable, str(path))
        error = await failure_of(model_at(f"https://{HOST}/v1", adapter))
        assert type(error) is NotReachable
        assert f"{path} ({variable})" in error.message


async def test_a_certificate_of_another_server_is_refused(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    with tls_server(authority.server_context("other.example")) as server:
        error = await failure_of(model_at(server.url))
    assert type(error) is NotReachable
    assert "not valid" in error.message


async def test_a_server_without_tls_is_named() -> None:
    with LoopbackServer(["Hello"]) as server:
        error = await failure_of(model_at(server.url.replace("http:", "https:")))
    assert type(error) is NotReachable
    assert "http://" in error.hint


async def test_a_name_that_no_host_has_is_looked_up_once() -> None:
    error = await failure_of(model_at("http://no-such-host.invalid/v1"))
    assert isinstance(error, ConnectionFailed)
    # a name server that does not answer may answer later
    assert type(error) is NotReachable or "Temporary" in error.message


@pytest.mark.xdist_group("litellm")
async def test_other_clients_of_litellm_know_authorities_and_ranges_in_no_proxy(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-1")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(authority.file))
    with tls_server(authority.server_context()) as server:
        await assert_replies(
            LitellmModel("anthropic/m", server.url.removesuffix("/v1"))
        )
    monkeypatch.setenv("NO_PROXY", "fe80::/10")
    error = await failure_of(LitellmModel("anthropic/m2", "http://models.example"))
    assert isinstance(error, ConnectionFailed)
    assert "NO_PROXY" not in error.message


# Keys


@pytest.mark.parametrize("adapter", ["direct", LITELLM])
async def test_a_key_is_sent_without_quotes_and_bearer(
    adapter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "\ufeff'Bearer a-key-1234'\r\n")
    with LoopbackServer([failure(401, "Wrong key: a-key-1234.")]) as server:
        error = await failure_of(model_at(server.url, adapter))
    headers = {
        name.lower(): value for name, value in server.requests[0].headers.items()
    }
    assert headers["authorization"] == "Bearer a-key-1234"
    assert type(error) is AuthenticationFailed
    assert "a-key-1234" not in error.message


# Firewalls


@each_row("status", [200, 401, 403, 451, 511])
@pytest.mark.parametrize("adapter", ["direct", LITELLM])
async def test_the_page_of_a_firewall_is_no_wrong_key(
    adapter: str, status: int
) -> None:
    page = "\n<!DOCTYPE html><html><head><title>Access &amp;\n denied</title></head>"
    answer = Answer(status=status, raw=page, content_type="text/html")
    with LoopbackServer([answer]) as server:
        error = await failure_of(model_at(server.url, adapter))
    assert type(error) is WebPageAnswered
    assert not error.is_transient
    assert "Access & denied" in error.message
    assert "<" not in error.message


async def test_a_json_answer_of_a_firewall_is_still_a_refused_key() -> None:
    with LoopbackServer([Answer(status=403, raw='{"error": "<b>No.</b>"}')]) as server:
        assert type(await failure_of(model_at(server.url))) is AuthenticationFailed
