"""Thoughts: one line that says how much was thought, and below it, only while it is opened, what."""

from dataclasses import dataclass

from cdd_agent.tui.transcript.lines import Row, TranscriptLine
from cdd_agent.tui.transcript.output import OutputLines

_LONGEST_HEADER = 200
"""Characters: its text grows after its row was made."""


@dataclass(slots=True, eq=False, kw_only=True)
class ThoughtsHeader(TranscriptLine):
    """The line that stays. It is always one row."""

    measure: str = ""
    is_open: bool = False
    is_over: bool = False

    @property
    def final(self) -> bool:
        return self.is_over

    def update(self, measure: str = "", *, is_open: bool | None = None, is_over: bool | None = None) -> None:
        """Take over what is given: how much was thought, in words; and its states."""
        self.measure = measure or self.measure
        self.is_open = self.is_open if is_open is None else is_open
        self.is_over = self.is_over if is_over is None else is_over
        hint = "" if self.is_over else f"  Ctrl+T {'folds' if self.is_open else 'opens'}"
        what = "Thought for" if self.is_over else "Thinking …"
        self.text = f"{'▾' if self.is_open else '▸'} {what} {self.measure}{hint}"

    def rows(self, width: int) -> list[Row]:
        del width
        return [Row(self, 0, _LONGEST_HEADER)]


@dataclass(slots=True, eq=False, kw_only=True)
class _Thought(TranscriptLine):
    """A line of thoughts, which has rows only while they are opened."""

    header: ThoughtsHeader
    line: TranscriptLine

    def rows(self, width: int) -> list[Row]:
        return self.line.rows(width) if self.header.is_open else []


class ThoughtsLines:
    """Makes lines of thoughts that arrive in chunks."""

    def __init__(self) -> None:
        self.header = ThoughtsHeader(ink="thoughts")
        self._thoughts = OutputLines()
        self._has_begun = False

    def feed(self, text: str) -> list[TranscriptLine]:
        lines = self._foldable(self._thoughts.feed(text))
        if self._has_begun:
            return lines
        self._has_begun = True
        return [self.header, *lines]

    def tail(self) -> list[TranscriptLine]:
        return self._foldable(self._thoughts.tail())

    def finish(self) -> list[TranscriptLine]:
        return self._foldable(self._thoughts.finish())

    def _foldable(self, lines: list[TranscriptLine]) -> list[TranscriptLine]:
        return [_Thought(header=self.header, line=line) for line in lines]
