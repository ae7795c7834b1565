"""`cdd serve` in a real browser: the welcome, a step, a paste, a reload, an end of the
server, and what the page loads.
"""

import asyncio
import base64
import json
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest

from tests.cli.test_serve import PATIENCE, Served, browser, project, serve, served
from tests.support.projects import SLUG, Step, endless_check

__all__ = ["browser", "served"]
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))),
    None,
)
HAS_KEYS = "document.activeElement.matches('.xterm-helper-textarea')"
"""A script that tests if the terminal of the page receives the keys."""
pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium"),
]


class Tab:
    """A page in the browser, by the protocol of its developer tools."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._count = 0
        self.requested: list[str] = []
        """The addresses that the page has asked for."""

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._count += 1
        await self._socket.send_json(
            {"id": self._count, "method": method, "params": parameters}
        )
        async with asyncio.timeout(PATIENCE):
            while True:
                answer = await self._socket.receive_json()
                self._note_request(answer)
                if answer.get("id") == self._count:
                    break
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def _note_request(self, message: dict[str, Any]) -> None:
        match message.get("method"):
            case "Network.requestWillBeSent":
                self.requested.append(message["params"]["request"]["url"])
            case "Network.webSocketCreated":
                self.requested.append(message["params"]["url"])

    async def open(self, address: str) -> None:
        """Open a page, and wait until its terminal shows something."""
        await self.call("Page.enable")
        await self.call("Network.enable")
        await self.call("Page.navigate", url=address)
        await self.until_drawn()

    async def until_drawn(self) -> None:
        await self.until("document.body?.classList.contains('-first-byte')")

    async def until(self, script: str) -> None:
        async with asyncio.timeout(PATIENCE):
            while not await self.value(script):
                await asyncio.sleep(0.1)

    async def paste(self, text: str) -> None:
        await self.value(
            "const data = new DataTransfer();"
            f"data.setData('text/plain', {json.dumps(text)});"
            "document.querySelector('.xterm-helper-textarea').dispatchEvent("
            "new ClipboardEvent('paste', {clipboardData: data, bubbles: true}))"
        )

    async def value(self, script: str) -> Any:
        return (await self.call("Runtime.evaluate", expression=script))["result"].get(
            "value"
        )

    async def type(self, text: str) -> None:
        for character in text:
            is_enter = character == "\r"
            key = (
                {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13}
                if is_enter
                else {"key": character}
            )
            await self.call(
                "Input.dispatchKeyEvent", type="keyDown", text=character, **key
            )
            await self.call("Input.dispatchKeyEvent", type="keyUp", **key)

    async def picture(self) -> bytes:
        return base64.b64decode((await self.call("Page.captureScreenshot"))["data"])


@pytest.fixture
async def tab(tmp_path: Path, browser: aiohttp.ClientSession) -> AsyncIterator[Tab]:
    assert CHROMIUM is not None
    folder = tmp_path / "chromium"
    options = (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--remote-debugging-port=0",
    )
    silent = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        CHROMIUM,
        *options,
        f"--user-data-dir={folder}",
        "about:blank",
        stdout=silent,
        stderr=silent,
    )
    try:
        await until((folder / "DevToolsActivePort").exists)
        port = (folder / "DevToolsActivePort").read_text().split()[0]
        async with browser.get(f"http://127.0.0.1:{port}/json/list") as answer:
            address = next(
                page["webSocketDebuggerUrl"]
                for page in await answer.json()
                if page["type"] == "page"
            )
        async with browser.ws_connect(address, max_msg_size=0) as socket:
            yield Tab(socket)
    finally:
        process.kill()
        await process.wait()


async def until(come: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not come():
            await asyncio.sleep(0.1)


async def test_a_step_is_carried_out_in_a_browser(
    served: Served, tab: Tab, tmp_path: Path
) -> None:
    project = tmp_path / "a project's folder"
    await tab.open(served.address)
    # no script of the page can read it
    assert served.token not in await tab.value("document.cookie")
    assert served.token not in await tab.value("location.href")
    before = await tab.picture()
    await tab.type(f"/exec {SLUG}\r")
    await until((project / ".cdd" / "runs" / SLUG).exists)
    await tab.type("continue\r")
    async with asyncio.timeout(PATIENCE):
        while not (project / "a.txt").exists():
            await asyncio.sleep(3)
            # sends the line that came back, where the run was not open yet
            await tab.type("\r")
    assert (project / "a.txt").read_text().strip() == "good"
    assert await tab.picture() != before
    await tab.call("Page.navigate", url="about:blank")
    await until(lambda: not served.shells())


async def test_keys_need_no_click(served: Served, tab: Tab) -> None:
    await tab.open(served.address)
    await tab.until(HAS_KEYS)


async def test_the_page_loads_nothing_from_elsewhere(served: Served, tab: Tab) -> None:
    await tab.open(served.address)
    hosts = {urlsplit(address).netloc for address in tab.requested}
    assert hosts - {""} == {urlsplit(served.address).netloc}


async def test_a_reload_keeps_the_running_step(
    browser: aiohttp.ClientSession, tab: Tab, tmp_path: Path
) -> None:
    sandbox = project(tmp_path, Step("a.txt", endless_check()))
    served = await serve(sandbox.root)
    await tab.open(served.address)
    await tab.type(f"/exec {SLUG}\r")
    await until((sandbox.root / ".cdd" / "runs" / SLUG).exists)
    await tab.type("continue\r")
    async with asyncio.timeout(PATIENCE):
        while not (sandbox.root / "running").exists():
            await asyncio.sleep(3)
            await tab.type("\r")
    shells = served.shells()
    await tab.call("Page.reload")
    await tab.until_drawn()
    await tab.until(HAS_KEYS)
    assert served.shells() == shells
    assert sandbox.statuses() == ["in_progress"]
    await served.end()
    await tab.until("document.body.classList.contains('-closed')")
    assert "Start it again" in await tab.value(
        "document.querySelector('#closed').innerText"
    )
    assert sandbox.statuses() == ["pending"]


async def test_a_paste_presses_no_enter(
    served: Served, tab: Tab, tmp_path: Path
) -> None:
    await tab.open(served.address)
    await tab.paste("one\ntwo \x1b[31mred\x1b[0m\x1b[201~\n/exit\nthree")
    drafts = tmp_path / "a project's folder" / ".cdd" / "runs" / "drafts"
    await until(lambda: list(drafts.glob("*.json")))
    (draft,) = drafts.glob("*.json")
    assert json.loads(draft.read_text()) == ["one\ntwo red\n/exit\nthree"]
    assert len(served.shells()) == 1
