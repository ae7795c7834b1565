"""The transcript: blocks of text, of which only the last can grow.

Text becomes lines once, and lines become rows once; only visible rows are drawn. Text
is never markup, and its control characters are shown, not executed.
"""

from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import ClassVar, NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.cache import LRUCache
from textual.events import Click
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from cdd_agent.events.stream import is_beside_the_turn
from cdd_agent.tui.faults import GuardedWidget
from cdd_agent.tui.transcript.blocks import BlockKind, space_between, whole_block
from cdd_agent.tui.transcript.choice import BlockChoice
from cdd_agent.tui.transcript.diff import SIDE_BY_SIDE_WIDTH, DiffLayout
from cdd_agent.tui.transcript.finding import Finder
from cdd_agent.tui.transcript.folded_output import FoldedOutput, ThoughtsHeader
from cdd_agent.tui.transcript.folds import Fold, Foldable, FoldHeader, MoreLine, Opening
from cdd_agent.tui.transcript.lines import LineRow, TranscriptLine
from cdd_agent.tui.transcript.live import GROWING, LiveBlock
from cdd_agent.tui.transcript.painting import Overlay, RowPainter
from cdd_agent.tui.transcript.places import PlaceFinder, WebPlace
from cdd_agent.tui.transcript.reply import ReplyDrawer
from cdd_agent.tui.transcript.scrollback import MAX_LINES, Block, BlockPart, Scrollback
from cdd_agent.tui.transcript.selection import selected_text

_CHOSEN = Style(reverse=True)
_MOST_REPLIES = 50
_FRAME = 0.01
"""Seconds of work on new text between two frames."""
_SCROLLING = frozenset(
    {"up", "down", "home", "end", "ctrl+home", "ctrl+end", "ctrl+up", "ctrl+down"}
)
_ON_A_BLOCK = frozenset({"enter", "left", "right", "ctrl+c"})


class _SettledReply(NamedTuple):
    first_line: TranscriptLine
    header: FoldHeader
    has_edits: bool


