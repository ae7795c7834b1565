from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from cdd_agent.errors import CddError
from cdd_agent.events.notices import Tone
from cdd_agent.fleet.local_runs import board_here
from cdd_agent.fleet.table import table
from cdd_agent.tui.screens.overlay import SCROLLING, Overlay

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from textual.widget import Widget

    from cdd_agent.fleet.board import Board
    from cdd_agent.session.open_project import Project

_EVERY = 1.0
_LOOKS = {
    Tone.HEADING: "bold",
    Tone.QUIET: "$text-muted",
    Tone.GOOD: "$text-success",
    Tone.WARNING: "$text-warning",
    Tone.ERROR: "$text-error",
}
_NOTHING = (
    "No runs in progress and no worktrees. To run every planned ticket, type"
    " `cdd exec --all planned` in a terminal."
)


class BoardScreen(Overlay):
    """Reads the disk every second, because runs are separate processes."""

    DEFAULT_CSS = """
    BoardScreen VerticalScroll { height: auto; }
    BoardScreen #runs { height: auto; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *SCROLLING,
        Binding("q", "close", "Close", show=False),
    ]
    KEYS = "↑↓ PgUp PgDn: scroll · Esc: close"
    SCROLLS = "VerticalScroll"

    def __init__(self, project: Project) -> None:
        super().__init__()
        self._project = project

    def content(self) -> Iterator[Widget]:
        with VerticalScroll(can_focus=False):
            yield Static(id="runs", markup=False)

    def on_mount(self) -> None:
        self.head("Runs: reading …")
        self.set_interval(_EVERY, self.look)

    def on_resize(self) -> None:
        # This also shows the runs first: earlier, the width is unknown.
        self.call_after_refresh(self.look)

    @work(group="board", exclusive=True)
    async def look(self) -> None:
        project = self._project
        try:
            board = await asyncio.to_thread(
                lambda: board_here(project.root, project.tickets.list())
            )
        except CddError as error:
            self.hint(error.message)
            return
        self.show(board)

    def show(self, board: Board) -> None:
        self.head("Runs in this project")
        runs = self.query_one("#runs", Static)
        if not board.rows:
            runs.update(_NOTHING)
            return
        lines = table(board, time.time(), max(runs.content_size.width, 20))
        runs.update(
            Content("\n").join(
                Content.styled(text, _LOOKS.get(tone, "")) for text, tone in lines
            )
        )

    def seen(self) -> Hashable:
        return self.query_one(VerticalScroll).scroll_target_y
