"""HTTP connections to chosen addresses."""

from collections.abc import Awaitable, Callable, Sequence

import httpx

from cdd_agent.network.certificates import trusted_certificates


class PinnedTransport(httpx.AsyncBaseTransport):
    """Connects only to the addresses that `choose` returns. The Host header and TLS use
    the name.
    """

    def __init__(self, choose: Callable[[httpx.URL], Awaitable[Sequence[str]]]) -> None:
        self._choose = choose
        # No connection is reused: httpx would find it by its address, but the
        # certificate was for one name.
        self._inner = httpx.AsyncHTTPTransport(
            verify=trusted_certificates(),
            limits=httpx.Limits(max_keepalive_connections=0),
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        *first_ones, last = await self._choose(request.url)
        for address in first_ones:
            try:
                return await self._inner.handle_async_request(_pinned(request, address))
            except (httpx.ConnectError, httpx.ConnectTimeout):
                continue
        return await self._inner.handle_async_request(_pinned(request, last))

    async def aclose(self) -> None:
        await self._inner.aclose()


def _pinned(request: httpx.Request, address: str) -> httpx.Request:
    return httpx.Request(
        request.method,
        request.url.copy_with(host=address),
        # with the name as Host
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": request.url.host.rstrip(".")},
    )
