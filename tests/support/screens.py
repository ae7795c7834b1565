"""A program's output on a terminal's screen, read by a terminal emulator."""

import re
from functools import cache

import pyte
from pyte.screens import Char

from tests.support.terminals import Terminal

_NOT_FOR_PYTE = re.compile(
    rb"\x1b\[[<>=?][0-9;]*\$?[a-zA-Z]"  # private modes; only the other screen matters
    rb"|\x1b\[[0-9;]*t"  # window operations; pyte would print a part of some
    rb"|\x1b\[[0-9;:]*m"  # colours, half of all bytes, which no test reads here
)
_BEGUN = re.compile(rb"\x1b(\[[<>=?]?[0-9;:]*\$?)?\Z")
"""A sequence whose end has not arrived yet."""
_OTHER_SCREEN = re.compile(rb"\x1b\[\?1049[hl]")


class _PlainScreen(pyte.Screen):
    """Draws ASCII text fast; it has no colours."""

    def draw(self, data: str) -> None:
        end = self.cursor.x + len(data)
        if not data.isascii() or end > self.columns:
            super().draw(data)
            return
        row = self.buffer[self.cursor.y]
        for x, character in enumerate(data, self.cursor.x):
            row[x] = _as_cell(character)
        self.cursor.x = end
        self.dirty.add(self.cursor.y)


@cache
def _as_cell(character: str) -> Char:
    return Char(character)


class Screen:
    """The screen of a terminal after all its output so far. Output is read once."""

    def __init__(self, terminal: Terminal, columns: int = 80, rows: int = 24) -> None:
        self._terminal = terminal
        self._screen = _PlainScreen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self._read = 0
        self._rows = [""] * rows

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
        for y in self._screen.dirty:
            row = self._screen.buffer[y]
            cells = (row[x].data for x in range(self._screen.columns))
            self._rows[y] = "".join(cells).rstrip()
        self._screen.dirty.clear()
        return "\n".join(self._rows)
