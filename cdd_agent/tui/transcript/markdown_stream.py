"""Makes lines from Markdown that arrives in chunks. Final lines are settled."""

from cdd_agent.pattern import Pattern
from cdd_agent.tui.transcript.bounds import MAX_UNSETTLED
from cdd_agent.tui.transcript.code import CodeFence
from cdd_agent.tui.transcript.lines import TranscriptLine
from cdd_agent.tui.transcript.markdown import markdown_lines

_PEEK = 1_000
"""Characters that suffice to recognise the kind of a line."""

_LONG_LIST = 2_000
"""Characters after which a list is settled before its next item."""

_ITEM = Pattern(r" {0,3}(?:[-*+]|\d{1,9}[.)])(?: {1,4}(?! )| |\n)")
_HEADING = Pattern(r"#{1,6}[ \n]")
_TABLE_HEAD = Pattern(r"[^\n]*\|[^\n]*\n[ |:-]*-[ |:-]*\n")
_UNDECIDED = Pattern(r"[\s\-=_#>*+`~|:.)\d]*")
"""The undecided start of a line (is `-` an item or a rule?). Showing it would make text
jump.
"""


class MarkdownLines:
    """Returns final lines once; `tail` shows the rest.

    Only line ends divide the source, so its chunks do not affect the lines. The source
    is either in a fence, whose lines are settled one by one, or in another block, which
    is parsed as a whole.
    """

    def __init__(self) -> None:
        self._settled: list[TranscriptLine] = []
        self._partial = ""
        self._mid_line = False
        """True if the start of the next text's line was handled."""
        self._fence: CodeFence | None = None
        self._block = ""
        self._after_blank = False
        self._item_indent = 0
        """The column of the item's text, if the block ends in a list."""
        self._item_start = 0
        """The index of the last item in the block."""
        self._gap = False
        """True if another block precedes this one."""
        self._continued = False
        """True if the block is the rest of a cut block."""

    def feed(self, text: str) -> list[TranscriptLine]:
        """Add a chunk, and return the lines that it settles."""
        *lines, self._partial = (self._partial + text).split("\n")
        for line in lines:
            self._take(line.removesuffix("\r") + "\n")
        if len(self._partial) >= _PEEK:
            self._take(self._partial)
            self._partial = ""
        return self._hand_out()

    def finish(self) -> list[TranscriptLine]:
        if self._partial or self._mid_line:
            self._take(self._partial.removesuffix("\r") + "\n")
            self._partial = ""
        self._settle_block()
        self._close_fence()
        return self._hand_out()

    def separate(self) -> None:
        """Leave a blank line above the next block, after a block of another kind."""
        self._gap = True

    def tail(self, more: str = "") -> list[TranscriptLine]:
        """Return the current lines of the unsettled part, followed by `more`."""
        rest = self._partial.removesuffix("\r") + more
        if self._fence is not None:
            return self._fence.tail(rest)
        source = self._block + ("" if _UNDECIDED.fullmatch(rest) else rest)
        return self._block_lines(source)

    def _hand_out(self) -> list[TranscriptLine]:
        lines, self._settled = self._settled, []
        return lines

    def _take(self, line: str) -> None:
        if self._mid_line or not self._begins(line[:_PEEK]):
            if self._fence is not None:
                self._settled += self._fence.take(line, mid_line=self._mid_line)
            else:
                self._block += line
                self._cut_block()
        self._mid_line = not line.endswith("\n")

    def _begins(self, line: str) -> bool:
        """Settle the block that ends before this line. True if the line itself is
        invisible.
        """
        if self._fence is not None:
            closed = self._fence.is_closed_by(line)
            if closed:
                self._close_fence()
            return closed
        if not line.strip():
            self._after_blank = True
            return not self._block
        indent = len(line) - len(line.lstrip(" "))
        inside_item = 0 < self._item_indent <= indent
        fence = None if inside_item else CodeFence.opened_by(line)
        item = None if inside_item else _ITEM.match(line)
        if fence or (not inside_item and self._ends_block(line, indent, bool(item))):
            self._settle_block()
        self._after_blank = False
        if fence:
            self._open_fence(fence)
        elif item:
            if len(self._block) > _LONG_LIST:
                self._cut_at(len(self._block))
            self._item_indent = item.end()
            self._item_start = len(self._block)
        return bool(fence)

    def _ends_block(self, line: str, indent: int, item: bool) -> bool:
        if _HEADING.match(line):
            return True
        return self._after_blank and indent < 4 and not (item and self._item_indent)

    # --- blocks that are parsed as a whole

    def _settle_block(self) -> None:
        self._settled += self._block_lines(self._block)
        self._gap = self._gap or bool(self._block.strip())
        self._continued = False
        self._block = ""
        self._item_indent = self._item_start = 0

    def _block_lines(self, source: str) -> list[TranscriptLine]:
        lines = markdown_lines(source) if source.strip() else []
        return (
            [TranscriptLine(), *lines]
            if self._gap and not self._continued and lines
            else lines
        )

    def _cut_block(self) -> None:
        """Settle the beginning of an overlong block, if possible before an item, a line
        or a word.
        """
        while len(block := self._block) > MAX_UNSETTLED:
            after_line = block.rfind("\n", 0, MAX_UNSETTLED) + 1
            after_word = block.rfind(" ", MAX_UNSETTLED // 2, MAX_UNSETTLED) + 1
            cut = self._item_start or after_line or after_word or MAX_UNSETTLED
            table_head = _TABLE_HEAD.match(block, 0, MAX_UNSETTLED // 4)
            self._cut_at(
                cut,
                again=table_head[0] if table_head and table_head.end() < cut else "",
            )

    def _cut_at(self, cut: int, again: str = "") -> None:
        """Settle the block up to an index. Repeat `again` before the rest."""
        beginning, rest, item_indent = (
            self._block[:cut],
            self._block[cut:],
            self._item_indent,
        )
        self._block = beginning
        self._settle_block()
        self._block, self._item_indent = again + rest, item_indent
        self._continued = not beginning.endswith("\n\n")

    # --- fences

    def _open_fence(self, fence: CodeFence) -> None:
        self._fence = fence
        if self._gap:
            self._settled.append(TranscriptLine())
        self._settled += fence.title()

    def _close_fence(self) -> None:
        if self._fence is not None:
            self._fence.close()
            self._fence, self._gap = None, True
