"""Other `cdd`s as processes of their own: heard, killed, and stopped with whoever began
them.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from cdd_agent.errors import BadInput
from cdd_agent.process.child import Children

pytestmark = pytest.mark.fork
STAYS = ("--plain",)
"""Waits for what is typed, and ends with its standard input."""


class Watched(Children):
    """Knows which processes there are."""

    def __init__(self) -> None:
        super().__init__()
        self.there = asyncio.Queue[int]()

    async def _begin_in_turn(
        self, arguments: Sequence[str], cwd: Path
    ) -> tuple[Any, int]:
        begun, pid = await super()._begin_in_turn(arguments, cwd)
        self.there.put_nowait(pid)
        return begun, pid


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
async def test_a_child_is_heard_and_killed_and_stops_when_it_is_told_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    children, heard = Watched(), list[bytes]()
    try:
        assert await children.run(["--version"], tmp_path, heard.append) == (0, "")
        assert heard[0].startswith(b"cdd-shell ")
        code, words = await children.run(["list", "--nonsense"], tmp_path, heard.append)
        assert code == 2
        assert "--nonsense" in words
        for _ in range(2):
            await children.there.get()

        killed = asyncio.ensure_future(children.run(STAYS, tmp_path, heard.append))
        os.kill(await children.there.get(), signal.SIGKILL)
        assert (await killed)[0] < 0

        stopped = asyncio.ensure_future(children.run(STAYS, tmp_path, heard.append))
        pid = await children.there.get()
        stopped.cancel()
        with pytest.raises(asyncio.CancelledError):
            await stopped
        while psutil.pid_exists(pid):  # as long as nobody has noticed
            await asyncio.sleep(0.01)
    finally:
        await children.close()


async def test_where_no_process_can_be_begun_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    children = Children()
    with pytest.raises(BadInput):
        await children.run(["--version"], tmp_path, lambda line: None)
    await children.close()
