"""Proxies on loopback, for tests: HTTP and SOCKS5. All names lead to one server."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from msgspec import Struct

Pipe = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class LoopbackProxy(Struct):
    """A proxy that connects to `port`, whatever host is requested."""

    port: int
    """The port of the server behind the proxy."""
    user: str = ""
    """`user:password` that a client must send; empty: none."""
    refusal: str = ""
    """The answer instead of a connection: an HTTP status line, or any text for
    SOCKS.
    """
    page: str = ""
    """The body of the refusal."""
    asked: list[str] = []
    """The hosts and ports that clients requested."""

    @asynccontextmanager
    async def serve_http(self) -> AsyncIterator[int]:
        async with _serving(self._talk_http) as port:
            yield port

    @asynccontextmanager
    async def serve_socks(self) -> AsyncIterator[int]:
        async with _serving(self._talk_socks) as port:
            yield port

    async def _talk_http(self, client: Pipe) -> None:
        reader, writer = client
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        method, target, _ = head.split(" ", 2)
        self.asked.append(target)
        refusal = self.refusal
        if self.user and b64encode(self.user.encode()).decode() not in head:
            refusal = "407 Proxy Authentication Required"
        if refusal:
            writer.write(
                f"HTTP/1.1 {refusal}\r\nContent-Length: {len(self.page)}\r\n"
                f"Content-Type: text/html\r\n\r\n{self.page}".encode()
            )
            return
        server = await asyncio.open_connection("127.0.0.1", self.port)
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
        else:
            server[1].write(head.encode())
        await _join(client, server)

    async def _talk_socks(self, client: Pipe) -> None:
        reader, writer = client
        _, count = await reader.readexactly(2)
        await reader.readexactly(count)
        writer.write(b"\x05\x02" if self.user else b"\x05\x00")
        if self.user:
            _, length = await reader.readexactly(2)
            user = await reader.readexactly(length)
            password = await reader.readexactly((await reader.readexactly(1))[0])
            accepted = user + b":" + password == self.user.encode()
            writer.write(b"\x01\x00" if accepted else b"\x01\x01")
            if not accepted:
                return
        _, _, _, kind = await reader.readexactly(4)
        length = (await reader.readexactly(1))[0] if kind == 3 else 4
        host = await reader.readexactly(length)
        port = int.from_bytes(await reader.readexactly(2), "big")
        self.asked.append(f"{host.decode(errors='replace')}:{port}")
        # 2: not allowed by the rules of the proxy
        code = 2 if self.refusal else 0
        writer.write(bytes([5, code, 0, 1, 127, 0, 0, 1, 0, 0]))
        if not code:
            await _join(client, await asyncio.open_connection("127.0.0.1", self.port))


@asynccontextmanager
async def _serving(talk: Callable[[Pipe], Awaitable[None]]) -> AsyncIterator[int]:
    talks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await talk((reader, writer))
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            # the client gave up
            pass
        finally:
            writer.close()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talks.add(asyncio.create_task(serve(reader, writer)))

    listening = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield int(listening.sockets[0].getsockname()[1])
    finally:
        listening.close()
        for task in talks:
            task.cancel()
        await asyncio.gather(*talks, return_exceptions=True)


async def _join(client: Pipe, server: Pipe) -> None:
    """Copy bytes in both directions until one side ends."""

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(65_536):
            writer.write(piece)
            await writer.drain()

    directions = [
        asyncio.create_task(copy(client[0], server[1])),
        asyncio.create_task(copy(server[0], client[1])),
    ]
    try:
        await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for direction in directions:
            direction.cancel()
        await asyncio.gather(*directions, return_exceptions=True)
        server[1].close()
