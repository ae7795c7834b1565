"""The shell of a page: a process that survives a reload of its page."""

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import version

from aiohttp import WSCloseCode, web
from msgspec import Struct

RELOAD_TIME = 10.0
"""Seconds that a shell waits for its page to return."""
OPENED_ELSEWHERE = 4001
"""The close code for a page whose shell moved to another page."""
_READY = b"__GANGLION__\n"
"""Textual's web driver prints this line before its packets."""


class PageSize(Struct, frozen=True):
    width: int
    height: int


class PageShell:
    """Passes packets between a shell's process and its page.

    Ctrl+C in the server's terminal does not reach the process. It ends with the server,
    or `RELOAD_TIME` after its page was closed.
    """

    def __init__(self, argv: Sequence[str]) -> None:
        self._argv = argv
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._page: web.WebSocketResponse | None = None
        self._ending: asyncio.TimerHandle | None = None
        self._attaching = asyncio.Lock()
        self.is_over = asyncio.Event()
        """Set after the process has ended."""

    async def attach(self, page: web.WebSocketResponse, size: PageSize) -> None:
        """Show the shell on this page instead of the previous one. The first page
        starts the process.
        """
        async with self._attaching:
            self._keep()
            previous, self._page = self._page, page
            if self._process is None:
                await self._start(size)
                return
        if previous is not None:
            await previous.close(code=OPENED_ELSEWHERE)
        await self.resize(size)
        await self._send("M", _as_json(type="attach"))

    def detach(self, page: web.WebSocketResponse) -> None:
        """End the shell soon, unless a page attaches again."""
        if page is self._page:
            self._page = None
            loop = asyncio.get_running_loop()
            self._ending = loop.call_later(RELOAD_TIME, self._quit_soon)

    async def end(self) -> None:
        self._keep()
        if self._process is not None:
            await self._quit()
            await self.is_over.wait()

    async def press_keys(self, keys: str) -> None:
        await self._send("D", keys.encode("utf-8", "replace"))

    async def resize(self, size: PageSize) -> None:
        await self._send(
            "M", _as_json(type="resize", width=size.width, height=size.height)
        )

    async def set_focus(self, *, is_focused: bool) -> None:
        await self._send("M", _as_json(type="focus" if is_focused else "blur"))

    async def _start(self, size: PageSize) -> None:
        pipe = asyncio.subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(
            *self._argv,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            env=_environment(size),
            start_new_session=True,
        )
        self._reader = asyncio.create_task(self._run(self._process))

    def _keep(self) -> None:
        if self._ending is not None:
            self._ending.cancel()
            self._ending = None

    def _quit_soon(self) -> None:
        self._quitting = asyncio.create_task(self._quit())

    async def _quit(self) -> None:
        await self._send("M", _as_json(type="quit"))

    async def _send(self, kind: str, payload: bytes) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        size = len(payload).to_bytes(4, "big")
        with suppress(ConnectionError, RuntimeError):
            self._process.stdin.write(kind.encode() + size + payload)
            await self._process.stdin.drain()

    async def _run(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        errors = asyncio.create_task(process.stderr.read())
        try:
            with suppress(asyncio.IncompleteReadError):
                await self._read_packets(process.stdout)
            sys.stdout.write((await errors).decode("utf-8", "replace"))
            sys.stdout.flush()
            await process.wait()
        finally:
            self.is_over.set()
            if self._page is not None:
                await self._page.close()

    async def _read_packets(self, stdout: asyncio.StreamReader) -> None:
        while await stdout.readline() != _READY:
            if stdout.at_eof():
                return
        while True:
            kind = await stdout.readexactly(1)
            size = int.from_bytes(await stdout.readexactly(4), "big")
            payload = await stdout.readexactly(size)
            # Without a page, drop the packet. The screen is redrawn for the next page.
            if self._page is None:
                continue
            with suppress(ConnectionError):
                if kind == b"D":
                    await self._page.send_bytes(payload)
                elif kind == b"M":
                    await self._pass_on(self._page, json.loads(payload))

    async def _pass_on(
        self, page: web.WebSocketResponse, meta: dict[str, object]
    ) -> None:
        if meta["type"] == "open_url":
            link = {"url": meta["url"], "new_tab": meta["new_tab"]}
            await page.send_str(json.dumps(["open_url", link]))


async def close_page(page: web.WebSocketResponse) -> None:
    await page.close(code=WSCloseCode.GOING_AWAY)


def _as_json(**values: object) -> bytes:
    return json.dumps(values).encode()


def _environment(size: PageSize) -> dict[str, str]:
    return os.environ | {
        "TEXTUAL_DRIVER": "cdd_agent.tui.browser:BrowserDriver",
        "TEXTUAL_COLOR_SYSTEM": "truecolor",
        "TERM_PROGRAM": "textual",
        "TERM_PROGRAM_VERSION": version("textual-serve"),
        "COLUMNS": str(size.width),
        "ROWS": str(size.height),
    }
