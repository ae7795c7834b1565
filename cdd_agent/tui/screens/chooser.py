from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct
from rich.cells import cell_len, set_cell_size
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from cdd_agent.text.sanitize import sanitize_for_display
from cdd_agent.tui.screens.overlay import Overlay

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from textual.widget import Widget


class ChooserRow(Struct, frozen=True):
    """A row of a list. `key` identifies it."""

    key: str
    text: str
    detail: str = ""
    sign: str = ""
    section: str = ""
    words: str = ""
    """Invisible words that also match the filter."""


def matching_rows(rows: Iterable[ChooserRow], typed: str) -> list[ChooserRow]:
    """Return the rows that contain all typed words. The best matches come first: text
    that begins with the first word, then words in the text, then words elsewhere. If
    none matches, return rows that contain the letters in order.
    """
    words = typed.casefold().split()
    if not words:
        return list(rows)
    ranked: list[tuple[int, ChooserRow]] = []
    loose: list[ChooserRow] = []
    for row in rows:
        text = row.text.casefold()
        everything = f"{text} {row.detail} {row.words}".casefold()
        if all(word in everything for word in words):
            ranked.append((_rank(text, words), row))
        letters = iter(text)
        if all(letter in letters for word in words for letter in word):
            loose.append(row)
    return [row for _, row in sorted(ranked, key=lambda pair: pair[0])] or loose


def _rank(text: str, words: Sequence[str]) -> int:
    if text.lstrip("/").startswith(words[0].lstrip("/")):
        return 0
    return 1 if all(word in text for word in words) else 2


class Chooser(Overlay):
    """A filtered list. `chosen` receives the chosen row."""

    DEFAULT_CSS = """
    Chooser {
        & #filter {
            height: 1; padding: 0 1; text-wrap: nowrap;
            text-overflow: ellipsis;
        }
        & OptionList {
            height: auto; border: none; padding: 0 1; background: $background;
            scrollbar-size-vertical: 1;
            text-wrap: nowrap; text-overflow: ellipsis; overflow-x: hidden;
            & > .option-list--option-highlighted {
                background: $block-cursor-background; color: $block-cursor-foreground;
                text-style: bold;
            }
        }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,shift+tab", "walk('cursor_up')", "Row above", show=False),
        Binding("down,tab", "walk('cursor_down')", "Row below", show=False),
        Binding("pageup", "walk('page_up')", "Page up", show=False),
        Binding("pagedown", "walk('page_down')", "Page down", show=False),
        Binding("home", "walk('first')", "First row", show=False),
        Binding("end", "walk('last')", "Last row", show=False),
        Binding("enter", "choose", "Choose the row", show=False),
        Binding("backspace", "shorten(1)", "Delete a letter of the filter", show=False),
        Binding("ctrl+u", "shorten(1000000)", "Clear the filter", show=False),
    ]
    KEYS = "↑↓: choose · Enter: open · Esc: close"
    PROMPT: ClassVar[str] = "type to filter"
    NOTHING: ClassVar[str] = "No match."

    def __init__(self, title: str, rows: Iterable[ChooserRow] = ()) -> None:
        super().__init__()
        self._title = title
        self._rows = list(rows)
        self._listed: list[ChooserRow | None] = []
        """The rows in the list. None is a section's heading."""
        self._typed = ""

    def content(self) -> Iterator[Widget]:
        yield Static(id="filter", markup=False)
        options = OptionList(markup=False)
        options.can_focus = False  # every key is the screen's
        yield options

    def on_mount(self) -> None:
        self.head(self._title)
        self._fill()

    def on_resize(self) -> None:
        super().on_resize()
        self._fill(keep=True)

    def fit(self) -> None:
        """Keep the height while the user filters, so that nothing jumps."""
        options = self.query_one(OptionList)
        rows = max(len(_with_headings(self._rows)), 1)
        options.styles.height = min(rows, self.room_for(options))

    def show(self, rows: Iterable[ChooserRow]) -> None:
        """Show these rows. A highlighted row stays highlighted."""
        self._rows = list(rows)
        self._fill(keep=True)
        self.call_after_refresh(self.fit)

    def seen(self) -> Hashable:
        return (
            self._typed,
            self.query_one(OptionList).highlighted,
            self.query_one(OptionList).scroll_target_y,
        )

    @property
    def highlighted(self) -> ChooserRow | None:
        index = self.query_one(OptionList).highlighted
        return (
            self._listed[index]
            if index is not None and index < len(self._listed)
            else None
        )

    def type(self, text: str) -> None:
        self._typed += text
        self._fill()

    def action_shorten(self, by: int) -> None:
        self._typed = self._typed[: max(len(self._typed) - by, 0)]
        self._fill()

    def action_walk(self, how: str) -> None:
        getattr(self.query_one(OptionList), f"action_{how}")()

    def action_choose(self) -> None:
        if (row := self.highlighted) is not None:
            self.chosen(row)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        row = self._listed[event.option_index]
        if row is not None:
            self.chosen(row)

    def chosen(self, row: ChooserRow) -> None:
        """Close the dialog with the row's key."""
        self.dismiss(row.key)

    def highlight(self, key: str) -> None:
        for place, row in enumerate(self._listed):
            if row is not None and row.key == key:
                self.query_one(OptionList).highlighted = place

    def _fill(self, *, keep: bool = False) -> None:
        kept_row = self.highlighted if keep else None
        rows = matching_rows(self._rows, self._typed)
        self._listed = list(rows) if self._typed.strip() else _with_headings(rows)
        options = self.query_one(OptionList)
        options.set_options(self._options(max(self.size.width * 11 // 20, 16)))
        options.highlighted = self._listed.index(rows[0]) if rows else None
        if kept_row is not None:
            self.highlight(kept_row.key)
        self.query_one("#filter", Static).update(self.typed_line())
        if not self._listed and self._rows:
            self.hint(self.NOTHING)

    @property
    def prompt(self) -> str:
        return self.PROMPT

    def typed_line(self) -> Content:
        typed = sanitize_for_display(self._typed)
        if not typed:
            return Content.styled(f"› {self.prompt}", "$text-muted")
        return Content.assemble("› ", (typed, "bold"), "▏")

    def _options(self, widest: int) -> Iterator[Option]:
        """Yield the options. In each section the details are aligned, at most at column
        `widest`.
        """
        is_filtered = bool(self._typed.strip())
        widths: dict[str, int] = {}
        for listed in filter(None, self._listed):
            section = "" if is_filtered else listed.section
            width = max(widths.get(section, 0), cell_len(listed.text))
            widths[section] = min(width, widest)
        for place, row in enumerate(self._listed):
            if row is not None:
                yield Option(_line(row, widths["" if is_filtered else row.section]))
                continue
            following = self._listed[place + 1]
            assert following is not None
            heading = Content.styled(following.section, "$text-accent")
            yield Option(heading, disabled=True)


def _with_headings(rows: Iterable[ChooserRow]) -> list[ChooserRow | None]:
    lines: list[ChooserRow | None] = []
    section = ""
    for row in rows:
        if row.section != section:
            section = row.section
            lines.append(None)
        lines.append(row)
    return lines


def _line(row: ChooserRow, width: int) -> Content:
    text = sanitize_for_display(row.text)
    text = (
        set_cell_size(text, width)
        if cell_len(text) <= width
        else f"{set_cell_size(text, width - 1)}…"
    )
    sign = f"{row.sign} " if row.sign else ""
    return Content.assemble(
        sign, (text, "bold"), "  ", sanitize_for_display(row.detail)
    )
