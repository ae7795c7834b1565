"""Pages of the web as text: for the `read` action. Only public places are read, and
only within limits.
"""

import re
import zlib
from asyncio import timeout
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import cast

import httpx
from msgspec import Struct

from cdd_agent.errors import CddError
from cdd_agent.threads import in_thread
from cdd_agent.version import VERSION
from cdd_agent.web.addresses import Judge, Resolve, is_public, system_resolve
from cdd_agent.web.body import Body
from cdd_agent.web.readable import charset_of, may_be_text, one_line, readable
from cdd_agent.web.transport import PinnedTransport

_MOST_REDIRECTS = 5
_MOST_ADDRESSES = 4
"""Addresses of one host that are tried."""
_CONNECT_TIMEOUT = 5.0
"""Seconds for each of them."""
_HEADERS = {
    "User-Agent": f"cdd-agent/{VERSION}",
    "Accept": "text/markdown, text/html;q=0.9, text/plain;q=0.8, */*;q=0.5",
    # `Body` takes no other: one that it does not know could unfold without limit
    "Accept-Encoding": "gzip",
}


class Page(Struct, frozen=True):
    """The text at a URL."""

    text: str
    """HTML as Markdown, anything else as it is; without control characters."""
    cut: bool = False
    """There is more than the limits allow to read."""

    def as_text(self) -> str:
        """The text, and whether it is all of it."""
        return (
            f"{self.text}\n… (the page is longer; this is its beginning)\n"
            if self.cut
            else self.text
        )


class PageUnreadable(CddError):
    """A page that is not there, that may not be read, or that is not text."""


