"""A program's output on a terminal's screen, as a terminal emulator reads it."""

import re

import pyte

from tests.support.terminals import Terminal

_NOT_FOR_PYTE = re.compile(rb"\x1b\[[<>=?][0-9;]*\$?[a-zA-Z]|\x1b\[[0-9;]*t")
"""Private modes, of which only the other screen matters, and window operations: pyte
would print a part of some.
"""
_BEGUN = re.compile(rb"\x1b(\[[<>=?]?[0-9;]*\$?)?\Z")
"""A sequence whose end has not come yet."""
_OTHER_SCREEN = re.compile(rb"\x1b\[\?1049[hl]")


class Screen:
    """The screen of a terminal, as it is after all that it was sent so far; what comes
    is read once.
    """

    def __init__(self, terminal: Terminal, columns: int = 80, rows: int = 24) -> None:
        self._terminal = terminal
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self._read = 0
        self._text = ""

    @property
    def text(self) -> str:
        news = self._terminal.seen[self._read :]
        if begun := _BEGUN.search(news):
            news = news[: begun.start()]
        self._read += len(news)
        before, *later = _OTHER_SCREEN.split(news)
        self._stream.feed(_NOT_FOR_PYTE.sub(b"", before))
        for shown in later:
            self._screen.reset()
            self._stream.feed(_NOT_FOR_PYTE.sub(b"", shown))
        if news:
            columns = range(self._screen.columns)
            rows = (self._screen.buffer[y] for y in range(self._screen.lines))
            self._text = "\n".join(
                "".join(row[x].data for x in columns).rstrip() for row in rows
            )
        return self._text
