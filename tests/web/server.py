"""A web server on loopback for tests: it serves answers by path, well or badly
formed.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self


@dataclass(frozen=True)
class Answer:
    """A server's answer for a path. The defaults are a well-behaved page."""

    body: bytes = b""
    content_type: str | None = "text/html; charset=utf-8"
    status: str = "200 OK"
    headers: Mapping[str, str] = field(default_factory=dict)
    endless: Callable[[], AsyncIterator[bytes]] | None = None
    """Sent after `body`, which then has no length, until the reader goes away."""
    raw: bytes | None = None
    """Sent instead of an answer."""

    def head(self) -> bytes:
        headers = {"Content-Type": self.content_type, **self.headers}
        if self.endless is None:
            headers.setdefault("Content-Length", str(len(self.body)))
        lines = [
            f"HTTP/1.1 {self.status}",
            *(f"{name}: {value}" for name, value in headers.items() if value),
        ]
        return "\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1")


def redirect(to: str, status: str = "302 Found") -> Answer:
    return Answer(status=status, headers={"Location": to})


@dataclass(frozen=True)
class Request:
    path: str
    headers: dict[str, str]


class PageServer:
    """`async with PageServer({"/": Answer(b"Hello")}) as server: server.url("/")`."""

    def __init__(self, answers: Mapping[str, Answer]) -> None:
        self.answers = answers
        self.requests: list[Request] = []
        self.connections = 0
        self._talks: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        return int(self._server.sockets[0].getsockname()[1])

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    @property
    def paths(self) -> list[str]:
        return [request.path for request in self.requests]

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.close()
        for talk in self._talks:
            talk.cancel()
        await asyncio.gather(*self._talks, return_exceptions=True)
        await self._server.wait_closed()

    def _accept(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.connections += 1
        talk = asyncio.ensure_future(self._talk(reader, writer))
        self._talks.add(talk)
        talk.add_done_callback(self._talks.discard)

    async def _talk(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        # the reader went away
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            try:
                head = (
                    (await reader.readuntil(b"\r\n\r\n"))
                    .decode("latin-1")
                    .split("\r\n")
                )
                headers = dict(line.split(": ", 1) for line in head[1:] if line)
                request = Request(
                    head[0].split(" ")[1],
                    {name.lower(): value for name, value in headers.items()},
                )
                self.requests.append(request)
                await self._answer(
                    self.answers.get(request.path, Answer(status="404 Not Found")),
                    writer,
                )
            finally:
                writer.close()
                with contextlib.suppress(ConnectionError):
                    await writer.wait_closed()

    async def _answer(self, answer: Answer, writer: asyncio.StreamWriter) -> None:
        writer.write(answer.head() + answer.body if answer.raw is None else answer.raw)
        await writer.drain()
        if answer.endless is not None:
            async for piece in answer.endless():
                writer.write(piece)
                await writer.drain()
