"""A program's output on a terminal's screen, as a terminal emulator reads it."""

import re

import pyte

from tests.terminals import Terminal

_NOT_FOR_PYTE = re.compile(rb"\x1b\[[<>=?][0-9;]*\$?[a-zA-Z]|\x1b\[[0-9;]*t")
"""Private modes, of which only the other screen matters, and window operations: pyte would print a part of some."""


class Screen:
    """The screen of a terminal, as it is after all that it was sent so far."""

    def __init__(self, terminal: Terminal, columns: int = 80, rows: int = 24) -> None:
        self._terminal = terminal
        self._size = columns, rows

    @property
    def text(self) -> str:
        screen = pyte.Screen(*self._size)
        _, is_other, shown = self._terminal.seen.rpartition(b"\x1b[?1049h")
        before = self._terminal.seen if not is_other else b""
        left, has_left, after = shown.partition(b"\x1b[?1049l")
        sent = after if has_left else left or before
        pyte.ByteStream(screen).feed(_NOT_FOR_PYTE.sub(b"", sent))
        return "\n".join(line.rstrip() for line in screen.display)
