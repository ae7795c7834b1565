"""The kinds of blocks, the space between them, and the lines of complete blocks."""

from collections.abc import Iterator
from enum import StrEnum

from rich.cells import cell_len

from cdd_agent.events.notices import Tone
from cdd_agent.pattern import Pattern
from cdd_agent.text.sanitize import remove_escapes, sanitize_for_display
from cdd_agent.tui.transcript.bounds import bounded
from cdd_agent.tui.transcript.lines import (
    Gutter,
    InkedText,
    ItemLine,
    Mark,
    TranscriptLine,
    blank,
)


class BlockKind(StrEnum):
    USER = "user"
    NOTE = "note"
    GOOD = "good"
    WARNING = "warning"
    ERROR = "error"
    OUTPUT = "output"
    THOUGHTS = "thoughts"
    ACTION = "action"
    """A header that folds the result."""
    MARKDOWN = "markdown"
    REPLY = "reply"
    """Markdown and edits of a model."""
    HEADING = "heading"


BLOCKS = {
    Tone.PLAIN: BlockKind.NOTE,
    Tone.QUIET: BlockKind.OUTPUT,
    Tone.HEADING: BlockKind.HEADING,
    Tone.GOOD: BlockKind.GOOD,
    Tone.WARNING: BlockKind.WARNING,
    Tone.ERROR: BlockKind.ERROR,
}


_STATUS = {BlockKind.NOTE, BlockKind.GOOD, BlockKind.WARNING, BlockKind.ERROR}
_GLYPHS = {
    BlockKind.USER: "❯ ",
    BlockKind.GOOD: "✓ ",
    BlockKind.WARNING: "! ",
    BlockKind.ERROR: "✗ ",
    BlockKind.HEADING: "── ",
}
_ITEM = Pattern(r" +(?:[^\w\s] )?(?:\d+\. )?")
"""The beginning of a list's line: indentation, sign and number."""
_INLINE_CODE = Pattern(r"(?<!`)`([^`]+)`(?!`)")


def space_between(above: BlockKind | None, below: BlockKind) -> list[TranscriptLine]:
    """Return the space between two blocks. Status blocks, outputs and actions have none
    among themselves.
    """
    together = (above is below and below in (BlockKind.OUTPUT, BlockKind.ACTION)) or {
        above,
        below,
    } <= _STATUS
    return [] if above is None or together else [TranscriptLine()]


def whole_block(kind: BlockKind, text: str) -> Iterator[TranscriptLine]:
    gutter: Gutter = ((_GLYPHS[kind], kind),) if kind in _GLYPHS else ()
    hang = blank(gutter)
    fill: InkedText = ("─", "heading") if kind is BlockKind.HEADING else (" ", "")
    for source in text.rstrip().split("\n"):
        for part in bounded(remove_escapes(source)):
            shown, marks = sanitize_for_display(part), list[Mark]()
            if kind in _STATUS:
                shown, marks = _without_backticks(shown)
                if item := _ITEM.match(shown):
                    below = (*hang, (" " * cell_len(item[0]), ""))
                    yield ItemLine(
                        text=shown,
                        marks=marks,
                        ink=f"{kind}-text",
                        gutter=gutter,
                        hang=below,
                        is_prose=True,
                        lead=item.end(),
                    )
                    gutter = hang
                    continue
            elif kind is BlockKind.HEADING:
                shown += " "
            yield TranscriptLine(
                text=shown,
                marks=marks,
                ink=f"{kind}-text",
                gutter=gutter,
                hang=hang,
                fill=fill,
                is_prose=True,
            )
            gutter = hang


def _without_backticks(text: str) -> tuple[str, list[Mark]]:
    shown, end, marks = "", 0, list[Mark]()
    for code in _INLINE_CODE.finditer(text):
        shown += text[end : code.start()]
        marks.append((len(shown), len(shown) + len(code[1]), "verbatim"))
        shown += code[1]
        end = code.end()
    return shown + text[end:], marks
