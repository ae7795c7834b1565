"""The block that is being written, from chunks of text to parts of settled lines."""

from collections import deque
from typing import Protocol

from cdd_agent.tui.transcript.blocks import BlockKind, space_between
from cdd_agent.tui.transcript.lines import TranscriptLine
from cdd_agent.tui.transcript.markdown_stream import MarkdownLines
from cdd_agent.tui.transcript.output import OutputLines
from cdd_agent.tui.transcript.scrollback import PART_SIZE, Part
from cdd_agent.tui.transcript.thoughts import ThoughtsHeader, ThoughtsLines


class _LineMaker(Protocol):
    """Makes lines of text that arrives in chunks. Every way to cut the text gives the same lines."""

    def feed(self, text: str) -> list[TranscriptLine]:
        """The lines that are settled by this text."""

    def tail(self) -> list[TranscriptLine]:
        """How the text that is not settled looks now."""

    def finish(self) -> list[TranscriptLine]:
        """The lines that were left."""


GROWING: dict[BlockKind, type[_LineMaker]] = {
    BlockKind.MARKDOWN: MarkdownLines,
    BlockKind.OUTPUT: OutputLines,
    BlockKind.THOUGHTS: ThoughtsLines,
}


class LiveBlock:
    """Its text waits here until there is time to handle it, in parts of bounded size."""

    def __init__(self, kind: BlockKind, above: BlockKind | None) -> None:
        self.kind = kind
        self.begun = False
        """Whether any of its text has been handled."""
        self.shown = False
        """Whether any of its lines has been settled."""
        self._space = space_between(above, kind)
        self._maker = GROWING[kind]()
        self._chunks: deque[str] = deque()
        """Text that waits."""

    @property
    def header(self) -> ThoughtsHeader | None:
        """Of a block of thoughts."""
        return self._maker.header if isinstance(self._maker, ThoughtsLines) else None

    @property
    def waiting(self) -> str:
        return "".join(self._chunks)

    @property
    def is_waiting(self) -> bool:
        return bool(self._chunks)

    def write(self, text: str) -> None:
        self._chunks += (text[start : start + PART_SIZE] for start in range(0, len(text), PART_SIZE))

    def next_part(self) -> Part:
        """Handle some of the text that waits."""
        texts = list[str]()
        size = 0
        while self._chunks and size < PART_SIZE:
            texts.append(self._chunks.popleft())
            size += len(texts[-1])
        source = "".join(texts)
        part = Part(source, self._settled(self._maker.feed(source)), begins=not self.begun)
        self.begun = True
        return part

    def finish(self) -> list[Part]:
        """Handle all text that is left."""
        parts = list[Part]()
        while self._chunks:
            parts.append(self.next_part())
        if rest := self._settled(self._maker.finish()):
            parts.append(Part("", rest, begins=False))
        return parts

    def tail(self) -> list[TranscriptLine]:
        """How the handled text looks that is not settled."""
        return self._spaced(self._maker.tail())

    def _settled(self, lines: list[TranscriptLine]) -> list[TranscriptLine]:
        spaced = self._spaced(lines)
        self.shown = self.shown or bool(lines)
        return spaced

    def _spaced(self, lines: list[TranscriptLine]) -> list[TranscriptLine]:
        """The lines, below the space where they are the first of their block."""
        return [*self._space, *lines] if lines and not self.shown else lines
