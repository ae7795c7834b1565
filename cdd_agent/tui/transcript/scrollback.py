"""The rows of the transcript for one width. Beyond a limit, the oldest parts are
dropped.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec import Struct

from cdd_agent.tui.transcript.folds import Fold, FoldedLine, FoldHeader, Opening
from cdd_agent.tui.transcript.lines import LineRow, TranscriptLine

MAX_LINES = 20_000
"""Maximum rows and folded lines."""

PART_SIZE = 4_000
"""Characters that are handled, and later dropped, together."""


class BlockPart(Struct):
    """Text of a block that was settled together, and is dropped together."""

    source: str
    lines: list[TranscriptLine]
    begins: bool
    rows: int = 0
    fold: Fold | None = None

    @property
    def weight(self) -> int:
        """The rows or folded lines that count towards the limit."""
        return max(self.rows, len(self.lines))


class Block(NamedTuple):
    top: int
    """The first row, including the space above the block."""
    parts: list[BlockPart]

    @property
    def y(self) -> int:
        return self.top + self._space

    @property
    def end(self) -> int:
        return self.top + sum(part.rows for part in self.parts)

    @property
    def first(self) -> TranscriptLine:
        """The first line, which identifies the block."""
        return self.parts[0].lines[self._space]

    @property
    def source(self) -> str:
        return "".join(part.source for part in self.parts)

    @property
    def _space(self) -> int:
        lines = enumerate(self.parts[0].lines)
        return next((place for place, line in lines if line.text or line.gutter), 0)


class Scrollback:
    """All rows: settled rows, then the tail of the live block, which the next change
    replaces, then blocks that were added below the live block.

    If old rows are dropped, a method returns the number of rows by which the others
    moved up.
    """

    def __init__(self, max_rows: int) -> None:
        self.rows: list[LineRow] = []
        self.settled = 0
        """The number of rows that can no longer change."""
        self.width = 0
        """0 until the widget is on the screen."""
        self._max_rows = max_rows
        self._parts: deque[BlockPart] = deque()
        self._weight = 0
        self._left_out = False
        self._below: list[BlockPart] = []
        self._rows_below: list[LineRow] = []

    def place(self, parts: Iterable[BlockPart], tail: Iterable[TranscriptLine]) -> int:
        del self.rows[self.settled :]
        for part in parts:
            self._break(part)
            self._keep(part)
        return self._end_with(tail)

    def put_below(self, parts: Iterable[BlockPart]) -> None:
        """Keep parts below the live block. The next `place` shows them."""
        self._below += parts
        self._break_below()

    def take_below(self) -> list[BlockPart]:
        below, self._below, self._rows_below = self._below, [], []
        return below

    def _break_below(self) -> None:
        self._rows_below = []
        for part in self._below:
            rows = self._broken(part.lines)
            part.rows = len(rows)
            self._rows_below += rows

    def fit(self, width: int, tail: Iterable[TranscriptLine]) -> int:
        self.width = width
        self.rows = self._notice() if self._left_out else []
        self._weight = 0
        for part in self._parts:
            self._break(part)
            self._weight += part.weight
        self._break_below()
        return self._end_with(tail)

    def break_again(self, fold: Fold) -> tuple[int, int]:
        """Break the lines of an opened or folded block again. Return its first row, and
        the number of added rows; (-1, 0) if it is not settled.
        """
        if any(part.fold is fold for part in self._below):
            self._break_below()
        y, first, more = int(self._left_out), -1, 0
        for part in self._parts:
            if part.fold is fold:
                rows = self._broken(part.lines)
                self.rows[y : y + part.rows] = rows
                first = y if first < 0 else first
                more += len(rows) - part.rows
                self._weight -= part.weight
                part.rows = len(rows)
                self._weight += part.weight
            elif first >= 0:
                break
            y += part.rows
        self.settled += more
        return first, more

    def fold_block(self, first: TranscriptLine, header: FoldHeader) -> bool:
        """Put the block with the first line `first` below a header. False if that line
        was dropped. `break_again` then shows the block folded.
        """
        parts = self._parts_of(first)
        for part in parts:
            self._weight -= part.weight
            place = (_place_in(part.lines, first) or 0) if part is parts[0] else 0
            folded = [
                FoldedLine(fold=header.fold, line=line) for line in part.lines[place:]
            ]
            head = [*part.lines[:place], header] if part is parts[0] else []
            part.lines, part.fold = [*head, *folded], header.fold
            self._weight += part.weight
        return bool(parts)

    def _parts_of(self, first: TranscriptLine) -> list[BlockPart]:
        parts: list[BlockPart] = []
        for part in self._parts:
            if part.begins and parts:
                break
            if parts or (part.begins and _place_in(part.lines, first) is not None):
                parts.append(part)
        return parts

    def blocks(self) -> list[Block]:
        """Return the visible settled blocks, except one whose beginning was dropped."""
        return _blocks(self._parts, int(self._left_out))

    def blocks_below(self) -> list[Block]:
        return _blocks(self._below, len(self.rows) - len(self._rows_below))

    def row_of(self, line: TranscriptLine, place: int) -> int | None:
        shown = (
            y
            for y, row in enumerate(self.rows)
            if row.line is line and row.start <= place < max(row.end, 1)
        )
        return next(shown, None)

    def lines(self) -> Iterator[TranscriptLine]:
        """Return all kept lines, including folded ones, except those of the live
        block.
        """
        return (line for part in (*self._parts, *self._below) for line in part.lines)

    def clear(self) -> None:
        self.rows.clear()
        self._parts.clear()
        self.take_below()
        self.settled = self._weight = 0
        self._left_out = False

    def sources(self) -> list[str]:
        return _sources(self._parts)

    def sources_below(self) -> list[str]:
        return _sources(self._below)

    def place_of(self, rows: list[LineRow]) -> int:
        """Return the current place of the last of these rows, which had another
        width.
        """
        places = {id(row.line): y for y, row in reversed(list(enumerate(self.rows)))}
        for line, start, _ in reversed(rows):
            if (y := places.get(id(line))) is not None:
                while (
                    y + 1 < len(self.rows)
                    and self.rows[y].line is line
                    and self.rows[y].end <= start
                ):
                    y += 1
                return y
        return 0

    def _break(self, part: BlockPart) -> None:
        rows = self._broken(part.lines)
        part.rows = len(rows)
        self.rows += rows

    def _broken(self, lines: Iterable[TranscriptLine]) -> list[LineRow]:
        return (
            [row for line in lines for row in line.rows(self.width)]
            if self.width
            else []
        )

    def _keep(self, part: BlockPart) -> None:
        last = self._parts[-1] if self._parts else None
        if (
            last is None
            or part.begins
            or len(last.source) + len(part.source) > PART_SIZE
        ):
            self._parts.append(part)
            self._weight += part.weight
        else:  # a slow stream arrives in very small parts
            self._weight -= last.weight
            last.source += part.source
            last.lines += part.lines
            last.rows += part.rows
            self._weight += last.weight

    def _end_with(self, tail: Iterable[TranscriptLine]) -> int:
        self.settled = len(self.rows)
        self.rows += self._broken(tail)
        self.rows += self._rows_below
        return self._leave_out()

    def _leave_out(self) -> int:
        removed_rows = 0
        while self._weight > self._max_rows and len(self._parts) > 1:
            part = self._parts.popleft()
            self._weight -= part.weight
            removed_rows += part.rows
            # Without its header, the rest of a block could not be opened.
            if part.fold is not None:
                part.fold.opening = Opening.ALL
        if not removed_rows:
            return 0
        if self._left_out:
            removed_rows += 1  # the previous notice
        self.rows[:removed_rows] = self._notice()
        self._left_out = True
        moved = removed_rows - 1
        self.settled -= moved
        return moved

    def _notice(self) -> list[LineRow]:
        return TranscriptLine(text="… earlier output omitted", ink="left-out").rows(
            self.width
        )[:1]


def _place_in(lines: Iterable[TranscriptLine], line: TranscriptLine) -> int | None:
    return next((place for place, one in enumerate(lines) if one is line), None)


def _blocks(parts: Iterable[BlockPart], y: int) -> list[Block]:
    """`y` is the row of the first part."""
    blocks = list[Block]()
    for part in parts:
        if part.begins and part.rows:
            blocks.append(Block(y, [part]))
        elif blocks and not part.begins:
            blocks[-1].parts.append(part)
        y += part.rows
    return blocks


def _sources(parts: Iterable[BlockPart]) -> list[str]:
    blocks: list[list[str]] = []
    for part in parts:
        if part.begins or not blocks:
            blocks.append([])
        blocks[-1].append(part.source)
    return ["".join(block) for block in blocks]
