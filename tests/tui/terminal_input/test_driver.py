"""The driver reads to the end of its input, and leaves the system as it was."""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from textual import events
from textual.app import App

from cdd_agent.errors import ExitCode
from cdd_agent.tui.terminal_input.choice import choose_driver
from cdd_agent.tui.terminal_input.driver_messages import InputEnded
from tests.support.projects import Sandbox
from tests.tui.person import PATIENCE, shell

if os.name == "nt":
    pytest.skip("needs a terminal of POSIX", allow_module_level=True)
from cdd_agent.tui.terminal_input.driver import TerminalDriver
from cdd_agent.tui.terminal_input.writer import write_all

SIGNALS = signal.SIGTSTP, signal.SIGCONT, signal.SIGWINCH, signal.SIGHUP, signal.SIGTERM


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def keyboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file from which the shell reads keys. What it writes goes to another."""
    file = tmp_path / "keyboard"
    file.touch()
    with file.open() as keyboard, (tmp_path / "screen").open("w") as screen:
        monkeypatch.setattr(sys, "__stdin__", keyboard)
        monkeypatch.setattr(sys, "__stderr__", screen)
        yield file


class Listener(App[None]):
    """Notes what it is sent, until the input ends."""

    def __init__(self) -> None:
        super().__init__()
        self.keys = ""
        self.still_reads = True

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key) and not event.is_forwarded:
            self.keys += event.character or ""
        await super().on_event(event)

    async def on_input_ended(self, event: InputEnded) -> None:
        assert not event.is_gone
        threads = threading.enumerate()
        readers = [thread for thread in threads if thread.name == "terminal-input"]
        for reader in readers:
            await asyncio.to_thread(reader.join, PATIENCE)
        self.still_reads = any(reader.is_alive() for reader in readers)
        self.exit()


async def test_all_that_was_typed_comes_before_the_end_of_the_input(
    keyboard: Path,
) -> None:
    keyboard.write_bytes("typ\u00e9d\u3000\x1b".encode())
    app = Listener()
    app.driver_class = TerminalDriver
    await app.run_async()
    assert app.keys == "typ\u00e9d\u3000\x1b"
    assert not app.still_reads
    assert b"\x1b[?1049l" in (keyboard.parent / "screen").read_bytes()


async def test_the_shell_leaves_at_the_end_of_its_input(
    keyboard: Path, sandbox: Sandbox
) -> None:
    keyboard.write_text("a draft")
    app = shell(sandbox.write())
    app.driver_class = choose_driver(TerminalDriver, lambda driver: None)
    await app.run_async()
    assert app.return_code == ExitCode.INTERRUPTED


def test_a_terminal_that_takes_little_at_a_time_gets_all() -> None:
    """Another program on the terminal may have made it non-blocking."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    got: list[bytes] = []

    def read() -> None:
        while piece := os.read(reading, 1000):
            got.append(piece)

    data = bytes(range(256)) * 2000
    reader = threading.Thread(target=read)
    reader.start()
    write_all(writing, data)
    os.close(writing)
    reader.join()
    os.close(reading)
    assert b"".join(got) == data
