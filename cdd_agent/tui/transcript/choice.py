"""The block of the transcript that the user has chosen by keys."""

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
"""The effect of Enter, by how far the block is open."""


class BlockChoice:
    """Remembers the chosen block by its first line, which stays when rows move."""

    def __init__(self) -> None:
        self.line: TranscriptLine | None = None
        """The block's first line; None if no block is chosen."""
        self.row = -1
        """The number of its row; -1 if no block is chosen."""

    def choose(self, block: Block | None, row_offset: int) -> bool:
        """Choose a block, or none. False if it is chosen already."""
        line = None if block is None else block.first
        if line is self.line:
            return False
        self.line = line
        self.row = -1 if block is None else block.y + row_offset
        return True

    def replace(self, line: TranscriptLine, header: TranscriptLine) -> None:
        """Note that a block has another first line."""
        if self.line is line:
            self.line = header

    def clear(self) -> None:
        self.line, self.row = None, -1

    def next_block(
        self, blocks: Sequence[Block], step: int, bottom: int, row_offset: int
    ) -> Block | None:
        """Return the block before the chosen one (-1) or after it (1). Without a
        choice, return the last one above the row `bottom`.
        """
        if self.line is not None:
            place = min(max(self._place(blocks, row_offset) + step, 0), len(blocks) - 1)
        else:
            place = bisect_left(blocks, bottom, key=lambda block: block.y) - 1
        return blocks[place] if place >= 0 else None

    def text(self, blocks: Sequence[Block], row_offset: int) -> str:
        """Return the original text of the chosen block, folded or not."""
        if self.line is None:
            return ""
        place = self._place(blocks, row_offset)
        # the block may have been dropped
        return blocks[place].source if place >= 0 else ""

    def _place(self, blocks: Sequence[Block], row_offset: int) -> int:
        row = self.row - row_offset
        return bisect_right(blocks, row, key=lambda block: block.top) - 1

    def find_again(self, rows: Sequence[LineRow], row_offset: int) -> bool:
        """Find the row of the block after new line breaks. False if the block has been
        dropped: then nothing is chosen.
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
        """The fold of the chosen block, if it can be opened and folded."""
        return self.line.fold if isinstance(self.line, FoldHeader) else None

    @property
    def hint(self) -> str:
        """The effect of Enter on the chosen block, in words."""
        if self.line is None:
            return ""
        effect = "Nothing to open in this block"
        if self.fold is not None and self.fold.has_more:
            effect = f"Enter: {_EFFECTS[self.fold.opening]} the block"
        return f"{effect} · Ctrl+C: copy · Ctrl+↑↓: other blocks"
