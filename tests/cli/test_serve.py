"""`cdd serve`: a real server on this computer, asked as a browser asks, and as others
might.
"""

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import psutil
import pyte
import pytest

from cdd_agent.cli.main import main
from cdd_agent.cli.page_shell import OPENED_ELSEWHERE
from cdd_agent.cli.serve import warning
from cdd_agent.errors import ExitCode
from tests.support.projects import SLUG, Sandbox, Step, check, endless_check, says

PATIENCE = 180.0


@dataclass
class Served:
    """A server, and what a person knows of it."""

    process: asyncio.subprocess.Process
    address: str

    @property
    def origin(self) -> str:
        parts = urlsplit(self.address)
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def token(self) -> str:
        return self.address.partition("token=")[2]

    async def end(self) -> str:
        """Ctrl+C. What it has printed since its address."""
        self.process.send_signal(signal.SIGINT)
        out, errors = await asyncio.wait_for(self.process.communicate(), PATIENCE)
        return (out + errors).decode()

    def shells(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children()


async def serve(root: Path) -> Served:
    argv = (
        "-m",
        "cdd_agent",
        "-C",
        str(root),
        "--model",
        "script:.cdd/script.yaml",
        "serve",
        "--port",
        "0",
    )
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, *argv, stdout=pipe, stderr=pipe
    )
    assert process.stdout is not None
    return Served(
        process,
        (await asyncio.wait_for(process.stdout.readline(), PATIENCE)).decode().strip(),
    )


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    sandbox = project(tmp_path, Step("a.txt", check("a.txt")))
    server = await serve(sandbox.root)
    yield server
    if server.process.returncode is None:
        server.process.kill()
        await server.process.wait()


def project(parent: Path, step: Step) -> Sandbox:
    root = parent / "a project's folder"
    root.mkdir()
    sandbox = Sandbox(root).write(step)
    replies = json.dumps([{"reply": says("a.txt", "good")}])
    (root / ".cdd/script.yaml").write_text(f"replies: {replies}\n")
    return sandbox


@pytest.fixture
async def browser() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(
        cookie_jar=aiohttp.CookieJar(unsafe=True)
    ) as session:
        yield session


