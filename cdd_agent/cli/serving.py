"""A web server whose page is the shell: textual-serve, for those who know its token."""

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

from aiohttp import WSCloseCode, web
from aiohttp.typedefs import Handler
from textual_serve.app_service import AppService
from textual_serve.server import Server, to_int

from cdd_agent.process.signals import handle_signals

_PAGE = Path(__file__).with_name("serving.html")
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


class ShellServer(Server):
    """A server with one shell for each page. The shell ends with its page.

    Every request needs the token: first in the address, then in a cookie. It must be
    sent to an IP address, to `localhost` or to the requested host, and come from a page
    of this server. So no page of another site can send one, also not through a host
    name that leads here.
    """

    def __init__(
        self, argv: Sequence[str], host: str, listening: socket.socket, *, title: str
    ) -> None:
        self._listening = listening
        super().__init__("", host, listening.getsockname()[1], title=title)
        self._argv = argv
        self._token = secrets.token_urlsafe(16)
        self._cookie = f"cdd-{self.port}"
        """Cookies of a host are those of all its ports."""
        self._pages: set[web.WebSocketResponse] = set()

    @property
    def address(self) -> str:
        """The address of the page with the token, for the user."""
        host = self._listening.getsockname()[0]
        if ipaddress.ip_address(host).is_unspecified:
            host = _own_address() or socket.gethostname()
        named = f"[{host}]" if ":" in host else host
        return f"http://{named}:{self.port}/?token={self._token}"

    def run(self, *, opens_browser: bool) -> None:
        """Serve until Ctrl+C or SIGTERM, then end the shells, each of which restores
        its files.
        """
        with suppress(KeyboardInterrupt):  # where there are no handlers of signals
            asyncio.run(self._run(opens_browser=opens_browser))

    async def _run(self, *, opens_browser: bool) -> None:
        is_over = asyncio.Event()
        handle_signals(("SIGINT", "SIGTERM"), is_over.set)
        runner = web.AppRunner(await self._make_app(), access_log=None)
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

    async def _make_app(self) -> web.Application:
        app = await super()._make_app()
        app.middlewares.append(self._guard)
        app.on_response_prepare.append(self._add_headers)
        return app

    async def on_startup(self, app: web.Application) -> None:
        """Print nothing: the caller prints the address."""

    async def on_shutdown(self, app: web.Application) -> None:
        await asyncio.gather(
            *(page.close(code=WSCloseCode.GOING_AWAY) for page in self._pages)
        )

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
            if name not in ("localhost", self.host.lower()):
                ipaddress.ip_address(name)
            return origin is None or urlsplit(origin).netloc == host
        except ValueError:
            return False

    async def _add_headers(
        self, request: web.Request, response: web.StreamResponse
    ) -> None:
        for name, value in _HEADERS.items():
            response.headers[name] = value.replace(
                "{host}", request.headers.get("Host", "")
            )

    async def handle_index(self, request: web.Request) -> web.Response:
        """The page. Its files come from here, so that it works without any other
        network.
        """
        words = {
            "title": escape(self.title),
            "websocket": escape(
                f"{'wss' if request.secure else 'ws'}://{request.host}/ws"
            ),
            "font_size": str(to_int(request.query.get("fontsize", ""), 16)),
        }
        return web.Response(
            text=Template(_PAGE.read_text("utf-8")).substitute(words),
            content_type="text/html",
        )

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        page = web.WebSocketResponse(heartbeat=15)
        await page.prepare(request)

        async def send(data: bytes) -> None:
            # to a page that is gone; its shell is read on until it ends
            with suppress(ConnectionError):
                await page.send_bytes(data)

        async def tell(text: str) -> None:
            with suppress(ConnectionError):
                await page.send_str(text)

        service = _ShellService(
            self._argv,
            write_bytes=send,
            write_str=tell,
            close=page.close,
            download_manager=self.download_manager,
        )
        self._pages.add(page)
        try:
            await service.start(
                to_int(request.query.get("width", ""), 80),
                to_int(request.query.get("height", ""), 24),
            )
            await self._process_messages(page, service)
        finally:
            await service.stop()
            self._pages.discard(page)
            await page.close()
        return page


class _ShellService(AppService):
    """The shell of one page, as a process. Ctrl+C in the server's terminal does not
    reach it; it ends with its page or the server.
    """

    def __init__(self, argv: Sequence[str], **others: object) -> None:
        super().__init__("", **others)  # type: ignore[arg-type]
        self._argv = argv

    def _build_environment(self, width: int = 80, height: int = 24) -> dict[str, str]:
        environment = super()._build_environment(width, height)
        return environment | {"TEXTUAL_DRIVER": "cdd_agent.tui.browser:BrowserDriver"}

    async def _open_app_process(
        self, width: int = 80, height: int = 24
    ) -> asyncio.subprocess.Process:
        pipe = asyncio.subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(
            *self._argv,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            env=self._build_environment(width, height),
            start_new_session=True,
        )
        self._stdin = self._process.stdin
        return self._process

    async def stop(self) -> None:
        await super().stop()
        if self._process is not None:
            await self._process.wait()


@contextmanager
def _redirection(address: str) -> Iterator[Path]:
    """A page that leads to the address, for this user alone: the arguments of a browser
    can be read by everybody.
    """
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
    """This computer's address in its network. Nothing is sent to find it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return None
        return str(probe.getsockname()[0])
