"""The first five minutes of a user in a real terminal: what the keys and pastes of a
person do.
"""

import json
import re
from collections.abc import Iterator

import pytest

from tests.support.projects import SLUG, Sandbox, Step, says
from tests.support.screens import Screen
from tests.support.terminals import CDD, Terminal

pytestmark = [
    pytest.mark.pty,
    pytest.mark.filterwarnings(
        "ignore:This process .* is multi-threaded:DeprecationWarning"
    ),
]
TEST_OUTPUT = b"continue\r\n\x1b[31mFAILED\x1b[0m test_a\r\nskip\rlast row \x1b[A\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\"
PASTED, END_OF_PASTE = b"\x1b[200~", b"\x1b[201~"
CTRL_C = b"\x03"
UNUSUAL = "a\u3000b\u00a0c\u200cd\u200de\u200ff\u00adg\ue000h"
"""With full-width and no-break spaces, joiners, a direction mark, a soft hyphen and a
character for private use.
"""


@pytest.fixture
def terminal(sandbox: Sandbox) -> Iterator[Terminal]:
    sandbox.write(Step("a.txt", "none"))
    replies = json.dumps([{"reply": says("a.txt", "good")}])
    (sandbox.root / ".cdd/script.yaml").write_text(f"replies: {replies}\n")
    terminal = Terminal(
        sandbox.root, CDD, "--model", "script:.cdd/script.yaml", size=(80, 24)
    )
    yield terminal
    terminal.end()


def open_run(terminal: Terminal) -> Screen:
    screen = Screen(terminal)
    terminal.until(lambda: "❯" in screen.text)
    terminal.type(f"/exec {SLUG}")
    terminal.until(lambda: "Make a.txt" in screen.text)
    terminal.until(lambda: re.search("runs? step 1", screen.text))
    return screen


def test_a_paste_is_text_and_runs_no_step(terminal: Terminal, sandbox: Sandbox) -> None:
    screen = open_run(terminal)
    terminal.press(PASTED + TEST_OUTPUT + END_OF_PASTE)
    terminal.until(lambda: "last row" in screen.text)
    for part in ("continue", "FAILED test_a", "skip", "link"):
        assert part in screen.text
    assert "[31m" not in screen.text
    assert not (sandbox.root / "a.txt").exists()


def test_a_paste_without_its_end_mark_freezes_nothing(
    terminal: Terminal, sandbox: Sandbox
) -> None:
    screen = open_run(terminal)
    terminal.press(PASTED + TEST_OUTPUT)
    terminal.until(lambda: "FAILED test_a" in screen.text)
    terminal.press(b" and typed")
    terminal.until(lambda: "and typed" in screen.text)
    assert not (sandbox.root / "a.txt").exists()


def test_several_lines_at_once_are_a_paste_and_one_line_is_sent(
    terminal: Terminal, sandbox: Sandbox
) -> None:
    screen = open_run(terminal)
    terminal.press(b"continue\rskip\rstatus\r")
    terminal.until(lambda: "❯ continue" in screen.text and "status" in screen.text)
    assert not (sandbox.root / "a.txt").exists()

    terminal.press(CTRL_C)
    terminal.until(lambda: "❯ continue" not in screen.text)
    terminal.press(b"continue\r")
    terminal.until((sandbox.root / "a.txt").exists)


def test_every_character_that_is_typed_reaches_a_command(
    terminal: Terminal, sandbox: Sandbox
) -> None:
    screen = Screen(terminal)
    terminal.until(lambda: "❯" in screen.text)
    for character in f"!printf %s '{UNUSUAL}' > typed.txt":
        terminal.press(character.encode())
    terminal.until(lambda: b"typed.txt" in terminal.seen)
    terminal.press(b"\r")
    written = sandbox.root / "typed.txt"
    terminal.until(lambda: written.exists() and written.read_text())
    assert written.read_text() == UNUSUAL
