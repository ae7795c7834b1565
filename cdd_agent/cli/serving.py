"""A web server whose page is the shell, for users with its token."""

import asyncio
import hmac
import ipaddress
import os
import secrets
import socket
import tempfile
import webbrowser
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from html import escape
from pathlib import Path
from string import Template
from urllib.parse import urlsplit

import msgspec
import textual_serve
from aiohttp import WSMsgType, web
from aiohttp.typedefs import Handler

from cdd_agent.cli.page_shell import RELOAD_TIME, PageShell, PageSize, close_page
from cdd_agent.process.signals import handle_signals

_PAGE = Path(__file__).with_name("serving.html")
_STATIC = Path(textual_serve.__file__).with_name("static")
"""The page's terminal: a script, a style and a font."""
_HEADERS = {
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self'"
        " 'unsafe-inline'; img-src 'self' data:; connect-src 'self' ws://{host}"
        " wss://{host}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
}
_LARGEST_MESSAGE = 64 * 1024 * 1024
"""Maximum bytes of a message from the page. A paste is one message."""


class ShellServer:
    """A server with one shell for each tab. A reload of the page keeps the shell.

    Each request needs the token: first in the address, then in a cookie. Its host must
    be an IP address, `localhost` or the requested host, and its origin a page of this
    server. So no other site's page can send one, not even through a host name that
    resolves to this server (DNS rebinding).
    """

    def __init__(
        self, argv: Sequence[str], host: str, listening: socket.socket, *, title: str
    ) -> None:
        self._argv = argv
        self._host = host.lower()
        self._listening = listening
        self._port = listening.getsockname()[1]
        self._title = title
        self._token = secrets.token_urlsafe(16)
        self._cookie = f"cdd-{self._port}"
        """The port is in the name, because all ports of a host share cookies."""
        self._shells: dict[str, PageShell] = {}
        """Shells by the names that tabs gave themselves."""
        self._pages: set[web.WebSocketResponse] = set()

    @property
    def address(self) -> str:
        """The page's address, with the token."""
        host = self._listening.getsockname()[0]
        if ipaddress.ip_address(host).is_unspecified:
            host = _own_address() or socket.gethostname()
        if ":" in host:
            host = f"[{host}]"
        return f"http://{host}:{self._port}/?token={self._token}"

    def run(self, *, opens_browser: bool) -> None:
        """Serve until Ctrl+C or SIGTERM, then end the shells; each restores its
        files.
        """
        with suppress(KeyboardInterrupt):  # on systems without signal handlers
            asyncio.run(self._run(opens_browser=opens_browser))

    async def _run(self, *, opens_browser: bool) -> None:
        is_over = asyncio.Event()
        handle_signals(("SIGINT", "SIGTERM"), is_over.set)
        runner = web.AppRunner(self._application(), access_log=None)
        await runner.setup()
        try:
            await web.SockSite(runner, self._listening).start()
            with ExitStack() as until_over:
                if opens_browser:
                    page = until_over.enter_context(_redirection(self.address))
                    await asyncio.to_thread(webbrowser.open, page.as_uri())
                await is_over.wait()
        finally:
            await runner.cleanup()

    def _application(self) -> web.Application:
        application = web.Application(middlewares=[self._guard])
        application.add_routes(
            [
                web.get("/", self._show_page),
                web.get("/ws/{tab:[0-9a-f]{36}}", self._connect),
                web.static("/static", _STATIC),
            ]
        )
        application.on_response_prepare.append(self._add_headers)
        application.on_shutdown.append(self._end_shells)
        return application

    async def _end_shells(self, application: web.Application) -> None:
        await asyncio.gather(*map(close_page, self._pages))
        await asyncio.gather(*(shell.end() for shell in self._shells.values()))

    @web.middleware
    async def _guard(
        self, request: web.Request, handler: Handler
    ) -> web.StreamResponse:
        if not self._is_addressed_here(request):
            raise web.HTTPForbidden(text="This request is not for `cdd serve`.\n")
        if self._is_token(request.cookies.get(self._cookie, "")):
            return await handler(request)
        if request.path != "/" or not self._is_token(request.query.get("token", "")):
            raise web.HTTPForbidden(
                text=(
                    "Open the whole address that `cdd serve` printed, with its token.\n"
                )
            )
        response = await handler(request)
        response.set_cookie(self._cookie, self._token, httponly=True, samesite="Strict")
        return response

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(), self._token.encode())

    def _is_addressed_here(self, request: web.Request) -> bool:
        host, origin = request.headers.get("Host", ""), request.headers.get("Origin")
        try:
            name = urlsplit(f"//{host}").hostname or ""
            if name not in ("localhost", self._host):
                ipaddress.ip_address(name)
            return origin is None or urlsplit(origin).netloc == host
        except ValueError:
            return False

    async def _add_headers(
        self, request: web.Request, response: web.StreamResponse
    ) -> None:
        host = request.headers.get("Host", "")
        for name, value in _HEADERS.items():
            response.headers[name] = value.replace("{host}", host)

    async def _show_page(self, request: web.Request) -> web.Response:
        """Return the page. This server provides its files, so that it works offline."""
        scheme = "wss" if request.secure else "ws"
        words = {
            "title": escape(self._title),
            "websocket": escape(f"{scheme}://{request.host}/ws/"),
            "reload_time": str(round(RELOAD_TIME)),
            "font_size": str(_number(request, "fontsize", 16)),
        }
        text = Template(_PAGE.read_text("utf-8")).substitute(words)
        return web.Response(text=text, content_type="text/html")

    async def _connect(self, request: web.Request) -> web.WebSocketResponse:
        page = web.WebSocketResponse(heartbeat=15, max_msg_size=_LARGEST_MESSAGE)
        await page.prepare(request)
        size = PageSize(_number(request, "width", 80), _number(request, "height", 24))
        shell = self._shell_of(request.match_info["tab"])
        self._pages.add(page)
        try:
            await shell.attach(page, size)
            await _pass_messages(page, shell)
        finally:
            self._pages.discard(page)
            shell.detach(page)
            await page.close()
        return page

    def _shell_of(self, tab: str) -> PageShell:
        shell = self._shells.get(tab)
        if shell is None or shell.is_over.is_set():
            shell = PageShell(self._argv)
            self._shells[tab] = shell
        return shell


async def _pass_messages(page: web.WebSocketResponse, shell: PageShell) -> None:
    async for message in page:
        if message.type is not WSMsgType.TEXT:
            continue
        match message.json():
            case ["stdin", str(keys)]:
                await shell.press_keys(keys)
            case ["resize", size]:
                await shell.resize(msgspec.convert(size, PageSize))
            case ["ping", moment]:
                await page.send_json(["pong", moment])
            case ["focus" | "blur" as kind]:
                await shell.set_focus(is_focused=kind == "focus")


def _number(request: web.Request, name: str, usual: int) -> int:
    text = request.query.get(name, "")
    return int(text) if text.isascii() and text.isdigit() else usual


@contextmanager
def _redirection(address: str) -> Iterator[Path]:
    handle, name = tempfile.mkstemp(suffix=".html", prefix="cdd-serve-")
    page = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(
                '<!DOCTYPE html><meta http-equiv="refresh" content="0;'
                f' url={escape(address)}">\n'
            )
        yield page
    finally:
        page.unlink(missing_ok=True)


def _own_address() -> str | None:
    """Return this computer's address in its network. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return None
        return str(probe.getsockname()[0])
