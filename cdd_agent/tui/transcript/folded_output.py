"""Output below a header while it arrives: thoughts of a model, or output of a check."""

from collections import deque
from collections.abc import Sequence

from cdd_agent.tui.transcript.folds import (
    Fold,
    Foldable,
    FoldedLine,
    FoldHeader,
    Opening,
)
from cdd_agent.tui.transcript.lines import TranscriptLine
from cdd_agent.tui.transcript.output import OutputLines

MOST_LINES = 5_000
"""The most lines that are kept of folded output while it arrives."""


class FoldedOutput:
    """Output that folds. While it is folded, no line is settled before the end: the
    header may change, other blocks may come above, and of endless output only the last
    lines are kept. Once opened, it is settled line by line.
    """

    def __init__(self, header: FoldHeader, glimpse: int = 0, sample: int = 0) -> None:
        """Folded output. `glimpse` lines are shown while it arrives, `sample` lines
        when it is opened a little.
        """
        self.header = header
        self._glimpse, self._sample = glimpse, sample
        self._output = OutputLines()
        self._kept: deque[TranscriptLine] = deque(maxlen=MOST_LINES)
        self._dropped = 0
        self._is_settling = False

    def feed(self, text: str) -> list[TranscriptLine]:
        lines = self._output.feed(text)
        if self._is_settling:
            return self._below(lines)
        self._dropped += max(len(self._kept) + len(lines) - MOST_LINES, 0)
        self._kept += lines
        if self.header.fold.opening is not Opening.ALL:
            return []
        self._is_settling = True
        return [self.header, *self._below(self._taken())]

    def tail(self) -> list[TranscriptLine]:
        rest = self._output.tail()
        if self._is_settling:
            return self._below(rest)
        shown = [*self._kept, *rest]
        if self.header.fold.opening is not Opening.ALL:
            shown = shown[max(len(shown) - self._glimpse, 0) :]
        return [self.header, *shown]

    def finish(self) -> list[TranscriptLine]:
        rest = self._output.finish()
        if self._is_settling:
            return self._below(rest)
        return Foldable(self.header, [*self._taken(), *rest], "", self._sample).lines()

    def _taken(self) -> list[TranscriptLine]:
        left_out = f"… {self._dropped:,} earlier lines omitted"
        first = [TranscriptLine(text=left_out, ink="left-out")] if self._dropped else []
        lines = [*first, *self._kept]
        self._kept.clear()
        return lines

    def _below(self, lines: Sequence[TranscriptLine]) -> list[TranscriptLine]:
        return [FoldedLine(fold=self.header.fold, line=line) for line in lines]


class ThoughtsHeader(FoldHeader, eq=False, kw_only=True):
    """Shows the amount of thoughts."""

    title: str = ""
    measure: str = ""
    is_over: bool = False

    def lay_out(self, width: int) -> None:
        hint = (
            ""
            if self.is_over
            else f"  Ctrl+T {'folds' if self.fold.opening else 'opens'}"
        )
        self.title = (
            f"{'Thought for' if self.is_over else 'Thinking …'} {self.measure}{hint}"
        )
        FoldHeader.lay_out(self, width)


def thoughts() -> FoldedOutput:
    """Return the block of a model's thoughts."""
    return FoldedOutput(ThoughtsHeader(fold=Fold(), ink="thoughts"))
