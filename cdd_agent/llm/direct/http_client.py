"""Clients of httpx for a model's server: which certificates they trust, which proxies
they use, how long they wait.
"""

import ssl
from contextlib import suppress
from functools import cache
from typing import Any

import httpx

from cdd_agent.llm.port import ConnectionFailed
from cdd_agent.llm.timeouts import CONNECT_TIMEOUT, SILENCE_TIMEOUT
from cdd_agent.web_address import is_this_computer

_LAST_PORT = 65_535


def prepare(base: str) -> None:
    """Read the trusted certificates, once: that is slow."""
    with suppress(httpx.InvalidURL, OSError):  # the call says so
        _trusted(_is_plain_and_local(checked_url(base)))


@cache
def checked_url(base: str, end: str = "") -> httpx.URL:
    """Where calls go. Raises `InvalidURL`."""
    try:
        url = httpx.URL(base)
        # as the system's resolver does, without a name for its errors
        url.host.encode("idna")
    except UnicodeError as error:
        raise httpx.InvalidURL(str(error)) from error
    if (url.port or 0) > _LAST_PORT:
        raise httpx.InvalidURL(f"there is no port {url.port}")
    path = url.path.rstrip("/")
    return url.copy_with(path=path if path.endswith(end) else f"{path}{end}")


def client_for(url: httpx.URL, silence: float = SILENCE_TIMEOUT) -> httpx.AsyncClient:
    """A client that waits for a byte as long as `silence` says.

    Proxies come from the environment, but none stands between this computer and itself.
    Redirects are not followed: the key, and what is asked, are for the server that was
    configured.
    """
    try:
        return httpx.AsyncClient(**client_settings(url, silence))
    except (ValueError, ImportError) as error:
        # of proxies that are not written as URLs, or speak SOCKS
        raise ConnectionFailed(
            "The proxy that the environment names cannot be used.",
            hint=(
                "Check HTTPS_PROXY, HTTP_PROXY and ALL_PROXY; SOCKS needs the package"
                " socksio."
            ),
        ) from error


def client_settings(url: httpx.URL, silence: float = SILENCE_TIMEOUT) -> dict[str, Any]:
    """How a client of httpx has to be made for an address."""
    return {
        "verify": _trusted(_is_plain_and_local(url)),
        "trust_env": not is_this_computer(url.host),
        "timeout": httpx.Timeout(silence, connect=CONNECT_TIMEOUT),
    }


@cache
def _trusted(nobody: bool) -> ssl.SSLContext:
    """The certificates that are trusted; reading them takes a while. `nobody`: where
    none will be met.
    """
    return (
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if nobody
        else httpx.create_ssl_context()
    )


def _is_plain_and_local(url: httpx.URL) -> bool:
    return url.scheme == "http" and is_this_computer(url.host)
