"""The rows that have been written, for one width. Beyond a limit the oldest text is left out, part by part."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from cdd_agent.tui.transcript.lines import Row, TranscriptLine

MAX_LINES = 20_000
"""Rows that are kept; beyond, the oldest text is left out."""

PART_SIZE = 4_000
"""Characters that are handled, and later left out, together."""


@dataclass(slots=True)
class Part:
    """Some text of a block that was settled together; the unit in which old text is left out."""

    source: str
    lines: list[TranscriptLine]
    begins: bool
    """Whether it is the first of its block."""
    rows: int = 0


class Scrollback:
    """Settled rows, and below them those of the live block's tail, which the next change replaces.

    What changes the rows returns by how many of them the rest has moved up, because old ones were left out.
    """

    def __init__(self, max_rows: int) -> None:
        self.rows: list[Row] = []
        self.settled = 0
        """How many rows cannot change any more."""
        self.width = 0
        """Of the rows; 0 until there is a place on the screen."""
        self._max_rows = max_rows
        self._parts: deque[Part] = deque()
        self._left_out = False

    def place(self, parts: Iterable[Part], tail: Iterable[TranscriptLine]) -> int:
        """Put new parts and then the tail where the tail was."""
        del self.rows[self.settled :]
        for part in parts:
            self._break(part)
            self._keep(part)
        return self._end_with(tail)

    def fit(self, width: int, tail: Iterable[TranscriptLine]) -> int:
        """Break all lines again."""
        self.width = width
        self.rows = self._notice() if self._left_out else []
        for part in self._parts:
            self._break(part)
        return self._end_with(tail)

    def clear(self) -> None:
        self.rows.clear()
        self._parts.clear()
        self.settled = 0
        self._left_out = False

    def sources(self) -> list[str]:
        """The source of each block that is kept."""
        blocks: list[list[str]] = []
        for part in self._parts:
            if part.begins or not blocks:
                blocks.append([])
            blocks[-1].append(part.source)
        return ["".join(block) for block in blocks]

    def place_of(self, rows: list[Row]) -> int:
        """Where the last of these rows, which were broken for another width, is now."""
        places = {id(row.line): y for y, row in reversed(list(enumerate(self.rows)))}
        for line, start, _ in reversed(rows):
            if (y := places.get(id(line))) is not None:
                while y + 1 < len(self.rows) and self.rows[y].line is line and self.rows[y].end <= start:
                    y += 1
                return y
        return 0

    def _break(self, part: Part) -> None:
        rows = self._broken(part.lines)
        part.rows = len(rows)
        self.rows += rows

    def _broken(self, lines: Iterable[TranscriptLine]) -> list[Row]:
        return [row for line in lines for row in line.rows(self.width)] if self.width else []

    def _keep(self, part: Part) -> None:
        last = self._parts[-1] if self._parts else None
        if last is None or part.begins or len(last.source) + len(part.source) > PART_SIZE:
            self._parts.append(part)
        else:  # a slow stream comes in very small parts
            last.source += part.source
            last.lines += part.lines
            last.rows += part.rows

    def _end_with(self, tail: Iterable[TranscriptLine]) -> int:
        self.settled = len(self.rows)
        self.rows += self._broken(tail)
        return self._leave_out()

    def _leave_out(self) -> int:
        excess = self.settled - self._max_rows
        gone = 0
        while gone < excess and len(self._parts) > 1:
            gone += self._parts.popleft().rows
        if not gone:
            return 0
        if self._left_out:
            gone += 1  # the notice that is there
        self.rows[:gone] = self._notice()
        self._left_out = True
        moved = gone - 1
        self.settled -= moved
        return moved

    def _notice(self) -> list[Row]:
        return TranscriptLine(text="… earlier output is left out", ink="left-out").rows(self.width)[:1]
