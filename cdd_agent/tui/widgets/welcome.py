"""The first screen of a session. The transcript replaces it after the first line."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from cdd_agent.commands.welcome_rows import WHAT_CDD_IS, Beginning, WelcomeRow
from cdd_agent.text.sanitize import sanitize_for_display
from cdd_agent.tui.faults import GuardedWidget
from cdd_agent.tui.quiet_enter import EnterGuard
from cdd_agent.tui.widgets.prompt import Prompt
from cdd_agent.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from textual import events

    from cdd_agent.tui.answering import KeyClock

_WIDEST = 70
_MARGIN = 2
_USUAL_HEIGHT = 12
"""The height for which the block is centred, so that it stays when its rows appear."""
_MOST_NOTE_LINES = 4


class Welcome(GuardedWidget, Widget):
    """A description of cdd, and rows to start from. It receives the keys of an empty
    prompt: Up and Down choose a row, Enter starts it, Escape removes the highlight,
    Down restores it. Up on the first row is for the history.
    """

    DEFAULT_CSS = "Welcome { width: 1fr; height: 1fr; display: none; }"

    class Started(Message):
        def __init__(self, row: WelcomeRow) -> None:
            super().__init__()
            self.row = row

    class HintChanged(Message):
        """The effect of Enter in an empty prompt has changed."""

    def __init__(self, clock: KeyClock) -> None:
        super().__init__()
        self._guard = EnterGuard(clock)
        self._beginning = Beginning()
        self._notes: tuple[str, ...] = ()
        self._chosen = 0
        self._is_moved = False
        self._is_dismissed = False
        """True if Escape removed the highlight."""
        self._is_typing = False
        self._rows_at: dict[int, int] = {}
        """The row at each line of the widget."""

    def open(self, beginning: Beginning) -> None:
        """Show these rows. A highlight that the user moved stays on its row."""
        former_row, was_moved = self._row, self._is_moved
        self._beginning = beginning
        self._chosen = beginning.first
        if was_moved and former_row is not None:
            places = [row.action for row in beginning.rows]
            if former_row.action in places:
                self._chosen = places.index(former_row.action)
        self._appear()

    def add_note(self, text: str) -> None:
        self._notes = (*self._notes, text)
        self.refresh()

    def note_prompt(self, text: str) -> None:
        """Show whether the prompt's keys are for the rows."""
        is_typing = bool(text)
        if is_typing == self._is_typing:
            return
        self._is_typing = is_typing
        self._appear()

    @property
    def hint(self) -> str:
        """The effect of Enter in an empty prompt; empty if it is not for the rows."""
        row = self._row
        if row is None or not self.is_active:
            return ""
        title = f"{row.title[:1].lower()}{row.title[1:]}"
        return f"Enter: {title} · ↑↓: choose · or type"

    @property
    def is_active(self) -> bool:
        is_free = not self._is_dismissed and not self._is_typing
        return bool(self.display and self._beginning.rows and is_free)

    def take_key(self, event: events.Key) -> bool:
        """Handle a key of an empty prompt. False if it is for the prompt."""
        if not self.display or not self._beginning.rows:
            return False
        if self._is_dismissed:
            if event.key != "down":
                return False
            self._is_dismissed = False
            self._appear()
            return True
        match event.key:
            case "up" if self._chosen == 0:
                return False  # for the history
            case "up":
                self._choose(self._chosen - 1)
            case "down":
                self._choose(self._chosen + 1)
            case "escape":
                self._is_dismissed = True
                self._appear()
            case "enter":
                if self._guard.is_too_soon(event):
                    self.post_message(Prompt.EnterIgnored())
                else:
                    self.post_message(self.Started(self._beginning.rows[self._chosen]))
            case _:
                return False
        return True

    def press_elsewhere(self, enter: events.Key) -> None:
        """Note an Enter on another screen."""
        self._guard.press_elsewhere(enter)

    def seen(self) -> Hashable:
        return self.display, self._chosen, self._is_dismissed, self._beginning

    def on_click(self, event: events.Click) -> None:
        place = self._rows_at.get(event.y)
        if place is not None:
            event.stop()
            self._choose(place)
            self.post_message(self.Started(self._beginning.rows[place]))

    def render(self) -> Content:
        width = max(min(_WIDEST, self.size.width - 2 * _MARGIN), 1)
        lines = self._lines(width, self.size.height)
        height = len(lines)
        top = max(self.size.height - max(height, _USUAL_HEIGHT), 0) // 2
        margin = max(self.size.width - width, 0) // 2
        self._rows_at = {}
        drawn = [Content()] * top
        for line, place in lines:
            if place is not None:
                self._rows_at[len(drawn)] = place
            drawn.append(Content.assemble(" " * margin, line))
        return Content("\n").join(drawn)

    @property
    def _row(self) -> WelcomeRow | None:
        rows = self._beginning.rows
        return rows[self._chosen] if self._chosen < len(rows) else None

    def _choose(self, place: int) -> None:
        """Move the highlight for the user, so that Enter is meant for the row."""
        self._is_moved = True
        self._chosen = max(0, min(place, len(self._beginning.rows) - 1))
        self._guard.show(f"row {self._chosen}", self._row, is_typed=True)
        self._tell()

    def _appear(self) -> None:
        """Show the highlight; the user has not seen it yet, so ignore an immediate
        Enter.
        """
        self._guard.show("", self._row if self.is_active else None)
        self._tell()

    def _tell(self) -> None:
        self.refresh()
        self.post_message(self.HintChanged())

    def _lines(self, width: int, height: int) -> list[tuple[Content, int | None]]:
        """Return the lines, each with the index of its row, if any. A low window gets
        fewer lines.
        """
        rows = self._shown_rows(height)
        heading = _plain(
            [Content.assemble(("cdd", "bold $text-primary"), f"  {VERSION}")]
        )
        about = _plain(map(_quiet, textwrap.wrap(WHAT_CDD_IS, width)))
        place = sanitize_for_display(self._beginning.place)
        where = _plain(map(Content, textwrap.wrap(place, width)))
        notes = _plain(map(_quiet, self._note_lines(width)))
        blank = _plain([Content()])
        room = height - len(rows) - len(heading)
        # The most important part first.
        for part in (where, about, notes):
            if len(part) > room:
                part.clear()
            room -= len(part)
        lines = heading + about + where
        if room > 0:
            lines += blank
            room -= 1
        lines += [(self._drawn_row(row, width), row) for row in rows]
        if notes and room > 0:
            lines += blank
        return lines + notes

    def _shown_rows(self, height: int) -> Sequence[int]:
        count = len(self._beginning.rows)
        room = max(height - 1, 1)
        if count <= room:
            return range(count)
        first = min(max(self._chosen - room + 1, 0), count - room)
        return range(first, first + room)

    def _note_lines(self, width: int) -> list[str]:
        lines: list[str] = []
        for note in self._notes:
            lines += textwrap.wrap(sanitize_for_display(note), width)
        return lines[:_MOST_NOTE_LINES]

    def _drawn_row(self, place: int, width: int) -> Content:
        rows = self._beginning.rows
        row = rows[place]
        is_chosen = self.is_active and place == self._chosen
        titles = [sanitize_for_display(one.title) for one in rows]
        column = min(max(map(cell_len, titles)), width * 6 // 10)
        title = _fit(titles[place], column)
        detail = sanitize_for_display(row.detail)
        detail = _fit(detail, max(width - column - 5, 0)) if detail else ""
        sign = "❯ " if is_chosen else "  "
        if not is_chosen:
            return Content.assemble(sign, title, "  ", (detail, "$text-muted"))
        text = set_cell_size(f"{sign}{title}  {detail}", width)
        look = "bold $block-cursor-foreground on $block-cursor-background"
        return Content.styled(text, look)


def _plain(lines: Iterable[Content]) -> list[tuple[Content, int | None]]:
    return [(line, None) for line in lines]


def _quiet(text: str) -> Content:
    return Content.styled(text, "$text-muted")


def _fit(text: str, width: int) -> str:
    """Return the text in exactly `width` columns."""
    if cell_len(text) <= width:
        return set_cell_size(text, width)
    return f"{set_cell_size(text, max(width - 1, 0))}…"
