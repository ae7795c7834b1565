"""On a real terminal: it is asked for its background, and its answer is no key."""

import os
import sys

import pytest

from cdd_agent.tui.terminal_input.driver import BACKGROUND_QUESTION
from cdd_agent.tui.themes import LastTheme, load_last_theme
from tests.support.projects import Sandbox
from tests.support.terminals import Terminal

pytestmark = [
    pytest.mark.pty,
    pytest.mark.filterwarnings(
        "ignore:This process .* is multi-threaded:DeprecationWarning"
    ),
]


def test_the_terminals_answer_chooses_the_theme_and_is_not_typed(
    sandbox: Sandbox,
) -> None:
    (sandbox.root / ".cdd").mkdir()
    terminal = Terminal(
        sandbox.root,
        sys.executable,
        "-m",
        "cdd_agent",
        "--model",
        "script:none.yaml",
        size=(80, 24),
    )
    try:
        terminal.until(
            lambda: (
                BACKGROUND_QUESTION.encode() in terminal.seen
                and "❯".encode() in terminal.seen
            )
        )
        os.write(terminal.master, b"\x1b]11;rgb:fdfd/f6f6/e3e3\x1b\\")
        terminal.until(lambda: load_last_theme({}) == LastTheme("light"))
        terminal.type("/exit")
        terminal.until(terminal.has_ended)
        assert terminal.code == 0
        assert "rgb:" not in terminal.text
    finally:
        terminal.end()