class Transcript(GuardedWidget, ScrollView, can_focus=True):
    """An append-only log. It stays at its end while text arrives, unless the user
    scrolls up.
    """

    ALLOW_SELECT = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "turn_block", "Open or fold the block", show=False),
        Binding("right", "open_block", "Open the block", show=False),
        Binding("left", "fold_block", "Fold the block", show=False),
    ]
    DEFAULT_CSS = """
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

    class ChoiceChanged(Message):
        """The selected block, or its opening, has changed."""

    class FileChosen(Message):
        """The user wants to see a line of a project file."""

        def __init__(self, path: Path, line: int) -> None:
            super().__init__()
            self.path, self.line = path, line

    def __init__(
        self,
        root: Path | None = None,
        *,
        id: str | None = None,  # noqa: A002  # Textual's name
        classes: str | None = None,
        max_lines: int = MAX_LINES,
        follows: bool = True,
    ) -> None:
        """A click opens the files of the project in `root`. `follows`: new text stays
        visible.
        """
        super().__init__(id=id, classes=classes)
        self._follows = follows
        self._root = root
        self._place_finder = PlaceFinder(root)
        self._scrollback = Scrollback(max_lines)
        self._live: LiveBlock | None = None
        self._last_kind: BlockKind | None = None
        """The kind of the last visible block above the live one."""
        self._last_below: BlockKind | None = None
        self._thoughts: ThoughtsHeader | None = None
        self._drawing_is_due = False
        self._following = True
        self._seen = 0
        """The number of the first row that arrived after the user scrolled up."""
        self._pinned: int | None = None
        """The number of the row that stays visible while text arrives below it."""
        self._row_offset = 0
        """A row's index plus this offset is its number, which stays when old rows are
        dropped.
        """
        self._painter = RowPainter(self)
        self._strips: LRUCache[int, Strip] = LRUCache(512)
        self._shows_unfinal = False
        self._choice = BlockChoice()
        self._replies: deque[_SettledReply] = deque(maxlen=_MOST_REPLIES)
        """Unfolded replies since the user's last line."""
        self.diff_layout = DiffLayout()
        self.finder = Finder(self._scrollback, self._turn, self._show_found)

    # --- content

    def add(self, kind: BlockKind, text: str) -> None:
        """Append a complete block, unless the text is empty."""
        if self._live is not None and is_beside_the_turn():
            if kind in GROWING:
                block = self._make_live(kind, self._kind_below)
                block.write(text)
                self._place_below(kind, block.finish())
            elif text.strip():
                lines = [
                    *space_between(self._kind_below, kind),
                    *whole_block(kind, text),
                ]
                self._place_below(kind, [BlockPart(text, lines, begins=True)])
            return
        self.settle()
        if kind is BlockKind.USER:
            self.forget_replies()
        if kind in GROWING:
            live = self._open(kind)
            live.write(text)
            self._close(live)
        elif text.strip():
            lines = [*space_between(self._last_kind, kind), *whole_block(kind, text)]
            self._last_kind = kind
            self._place([BlockPart(text, lines, begins=True)])

    def begin(self, kind: BlockKind) -> None:
        """Open a block that grows: MARKDOWN, OUTPUT or THOUGHTS."""
        if kind not in GROWING:
            raise ValueError(f"a block of kind {kind} cannot grow")
        self.settle()
        self._open(kind)

    def write(self, text: str) -> None:
        """Add text to the live block, or to a new reply. The next frame draws it."""
        if self._live is not None and self._live.kind is BlockKind.THOUGHTS:
            self.settle()
        live = self._live or self._open(BlockKind.REPLY)
        live.write(text)
        self._draw_soon()

    def fold_replies(self, *, in_words: bool = False) -> None:
        """Fold the replies since the user's last line. Those without edits are folded
        only if `in_words`.
        """
        replies = list(self._replies)
        self.forget_replies()
        for reply in replies:
            if not (reply.has_edits or in_words):
                self._replies.append(reply)
            elif self._scrollback.fold_block(reply.first_line, reply.header):
                self._choice.replace(reply.first_line, reply.header)
                self._break_again(reply.header.fold, following=self._is_following())

    def forget_replies(self) -> None:
        """Leave the current replies open for good."""
        self._replies.clear()

    def fold(self, folds: Iterable[Fold]) -> None:
        """Fold blocks, and stay at the end if it is visible."""
        for fold in folds:
            if fold.opening is not Opening.HEADER:
                fold.opening = Opening.HEADER
                self._break_again(fold, following=self._is_following())

    def add_foldable(self, block: Foldable, *, above_live: bool = False) -> None:
        """Append a block that folds. `above_live`: insert it above folded output that
        still arrives.
        """
        live = self._live
        if live is not None and is_beside_the_turn():
            lines = [*space_between(self._kind_below, BlockKind.ACTION), *block.lines()]
            part = BlockPart(block.source, lines, begins=True, fold=block.header.fold)
            self._place_below(BlockKind.ACTION, [part])
            return
        if live is None or not above_live or live.header is None or live.begun:
            self.settle()
            live = None
        lines = [*space_between(self._last_kind, BlockKind.ACTION), *block.lines()]
        self._last_kind = BlockKind.ACTION
        if live is not None:
            live.comes_after(BlockKind.ACTION)
        self._place(
            [BlockPart(block.source, lines, begins=True, fold=block.header.fold)]
        )

    def begin_output(self, header: FoldHeader, *, glimpse: int, sample: int) -> None:
        """Open a block that grows below a header. `glimpse` and `sample`: see
        `FoldedOutput`.
        """
        self.settle()
        self._live = LiveBlock(
            BlockKind.ACTION, self._last_kind, FoldedOutput(header, glimpse, sample)
        )
        self._place([])

    def think(self, text: str, measure: str) -> None:
        """Add to the thoughts. Until they are opened, only one line shows their
        `measure`.
        """
        if self._live is None or self._live.kind is not BlockKind.THOUGHTS:
            self.begin(BlockKind.THOUGHTS)
        assert self._live is not None
        assert isinstance(self._live.header, ThoughtsHeader)
        self._thoughts = self._live.header
        self._thoughts.measure = measure
        if self._live.begun:
            self.lay_out(self._thoughts)
        self._live.write(text)
        self._draw_soon()

    def end_thoughts(self, measure: str) -> bool:
        """Show the final measure of the latest thoughts. False if there are none."""
        if self._thoughts is None:
            return False
        self._thoughts.measure = measure
        self.lay_out(self._thoughts)
        self._thoughts = None
        return True

    @property
    def is_growing(self) -> bool:
        return self._live is not None

    def lay_out(self, header: FoldHeader) -> None:
        header.lay_out(self._scrollback.width)
        self._strips.clear()
        self.refresh()

    def settle(self) -> None:
        """Close the live block, except during a read-only line beside a turn."""
        if self._live is not None and not is_beside_the_turn():
            self._close(self._live)

    def _close(self, live: LiveBlock) -> None:
        if live.header is not None:
            live.header.is_over = True
            self.lay_out(live.header)
        parts = live.finish()
        if live.shown:
            self._last_kind = live.kind
        if live.reply is not None and live.first_line is not None:
            self._replies.append(
                _SettledReply(
                    live.first_line, live.reply.make_header(), live.reply.has_edits
                )
            )
        if below := self._scrollback.take_below():
            self._last_kind = self._last_below
        self._live = self._last_below = None
        self._place([*parts, *below])

    @property
    def next_row(self) -> int:
        """The number of the row for the next text."""
        return len(self._scrollback.rows) + self._row_offset

    def show_from(self, number: int) -> None:
        """Show the text from this row on at the top, and keep it there while text
        arrives. If the user has scrolled up, nothing moves.
        """
        if not self._is_following():
            return
        rows = self._scrollback.rows
        y = max(number - self._row_offset, 0)
        while y < len(rows) and not rows[y].line.text.strip():
            y += 1
        self._pinned = y + self._row_offset
        self._stay_at_end()

    def follow(self) -> None:
        self._pinned = None
        self._following = True
        self._stay_at_end()

    def clear(self) -> None:
        self._live = self._last_kind = self._last_below = self._thoughts = None
        self._choice.clear()
        self.forget_replies()
        self._seen = 0
        self._scrollback.clear()
        self.finder.is_old = True
        self._strips.clear()
        self._row_offset = 0
        self._pinned = None
        self._following = True
        self._show(0, moved=0, following=self._follows)
        self.post_message(self.ChoiceChanged())

    def plain_text(self) -> str:
        """Return the original texts of all kept blocks."""
        blocks = self._scrollback.sources()
        if self._live is not None and (rest := self._live.rest):
            if not self._live.begun:
                blocks.append("")
            blocks[-1] += rest
        return "\n".join((*blocks, *self._scrollback.sources_below()))

    def _open(self, kind: BlockKind) -> LiveBlock:
        self._live = self._make_live(kind, self._last_kind)
        return self._live

    def _make_live(self, kind: BlockKind, above: BlockKind | None) -> LiveBlock:
        if kind is BlockKind.REPLY:
            return LiveBlock(kind, above, self.make_reply())
        return LiveBlock(kind, above)

    def make_reply(self) -> ReplyDrawer:
        return ReplyDrawer(self.diff_layout, self._root)

    def _draw_soon(self) -> None:
        if not self._drawing_is_due and self.is_mounted:
            self._drawing_is_due = self.call_after_refresh(self._draw_waiting)

    def _draw_waiting(self) -> None:
        self._drawing_is_due = False
        if (live := self._live) is None or not live.is_waiting:
            return
        deadline = perf_counter() + _FRAME
        parts = list[BlockPart]()
        while live.is_waiting and perf_counter() < deadline:
            if (part := live.next_part()) is not None:
                parts.append(part)
        self._place(parts)
        if live.is_waiting:
            self._draw_soon()

    @property
    def _kind_below(self) -> BlockKind | None:
        """The kind of the block above the next block below the live one."""
        return self._last_below or (self._live.kind if self._live is not None else None)

    def _place_below(self, kind: BlockKind, parts: Sequence[BlockPart]) -> None:
        self._last_below = kind
        self._scrollback.put_below(parts)
        self._place([])

    def _tail(self) -> list[TranscriptLine]:
        return self._live.tail() if self._live else []

    def _place(self, parts: Iterable[BlockPart]) -> None:
        following = self._is_following()
        first = self._scrollback.settled
        moved = self._scrollback.place(parts, self._tail())
        self.finder.is_old = True
        self._show(first, moved=moved, following=following)

    # --- blocks, opened and folded

    def toggle_thoughts(self) -> None:
        """Open or fold the last visible thoughts, otherwise the nearest above."""
        bottom = self.scroll_offset.y + self.size.height
        for row in reversed(self._scrollback.rows[:bottom]):
            if isinstance(row.line, ThoughtsHeader):
                self._turn(row.line.fold)
                return

    def keeps(self, key: str) -> bool:
        """True if the transcript handles a key while it has the focus. Other keys are
        for the prompt.
        """
        is_for_block = self._choice.line is not None and key in _ON_A_BLOCK
        return key in _SCROLLING or is_for_block

    def choose_block(self, step: int) -> None:
        """Select the previous block (-1) or the next one (1); initially the last
        visible one.
        """
        bottom = self.scroll_offset.y + self.size.height
        block = self._choice.next_block(self._blocks(), step, bottom, self._row_offset)
        if block is not None:
            self.focus(scroll_visible=False)
            self._choose(block)

    @property
    def chosen_text(self) -> str:
        return self._choice.text(self._blocks(), self._row_offset)

    def seen(self) -> Hashable:
        shown = (
            self.scroll_target_y,
            len(self._scrollback.rows),
            self.diff_layout.is_side_by_side,
        )
        return shown, self._choice.row, self.finder.position

    @property
    def doing(self) -> str:
        return self._choice.hint

    def on_blur(self) -> None:
        self._choose(None)

    def action_turn_block(self) -> None:
        if self._choice.fold is not None:
            self._turn(self._choice.fold)

    def action_open_block(self) -> None:
        fold = self._choice.fold
        if fold is not None and fold.opening is not Opening.ALL:
            self._turn(fold)

    def action_fold_block(self) -> None:
        if self._choice.fold is not None:
            self._turn(self._choice.fold, Opening.HEADER)

    @property
    def has_room_for_columns(self) -> bool:
        return self._scrollback.width >= SIDE_BY_SIDE_WIDTH

    def lay_out_diffs(self) -> None:
        self._fit(self._scrollback.width, self._is_following())

    def _blocks(self) -> list[Block]:
        blocks = self._scrollback.blocks()
        if (
            (live := self._live) is not None
            and live.header is not None
            and not live.begun
        ):
            below = enumerate(
                self._scrollback.rows[self._scrollback.settled :],
                self._scrollback.settled,
            )
            top = next(y for y, row in below if row.line is live.header)
            part = BlockPart(
                live.rest,
                [live.header],
                begins=True,
                rows=len(self._scrollback.rows) - top,
            )
            blocks.append(Block(top, [part]))
        return blocks + self._scrollback.blocks_below()

    def _choose(self, block: Block | None) -> None:
        if not self._choice.choose(block, self._row_offset):
            return
        self.post_message(self.ChoiceChanged())
        self._strips.clear()
        self.refresh()
        if block is not None:
            self._bring_into_sight(block.y, block.end)

    def _find_chosen_row(self) -> None:
        if not self._choice.find_again(self._scrollback.rows, self._row_offset):
            self.post_message(self.ChoiceChanged())

    def _bring_into_sight(self, y: int, end: int) -> None:
        top, height = self.scroll_offset.y, self.size.height
        if y < top or end - y >= height:
            self.scroll_to(y=y, animate=False, force=True)
        elif end > top + height:
            self.scroll_to(y=end - height, animate=False, force=True)

    def _turn(self, fold: Fold, opening: Opening | None = None) -> None:
        """Open a block further, or to a given degree. Rows above stay in place;
        arriving text is followed.
        """
        if not fold.has_more:
            return
        live = self._live.header if self._live is not None else None
        self._set_following(
            live is not None and live.fold is fold and self._is_following()
        )
        if opening is None:
            fold.turn()
        else:
            fold.opening = opening
        self._break_again(fold, following=self._following)
        self.post_message(self.ChoiceChanged())

    def _break_again(self, fold: Fold, *, following: bool) -> None:
        self.finder.is_old = True
        y, more = self._scrollback.break_again(fold)
        if y >= 0 and y + self._row_offset < self._seen:
            self._seen += more
        self._strips.clear()
        first = min(y, self._scrollback.settled) if y >= 0 else self._scrollback.settled
        moved = self._scrollback.place([], self._tail())
        above = more if 0 <= y < self.scroll_offset.y and not following else 0
        self._show(first, moved=moved, following=following)
        if above or self.scroll_target_y > self.max_scroll_y:
            self.scroll_to(
                y=min(self.scroll_target_y + above, self.max_scroll_y),
                animate=False,
                force=True,
            )
        self._find_chosen_row()
        self.refresh()

    # --- finding

    def find(self, text: str) -> None:
        """Search from the visible rows on. An empty text ends the search."""
        self.finder.find(text, self.scroll_offset.y)

    def _show_found(self, y: int | None) -> None:
        if y is not None:
            self._set_following(False)
            if not self.scroll_offset.y <= y < self.scroll_offset.y + self.size.height:
                self.scroll_to(
                    y=max(y - self.size.height // 2, 0), animate=False, force=True
                )
        self._strips.clear()
        self.refresh()

    # --- links

    def on_click(self, event: Click) -> None:
        offset = event.get_content_offset(self)
        rows = self._scrollback.rows
        if offset is None or self.text_selection is not None:
            return
        if (
            offset.y == self.size.height - 1
            and self._new_rows
            and offset.x >= self.size.width - len(self._news)
        ):
            self.follow()
        elif (y := offset.y + self.scroll_offset.y) < len(rows):
            if event.ctrl:
                self._go_to(rows[y], offset.x)
            elif isinstance(line := rows[y].line, FoldHeader | MoreLine):
                self._turn(line.fold)

    def _go_to(self, row: LineRow, x: int) -> None:
        target = self._place_finder.target_at(row, x)
        if isinstance(target, str):
            self.app.open_url(target)
        elif target is not None:
            self.post_message(self.FileChosen(*target))

    # --- the visible part

    def _show(self, first: int, *, moved: int, following: bool) -> None:
        """Draw the rows from `first` on. `moved`: all rows have moved up by this
        number.
        """
        self._row_offset += moved
        self._strips.discard(self._row_offset)  # the notice may have replaced this row
        self.virtual_size = Size(self._scrollback.width, len(self._scrollback.rows))
        if following:
            self._stay_at_end()
        elif moved:
            self.scroll_to(
                y=max(self.scroll_target_y - moved, 0), animate=False, force=True
            )
        top = 0 if self._shows_unfinal else max(first - moved - self.scroll_offset.y, 0)
        if top < self.size.height:
            self._shows_unfinal = False
            self.refresh(Region(0, top, self.size.width, self.size.height - top))
        elif not following:
            # The last row shows the number of new rows.
            self.refresh(Region(0, self.size.height - 1, self.size.width, 1))

    def watch_show_vertical_scrollbar(self, is_shown: bool) -> None:
        """Set the position of a scroll bar that appears after scrolling."""
        if is_shown:
            self.vertical_scrollbar.position = self.scroll_y

    def _stay_at_end(self) -> None:
        if self._pinned is not None:
            y = self._pinned - self._row_offset
            if y < self.max_scroll_y:
                self.scroll_to(y=y, animate=False, immediate=True, force=True)
                self._set_following(False)
                self._seen = self._pinned + self.size.height
                self._pinned = None
                self.refresh()
                return
        self.scroll_end(animate=False, immediate=True, force=True, x_axis=False)

    def _is_following(self) -> bool:
        # The target, not the offset: scrolling up begins with an animation.
        return self._follows and (
            self._following or self.scroll_target_y >= self.max_scroll_y
        )

    def watch_scroll_target_y(self) -> None:
        self._set_following(self.scroll_target_y >= self.max_scroll_y)

    def _set_following(self, following: bool) -> None:
        if self._following and not following:
            self._seen = len(self._scrollback.rows) + self._row_offset
        if self._following != following:
            self._following = following
            self.refresh()

    @property
    def is_following(self) -> bool:
        return self._is_following()

    @property
    def _new_rows(self) -> int:
        return (
            0
            if self._is_following() or not self._follows
            else max(len(self._scrollback.rows) + self._row_offset - self._seen, 0)
        )

    @property
    def _news(self) -> str:
        count = self._new_rows
        return f" ↓ {count:,} new line{'s' * (count > 1)} · End "

    def on_resize(self) -> None:
        following = self._is_following()
        if (width := self.scrollable_content_region.width) != self._scrollback.width:
            self._fit(width, following)
        elif following:
            self._stay_at_end()

    def _fit(self, width: int, following: bool) -> None:
        rows = self._scrollback.rows
        above = rows[: self.scroll_offset.y + 1]
        seen = rows[: max(self._seen - self._row_offset, 0)]
        pinned: list[LineRow] = []
        if self._pinned is not None:
            pinned = rows[: self._pinned - self._row_offset + 1]
        self._strips.clear()
        moved = self._scrollback.fit(width, self._tail())
        self.finder.is_old = True
        row_offset = self._row_offset + moved
        self._seen = len(self._scrollback.rows) + row_offset
        if len(seen) < len(rows):
            self._seen = self._scrollback.place_of(seen) + 1 + row_offset
        if pinned:
            self._pinned = self._scrollback.place_of(pinned) + row_offset
        self._show(0, moved=moved, following=following)
        if not following:
            self.scroll_to(
                y=self._scrollback.place_of(above), animate=False, force=True
            )
        self._find_chosen_row()
        # Text was written before the widget had a size.
        if self._live is not None and self._live.is_waiting:
            self._draw_soon()

    def render_line(self, y: int) -> Strip:
        strip = self._strip(y + self.scroll_offset.y)
        if y == self.size.height - 1 and self._new_rows:
            news = self._news
            room = max(self._scrollback.width - len(news), 0)
            chip = Strip([Segment(news, self._painter.style("news"))])
            strip = Strip.join([strip.crop(0, room), chip]).crop(
                0, self._scrollback.width
            )
        return strip

    def _strip(self, y: int) -> Strip:
        shown = self._scrollback
        if y >= len(shown.rows):
            return self._painter.blank(shown.width)
        number = y + self._row_offset
        row = shown.rows[y]
        selection = self.text_selection
        span = selection.get_span(number) if selection is not None else None
        settled = y < shown.settled
        if span is None and settled and (strip := self._strips.get(number)) is not None:
            return strip
        overlays = list(self._overlays(row, number))
        if span is not None:
            first, last = span
            style = self.screen.get_component_rich_style("screen--selection")
            overlays.append(
                (row.start + first, row.end if last == -1 else row.start + last, style)
            )
        strip = self._painter.strip(row, number, shown.width, overlays)
        if number == self._choice.row:
            strip = Strip(
                Segment.apply_style(strip, post_style=_CHOSEN), strip.cell_length
            )
        if span is not None:
            return strip
        if settled and row.line.final:
            self._strips[number] = strip
        else:
            self._shows_unfinal = True
        return strip

    def _overlays(self, row: LineRow, number: int) -> Iterator[Overlay]:
        for place in self._place_finder.places(row.line):
            if isinstance(place, WebPlace):
                yield place.start, place.end, _link(place.address)
            else:
                yield place.start, place.end, self._painter.style("place")
        for start, end, is_current in self.finder.marks(row.line):
            yield (
                start,
                end,
                self._painter.style("hit current" if is_current else "hit"),
            )

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._painter.forget_styles()
        self._strips.clear()

    # --- selection

    def get_selection(self, selection: Selection) -> tuple[str, str]:
        """Return the selected text, and the separator before the next widget's."""
        return selected_text(self._scrollback.rows, selection, self._row_offset), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        self.refresh()


@lru_cache(maxsize=256)
def _link(address: str) -> Style:
    """Return the style of a link, cached: an equal but new style would be sent
    again.
    """
    return Style(link=address)
