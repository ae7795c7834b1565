"""The conversation so far: blocks of text of which only the last one can still grow.

Text becomes lines once and lines become rows once; only the rows on the screen are drawn. What the widget is
given is never markup, and its control characters are shown, not obeyed.
"""

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from time import perf_counter
from typing import ClassVar, Protocol

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.cache import LRUCache
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from cdd_agent.tui.widgets.markdown_lines import LIMIT, Gutter, Ink, Line, MarkdownLines, Row, clip, harmless

MAX_LINES = 20_000
"""Rows that are kept; beyond, the oldest text is left out."""

_SLICE = 4_000
"""Characters that are handled, and later left out, together."""

_FRAME = 0.01
"""Seconds of work on new text before the screen is drawn again."""

_ESCAPE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, cursor movements
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles, links
    r"|\x1b[PX^_][^\x1b]*\x1b\\"
    r"|\x1b[ -/]*[0-Z\\^-~]"
)
_OPEN_ESCAPE = re.compile(r"\x1b[^\x07a-zA-Z]{0,40}\Z")


class BlockKind(StrEnum):
    USER = "user"
    NOTE = "note"
    GOOD = "good"
    WARNING = "warning"
    ERROR = "error"
    OUTPUT = "output"
    MARKDOWN = "markdown"
    HEADING = "heading"


_GROWING = {BlockKind.MARKDOWN, BlockKind.OUTPUT}
_CLOSE_TOGETHER = {BlockKind.NOTE, BlockKind.GOOD, BlockKind.WARNING, BlockKind.ERROR}
_GLYPHS = {
    BlockKind.USER: "❯ ",
    BlockKind.NOTE: "",
    BlockKind.GOOD: "✓ ",
    BlockKind.WARNING: "! ",
    BlockKind.ERROR: "✗ ",
    BlockKind.HEADING: "── ",
}


_INKS = {
    *(
        "user",
        "user-text",
        "note-text",
        "good",
        "good-text",
        "warning",
        "warning-text",
        "error",
        "error-text",
    ),
    *("heading", "heading-text", "output", "left-out"),
    *("title", "h1", "h2", "h3", "h4", "h5", "h6", "strong", "em", "strike", "link", "address", "verbatim"),
    *("quote", "bullet", "bar", "rule", "code", "path"),
    *("comment", "keyword", "string", "number", "name", "builtin", "deleted", "inserted"),
}


class _Source(Protocol):
    """Makes lines of text that arrives in chunks. Every way to cut the text gives the same lines."""

    def feed(self, text: str) -> list[Line]: ...

    def tail(self) -> list[Line]: ...

    def finish(self) -> list[Line]: ...


class _OutputLines:
    """What a program prints, without its colours; of a line written over and over, the last state."""

    def __init__(self) -> None:
        self._partial = ""

    def feed(self, text: str) -> list[Line]:
        *complete, partial = (self._partial + text).split("\n")
        lines = [line for text in complete for line in self._lines(_last_state(text))]
        *overlong, self._partial = _cut(_last_state(partial))
        return lines + [self._line(text) for text in overlong]

    def tail(self) -> list[Line]:
        return self._lines(self._partial) if self._partial else []

    def finish(self) -> list[Line]:
        lines = self.tail()
        self._partial = ""
        return lines

    def _lines(self, text: str) -> list[Line]:
        return [self._line(part) for part in _cut(text)]

    def _line(self, text: str) -> Line:
        bar = (("│ ", "bar"),)
        text = harmless(_ESCAPE.sub("", text.removesuffix("\r")).expandtabs(8))
        return Line(text=text, ink="output", gutter=bar, hang=bar)


def _last_state(text: str) -> str:
    """What is left on a terminal's line after carriage returns, but for one that may end the line."""
    body = text.removesuffix("\r")
    return body.rpartition("\r")[2] + text[len(body) :]


def _cut(text: str) -> Iterator[str]:
    """The text in parts of bounded length, none ending inside an escape sequence."""
    while len(text) > LIMIT:
        escape = _OPEN_ESCAPE.search(text, LIMIT - 41, LIMIT)
        cut = escape.start() if escape else LIMIT
        yield text[:cut]
        text = text[cut:]
    yield text


