"""The prompt: text area, completions, history search, and queued lines."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from os.path import commonprefix
from typing import TYPE_CHECKING

from textual import events, work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import OptionList, Static

from cdd_agent.errors import CddError
from cdd_agent.text.completion import Completion, CompletionKind
from cdd_agent.text.sanitize import sanitize_for_display
from cdd_agent.tui.drafts import Drafts
from cdd_agent.tui.editor import edit_text
from cdd_agent.tui.faults import GuardedWidget
from cdd_agent.tui.history import PromptHistory
from cdd_agent.tui.widgets.completion_rows import completion_rows
from cdd_agent.tui.widgets.prompt_area import PromptArea
from cdd_agent.tui.widgets.prompt_frame import PromptFrame

if TYPE_CHECKING:
    from textual.timer import Timer

    from cdd_agent.agents.meaning import Meaning

_WAITING = "  queued · Esc: return it to the prompt"
_ASIDE = "  returns to the prompt when the question is answered"
_UNSENT = "  not sent · ↑: restore it"
_MAX_MATCHES = 50
_KEYS_OF_PROMPT = ("up", "down", "tab", "ctrl+r")
_SOON = 0.3
"""Seconds after a key until the draft is saved."""
_SEARCHING = "Enter: use this line · Esc: back"
_OLDER = " · Ctrl+R: next older"
_NO_MATCH = "No match · Esc: back · Enter: keep the text"


class Prompt(GuardedWidget, Vertical):
    """Enter sends the line or takes the highlighted completion. Up and Down recall
    earlier lines, Ctrl+R searches them, Tab completes, Ctrl+G opens an editor.

    The name of a slash command highlights the first command that starts with it. In all
    other lists, no row is highlighted until the user presses an arrow key.

    A suggested line is selected text, which the next letter replaces. It is not a draft
    until the user edits it.

    Typed text is never lost: an unsent line returns to the prompt, or to the history
    (Up). Two lines are never joined.
    """

    DEFAULT_CSS = """
    Prompt { height: auto; }
    Prompt OptionList {
        height: auto; max-height: 12; margin: 0 1; border: none; padding: 0;
        background: $panel; display: none;
        scrollbar-size-vertical: 1; text-wrap: nowrap; text-overflow: ellipsis;
        & > .option-list--option { padding: 0 1; }
        & > .option-list--option-highlighted {
            background: $block-cursor-background; color: $block-cursor-foreground;
            text-style: bold;
        }
    }
    Prompt.-completing OptionList { display: block; }
    PromptFrame Static { width: 1; color: $text-accent; text-style: bold; }
    Prompt #waiting {
        height: auto; max-height: 4; padding: 0 2; display: none;
        color: $text-muted;
        text-wrap: nowrap; text-overflow: ellipsis;
    }
    Prompt.-waiting #waiting { display: block; }
    Prompt PromptArea {
        width: 1fr; height: auto; max-height: 6; background: $background;
        scrollbar-size-vertical: 1;
    }
    """

    class Submitted(Message):
        """The user sent a line. The receiver must call `accepted`, `hold`, `set_aside`
        or `bring_back`.
        """

        def __init__(self, line: str, meaning: Meaning | None = None) -> None:
            """`meaning` is what the line meant when it was sent; None for a line from
            the program.
            """
            super().__init__()
            self.line = line
            self.meaning = meaning

    class Stopped(Message):
        """Escape was pressed, and the prompt had nothing to close."""

    class EnterIgnored(Message):
        """Enter was pressed before the user could have read its effect."""

    class DoingChanged(Message):
        """The effect of Enter has changed, but the text has not."""

    def __init__(
        self,
        complete: Callable[[str], list[Completion]],
        history: PromptHistory,
        drafts: Drafts,
        is_too_soon: Callable[[events.Key], bool],
        read_line: Callable[[str], Meaning | None],
    ) -> None:
        """`is_too_soon`: True if an Enter that would send a line must be ignored.
        `read_line` returns a line's current meaning.
        """
        super().__init__()
        self._complete = complete
        self._is_too_soon = is_too_soon
        self._read_line = read_line
        self._history = history
        self._saved_drafts = drafts
        self._waiting: list[tuple[str, Meaning | None]] = []
        """Queued lines, with the meanings that they were sent with."""
        self._aside: list[str] = []
        self._unsent: list[str] = []
        self._completions: list[Completion] = []
        self._completed_text = ""
        """The text that they complete."""
        self._put: str | None = None
        self._quiet_for: str | None = None
        """A text without completions: it comes from the list or the history."""
        self._text_before_search: str | None = None
        """The draft before the search in the history; None without a search."""
        self._keeping: Timer | None = None
        self.when_empty: Callable[[events.Key], bool] = lambda event: False
        """Handles a key in an empty prompt. False leaves it to the prompt."""

    def compose(self) -> ComposeResult:
        completions = OptionList(markup=False)
        completions.can_focus = False
        yield completions
        yield Static(id="waiting", markup=False)
        with PromptFrame():
            yield Static("❯", markup=False)
            yield PromptArea(self._key_pressed)

    @property
    def area(self) -> PromptArea:
        return self.query_one(PromptArea)

    def on_mount(self) -> None:
        self.set_timer(_SOON, self._take_over_drafts)

    def on_unmount(self) -> None:
        self._saved_drafts.close(keep=True)  # already closed if the user quit

    @property
    def text(self) -> str:
        return self.area.whole

    @property
    def is_completing(self) -> bool:
        return self.has_class("-completing") or self.is_searching

    @property
    def is_searching(self) -> bool:
        """True during a search in the history. The text is not a draft then."""
        return self._text_before_search is not None

    @property
    def doing(self) -> str:
        """The effect of Enter, unless it sends a line."""
        if self._text_before_search is not None:
            if not self._completions:
                return _NO_MATCH
            return _SEARCHING + _OLDER if len(self._completions) > 1 else _SEARCHING
        row = self._selected
        if row is None or row.kind is CompletionKind.COMMAND:
            return ""
        shown = row.line if row.is_command else row.shown
        return f"Enter: insert {shown} · Esc: close the list"

    @property
    def line_to_send(self) -> str:
        row = self._selected
        if row is not None and row.kind is CompletionKind.COMMAND:
            return row.line
        return self.text

    @property
    def has_choice(self) -> bool:
        return self._selected is not None

    @property
    def about_text(self) -> str:
        """A remark about the text that Enter sends."""
        if self.area.is_folded:
            return "Enter: send all of it · Ctrl+O: show the pasted text"
        lines = self.area.document.line_count
        if lines > 1:
            return f"Enter: send {lines:,} lines · Ctrl+J: new line · Ctrl+G: editor"
        return "Enter: send · Ctrl+J: new line" if self.text.strip() else ""

    @property
    def offers(self) -> list[Completion]:
        return self._completions if self.has_class("-completing") else []

    def replace(self, text: str) -> None:
        self.area.put(text)
        self._put = None
        self._quiet_for = self.area.text
        self._close()

    def put(self, text: str) -> None:
        """Put a text into the prompt that the user did not type. For half a second,
        Enter does not send it.
        """
        self.replace(text)
        self._put = text

    def suggest(self, line: str) -> None:
        """Put a line into the prompt that Enter sends and the next letter replaces."""
        self.put(line)
        self.area.suggest()

    @property
    def is_suggesting(self) -> bool:
        return self.area.is_suggesting

    @property
    def is_typed(self) -> bool:
        """True if the user typed the text, or took it from a list or the history."""
        return bool(self.text.strip()) and self.text != self._put

    def offer_again(self) -> None:
        is_free = self._text_before_search is None and self._selected is None
        if is_free and self.area.text != self._quiet_for:
            self._offer()

    def on_text_area_changed(self) -> None:
        self._keep_soon()
        if self.text != self._put:
            self._put = None
        if self.area.text == self._quiet_for:
            return
        self._quiet_for = None
        self._offer()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self._take(self._completions[event.option_index])

    def seen(self) -> Hashable:
        return (
            self.area.seen(),
            self.classes,
            self.query_one(OptionList).highlighted,
            len(self._waiting),
            self.is_searching,
        )

    def _key_pressed(self, event: events.Key) -> None:
        self._catch_up()
        brings_back = event.key == "up" and bool(self._unsent)
        is_empty = not self.text and not self.is_completing
        if is_empty and not brings_back and self.when_empty(event):
            return
        state_before = self.seen()
        if event.key == "enter":
            self._enter(event)
            return
        self._do(event.key)
        if event.key in _KEYS_OF_PROMPT and self.seen() == state_before:
            self.post_message(PromptArea.NothingDone(event.key))

    def _catch_up(self) -> None:
        if self.area.text not in (self._completed_text, self._quiet_for):
            self._offer()

    def _enter(self, event: events.Key) -> None:
        row = self._selected
        is_sent = row is None or row.kind is CompletionKind.COMMAND
        if self.is_searching or not is_sent:
            self._take(row)
        elif self._is_too_soon(event):
            self.post_message(self.EnterIgnored())
        else:
            self._send(self.line_to_send)

    def _do(self, key: str) -> None:
        match key:
            case "ctrl+g":
                self._edit()
            case "ctrl+r" if self.is_searching:
                self._walk("down")
            case "ctrl+r":
                self._search()
            case "tab":
                self._complete_by_tab()
            case "up" | "down" if self.is_completing:
                self._walk(key)
            case "up" | "down":
                self._recall(key)
            case "escape":
                self._escape()

    def _complete_by_tab(self) -> None:
        if not self.is_completing:  # Tab came before the completions
            self._offer()
            if len(self._completions) == 1:
                self._take(self._completions[0])
        elif self.is_searching or not self._complete_common():
            self._take(self._selected or next(iter(self._completions), None))

    def _escape(self) -> None:
        if self._text_before_search is not None:
            self.replace(self._text_before_search)
        elif self.is_completing:
            # A list that arrives late stays closed, too.
            self._quiet_for = self.area.text
            self._close()
        elif self.is_suggesting:
            self.replace("")
        elif self._waiting:
            self.bring_back([self._waiting.pop()[0]])
        else:
            self.post_message(self.Stopped())

    def _send(self, line: str) -> None:
        meaning = self._read_line(line)
        self.replace("")
        self._unsent.clear()
        self._show_waiting()
        self.post_message(self.Submitted(line, meaning))

    def _search(self) -> None:
        if self.is_suggesting:
            self.replace("")
        self._text_before_search = self.text
        self._offer()

    @work(group="editor")
    async def _edit(self) -> None:
        original = (
            self.text if self._text_before_search is None else self._text_before_search
        )
        self.replace(original)
        try:
            text = await edit_text(self.app, original)
        except CddError as error:
            hint = f" {error.hint}" if error.hint else ""
            message = f"{error.message}.{hint} Your text is unchanged."
            self.notify(message, severity="warning", markup=False, timeout=10)
            return
        if self.text != original:
            self.put_away()
        self.replace(text)

    def accepted(self, line: str) -> None:
        """Add a sent line to the history. The line stops being a draft before it
        has any effect, so that a crash does not offer it again.
        """
        self._history.add(line)
        self._keep()

    def bring_back(self, lines: Sequence[str], *, is_typing: bool = False) -> None:
        """Return unsent lines, the oldest first. The first line goes into an empty
        prompt, unless the user is typing. Up restores the others.
        """
        remaining = [line for line in lines if line.strip()]
        is_free = not self._draft and not self.is_searching
        if remaining and is_free and not is_typing:
            self.put(remaining.pop(0))
        for line in reversed(remaining):
            self._history.add(line)
        self._unsent += remaining
        self._show_waiting()

    def set_aside(self, line: str | None = None) -> None:
        """Keep a sent line, or the prompt's text, until a question is answered."""
        if line is None:
            line = self._draft
            self.replace("")
        if line.strip():
            self._aside.append(line)
        self._show_waiting()

    def bring_back_aside(self) -> None:
        aside, self._aside = self._aside, []
        self.bring_back(aside)

    def put_away(self) -> None:
        """Clear the prompt. Up restores the text."""
        self._history.add(self._draft)
        self.replace("")

    def keep_drafts(self) -> None:
        """Save unsent text in the history when the user quits."""
        for line in self._drafts:
            self._history.add(line)
        self._waiting.clear()
        self._aside.clear()
        self._saved_drafts.close()

    def _keep_soon(self) -> None:
        if self._keeping is None:
            self._keeping = self.set_timer(_SOON, self._keep)

    def _keep(self) -> None:
        if self._keeping is not None:
            self._keeping.stop()
            self._keeping = None
        self._saved_drafts.save(self._drafts)

    def _take_over_drafts(self) -> None:
        """Show the drafts of killed shells as unsent. Up restores them."""
        lines = self._saved_drafts.take_over()
        if lines:
            self.bring_back(lines, is_typing=True)

    @property
    def loses_drafts(self) -> bool:
        """True if there are drafts that quitting would lose."""
        return bool(self._drafts) and not self._history.is_saved

    @property
    def _drafts(self) -> list[str]:
        return [
            line
            for line in (*self._lines_waiting, *self._aside, self._draft)
            if line.strip()
        ]

    @property
    def _draft(self) -> str:
        if self._text_before_search is not None:
            return self._text_before_search
        return "" if self.is_suggesting else self.text

    @property
    def _lines_waiting(self) -> list[str]:
        return [line for line, _ in self._waiting]

    def hold(self, line: str, meaning: Meaning | None) -> None:
        self._waiting.append((line, meaning))
        self._show_waiting()

    def take_waiting(self) -> tuple[str, Meaning | None] | None:
        line = self._waiting.pop(0) if self._waiting else None
        self._show_waiting()
        return line

    def take_held(self, line: str) -> bool:
        """Send a queued line now. False if it is no longer queued."""
        if line not in self._lines_waiting:
            return False
        del self._waiting[self._lines_waiting.index(line)]
        self._show_waiting()
        self.accepted(line)
        return True

    def give_back(self, *, is_typing: bool = False) -> None:
        waiting = self._lines_waiting
        self._waiting.clear()
        self.bring_back(waiting, is_typing=is_typing)

    def _show_waiting(self) -> None:
        rows = list[str]()
        for lines, mark, label in (
            (self._unsent, "↩", _UNSENT),
            (self._lines_waiting, "⋯", _WAITING),
            (self._aside, "↩", _ASIDE),
        ):
            rows += [
                f"{mark} {sanitize_for_display(' '.join(line.split()))}"
                for line in lines[-3:]
            ]
            rows += [label] if lines else []
        self.query_one("#waiting", Static).update("\n".join(rows[-4:]))
        self.set_class(bool(rows), "-waiting")
        self._keep_soon()

    def _offer(self) -> None:
        if self._text_before_search is None:
            self._completions = self._complete(self.area.text)
        else:
            lines = self._history.search(self.text, _MAX_MATCHES)
            self._completions = [Completion(line, _on_one_row(line)) for line in lines]
        self._completed_text = self.area.text
        completions = self.query_one(OptionList)
        # The list's margin, the rows' padding, and the scroll bar.
        room = self.size.width - 5
        completions.set_options(completion_rows(self._completions, room))
        completions.highlighted = self._default
        self.set_class(bool(self._completions), "-completing")
        self.post_message(self.DoingChanged())

    @property
    def _default(self) -> int | None:
        if not self._completions:
            return None
        if self._text_before_search is not None:
            return 0
        typed, first = self._completed_text.casefold(), self._completions[0]
        is_meant = len(typed) > 1 and first.line.casefold().startswith(typed)
        return 0 if first.is_command and is_meant else None

    def _walk(self, key: str) -> None:
        completions = self.query_one(OptionList)
        if key == "up":
            completions.action_cursor_up()
        else:
            completions.action_cursor_down()
        self.post_message(self.DoingChanged())

    @property
    def _selected(self) -> Completion | None:
        index = self.query_one(OptionList).highlighted
        if not self.is_completing or index is None or index >= len(self._completions):
            return None
        return self._completions[index]

    def _complete_common(self) -> bool:
        """Insert the common beginning of all completions. False if it adds nothing, or
        if the user highlighted a row.
        """
        text = self.area.text
        # A prefix of characters, not of path parts.
        common = commonprefix([row.line for row in self._completions])  # noqa: RUF071
        if (
            self.query_one(OptionList).highlighted != self._default
            or len(self._completions) < 2
            or not common.startswith(text)
            or common == text
        ):
            return False
        self.replace(common)
        self._quiet_for = None
        self._offer()
        return True

    def _take(self, row: Completion | None) -> None:
        if self._text_before_search is not None:
            self.replace(row.line if row is not None else self.text)
        elif row is not None:
            # Continue with the folder's content, or with the next word.
            further = row.line if row.line.endswith("/") else f"{row.line} "
            more = self._complete(further)
            self.replace(further if more else row.line)
            if more:
                self._quiet_for = None
                self._offer()

    def _recall(self, key: str) -> None:
        walk = self._history.previous if key == "up" else self._history.next
        line = walk(self._draft)
        if line is not None:
            self.replace(line)

    def _close(self) -> None:
        self.remove_class("-completing")
        self._text_before_search = None
        self.post_message(self.DoingChanged())


def _on_one_row(line: str) -> str:
    first, *more = line.strip().split("\n")
    return f"{first}  (+{len(more)} line{'s' * (len(more) != 1)})" if more else first