class PageReader(Struct, frozen=True):
    """Reads one page at a time, directly (through no proxy), and keeps nothing from one
    to the next.

    Whatever a URL or a server does, it ends within the time limit, in a `Page` or in
    `PageUnreadable`.
    """

    allow_private: bool = False
    """Also read from this computer and its network, which a model must not get to see
    otherwise.
    """
    time_limit: float = 20.0
    """Seconds for everything together."""
    size_limit: int = 2_000_000
    """Bytes of the body, decompressed."""
    text_limit: int = 100_000
    """Characters."""
    resolve: Resolve = system_resolve
    judge: Judge = is_public

    async def read(self, url: str) -> Page:
        """Read the page as text. Raises `PageUnreadable`."""
        try:
            async with timeout(self.time_limit):
                async with await self._client() as client:
                    return await self._follow(client, url)
        except TimeoutError as error:
            raise PageUnreadable(
                f"{_shown(url)} could not be read within {self.time_limit:g} seconds.",
                hint="Try again later.",
            ) from error

    async def _client(self) -> httpx.AsyncClient:
        # loading the certificates takes a while
        def made() -> httpx.AsyncClient:
            limit = httpx.Timeout(self.time_limit, connect=_CONNECT_TIMEOUT)
            return httpx.AsyncClient(
                transport=PinnedTransport(self._addresses),
                headers=_HEADERS,
                timeout=limit,
            )

        try:
            return await in_thread(made, name="httpx")
        except OSError as error:
            raise PageUnreadable(
                f"No page can be read: {one_line(str(error))}.",
                hint="Check the certificates that SSL_CERT_FILE or SSL_CERT_DIR names.",
            ) from error

    async def _follow(self, client: httpx.AsyncClient, url: str) -> Page:
        """Send a request and those that it is redirected to.

        Not left to httpx: that would read the bodies of redirects, whatever their size.
        """
        try:
            request = client.build_request("GET", url)
        except (httpx.InvalidURL, ValueError) as error:
            raise _not_an_address(url) from error
        first = str(request.url)
        try:
            for _ in range(_MOST_REDIRECTS + 1):
                async with aclosing(
                    await client.send(request, stream=True)
                ) as response:
                    if response.next_request is None:
                        return await self._page(response)
                    request = response.next_request
        except (
            httpx.HTTPError,
            httpx.InvalidURL,
            zlib.error,
            UnicodeError,
            OSError,
        ) as error:
            raise _broken(url, error) from error
        raise PageUnreadable(
            f"{_shown(first)} redirects more than {_MOST_REDIRECTS} times.", hint=_CHECK
        )

    async def _page(self, response: "httpx.Response") -> Page:
        url = str(response.url)
        if not response.is_success:
            answer = one_line(f"{response.status_code} {response.reason_phrase[:100]}")
            raise PageUnreadable(f"{_shown(url)} answers {answer}.", hint=_CHECK)
        content_type = response.headers.get("content-type", "")
        media_type = one_line(content_type.partition(";")[0]).lower()[:100]
        if not may_be_text(media_type):
            raise PageUnreadable(
                f"{_shown(url)} is {media_type}, not text.", hint=_ONLY_TEXT
            )
        body = await self._body(response)
        content, cut = body.content(), body.cut
        charset, patience = charset_of(content_type), self.time_limit / 2
        text = await in_thread(
            lambda: readable(
                content, media_type, charset, cut=cut, base=url, patience=patience
            ),
            name="readable",
        )
        if text is None:
            raise PageUnreadable(f"{_shown(url)} is binary, not text.", hint=_ONLY_TEXT)
        return Page(text[: self.text_limit], cut=cut or len(text) > self.text_limit)

    async def _body(self, response: "httpx.Response") -> Body:
        encoding = one_line(response.headers.get("content-encoding", "")).lower()
        if encoding not in ("", "identity", "gzip", "x-gzip"):
            raise PageUnreadable(
                f"{_shown(str(response.url))} is compressed with {encoding[:40]!r},"
                " which was not asked for.",
                hint=_CHECK,
            )
        body = Body(self.size_limit, gzipped=encoding.endswith("gzip"))
        arriving = cast("AsyncGenerator[bytes, None]", response.aiter_raw())
        async with aclosing(arriving) as pieces:
            async for piece in pieces:
                body.add(piece)
                if body.cut:
                    break
        return body

    async def _addresses(self, url: "httpx.URL") -> Sequence[str]:
        """Where to connect to for a URL. Raises `PageUnreadable` when it leads to where
        nothing may be read.
        """
        shown = _shown(str(url))
        if url.scheme not in ("http", "https"):
            raise PageUnreadable(
                f"Only http and https pages can be read, not {shown!r}.",
                hint=_WEB_ADDRESS,
            )
        if not url.host or not 0 < (80 if url.port is None else url.port) < 65536:
            raise _not_an_address(shown)
        if url.userinfo:
            raise PageUnreadable(
                f"{shown} holds a user name or a password.",
                hint="Pages are read without logging in.",
            )
        host = url.raw_host.decode("ascii")
        try:
            addresses = await self.resolve(host)
        except (OSError, ValueError) as error:
            raise PageUnreadable(
                f"No address was found for {_shown(host)!r}.", hint=_CHECK
            ) from error
        for address in addresses:
            if not (self.allow_private or self.judge(address)):
                raise PageUnreadable(
                    f"{shown} is not read: {address} is not a public address.",
                    hint=(
                        "Pages of this computer and its network need"
                        " `web: {private: true}` in the settings."
                    ),
                )
        if not addresses:
            raise PageUnreadable(
                f"No address was found for {_shown(host)!r}.", hint=_CHECK
            )
        return [str(address) for address in addresses[:_MOST_ADDRESSES]]


_CHECK = "Check the address and the network. Pages are read directly, through no proxy."
_ONLY_TEXT = "Only text can be read: HTML, Markdown, JSON, XML and the like."
_WEB_ADDRESS = "It begins with https:// or http://."


def _not_an_address(url: str) -> PageUnreadable:
    return PageUnreadable(
        f"{_shown(url)!r} is not the address of a page.", hint=_WEB_ADDRESS
    )


def _broken(url: str, error: Exception) -> PageUnreadable:
    """An error on the way, in words."""
    reason = one_line(str(error))[:300].rstrip(".") or type(error).__name__
    match error:
        case httpx.ConnectTimeout():
            return PageUnreadable(
                f"{_shown(url)} does not answer within {_CONNECT_TIMEOUT:g} seconds.",
                hint=_CHECK,
            )
        case httpx.ConnectError():
            return PageUnreadable(
                f"{_shown(url)} cannot be reached: {reason}.", hint=_CHECK
            )
        case zlib.error():
            return PageUnreadable(
                f"{_shown(url)} is compressed in a wrong way: {reason}.", hint=_CHECK
            )
        case _:
            return PageUnreadable(
                f"The answer of {_shown(url)} broke off or is not HTTP: {reason}.",
                hint=_CHECK,
            )


def _shown(url: str) -> str:
    """A URL for a message: one line, not too long, without a password."""
    line = re.sub(r"//[^/?#]*@", "//…@", one_line(url[:1000]))
    return line if len(line) <= 200 else f"{line[:200]}…"
