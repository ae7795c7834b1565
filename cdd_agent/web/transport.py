"""Connections to chosen addresses only. Imports httpx: import this when the first page
is read.
"""

import ssl
from collections.abc import Awaitable, Callable, Sequence
from functools import cache

import httpx


class PinnedTransport(httpx.AsyncBaseTransport):
    """Asks `choose` where each request may go, redirected ones included, and connects
    to exactly these addresses.

    No name is looked up after that, so it cannot lead somewhere else by then. The
    server still sees the name: in the Host header, in TLS, and its certificate must be
    for it.
    """

    def __init__(self, choose: Callable[[httpx.URL], Awaitable[Sequence[str]]]) -> None:
        self._choose = choose
        # A connection is never used again: it is known by its address, but its
        # certificate was for one name.
        self._inner = httpx.AsyncHTTPTransport(
            verify=trusted(), limits=httpx.Limits(max_keepalive_connections=0)
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        *others, last = await self._choose(request.url)
        for address in others:
            try:
                return await self._inner.handle_async_request(_pinned(request, address))
            except (httpx.ConnectError, httpx.ConnectTimeout):
                continue
        return await self._inner.handle_async_request(_pinned(request, last))

    async def aclose(self) -> None:
        await self._inner.aclose()


@cache
def trusted() -> ssl.SSLContext:
    """The certificates that are trusted; reading them takes a while."""
    return httpx.create_ssl_context()


def _pinned(request: httpx.Request, address: str) -> httpx.Request:
    return httpx.Request(
        request.method,
        request.url.copy_with(host=address),
        headers=request.headers,  # with the Host that was asked for
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": request.url.host.rstrip(".")},
    )
