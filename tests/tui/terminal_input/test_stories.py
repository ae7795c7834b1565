"""What a user types and pastes at a real terminal, and what the shell makes of it."""

import json
import shlex
import sys
from collections.abc import Iterator

import pytest

from tests.support.projects import SLUG, Sandbox, Step, check, says
from tests.support.screens import Screen
from tests.support.terminals import CDD, Terminal

pytestmark = [
    pytest.mark.pty,
    pytest.mark.filterwarnings(
        "ignore:This process .* is multi-threaded:DeprecationWarning"
    ),
]
START, END = b"\x1b[200~", b"\x1b[201~"
FAILED = b"\x1b[31mFAILED\x1b[0m test_a\r\nmore"


class Typist:
    def __init__(self, sandbox: Sandbox) -> None:
        sandbox.write(Step("a.txt", check("a.txt")))
        replies = json.dumps([{"reply": says("a.txt", "good")}])
        (sandbox.root / ".cdd/script.yaml").write_text(f"replies: {replies}\n")
        self.terminal = Terminal(
            sandbox.root, CDD, "--model", "script:.cdd/script.yaml", size=(80, 24)
        )
        self.screen = Screen(self.terminal)

    def sees(self, *texts: str) -> None:
        self.terminal.until(lambda: all(text in self.screen.text for text in texts))

    def press(self, keys: bytes) -> None:
        self.terminal.press(keys)


@pytest.fixture
def typist(sandbox: Sandbox) -> Iterator[Typist]:
    typist = Typist(sandbox)
    yield typist
    typist.terminal.end()


def test_a_paste_in_the_executor_runs_no_step(typist: Typist, sandbox: Sandbox) -> None:
    typist.sees("❯")
    typist.press(f"/exec {SLUG}".encode())
    typist.sees(SLUG)
    typist.press(b"\r")
    typist.sees("step 1")
    typist.press(b"why ")
    typist.sees("❯ why")
    typist.press(START + FAILED + END)
    typist.sees("❯ why FAILED test_a", "more")
    # without markers, and without the end marker
    typist.press(b"\r\n" + FAILED + b"\r\nthe last\r\n")
    typist.sees("the last")
    typist.press(START + b"\x1b]8;;https://example.org\x1b\\lost\x1b]8;;\x1b\\\r\n")
    typist.sees("lost")
    typist.press(b"typed")
    typist.sees("typed")
    assert not (sandbox.root / "a.txt").exists()


def test_a_line_with_enter_is_sent_however_fast_it_comes(typist: Typist) -> None:
    typist.sees("❯")
    typist.press(b"/status\r")
    typist.sees(SLUG)
    typist.press(b"/help\r")
    typist.sees("/status")


def test_a_line_that_is_typed_while_the_shell_starts_is_sent(typist: Typist) -> None:
    typist.press(b"/cost\r")
    typist.press(b"and m\xc3")
    typist.sees("❯")
    typist.press(b"\xb6re")
    typist.sees("❯ /cost", "❯ and möre")


def test_each_character_that_is_typed_reaches_the_command(
    typist: Typist, sandbox: Sandbox
) -> None:
    typed = (
        "a\u3000b\u00a0c\u200bd\u200ce\u200df\u200eg\u200fh\u00adi\u2066j\ue000e\u0301"
    )
    typist.sees("❯")
    typist.press(f"!printf %s '{typed}' > typed.txt".encode())
    # not by the emulator, which has no place for some of these
    typist.terminal.until(lambda: b"' > typed.txt" in typist.terminal.seen)
    typist.press(b"\r")
    file = sandbox.root / "typed.txt"
    typist.terminal.until(lambda: file.exists() and file.read_bytes())
    assert file.read_text() == typed


def test_nohup_leaves_at_once(sandbox: Sandbox) -> None:
    """Its standard input cannot be read, and its output is a file."""
    python = shlex.quote(sys.executable)
    terminal = Terminal(
        sandbox.root, "/bin/sh", "-c", f"nohup {python} -m cdd_agent; echo code=$?"
    )
    try:
        terminal.until_ended()
        assert "code=0" in terminal.text
        assert "/help" in (sandbox.root / "nohup.out").read_text()
    finally:
        terminal.end()
