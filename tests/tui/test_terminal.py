"""The shell on a real terminal: as a process, on a pseudo-terminal."""

import json
import os
import signal
import sys
from collections.abc import Iterator
from threading import Thread

import pytest

from cdd_agent.errors import ExitCode
from cdd_agent.tui.terminal_input.writer import TerminalWriter
from tests.support.projects import SLUG, Sandbox, Step, endless_check, says
from tests.support.screens import Screen
from tests.support.terminals import CDD, PATIENCE, Terminal

if os.name == "posix":
    import pty
    import termios

pytestmark = [
    pytest.mark.pty,
    pytest.mark.filterwarnings(
        "ignore:This process .* is multi-threaded:DeprecationWarning"
    ),
]


@pytest.fixture
def terminal(sandbox: Sandbox) -> Iterator[Terminal]:
    sandbox.write(Step("a.txt", endless_check()))
    replies = json.dumps([{"reply": says("a.txt", "good")}])
    (sandbox.root / ".cdd/script.yaml").write_text(f"replies: {replies}\n")
    terminal = Terminal(
        sandbox.root, CDD, "--model", "script:.cdd/script.yaml", size=(80, 24)
    )
    terminal.until(lambda: "❯".encode() in terminal.seen)
    yield terminal
    terminal.end()


def test_keys_pressed_while_the_shell_starts_are_typed(sandbox: Sandbox) -> None:
    terminal = Terminal(sandbox.root, CDD, size=(80, 24))
    screen = Screen(terminal)
    try:
        terminal.until(lambda: b"\x1b[?1049h" in terminal.seen)
        for key in b"what is typed early":
            terminal.press(bytes([key]))
        terminal.until(lambda: terminal.has_ended() or "❯ what" in screen.text)
        terminal.until(lambda: terminal.has_ended() or "typed early" in screen.text)
        assert "❯ what is typed early" in screen.text
    finally:
        terminal.end()


def test_a_closed_terminal_ends_the_shell_and_restores_the_step(
    terminal: Terminal, sandbox: Sandbox
) -> None:
    terminal.type(f"/exec {SLUG}")
    screen = Screen(terminal)
    terminal.until(lambda: "Next: step 1" in screen.text)
    terminal.type("continue")
    terminal.until((sandbox.root / "running").exists)
    terminal.close()
    terminal.until(terminal.has_ended)
    assert terminal.code == 130
    assert sandbox.statuses() == ["pending"]
    assert not (sandbox.root / "a.txt").exists()
    sandbox.replies().engine().close()  # the ticket is free


@pytest.mark.parametrize("stops", [0, 3])
def test_a_closed_terminal_ends_a_shell_that_draws_or_was_stopped(
    terminal: Terminal, sandbox: Sandbox, stops: int
) -> None:
    terminal.type(f"/exec {SLUG}")
    screen = Screen(terminal)
    terminal.until(lambda: "Next: step 1" in screen.text)
    terminal.type("continue")
    terminal.until((sandbox.root / "running").exists)
    stop_and_continue(terminal, stops)
    terminal.press(b"words " * 600)  # each key is drawn
    terminal.close()
    terminal.until(terminal.has_ended)
    assert terminal.code == 130
    assert sandbox.statuses() == ["pending"]


def test_leaving_does_not_wait_for_a_closed_terminal() -> None:
    master, slave = pty.openpty()
    writer = TerminalWriter(slave, "utf-8")
    os.close(master)
    stopping = Thread(target=writer.stop, daemon=True)
    for _ in range(100):
        writer.write("the last words")
    stopping.start()
    stopping.join(PATIENCE)
    os.close(slave)
    assert not stopping.is_alive()


def stop_and_continue(terminal: Terminal, times: int) -> None:
    """By a signal that no program hears. The terminal is given back and taken again
    each time.
    """
    for number in range(times):
        os.kill(terminal.pid, signal.SIGSTOP)
        os.kill(terminal.pid, signal.SIGCONT)
        terminal.until(lambda: terminal.seen.count(b"\x1b[?1049h") == number + 2)  # noqa: B023


def test_the_terminal_is_restored_after_sigstop_and_sigcont(terminal: Terminal) -> None:
    stop_and_continue(terminal, 3)
    screen = Screen(terminal)
    terminal.press(b"abcdefghijklmnopqrstuvwxyz")
    terminal.until(lambda: "abcdefghijklmnopqrstuvwxyz" in screen.text)
    terminal.press(b"\x15")
    terminal.type("/exit")
    terminal.until(terminal.has_ended)
    assert terminal.code == 0
    assert is_cooked(terminal)


def is_cooked(terminal: Terminal) -> bool:
    """As a shell has it: a line at a time, with an echo."""
    local = termios.tcgetattr(terminal.master)[3]
    return bool(local & termios.ICANON and local & termios.ECHO)


def test_leaving_restores_the_terminal(terminal: Terminal) -> None:
    terminal.type("/exit")
    terminal.until_ended()
    assert terminal.code == 0
    assert b"\x1b[?1049l" in terminal.seen  # back from the alternate screen
    assert is_cooked(terminal)


def test_a_dumb_terminal_gets_the_plain_shell(
    sandbox: Sandbox,
) -> None:
    terminal = Terminal(
        sandbox.root, "/usr/bin/env", "TERM=dumb", sys.executable, "-m", "cdd_agent"
    )
    try:
        terminal.until(lambda: b"chat > " in terminal.seen)
        terminal.type("/exit")
        terminal.until_ended()
    finally:
        terminal.end()
    assert terminal.code == ExitCode.DONE
    assert b"\x1b[?1049h" not in terminal.seen
