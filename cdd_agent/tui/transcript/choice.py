from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from cdd_agent.tui.transcript.folds import Fold, FoldHeader, Opening
from cdd_agent.tui.transcript.lines import LineRow, TranscriptLine
from cdd_agent.tui.transcript.scrollback import Block

_EFFECTS = {
    Opening.HEADER: "open",
    Opening.SOME: "open all of",
    Opening.ALL: "fold",
}


class BlockChoice:
    """Remembers the block by its first line, which stays when rows move."""

    def __init__(self) -> None:
        self.line: TranscriptLine | None = None
        self.row = -1
        """The row of `line`; -1 without a selection."""

    def choose(self, block: Block | None, row_offset: int) -> bool:
        """Select a block, or none. False if nothing changes."""
        line = None if block is None else block.first
        if line is self.line:
            return False
        self.line = line
        self.row = -1 if block is None else block.y + row_offset
        return True

    def replace(self, line: TranscriptLine, header: TranscriptLine) -> None:
        if self.line is line:
            self.line = header

    def clear(self) -> None:
        self.line, self.row = None, -1

    def next_block(
        self, blocks: Sequence[Block], step: int, bottom: int, row_offset: int
    ) -> Block | None:
        """Return the block before the selected one (-1) or after it (1). Without a
        selection, return the last one above the row `bottom`.
        """
        if self.line is not None:
            place = min(max(self._place(blocks, row_offset) + step, 0), len(blocks) - 1)
        else:
            place = bisect_left(blocks, bottom, key=lambda block: block.y) - 1
        return blocks[place] if place >= 0 else None

    def text(self, blocks: Sequence[Block], row_offset: int) -> str:
        if self.line is None:
            return ""
        place = self._place(blocks, row_offset)
        # The block may have been dropped.
        return blocks[place].source if place >= 0 else ""

    def _place(self, blocks: Sequence[Block], row_offset: int) -> int:
        row = self.row - row_offset
        return bisect_right(blocks, row, key=lambda block: block.top) - 1

    def find_again(self, rows: Sequence[LineRow], row_offset: int) -> bool:
        """Update the row after new line breaks. False if the block was dropped, so that
        nothing is selected.
        """
        if self.line is None:
            return True
        line = next(iter(self.line.laid_out()), self.line)
        for number, row in enumerate(rows, row_offset):
            if row.line is line:
                self.row = number
                return True
        self.clear()
        return False

    @property
    def fold(self) -> Fold | None:
        return self.line.fold if isinstance(self.line, FoldHeader) else None

    @property
    def hint(self) -> str:
        if self.line is None:
            return ""
        effect = "Nothing to open in this block"
        if self.fold is not None and self.fold.has_more:
            effect = f"Enter: {_EFFECTS[self.fold.opening]} the block"
        return f"{effect} · Ctrl+C: copy · Ctrl+↑↓: other blocks"
