"""What a program's output looks like on a terminal's screen: a terminal emulator reads it."""

import re

import pyte

from tests.terminals import Terminal

_NOT_FOR_PYTE = re.compile(rb"\x1b\[[<>=?][0-9;]*\$?[a-zA-Z]|\x1b\[[0-9;]*t")
"""Private modes, of which only the other screen matters, and window operations: pyte would print a part of some."""


_OTHER_SCREEN = re.compile(rb"\x1b\[\?1049[hl]")
"""To the other screen, and back: each begins empty."""
_BEGUN = re.compile(rb"\x1b(\[[0-?]*)?\Z")
"""The beginning of a sequence whose end has not come."""


class Screen:
    """The screen of a terminal, as it is after all that it was sent so far."""

    def __init__(self, terminal: Terminal, columns: int = 80, rows: int = 24) -> None:
        self._terminal = terminal
        self._size = columns, rows
        self._taken = 0
        """Bytes of what the terminal has seen that are on the screen."""
        self._begin()

    @property
    def text(self) -> str:
        new = self._terminal.seen[self._taken :]
        if begun := _BEGUN.search(new):
            new = new[: begun.start()]
        self._taken += len(new)
        first, *others = _OTHER_SCREEN.split(new)
        self._feed(first)
        for part in others:
            self._begin()
            self._feed(part)
        return "\n".join(line.rstrip() for line in self._screen.display)

    def _begin(self) -> None:
        self._screen = pyte.Screen(*self._size)
        self._stream = pyte.ByteStream(self._screen)

    def _feed(self, sent: bytes) -> None:
        self._stream.feed(_NOT_FOR_PYTE.sub(b"", sent))
