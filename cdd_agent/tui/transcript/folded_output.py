"""Arriving output below a header: thoughts, or the output of a check."""

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


class FoldedOutput:
    """Output that folds.

    While folded, it settles no line before its end, because its header may change and
    other blocks may be inserted above; of endless output, only the last lines are kept.
    Once opened, it is settled line by line.
    """

    def __init__(self, header: FoldHeader, glimpse: int = 0, sample: int = 0) -> None:
        """`glimpse`: lines shown while the output arrives. `sample`: lines shown when
        it is partly opened.
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
        return [self.header, *self._below(self._take_lines())]

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
        return Foldable(
            self.header, [*self._take_lines(), *rest], "", self._sample
        ).lines()

    def _take_lines(self) -> list[TranscriptLine]:
        left_out = f"… {self._dropped:,} earlier lines omitted"
        first = [TranscriptLine(text=left_out, ink="left-out")] if self._dropped else []
        lines = [*first, *self._kept]
        self._kept.clear()
        return lines

    def _below(self, lines: Sequence[TranscriptLine]) -> list[TranscriptLine]:
        return [FoldedLine(fold=self.header.fold, line=line) for line in lines]


class ThoughtsHeader(FoldHeader, eq=False, kw_only=True):
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
    return FoldedOutput(ThoughtsHeader(fold=Fold(), ink="thoughts"))
