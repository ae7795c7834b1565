"""Read public web pages, for the `read` action."""

import re
import zlib
from asyncio import timeout
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import cast

import httpx
from msgspec import Struct

from cdd_agent.errors import CddError
from cdd_agent.network.certificates import trust_hint
from cdd_agent.network.unusable_variable import UnusableVariable
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.threads import in_thread
from cdd_agent.version import VERSION
from cdd_agent.web.addresses import Judge, Resolve, is_public, system_resolve
from cdd_agent.web.body import Body
from cdd_agent.web.plain_text import one_line
from cdd_agent.web.readable import find_charset, may_be_text, readable
from cdd_agent.web.transport import PinnedTransport

_MOST_REDIRECTS = 5
_MOST_ADDRESSES = 4
"""Maximum number of a host's addresses to try."""
_CONNECT_TIMEOUT = 5.0
"""Seconds for each address."""
_HEADERS = {
    "User-Agent": f"cdd-agent/{VERSION}",
    "Accept": "text/markdown, text/html;q=0.9, text/plain;q=0.8, */*;q=0.5",
    # `Body` limits the size of this encoding only
    "Accept-Encoding": "gzip",
}
_CHECK = "Check the address and the network. cdd reads pages directly, without a proxy."
_ONLY_TEXT = "Only text can be read, such as HTML, Markdown, JSON or XML."
_WEB_ADDRESS = "Give an address that begins with https:// or http://."
_CONNECTION_ERRORS = (
    httpx.HTTPError,
    httpx.InvalidURL,
    zlib.error,
    UnicodeError,
    OSError,
)


class Page(Struct, frozen=True):
    text: str
    """HTML as Markdown; without control characters."""
    cut: bool = False

    def as_text(self) -> str:
        if not self.cut:
            return self.text
        return f"{self.text}\n… (only the beginning of the page)\n"


class PageUnreadable(CddError):
    """A page does not exist, may not be read, or is not text."""

    refusal = Refusal.WEB_PAGE