class Page:
    """The page's terminal: what is on it, and what is typed there."""

    def __init__(
        self, socket: aiohttp.ClientWebSocketResponse, columns: int, rows: int
    ) -> None:
        self._socket = socket
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)

    @property
    def text(self) -> str:
        return "\n".join(self._screen.display)

    async def until(self, come: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not come():
                try:
                    message = await self._socket.receive(timeout=0.1)
                except TimeoutError:
                    continue
                assert message.type is aiohttp.WSMsgType.BINARY, (message, self.text)
                self._stream.feed(message.data)

    async def until_shown(self, text: str) -> None:
        try:
            await self.until(lambda: text in self.text)
        except TimeoutError:
            pytest.fail(f"{text!r} is not in:\n{self.text}")

    async def close_code(self) -> int | None:
        """Wait until the server closes the page. Return the reason."""
        async with asyncio.timeout(PATIENCE):
            while True:
                message = await self._socket.receive()
                if message.type is aiohttp.WSMsgType.CLOSE:
                    return int(message.data)
                if message.type is not aiohttp.WSMsgType.BINARY:
                    return None

    async def close(self) -> None:
        await self._socket.close()

    async def type(self, keys: str) -> None:
        await self._socket.send_json(["stdin", keys])


TAB, OTHER_TAB = "a1" * 18, "b2" * 18


async def opened(
    served: Served,
    browser: aiohttp.ClientSession,
    columns: int = 80,
    rows: int = 24,
    tab: str = TAB,
) -> Page:
    async with browser.get(served.address) as answer:
        assert answer.status == 200
    url = f"{served.origin}/ws/{tab}?width={columns}&height={rows}"
    page = Page(await browser.ws_connect(url, origin=served.origin), columns, rows)
    await page.until_shown("❯")
    return page


@pytest.mark.fork
async def test_nothing_is_served_without_the_token(
    served: Served, browser: aiohttp.ClientSession
) -> None:
    for path in (
        "/",
        "/?token=wrong",
        "/?token=%C3%A9",
        "/static/js/textual.js",
        f"/ws/{TAB}",
    ):
        async with browser.get(served.origin + path) as answer:
            assert answer.status == 403, path
            assert "Set-Cookie" not in answer.headers, path
        assert not served.shells(), path


@pytest.mark.fork
async def test_the_address_opens_the_page_and_then_a_cookie_does(
    served: Served, browser: aiohttp.ClientSession
) -> None:
    async with browser.get(served.address) as answer:
        page = await answer.text()
        cookie = answer.headers["Set-Cookie"]
        assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert served.token not in page
    assert "https://" not in page  # it needs no other network
    for path in (
        "/",
        "/static/js/textual.js",
        "/static/fonts/RobotoMono-VariableFont_wght.ttf",
    ):
        async with browser.get(served.origin + path) as answer:
            assert answer.status == 200


@pytest.mark.fork
async def test_a_name_that_somebody_has_pointed_here_is_refused(
    served: Served, browser: aiohttp.ClientSession
) -> None:
    for host in (
        "evil.example",
        "localhost.evil.example",
        "evil.example:80",
        "",
        "[",
        "127.0.0.1.nip.io",
    ):
        async with browser.get(served.address, headers={"Host": host}) as answer:
            assert answer.status in (400, 403), host


@pytest.mark.fork
async def test_the_page_of_another_site_gets_no_connection(
    served: Served, browser: aiohttp.ClientSession
) -> None:
    async with browser.get(served.address):
        pass
    for origin in ("http://evil.example", "http://127.0.0.1:1", "null", "http://["):
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await browser.ws_connect(f"{served.origin}/ws/{TAB}", origin=origin)
        assert refused.value.status == 403, origin
        assert not served.shells(), origin


@pytest.mark.fork
async def test_a_step_is_carried_out_in_the_page(
    served: Served, browser: aiohttp.ClientSession, tmp_path: Path
) -> None:
    page = await opened(served, browser)
    await page.type(f"/exec {SLUG}\r")
    await page.until_shown("Next: step 1")
    await page.type("continue\r")
    await page.until_shown("Plan 1/1")
    assert (tmp_path / "a project's folder/a.txt").read_text().strip() == "good"
    said = await served.end()
    assert served.process.returncode == ExitCode.DONE
    assert await page.close_code() == aiohttp.WSCloseCode.GOING_AWAY
    assert served.token not in said


@pytest.mark.parametrize(
    "ending", ["the page is closed", "Ctrl+C", "the server is killed"]
)
@pytest.mark.fork
async def test_however_it_ends_the_step_that_runs_is_put_back(
    tmp_path: Path, browser: aiohttp.ClientSession, ending: str
) -> None:
    sandbox = project(tmp_path, Step("a.txt", endless_check()))
    served = await serve(sandbox.root)
    page = await opened(served, browser)
    (shell,) = served.shells()
    await page.type(f"/exec {SLUG}\r")
    await page.until_shown("Next: step 1")
    await page.type("continue\r")
    await page.until((sandbox.root / "running").exists)
    if ending == "Ctrl+C":
        await served.end()
        assert served.process.returncode == ExitCode.DONE
    elif ending == "the page is closed":
        await browser.close()
    else:
        os.kill(served.process.pid, signal.SIGKILL)
    gone, _ = await asyncio.to_thread(psutil.wait_procs, [shell], PATIENCE)
    assert gone
    assert sandbox.statuses() == ["pending"]
    assert not (sandbox.root / "a.txt").exists()
    if served.process.returncode is None:
        served.process.kill()
        await served.process.wait()


@pytest.mark.fork
async def test_a_draft_outlives_its_page(
    served: Served, browser: aiohttp.ClientSession
) -> None:
    page = await opened(served, browser)
    await page.type("half a thought")
    await page.until_shown("half a thought")
    (shell,) = served.shells()
    await page.close()
    await asyncio.to_thread(shell.wait, PATIENCE)
    page = await opened(served, browser)
    await page.type("\x1b[A")
    await page.until_shown("half a thought")


@pytest.mark.fork
async def test_a_reload_keeps_the_shell_and_the_step_that_runs(
    tmp_path: Path, browser: aiohttp.ClientSession
) -> None:
    sandbox = project(tmp_path, Step("a.txt", endless_check()))
    served = await serve(sandbox.root)
    page = await opened(served, browser)
    await page.type(f"/exec {SLUG}\r")
    await page.until_shown("Next: step 1")
    await page.type("continue\r")
    await page.until((sandbox.root / "running").exists)
    (shell,) = served.shells()
    await page.close()
    page = await opened(served, browser, columns=70)
    await page.until_shown("Esc stops")
    await page.type("half a thought")
    await page.until_shown("half a thought")
    assert served.shells() == [shell]
    assert sandbox.statuses() == ["in_progress"]
    await served.end()
    assert sandbox.statuses() == ["pending"]


@pytest.mark.fork
async def test_a_shell_is_shown_by_the_page_that_opened_it_last(
    served: Served, browser: aiohttp.ClientSession
) -> None:
    first = await opened(served, browser)
    second = await opened(served, browser)
    assert await first.close_code() == OPENED_ELSEWHERE
    await second.type("here")
    await second.until_shown("here")
    assert len(served.shells()) == 1


@pytest.mark.fork
async def test_each_tab_has_its_own_shell(
    served: Served, browser: aiohttp.ClientSession
) -> None:
    first = await opened(served, browser)
    second = await opened(served, browser, tab=OTHER_TAB)
    await first.type("one")
    await second.type("two")
    await first.until_shown("❯ one")
    await second.until_shown("❯ two")
    assert len(served.shells()) == 2


@pytest.mark.fork
async def test_a_paste_with_an_end_marker_in_it_presses_no_enter(
    served: Served, browser: aiohttp.ClientSession, tmp_path: Path
) -> None:
    page = await opened(served, browser)
    pasted = "one\rtwo \x1b[31mred\x1b[0m\x1b[201~/exit\rthree\x07\x1b[2J"
    await page.type(f"\x1b[200~{pasted}\x1b[201~")
    for text in ("❯ one", "two red/exit", "three", "Enter: send 3 lines"):
        await page.until_shown(text)
    assert len(served.shells()) == 1


def test_without_its_library_it_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "textual_serve", None)
    monkeypatch.delitem(sys.modules, "cdd_agent.cli.serving", raising=False)
    monkeypatch.delitem(sys.modules, "cdd_agent.cli.page_shell", raising=False)
    assert main(["-C", str(tmp_path), "serve"]) == ExitCode.BAD_INPUT
    assert 'pip install "cdd-shell[serve]"' in capsys.readouterr().err


def test_a_port_that_is_taken_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        assert (
            main(["-C", str(tmp_path), "serve", "--port", str(other.getsockname()[1])])
            == ExitCode.BAD_INPUT
        )
    assert "--port 0" in capsys.readouterr().err


def test_whoever_lets_others_connect_is_warned() -> None:
    assert "not encrypted" in warning("0.0.0.0")
    assert "not encrypted" in warning("192.168.1.20")
    assert warning("127.0.0.1") == warning("::1") == ""
