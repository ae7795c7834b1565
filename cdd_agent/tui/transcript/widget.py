"""The conversation so far: blocks of text of which only the last one can still grow.

Text becomes lines once and lines become rows once; only the rows on the screen are drawn. What the widget is
given is never markup, and its control characters are shown, not obeyed.
"""

from collections.abc import Iterable
from time import perf_counter
from typing import ClassVar

from textual.cache import LRUCache
from textual.events import Click
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from cdd_agent.tui.faults import GuardedWidget
from cdd_agent.tui.transcript.blocks import BlockKind, space_between, whole_block
from cdd_agent.tui.transcript.lines import TranscriptLine
from cdd_agent.tui.transcript.live import GROWING, LiveBlock
from cdd_agent.tui.transcript.looks import LOOKS, LOOKS_CSS, component_class
from cdd_agent.tui.transcript.painting import RowPainter
from cdd_agent.tui.transcript.scrollback import MAX_LINES, Part, Scrollback
from cdd_agent.tui.transcript.thoughts import ThoughtsHeader

_FRAME = 0.01
"""Seconds of work on new text before the screen is drawn again."""


class Transcript(GuardedWidget, ScrollView, can_focus=True):
    """An append-only log. It stays at its end while text arrives, unless the person has scrolled up."""

    ALLOW_SELECT = True
    COMPONENT_CLASSES: ClassVar[set[str]] = set(map(component_class, LOOKS))
    DEFAULT_CSS = (
        """
    Transcript {
        background: $background;
        color: $foreground;
        padding: 0 1;
        overflow-x: hidden;
        overflow-y: auto;
        scrollbar-gutter: stable;
        scrollbar-size-vertical: 1;
    }
    """
        + LOOKS_CSS
    )

    def __init__(
        self,
        *,
        id: str | None = None,  # noqa: A002  # Textual's name
        classes: str | None = None,
        max_lines: int = MAX_LINES,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._scrollback = Scrollback(max_lines)
        self._live: LiveBlock | None = None
        self._last_kind: BlockKind | None = None
        """Of the last block that shows anything, but for the live one."""
        self._thoughts: ThoughtsHeader | None = None
        """The latest, as long as it is not known what they came to."""
        self._drawing_is_due = False
        self._following = True
        self._row_offset = 0
        """What to add to a row's place to get a number that stays when old rows are left out."""
        self._painter = RowPainter(self)
        self._strips: LRUCache[int, Strip] = LRUCache(512)
        self._shows_unfinal = False

    # --- content

    def add(self, kind: BlockKind, text: str) -> None:
        """Append a block that is complete. Empty text is no block."""
        self.settle()
        if kind in GROWING:
            self._open(kind).write(text)
            self.settle()
        elif text.strip():
            lines = [*space_between(self._last_kind, kind), *whole_block(kind, text)]
            self._last_kind = kind
            self._place([Part(text, lines, begins=True)])

    def begin(self, kind: BlockKind) -> None:
        """Open a block that grows: MARKDOWN, OUTPUT or THOUGHTS."""
        if kind not in GROWING:
            raise ValueError(f"a block of kind {kind} cannot grow")
        self.settle()
        self._open(kind)

    def write(self, text: str) -> None:
        """Add to the live block; opens a Markdown block if there is none. It is drawn with the next frame."""
        if self._live is not None and self._live.kind is BlockKind.THOUGHTS:
            self.settle()
        live = self._live or self._open(BlockKind.MARKDOWN)
        live.write(text)
        self._draw_soon()

    def think(self, text: str, measure: str) -> None:
        """Add to thoughts, of which only a line with their `measure` is shown until it is opened."""
        if self._live is None or self._live.kind is not BlockKind.THOUGHTS:
            self.begin(BlockKind.THOUGHTS)
        assert self._live is not None
        self._thoughts = self._live.header
        self._measure_thoughts(measure)
        self._live.write(text)
        self._draw_soon()

    def end_thoughts(self, measure: str) -> bool:
        """Say of the latest thoughts what they came to; False: there are none."""
        if self._thoughts is None:
            return False
        self._measure_thoughts(measure)
        self._thoughts = None
        return True

    def _measure_thoughts(self, measure: str) -> None:
        if self._thoughts is not None:
            self._thoughts.update(measure)
            self._strips.clear()
            self.refresh()

    def settle(self) -> None:
        """Close the live block, if there is one."""
        if (live := self._live) is None:
            return
        if live.header is not None:
            live.header.update(is_over=True)
        parts = live.finish()
        if live.shown:
            self._last_kind = live.kind
        self._live = None
        self._place(parts)

    def follow(self) -> None:
        """Show the end, and stay there."""
        self._following = True
        self._stay_at_end()

    def clear(self) -> None:
        self._live = self._last_kind = self._thoughts = None
        self._scrollback.clear()
        self._strips.clear()
        self._row_offset = 0
        self._following = True
        self._show(0, moved=0, following=True)

    def plain_text(self) -> str:
        """The sources of all blocks that are kept, as they were given."""
        blocks = self._scrollback.sources()
        if self._live is not None and self._live.is_waiting:
            if not self._live.begun:
                blocks.append("")
            blocks[-1] += self._live.waiting
        return "\n".join(blocks)

    def _open(self, kind: BlockKind) -> LiveBlock:
        self._live = LiveBlock(kind, above=self._last_kind)
        return self._live

    def _draw_soon(self) -> None:
        if not self._drawing_is_due and self.is_mounted:
            self._drawing_is_due = self.call_after_refresh(self._draw_waiting)

    def _draw_waiting(self) -> None:
        """Draw as much of the text that waits as there is time for."""
        self._drawing_is_due = False
        if (live := self._live) is None or not live.is_waiting:
            return
        deadline = perf_counter() + _FRAME
        parts = list[Part]()
        while live.is_waiting and perf_counter() < deadline:
            parts.append(live.next_part())
        self._place(parts)
        if live.is_waiting:
            self._draw_soon()

    def _tail(self) -> list[TranscriptLine]:
        return self._live.tail() if self._live else []

    def _place(self, parts: Iterable[Part]) -> None:
        following = self._is_following()
        first = self._scrollback.settled
        moved = self._scrollback.place(parts, self._tail())
        self._show(first, moved=moved, following=following)

    # --- thoughts, opened and folded

    def toggle_thoughts(self) -> None:
        """Open or fold the last thoughts in sight; if there are none, those nearest above."""
        bottom = self.scroll_offset.y + self.size.height
        for row in reversed(self._scrollback.rows[:bottom]):
            if isinstance(row.line, ThoughtsHeader):
                self._toggle(row.line)
                return

    def on_click(self, event: Click) -> None:
        offset = event.get_content_offset(self)
        rows = self._scrollback.rows
        if offset is None or self.text_selection is not None or (y := offset.y + self.scroll_offset.y) >= len(rows):
            return
        if isinstance(header := rows[y].line, ThoughtsHeader):
            self._toggle(header)

    def _toggle(self, header: ThoughtsHeader) -> None:
        """What is above keeps its place; thoughts that still come are followed."""
        is_live = self._live is not None and self._live.header is header
        self._following = is_live and self._is_following()
        header.update(is_open=not header.is_open)
        self._fit(self._scrollback.width, self._following)

    # --- the part of it that is on the screen

    def _show(self, first: int, *, moved: int, following: bool) -> None:
        """Tell the screen that the rows from `first` on are new, and that all have moved up."""
        self._row_offset += moved
        self._strips.discard(self._row_offset)  # the notice may have taken this place
        self.virtual_size = Size(self._scrollback.width, len(self._scrollback.rows))
        if following:
            self._stay_at_end()
        elif moved:
            self.scroll_to(y=max(self.scroll_target_y - moved, 0), animate=False, force=True)
        top = 0 if self._shows_unfinal else max(first - moved - self.scroll_offset.y, 0)
        if top < self.size.height:
            self._shows_unfinal = False
            self.refresh(Region(0, top, self.size.width, self.size.height - top))

    def watch_show_vertical_scrollbar(self, is_shown: bool) -> None:
        """A bar that was not there when the text scrolled does not know how far it has."""
        if is_shown:
            self.vertical_scrollbar.position = self.scroll_y

    def _stay_at_end(self) -> None:
        self.scroll_end(animate=False, immediate=True, force=True, x_axis=False)

    def _is_following(self) -> bool:
        # The target, not the offset: a person's way up begins with an animation.
        return self._following or self.scroll_target_y >= self.max_scroll_y

    def watch_scroll_target_y(self) -> None:
        self._following = self.scroll_target_y >= self.max_scroll_y

    def on_resize(self) -> None:
        following = self._is_following()
        if (width := self.scrollable_content_region.width) != self._scrollback.width:
            self._fit(width, following)
        elif following:
            self._stay_at_end()

    def _fit(self, width: int, following: bool) -> None:
        above = self._scrollback.rows[: self.scroll_offset.y + 1]
        self._strips.clear()
        moved = self._scrollback.fit(width, self._tail())
        self._show(0, moved=moved, following=following)
        if not following:
            self.scroll_to(y=self._scrollback.place_of(above), animate=False, force=True)
        if self._live is not None and self._live.is_waiting:  # written before there was a place on the screen
            self._draw_soon()

    def render_line(self, y: int) -> Strip:
        y += self.scroll_offset.y
        shown = self._scrollback
        if y >= len(shown.rows):
            return self._painter.blank(shown.width)
        number = y + self._row_offset
        row = shown.rows[y]
        selection = self.text_selection
        span = selection.get_span(number) if selection is not None else None
        if span is not None:
            return self._painter.strip(row, number, shown.width, span)
        settled = y < shown.settled
        if settled and (strip := self._strips.get(number)) is not None:
            return strip
        strip = self._painter.strip(row, number, shown.width)
        if settled and row.line.final:
            self._strips[number] = strip
        else:
            self._shows_unfinal = True
        return strip

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._painter.forget_styles()
        self._strips.clear()

    # --- selection

    def get_selection(self, selection: Selection) -> tuple[str, str]:
        """The selected text without gutters, and without the breaks that only the width has made."""
        rows = self._scrollback.rows
        start, end = selection
        first = max(start.y - self._row_offset, 0) if start else 0
        last = min(end.y - self._row_offset + 1, len(rows)) if end else len(rows)
        texts = list[str]()
        for y in range(first, last):
            row = rows[y]
            if y > first:
                above = rows[y - 1]
                texts.append(row.line.text[above.end : row.start] if above.line is row.line else "\n")
            begin, stop = selection.get_span(y + self._row_offset) or (0, 0)
            text = row.line.text[row.start : row.end]
            texts.append(text[begin : None if stop == -1 else stop])
        return "".join(texts), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        self.refresh()


if __name__ == "__main__":
    import re
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
