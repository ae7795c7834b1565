"""`cdd serve` in a real browser: its page is opened, typed into, and a step is carried
out by it.
"""

import asyncio
import base64
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.cli.test_serve import PATIENCE, Served, browser, served
from tests.support.projects import SLUG

__all__ = ["browser", "served"]
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))),
    None,
)
pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium"),
]


class Tab:
    """A page in the browser, by the protocol of its developer tools."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._count = 0

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._count += 1
        await self._socket.send_json(
            {"id": self._count, "method": method, "params": parameters}
        )
        async with asyncio.timeout(PATIENCE):
            while (answer := await self._socket.receive_json()).get(
                "id"
            ) != self._count:
                pass
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

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
        "--no-first-run",
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
    await tab.call("Page.enable")
    await tab.call("Page.navigate", url=served.address)
    async with asyncio.timeout(PATIENCE):
        while not await tab.value("document.body.classList.contains('-first-byte')"):
            await asyncio.sleep(0.1)
    # no script of the page can read it
    assert served.token not in await tab.value("document.cookie")
    await tab.value("document.querySelector('.xterm-helper-textarea').focus()")
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
