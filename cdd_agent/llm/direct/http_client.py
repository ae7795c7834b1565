"""HTTP clients for a model's server, with the environment's proxy and certificates."""

import ssl
from contextlib import suppress
from functools import cache
from typing import Any

import httpx
from socksio.exceptions import SOCKSError

from cdd_agent.llm.port import NotReachable
from cdd_agent.llm.timeouts import CONNECT_TIMEOUT, SILENCE_TIMEOUT
from cdd_agent.network.certificates import trusted_certificates
from cdd_agent.network.proxies import proxy_for
from cdd_agent.network.unusable_variable import UnusableVariable
from cdd_agent.network.web_address import LAST_PORT, is_this_computer

NETWORK_ERRORS = (httpx.HTTPError, httpx.InvalidURL, OSError, SOCKSError)
"""Errors of a network call. httpx does not wrap those of `socksio`, raised when a proxy
speaks another protocol.
"""


def load_certificates(base: str) -> None:
    """Read the trusted certificates early, because that is slow. Errors appear at the
    call.
    """
    with suppress(httpx.InvalidURL, UnusableVariable):
        _certificates_for(parse_url(base))


@cache
def parse_url(base: str, end: str = "") -> httpx.URL:
    """Return the address of calls, with `end` added. Raises `InvalidURL`."""
    try:
        url = httpx.URL(base)
        # the system's resolver would raise this too, without the host's name
        url.host.encode("idna")
    except UnicodeError as error:
        raise httpx.InvalidURL(str(error)) from error
    if (url.port or 0) > LAST_PORT:
        raise httpx.InvalidURL(f"there is no port {url.port}")
    # `url.path` is decoded: `%2F` in it would become a slash
    path, mark, query = url.raw_path.decode("ascii").partition("?")
    path = path.rstrip("/")
    if not path.endswith(end):
        path += end
    return url.copy_with(raw_path=f"{path}{mark}{query}".encode())


def open_client(url: httpx.URL, silence: float = SILENCE_TIMEOUT) -> httpx.AsyncClient:
    """Return a client that waits `silence` seconds for the next byte. Raises
    `NotReachable`.

    It does not follow redirects: key and prompt are for the configured server alone.
    """
    return httpx.AsyncClient(**client_settings(url, silence))


def client_settings(url: httpx.URL, silence: float = SILENCE_TIMEOUT) -> dict[str, Any]:
    """Return the arguments of an httpx client for an address. Raises `NotReachable` if
    the environment names an unusable proxy or unusable certificates.
    """
    try:
        certificates = _certificates_for(url)
        named = proxy_for(url)
    except UnusableVariable as error:
        raise NotReachable(error.message, hint=error.hint) from error
    proxy = None
    if named is not None:
        is_tls = named.url.lower().startswith("https:")
        proxy = httpx.Proxy(named.url, ssl_context=certificates if is_tls else None)
    return {
        "verify": certificates,
        "proxy": proxy,
        # httpx cannot read some forms of NO_PROXY
        "trust_env": False,
        "timeout": httpx.Timeout(silence, connect=CONNECT_TIMEOUT),
    }


class EnvironmentTransport(httpx.AsyncBaseTransport):
    """Sends each request like a client of `open_client` for its URL, because litellm
    makes its clients before it knows the URL.
    """

    def __init__(self) -> None:
        self._transports: dict[object, httpx.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        settings = client_settings(request.url)
        proxy, certificates = settings["proxy"], settings["verify"]
        key = (proxy and proxy.raw_auth, proxy and proxy.url, certificates)
        if key not in self._transports:
            self._transports[key] = httpx.AsyncHTTPTransport(
                verify=certificates, proxy=proxy, trust_env=False
            )
        return await self._transports[key].handle_async_request(request)

    async def aclose(self) -> None:
        for transport in self._transports.values():
            await transport.aclose()


def _certificates_for(url: httpx.URL) -> ssl.SSLContext:
    if url.scheme == "http" and is_this_computer(url.host):
        return _no_certificates()
    return trusted_certificates()


@cache
def _no_certificates() -> ssl.SSLContext:
    """Return a context for connections without TLS, without reading certificates."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
