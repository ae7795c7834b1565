from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.binding import Binding, BindingType

from cdd_agent.errors import CddError
from cdd_agent.frontend import REST
from cdd_agent.tui.inspector.actions import describe_preview
from cdd_agent.tui.screens.overlay import SCROLLING, Overlay
from cdd_agent.tui.transcript.blocks import BlockKind
from cdd_agent.tui.transcript.widget import Transcript

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from textual.widget import Widget

    from cdd_agent.tui.inspector.actions import ActionOffer
    from cdd_agent.tui.inspector.source import RunSource

SEND, PUT = "send", "put"
"""Results of the screen: send the line, or put it into the prompt."""


class ActionScreen(Overlay):
    """Shows an action and waits for Enter. A key before the user can have read the
    effect must be repeated.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "send", "Send the command", show=False),
        Binding("tab", "put", "Put the command into the prompt", show=False),
        *SCROLLING,
    ]
    KEYS = "Enter: send it · Tab: put it into the prompt · Esc: back"
    SCROLLS = "Transcript"

    def __init__(self, offer: ActionOffer, source: RunSource) -> None:
        super().__init__()
        self._offer, self._source = offer, source
        self._seen_at = source.now()
        self._is_ready = offer.previews_undo_of is None

    @property
    def keys(self) -> str:
        return self.KEYS.replace("send it", f"send `{self._offer.line}`")

    def content(self) -> Iterator[Widget]:
        transcript = Transcript(follows=False)
        # The screen receives all keys.
        transcript.can_focus = False
        transcript.styles.height = "auto"
        yield transcript

    def on_mount(self) -> None:
        self.head(self._offer.title)
        transcript = self.query_one(Transcript)
        for text in self._offer.effects:
            transcript.add(BlockKind.NOTE, text)
        if self._offer.previews_undo_of is not None:
            self._preview(self._offer.previews_undo_of)

    @work(exclusive=True)
    async def _preview(self, number: int) -> None:
        transcript = self.query_one(Transcript)
        try:
            preview = await self._source.preview_undo(number)
        except CddError as error:
            text = f"{error.message}\n{error.hint or ''}".strip()
            transcript.add(BlockKind.ERROR, text)
            return
        for kind, text in describe_preview(preview):
            transcript.add(kind, text)
        self._is_ready = True
        self._seen_at = self._source.now()
        self.call_after_refresh(self.fit)

    def seen(self) -> Hashable:
        scrolled = [part.scroll_target_y for part in self.query(Transcript)]
        return self._seen_at, self._is_ready, tuple(scrolled)

    def action_send(self) -> None:
        if not self._is_ready:
            self.hint("What this would do is not known yet.")
            return
        if self._source.is_busy():
            self.hint("A turn is running. Wait, or stop it first: Esc twice.")
            return
        if self._source.now() - self._seen_at < REST:
            self._seen_at = 0.0
            self.hint("You had no time to read this. Press the key again.")
            return
        self.dismiss(SEND)

    def action_put(self) -> None:
        self.dismiss(PUT)
