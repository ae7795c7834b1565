"""The shell on a real terminal: as a process, on a pseudo-terminal."""

import json
import os
import select
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.projects import SLUG, Sandbox, Step, says

if os.name == "nt":
    pytest.skip("needs a pseudo-terminal", allow_module_level=True)
import pty

PATIENCE = 30.0
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


class Terminal:
    """`cdd` in a project, on a terminal of its own."""

    def __init__(self, root: Path) -> None:
        self.seen = b""
        self.code: int | None = None
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.chdir(root)
            os.environ |= {"TERM": "xterm-256color", "PYTHONPATH": str(Path(__file__).parents[2])}
            os.execv(sys.executable, [sys.executable, "-m", "cdd_agent", "--model", "script:.cdd/script.yaml"])

    def until(self, come: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not come():
            assert time.monotonic() < deadline, self.seen[-2000:]
            self.read()

    def read(self) -> None:
        if self.master < 0:
            time.sleep(0.05)
        elif select.select([self.master], [], [], 0.05)[0]:
            with suppress(OSError):  # the other end is closed: it has ended
                self.seen += os.read(self.master, 65536)

    def type(self, line: str) -> None:
        os.write(self.master, line.encode() + b"\r")

    def close(self) -> None:
        os.close(self.master)
        self.master = -1

    def has_ended(self) -> bool:
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if pid else None
        return self.code is not None


@pytest.fixture
def terminal(sandbox: Sandbox) -> Iterator[Terminal]:
    slow = "python -c \"import time, pathlib; pathlib.Path('running').touch(); time.sleep(60)\""
    sandbox.write(Step("a.txt", slow))
    replies = json.dumps([{"reply": says("a.txt", "good")}])
    (sandbox.root / ".cdd/script.yaml").write_text(f"replies: {replies}\n")
    terminal = Terminal(sandbox.root)
    terminal.until(lambda: "❯".encode() in terminal.seen)
    yield terminal
    if not terminal.has_ended():
        os.kill(terminal.pid, 9)
        os.waitpid(terminal.pid, 0)
    if terminal.master >= 0:
        terminal.close()


def test_a_closed_terminal_ends_the_shell_and_puts_the_step_back(terminal: Terminal, sandbox: Sandbox) -> None:
    terminal.type(f"/exec {SLUG}")
    terminal.until(lambda: b"Next is step 1" in terminal.seen)
    terminal.type("continue")
    terminal.until((sandbox.root / "running").exists)
    terminal.close()
    terminal.until(terminal.has_ended)
    assert terminal.code == 130
    assert sandbox.statuses() == ["pending"]
    assert not (sandbox.root / "a.txt").exists()
    sandbox.replies().engine().close()  # the ticket is free


def test_leaving_puts_the_terminal_back(terminal: Terminal) -> None:
    terminal.type("/exit")
    terminal.until(terminal.has_ended)
    terminal.read()
    assert terminal.code == 0
    assert b"\x1b[?1049l" in terminal.seen  # back from the alternate screen
