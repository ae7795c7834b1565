"""The shell on a real terminal: as a process, on a pseudo-terminal."""

import json
import sys
from collections.abc import Iterator

import pytest

from cdd_agent.errors import ExitCode
from tests.projects import SLUG, Sandbox, Step, says
from tests.screens import Screen
from tests.terminals import CDD, Terminal

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


@pytest.fixture
def terminal(sandbox: Sandbox) -> Iterator[Terminal]:
    slow = "python -c \"import time, pathlib; pathlib.Path('running').touch(); time.sleep(60)\""
    sandbox.write(Step("a.txt", slow))
    replies = json.dumps([{"reply": says("a.txt", "good")}])
    (sandbox.root / ".cdd/script.yaml").write_text(f"replies: {replies}\n")
    terminal = Terminal(sandbox.root, CDD, "--model", "script:.cdd/script.yaml", size=(80, 24))
    terminal.until(lambda: "❯".encode() in terminal.seen)
    yield terminal
    terminal.end()


def test_a_closed_terminal_ends_the_shell_and_puts_the_step_back(terminal: Terminal, sandbox: Sandbox) -> None:
    terminal.type(f"/exec {SLUG}")
    screen = Screen(terminal)
    terminal.until(lambda: "Next is step 1" in screen.text)
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
    terminal.until_ended()
    assert terminal.code == 0
    assert b"\x1b[?1049l" in terminal.seen  # back from the alternate screen


def test_a_terminal_that_can_draw_no_screen_has_the_shell_a_line_at_a_time(sandbox: Sandbox) -> None:
    terminal = Terminal(sandbox.root, "/usr/bin/env", "TERM=dumb", sys.executable, "-m", "cdd_agent")
    try:
        terminal.until(lambda: b"chat > " in terminal.seen)
        terminal.type("/exit")
        terminal.until_ended()
    finally:
        terminal.end()
    assert terminal.code == ExitCode.DONE
    assert b"\x1b[?1049h" not in terminal.seen