def _plain_lines(kind: BlockKind, text: str) -> Iterator[Line]:
    """The lines of a kind that does not grow."""
    glyph = _GLYPHS[kind]
    gutter: Gutter = ((glyph, kind),) if glyph else ()
    hang: Gutter = ((" " * len(glyph), ""),) if glyph else ()
    heading = kind is BlockKind.HEADING
    fill = ("─", "heading") if heading else (" ", "")
    for source in text.rstrip().split("\n"):
        for part in _cut(_ESCAPE.sub("", source.removesuffix("\r"))):
            shown = harmless(part) + (" " if heading else "")
            yield Line(text=shown, ink=f"{kind}-text", gutter=gutter, hang=hang, fill=fill)
            gutter = hang


@dataclass(slots=True)
class _Part:
    """Some text of a block that was settled together; the unit in which old text is left out."""

    source: str
    lines: list[Line]
    begins: bool
    """Whether it is the first of its block."""
    rows: int = 0


@dataclass(slots=True)
class _Live:
    kind: BlockKind
    source: _Source
    begun: bool = False
    """Whether any of its text has been handled."""
    shown: bool = False
    """Whether any of its lines has been settled."""


class Transcript(ScrollView, can_focus=True):
    """An append-only log. It stays at its end while text arrives, unless the person has scrolled up."""

    ALLOW_SELECT = True
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"transcript--{ink}" for ink in _INKS}
    DEFAULT_CSS = """
    Transcript {
        background: $background;
        color: $foreground;
        padding: 0 1;
        overflow-x: hidden;
        overflow-y: auto;
        scrollbar-gutter: stable;
        scrollbar-size-vertical: 1;
        & > .transcript--user { color: $text-accent; text-style: bold; }
        & > .transcript--user-text { text-style: bold; }
        & > .transcript--good { color: $text-success; text-style: bold; }
        & > .transcript--warning, & > .transcript--warning-text { color: $text-warning; }
        & > .transcript--error, & > .transcript--error-text { color: $text-error; }
        & > .transcript--heading { color: $primary; }
        & > .transcript--heading-text { color: $text-primary; text-style: bold; }
        & > .transcript--output { color: $text-muted; }
        & > .transcript--title, & > .transcript--strong { text-style: bold; }
        & > .transcript--h1 { color: $text-primary; text-style: bold underline; }
        & > .transcript--h2 { color: $text-primary; }
        & > .transcript--em { text-style: italic; }
        & > .transcript--strike { text-style: strike; }
        & > .transcript--link { color: $text-primary; text-style: underline; }
        & > .transcript--verbatim { color: $text-warning; background: $surface; }
        & > .transcript--bullet { color: $text-accent; }
        & > .transcript--bar, & > .transcript--rule { color: $foreground 35%; }
        & > .transcript--quote, & > .transcript--address, & > .transcript--left-out { color: $text-muted; }
        & > .transcript--code { background: $surface; }
        & > .transcript--path { color: $text-muted; text-style: italic; }
        & > .transcript--comment { color: $text-muted; text-style: italic; }
        & > .transcript--keyword { color: $text-accent; }
        & > .transcript--string, & > .transcript--inserted { color: $text-success; }
        & > .transcript--number { color: $text-warning; }
        & > .transcript--name { color: $text-primary; text-style: bold; }
        & > .transcript--builtin { color: $text-secondary; }
        & > .transcript--deleted { color: $text-error; }
    }
    """

    def __init__(
        self,
        *,
        id: str | None = None,  # noqa: A002  # Textual's name
        classes: str | None = None,
        max_lines: int = MAX_LINES,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._max_lines = max_lines
        self._parts: deque[_Part] = deque()
        self._rows: list[Row] = []
        self._settled_rows = 0
        self._width = 0
        """Of the rows; 0 until there is a place on the screen."""
        self._live: _Live | None = None
        self._last_kind: BlockKind | None = None
        self._chunks: deque[str] = deque()
        """Text of the live block that has not been handled yet."""
        self._drawing_is_due = False
        self._following = True
        self._left_out = False
        self._row_offset = 0
        """What to add to a row's place to get a number that stays when old rows are left out."""
        self._styles_of_inks: dict[Ink, Style] = {}
        self._strips: LRUCache[int, Strip] = LRUCache(512)
        self._shows_unfinal = False

    # --- content

    def add(self, kind: BlockKind, text: str) -> None:
        """Append a block that is complete. Empty text is no block."""
        self.settle()
        if kind in _GROWING:
            self.begin(kind)
            self._queue(text)
            self.settle()
        elif text.strip():
            lines = [*self._space_before(kind), *_plain_lines(kind, text)]
            self._last_kind = kind
            self._place([_Part(text, lines, begins=True)], [])

    def begin(self, kind: BlockKind) -> None:
        """Open a block that grows, of kind MARKDOWN or OUTPUT."""
        if kind not in _GROWING:
            raise ValueError(f"a block of kind {kind} cannot grow")
        self.settle()
        self._live = _Live(kind, MarkdownLines() if kind is BlockKind.MARKDOWN else _OutputLines())

    def write(self, text: str) -> None:
        """Add to the live block; opens a Markdown block if there is none. It is drawn with the next frame."""
        if self._live is None:
            self.begin(BlockKind.MARKDOWN)
        self._queue(text)
        if not self._drawing_is_due and self.is_mounted:
            self._drawing_is_due = self.call_after_refresh(self._draw_chunks)

    def settle(self) -> None:
        """Close the live block, if there is one."""
        if (live := self._live) is None:
            return
        parts = []
        while self._chunks:
            parts.append(self._next_part(live))
        if rest := self._spaced(live, live.source.finish()):
            parts.append(_Part("", rest, begins=False))
        self._live = None
        self._place(parts, [])

    def clear(self) -> None:
        self._live = self._last_kind = None
        self._chunks.clear()
        self._parts.clear()
        self._rows.clear()
        self._strips.clear()
        self._settled_rows = self._row_offset = 0
        self._left_out, self._following = False, True
        self._show(0, following=True)

    def plain_text(self) -> str:
        """The sources of all blocks that are kept, as they were given."""
        blocks: list[list[str]] = []
        for part in self._parts:
            if part.begins or not blocks:
                blocks.append([])
            blocks[-1].append(part.source)
        if self._chunks:
            if self._live is None or not self._live.begun:
                blocks.append([])
            blocks[-1] += self._chunks
        return "\n".join("".join(block) for block in blocks)

    def _queue(self, text: str) -> None:
        self._chunks += (text[start : start + _SLICE] for start in range(0, len(text), _SLICE))

    def _next_part(self, live: _Live) -> _Part:
        texts = list[str]()
        size = 0
        while self._chunks and size < _SLICE:
            texts.append(self._chunks.popleft())
            size += len(texts[-1])
        source = "".join(texts)
        part = _Part(source, self._spaced(live, live.source.feed(source)), begins=not live.begun)
        live.begun = True
        return part

    def _space_before(self, kind: BlockKind) -> list[Line]:
        last = self._last_kind
        together = kind is last is BlockKind.OUTPUT or {kind, last} <= _CLOSE_TOGETHER
        return [] if last is None or together else [Line()]

    def _spaced(self, live: _Live, lines: list[Line], *, preview: bool = False) -> list[Line]:
        """The lines, after a blank one where they are the first of their block."""
        if live.shown or not lines:
            return lines
        spaced = self._space_before(live.kind) + lines
        if not preview:
            live.shown, self._last_kind = True, live.kind
        return spaced

    def _draw_chunks(self) -> None:
        self._drawing_is_due = False
        if (live := self._live) is None or not self._chunks:
            return
        deadline = perf_counter() + _FRAME
        parts = []
        while self._chunks and perf_counter() < deadline:
            parts.append(self._next_part(live))
        self._place(parts, self._tail())
        if self._chunks:
            self._drawing_is_due = self.call_after_refresh(self._draw_chunks)

    def _tail(self) -> list[Line]:
        return self._spaced(self._live, self._live.source.tail(), preview=True) if self._live else []

    # --- rows

    def _place(self, parts: Iterable[_Part], tail: Iterable[Line]) -> None:
        """Put new parts and then the unsettled lines where the unsettled lines were."""
        following = self._is_following()
        first = self._settled_rows
        del self._rows[first:]
        for part in parts:
            self._break_part(part)
            self._keep(part)
        self._settled_rows = len(self._rows)
        self._rows += self._broken(tail)
        self._show(first, following=following)

    def _broken(self, lines: Iterable[Line]) -> list[Row]:
        return [row for line in lines for row in line.rows(self._width)] if self._width else []

    def _break_part(self, part: _Part) -> None:
        rows = self._broken(part.lines)
        part.rows = len(rows)
        self._rows += rows

    def _keep(self, part: _Part) -> None:
        last = self._parts[-1] if self._parts else None
        if last is None or part.begins or len(last.source) + len(part.source) > _SLICE:
            self._parts.append(part)
        else:  # a slow stream comes in very small parts
            last.source += part.source
            last.lines += part.lines
            last.rows += part.rows

    def _leave_out(self) -> int:
        """Drop the oldest parts beyond the limit; returns by how many rows the rest moved up."""
        excess = self._settled_rows - self._max_lines
        gone = 0
        while gone < excess and len(self._parts) > 1:
            gone += self._parts.popleft().rows
        if not gone:
            return 0
        if self._left_out:
            gone += 1
        self._rows[:gone] = self._notice()
        self._left_out = True
        moved = gone - 1
        self._settled_rows -= moved
        self._row_offset += moved
        self._strips.discard(self._row_offset)
        return moved

    def _notice(self) -> list[Row]:
        return Line(text="… earlier output is left out", ink="left-out").rows(self._width)[:1]

    def _show(self, first: int, *, following: bool) -> None:
        """Tell the screen that the rows from `first` on are new."""
        moved = self._leave_out()
        first = max(first - moved, 0)
        self.virtual_size = Size(self._width, len(self._rows))
        if following:
            self.scroll_end(animate=False, immediate=True, force=True, x_axis=False)
        elif moved:
            self.scroll_to(y=max(self.scroll_target_y - moved, 0), animate=False, force=True)
        top = 0 if self._shows_unfinal else max(first - self.scroll_offset.y, 0)
        if top < self.size.height:
            self._shows_unfinal = False
            self.refresh(Region(0, top, self.size.width, self.size.height - top))

    def _is_following(self) -> bool:
        # The target, not the offset: a person's way up begins with an animation.
        return self._following or self.scroll_target_y >= self.max_scroll_y

    def watch_scroll_target_y(self) -> None:
        self._following = self.scroll_target_y >= self.max_scroll_y

    def on_resize(self, event: events.Resize) -> None:
        following = self._is_following()
        if (width := self.scrollable_content_region.width) != self._width:
            self._break_again(width, following)
        elif following:
            self.scroll_end(animate=False, immediate=True, force=True, x_axis=False)

    def _break_again(self, width: int, following: bool) -> None:
        above = self._rows[: self.scroll_offset.y + 1]
        self._width = width
        self._strips.clear()
        self._rows = self._notice() if self._left_out else []
        for part in self._parts:
            self._break_part(part)
        self._settled_rows = len(self._rows)
        self._rows += self._broken(self._tail())
        self._show(0, following=following)
        if not following:
            self.scroll_to(y=self._place_of(above), animate=False, force=True)
        if self._chunks and not self._drawing_is_due:  # written before there was a place on the screen
            self._drawing_is_due = self.call_after_refresh(self._draw_chunks)

    def _place_of(self, above: list[Row]) -> int:
        """Where the last of these rows, which were broken for another width, is now."""
        places = {id(row.line): y for y, row in reversed(list(enumerate(self._rows)))}
        for line, start, _ in reversed(above):
            if (y := places.get(id(line))) is not None:
                while y + 1 < len(self._rows) and self._rows[y].line is line and self._rows[y].end <= start:
                    y += 1
                return y
        return 0

    # --- drawing

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._styles_of_inks.clear()
        self._strips.clear()

    def render_line(self, y: int) -> Strip:
        y += self.scroll_offset.y
        if y >= len(self._rows):
            return Strip.blank(self._width, self._style(""))
        number = y + self._row_offset
        row = self._rows[y]
        selection = self.text_selection
        span = selection.get_span(number) if selection is not None else None
        if span is not None:
            return self._strip(row, number, span)
        if (strip := self._strips.get(number)) is None or y >= self._settled_rows:
            strip = self._strip(row, number, None)
            if y < self._settled_rows and row.line.final:
                self._strips[number] = strip
            else:
                self._shows_unfinal = True
        return strip

    def _strip(self, row: Row, number: int, span: tuple[int, int] | None) -> Strip:
        line, start, end = row
        gutter = Strip(self._gutter(line.hang if start else line.gutter, number))
        text = Strip(self._text(row, span)).apply_offsets(0, number)
        space = self._width - gutter.cell_length - text.cell_length
        char, ink = line.fill
        if char != " " and end < len(line.text):
            char, ink = " ", ""
        place = Segment("", Style.from_meta({"offset": (end - start, number)}))  # where the row's end can be selected
        fill = Strip([place, Segment(char * max(space, 0), self._style(ink))])
        strip = Strip.join([gutter, text, fill])
        return strip if space >= 0 else strip.crop(0, self._width)

    def _gutter(self, gutter: Gutter, number: int) -> Iterator[Segment]:
        """Every cell leads to the beginning of the text, so that a selection holds no gutters."""
        place = Style.from_meta({"offset": (0, number)})
        cells = [Segment(char, self._style(ink) + place) for text, ink in gutter for char in text]
        yield from cells[: max(self._width - 4, 0)]

    def _text(self, row: Row, span: tuple[int, int] | None) -> Iterator[Segment]:
        line, start, end = row
        if span is None:
            yield from self._segments(line, start, end)
            return
        first = min(start + span[0], end)
        last = end if span[1] == -1 else min(start + span[1], end)
        selected = self.screen.get_component_rich_style("screen--selection")
        yield from self._segments(line, start, first)
        yield from Segment.apply_style(self._segments(line, first, last), post_style=selected)
        yield from self._segments(line, last, end)

    def _segments(self, line: Line, start: int, end: int) -> Iterator[Segment]:
        for begin, stop, ink in clip(line.inks(), start, end):
            if start < begin:
                yield Segment(line.text[start:begin], self._style(line.ink))
            yield Segment(line.text[begin:stop], self._style(f"{line.ink} {ink}"))
            start = stop
        if start < end:
            yield Segment(line.text[start:end], self._style(line.ink))

    def _style(self, ink: Ink) -> Style:
        if (style := self._styles_of_inks.get(ink)) is None:
            style = self.get_visual_style(*(f"transcript--{name}" for name in ink.split())).rich_style
            self._styles_of_inks[ink] = style
        return style

    # --- selection

    def get_selection(self, selection: Selection) -> tuple[str, str]:
        """The selected text without gutters, and without the breaks that only the width has made."""
        start, end = selection
        first = max(start.y - self._row_offset, 0) if start else 0
        last = min(end.y - self._row_offset + 1, len(self._rows)) if end else len(self._rows)
        texts = list[str]()
        for y in range(first, last):
            row = self._rows[y]
            if y > first:
                above = self._rows[y - 1]
                texts.append(row.line.text[above.end : row.start] if above.line is row.line else "\n")
            begin, stop = selection.get_span(y + self._row_offset) or (0, 0)
            text = row.line.text[row.start : row.end]
            texts.append(text[begin : None if stop == -1 else stop])
        return "".join(texts), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        self.refresh()


if __name__ == "__main__":
    from asyncio import sleep

    from textual.app import App, ComposeResult

    SAMPLE = """\
# A small change

The slug of a title is made **once**, when the ticket is created; see `Ticket.slug`. Names in other scripts,
such as 票据 or *élan*, keep their letters.

```python:src/slugs.py
def slug(title: str) -> str:
    \"\"\"Lower case, words joined by hyphens.\"\"\"
    return "-".join(title.lower().split())  # one rule
```

1. Run the tests:
   - `tests/test_slugs.py`
   - all others
2. Look at the [docs](https://example.org/slugs).

> A slug never changes later.

| case | before | after |
|---|---|--:|
| empty | error | 1 |
| two words | `two words` | 12 |
"""

    class Demo(App[None]):
        def compose(self) -> ComposeResult:
            yield Transcript()

        def on_mount(self) -> None:
            self.run_worker(self.talk())

        async def talk(self) -> None:
            transcript = self.query_one(Transcript)
            transcript.add(BlockKind.USER, "/run slugs")
            transcript.add(BlockKind.HEADING, "Step 1 of 2: make the slug")
            for word in re.split(r"(?<=\s)", SAMPLE):
                transcript.write(word)
                await sleep(0.03)
            transcript.add(
                BlockKind.OUTPUT, "tests/test_slugs.py ....                        [100%]\n4 passed in 0.02s"
            )
            transcript.add(BlockKind.GOOD, "Verified: 4 tests passed.")
            transcript.add(BlockKind.WARNING, "One file has changes that are not committed.")
            transcript.add(BlockKind.ERROR, "Step 2 failed: the model's reply holds no change.")
            transcript.add(BlockKind.NOTE, "Try again with /retry.")

    Demo().run()
