"""Turns the text chunks of a growing block into parts of settled lines."""

from collections import deque
from collections.abc import Callable
from typing import Protocol

from cdd_agent.tui.transcript.blocks import BlockKind, space_between
from cdd_agent.tui.transcript.diff import DiffLayout
from cdd_agent.tui.transcript.folded_output import FoldedOutput, thoughts
from cdd_agent.tui.transcript.folds import FoldHeader
from cdd_agent.tui.transcript.lines import TranscriptLine
from cdd_agent.tui.transcript.markdown_stream import MarkdownLines
from cdd_agent.tui.transcript.output import OutputLines
from cdd_agent.tui.transcript.reply import ReplyDrawer
from cdd_agent.tui.transcript.scrollback import PART_SIZE, BlockPart

MOST_HELD = 1_000_000
"""Maximum characters kept for copying while no line is settled."""


class LineMaker(Protocol):
    """Makes lines from chunks of text. The chunking does not affect the lines."""

    def feed(self, text: str) -> list[TranscriptLine]:
        """Return the lines that this text settles."""

    def tail(self) -> list[TranscriptLine]:
        """Return the current lines of the unsettled text."""

    def finish(self) -> list[TranscriptLine]:
        """Return the remaining lines."""


GROWING: dict[BlockKind, Callable[[], LineMaker]] = {
    BlockKind.MARKDOWN: MarkdownLines,
    BlockKind.REPLY: lambda: ReplyDrawer(DiffLayout()),
    BlockKind.OUTPUT: OutputLines,
    BlockKind.THOUGHTS: thoughts,
}


class LiveBlock:
    """The growing block. Its text is queued, and handled in limited parts."""

    def __init__(
        self, kind: BlockKind, above: BlockKind | None, maker: LineMaker | None = None
    ) -> None:
        self.kind = kind
        self.begun = False
        self.shown = False
        self.first_line: TranscriptLine | None = None
        self._space = space_between(above, kind)
        self._maker = maker or GROWING[kind]()
        self._chunks: deque[str] = deque()
        self._held: deque[str] = deque()
        self._held_size = 0

    def comes_after(self, above: BlockKind) -> None:
        self._space = space_between(above, self.kind)

    @property
    def header(self) -> FoldHeader | None:
        return self._maker.header if isinstance(self._maker, FoldedOutput) else None

    @property
    def reply(self) -> ReplyDrawer | None:
        return self._maker if isinstance(self._maker, ReplyDrawer) else None

    @property
    def rest(self) -> str:
        """The text outside the parts."""
        return "".join((*self._held, *self._chunks))

    @property
    def is_waiting(self) -> bool:
        return bool(self._chunks)

    def write(self, text: str) -> None:
        self._chunks += (
            text[start : start + PART_SIZE] for start in range(0, len(text), PART_SIZE)
        )

    def next_part(self) -> BlockPart | None:
        """Handle some of the queued text. None if it settles no line."""
        texts = list[str]()
        size = 0
        while self._chunks and size < PART_SIZE:
            texts.append(self._chunks.popleft())
            size += len(texts[-1])
        source = "".join(texts)
        lines = self._settled(self._maker.feed(source))
        self._held.append(source)
        self._held_size += size
        while self._held_size > MOST_HELD:
            self._held_size -= len(self._held.popleft())
        return self._part(lines) if lines else None

    def finish(self) -> list[BlockPart]:
        parts = list[BlockPart]()
        while self._chunks:
            parts += filter(None, (self.next_part(),))
        rest = self._settled(self._maker.finish())
        return [*parts, self._part(rest)] if rest or self._held else parts

    def _part(self, lines: list[TranscriptLine]) -> BlockPart:
        fold = self.header.fold if self.header is not None else None
        part = BlockPart("".join(self._held), lines, begins=not self.begun, fold=fold)
        self._held.clear()
        self._held_size, self.begun = 0, True
        return part

    def tail(self) -> list[TranscriptLine]:
        """Return the lines of handled text that is not settled."""
        return self._spaced(self._maker.tail())

    def _settled(self, lines: list[TranscriptLine]) -> list[TranscriptLine]:
        spaced = self._spaced(lines)
        if lines and not self.shown:
            self.first_line, self.shown = lines[0], True
        return spaced

    def _spaced(self, lines: list[TranscriptLine]) -> list[TranscriptLine]:
        """Return the lines, with the space above the block in front of its first
        ones.
        """
        return [*self._space, *lines] if lines and not self.shown else lines