class PageReader(Struct, frozen=True):
    """Reads pages, without a proxy."""

    allow_private: bool = False
    """Also read from this computer and its network."""
    time_limit: float = 20.0
    """Seconds for a page with its redirects."""
    size_limit: int = 2_000_000
    """Bytes of the body, decompressed."""
    text_limit: int = 100_000
    """Characters."""
    resolve: Resolve = system_resolve
    judge: Judge = is_public

    async def read(self, url: str) -> Page:
        """Read a page within the time limit. Raises `PageUnreadable`."""
        try:
            async with timeout(self.time_limit):
                async with await self._client() as client:
                    return await self._follow(client, url)
        except TimeoutError as error:
            raise PageUnreadable(
                f"{_show(url)} could not be read within {self.time_limit:g} seconds.",
                hint="Try again later.",
            ) from error

    async def _client(self) -> httpx.AsyncClient:
        def make_client() -> httpx.AsyncClient:
            return httpx.AsyncClient(
                transport=PinnedTransport(self._choose_addresses),
                headers=_HEADERS,
                timeout=httpx.Timeout(self.time_limit, connect=_CONNECT_TIMEOUT),
            )

        try:
            # reading the certificates is slow
            return await in_thread(make_client, name="httpx")
        except UnusableVariable as error:
            raise PageUnreadable(error.message, hint=error.hint) from error

    async def _follow(self, client: httpx.AsyncClient, url: str) -> Page:
        try:
            request = client.build_request("GET", url)
        except (httpx.InvalidURL, ValueError) as error:
            raise _not_an_address(url) from error
        shown = _show(str(request.url))
        try:
            for _ in range(_MOST_REDIRECTS + 1):
                sent = await client.send(request, stream=True)
                async with aclosing(sent) as response:
                    if response.next_request is None:
                        return await self._read_page(response)
                    request = response.next_request
        except _CONNECTION_ERRORS as error:
            raise _broken(url, error) from error
        raise PageUnreadable(
            f"{shown} redirects more than {_MOST_REDIRECTS} times.", hint=_CHECK
        )

    async def _read_page(self, response: httpx.Response) -> Page:
        url = str(response.url)
        shown = _show(url)
        if not response.is_success:
            answer = one_line(f"{response.status_code} {response.reason_phrase[:100]}")
            raise PageUnreadable(f"{shown} answers {answer}.", hint=_CHECK)
        content_type = response.headers.get("content-type", "")
        media_type = one_line(content_type.partition(";")[0]).lower()[:100]
        if not may_be_text(media_type):
            raise PageUnreadable(f"{shown} is {media_type}, not text.", hint=_ONLY_TEXT)
        body = await self._read_body(response)
        content, cut = body.content(), body.cut
        charset, patience = find_charset(content_type.encode()), self.time_limit / 2
        text = await in_thread(
            lambda: readable(
                content, media_type, charset, cut=cut, base=url, patience=patience
            ),
            name="readable",
        )
        if text is None:
            raise PageUnreadable(f"{shown} is binary, not text.", hint=_ONLY_TEXT)
        return Page(text[: self.text_limit], cut=cut or len(text) > self.text_limit)

    async def _read_body(self, response: httpx.Response) -> Body:
        encoding = one_line(response.headers.get("content-encoding", "")).lower()
        if encoding not in ("", "identity", "gzip", "x-gzip"):
            raise PageUnreadable(
                f"{_show(str(response.url))} is compressed with {encoding[:40]!r},"
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

    async def _choose_addresses(self, url: httpx.URL) -> Sequence[str]:
        """Raises `PageUnreadable` for a URL that must not be read."""
        shown = _show(str(url))
        if url.scheme not in ("http", "https"):
            raise PageUnreadable(
                f"Only http and https pages can be read, not {shown!r}.",
                hint=_WEB_ADDRESS,
            )
        port = 80 if url.port is None else url.port
        if not url.host or not 0 < port < 65536:
            raise _not_an_address(shown)
        if url.userinfo:
            raise PageUnreadable(
                f"{shown} holds a user name or a password.",
                hint="Remove them: cdd reads pages without logging in.",
            )
        host = url.raw_host.decode("ascii")
        try:
            addresses = await self.resolve(host)
            if not addresses:
                raise LookupError(host)
        except (OSError, ValueError, LookupError) as error:
            raise PageUnreadable(
                f"No address was found for {_show(host)!r}.", hint=_CHECK
            ) from error
        for address in addresses:
            if self.allow_private or self.judge(address):
                continue
            raise PageUnreadable(
                f"{shown} is not read: {address} is not a public address.",
                hint=(
                    "Pages of this computer and its network need"
                    " `web: {private: true}` in the settings."
                ),
            )
        return [str(address) for address in addresses[:_MOST_ADDRESSES]]


def _not_an_address(url: str) -> PageUnreadable:
    return PageUnreadable(
        f"{_show(url)!r} is not the address of a page.", hint=_WEB_ADDRESS
    )


def _broken(url: str, error: Exception) -> PageUnreadable:
    reason = one_line(str(error))[:300].rstrip(".") or type(error).__name__
    hint = _CHECK
    if "CERTIFICATE_VERIFY_FAILED" in reason:
        hint = trust_hint()
    match error:
        case httpx.ConnectTimeout():
            what = f"does not answer within {_CONNECT_TIMEOUT:g} seconds."
        case httpx.ConnectError():
            what = f"cannot be reached: {reason}."
        case zlib.error():
            what = f"has broken compression: {reason}."
        case _:
            message = f"The answer of {_show(url)} broke off or is not HTTP: {reason}."
            return PageUnreadable(message, hint=_CHECK)
    return PageUnreadable(f"{_show(url)} {what}", hint=hint)


def _show(url: str) -> str:
    line = re.sub(r"//[^/?#]*@", "//…@", one_line(url[:1000]))
    return line if len(line) <= 200 else f"{line[:200]}…"
