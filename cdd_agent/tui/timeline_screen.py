"""A run as a timeline: one walks along the points between its steps, sees what changed,
and goes back from there.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.reactive import reactive
from textual.screen import ModalScreen
from textual.widget import Widget

from cdd_agent.errors import CddError
from cdd_agent.sanitize import sanitize_for_display
from cdd_agent.tickets.outcome_words import evidence_in_words
from cdd_agent.tui.faults import GuardedWidget
from cdd_agent.tui.transcript.actions import show_diff
from cdd_agent.tui.transcript.blocks import BlockKind
from cdd_agent.tui.transcript.widget import Transcript
from cdd_agent.tui.widgets.key_line import KeyLine
from cdd_agent.wording.step_signs import step_glyph

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable

    from textual.app import ComposeResult

    from cdd_agent.engine.step_details import StepDetails
    from cdd_agent.engine.timeline import Timeline
    from cdd_agent.events.step_events import UndoPreview
    from cdd_agent.events.step_summary import StepSummary


class _Row(GuardedWidget, Widget):
    """The points: the start, one after each step, and those that were undone."""

    DEFAULT_CSS = """
    _Row {
        height: 1; padding: 0 1; background: $surface; text-wrap: nowrap;
        text-overflow: ellipsis;
    }
    """
    chosen: reactive[int] = reactive(0)

    def __init__(self, steps: tuple[StepSummary, ...], undone: int) -> None:
        """The last `undone` of the steps are those that were undone."""
        super().__init__()
        self._steps, self._undone = steps, undone

    def render(self) -> Content:
        names = ["start", *(f"{step_glyph(step)}{step.label}" for step in self._steps)]
        parts: list[str | tuple[str, str]] = []
        now = len(names) - 1 - self._undone
        first = max(0, min(self.chosen, now) - self.size.width // 12)
        for place in range(first, len(names)):
            look = (
                "bold reverse"
                if place == self.chosen
                else "$text-muted"
                if place > now
                else ""
            )
            parts += (
                [("╌╌" if place > now else "──", "$text-muted")]
                if place > first
                else []
            )
            parts += [(f" {names[place]}{' now' if place == now else ''} ", look)]
        return Content.assemble("… " if first else "", *parts)


class TimelineScreen(GuardedWidget, ModalScreen[str]):
    """Closed with a line for the prompt, it is that which goes to the chosen point; an
    empty one says nothing.
    """

    DEFAULT_CSS = """
    TimelineScreen {
        align: center middle;
        & > #timeline {
            width: 94%; height: 94%; border: round $foreground 40%;
            background: $background;
        }
        & #keys {
            height: 1; padding: 0 1; color: $text-muted; text-wrap: nowrap;
            text-overflow: ellipsis;
        }
    }
    TimelineScreen.-narrow > #timeline { width: 100%; height: 100%; border: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,f7", "close", "Close", show=False),
        Binding("right", "walk(1)", "Next point", show=False, priority=True),
        Binding("left", "walk(-1)", "Previous point", show=False, priority=True),
        Binding("home", "walk(-1000000)", "Start", show=False, priority=True),
        Binding("end", "walk(1000000)", "Last point", show=False, priority=True),
        Binding(
            "enter", "go", "Put the command into the prompt", show=False, priority=True
        ),
    ]

    KEYS: ClassVar[str] = "←→ point · PgUp PgDn scroll · Enter: go there · Esc: close"

    def __init__(
        self,
        timeline: Timeline,
        look_at: Callable[[int], StepDetails],
        preview: Callable[[int], Awaitable[UndoPreview]],
    ) -> None:
        """`look_at` reads all that is known of a step, `preview` says what going back
        to before one would do; both may raise `CddError`.
        """
        super().__init__()
        self._look_at, self._preview = look_at, preview
        self._done, self._undone = timeline.steps, timeline.undone
        self._steps = (*timeline.steps, *timeline.undone)

    def compose(self) -> ComposeResult:
        with Widget(id="timeline"):
            yield _Row(self._steps, len(self._undone))
            yield Transcript(follows=False)
            yield KeyLine(self.KEYS, id="keys", markup=False)

    def on_mount(self) -> None:
        self.query_one(Transcript).focus()
        self.query_one(_Row).chosen = len(self._done)
        self.fill(len(self._done))

    def seen(self) -> Hashable:
        return self.query_one(_Row).chosen

    def action_walk(self, by: int) -> None:
        row = self.query_one(_Row)
        row.chosen = min(max(row.chosen + by, 0), len(self._steps))
        self.fill(row.chosen)

    def action_go(self) -> None:
        """Close with the command that goes there, which the user can then send."""
        place = self.query_one(_Row).chosen
        if place > len(self._done):
            self.dismiss("redo")
        elif place < len(self._done):
            self.dismiss(f"undo {self._done[place].label}")
        else:
            self.notify("The project is already at this point.")

    def action_close(self) -> None:
        self.dismiss("")

    @work(exclusive=True)
    async def fill(self, place: int) -> None:
        """Show a point: what its step changed, and what would become of files on the
        way there.
        """
        transcript = self.query_one(Transcript)
        transcript.clear()
        if place > len(self._done):
            transcript.add(
                BlockKind.NOTE,
                "Undone. To redo all undone steps, press Enter: it puts `redo` into"
                " the prompt.",
            )
        try:
            if place < len(self._done):
                _say_what_would_be(
                    await self._preview(self._done[place].number), transcript
                )
            if place == 0:
                transcript.add(BlockKind.NOTE, "Before the first step.")
                return
            details = await asyncio.to_thread(
                self._look_at, self._steps[place - 1].number
            )
        except CddError as error:
            transcript.add(BlockKind.WARNING, error.message)
            return
        step = self._steps[place - 1]
        transcript.add(BlockKind.HEADING, f"After step {step.label}: {step.title}")
        if step.evidence is not None:
            transcript.add(
                BlockKind.NOTE, f"Evidence: {evidence_in_words(step.evidence)}"
            )
        diff = next(
            (attempt.diff for attempt in reversed(details.attempts) if attempt.diff), ""
        )
        if diff:
            show_diff(transcript, diff)
        else:
            transcript.add(BlockKind.NOTE, "No files changed.")
        transcript.scroll_home(animate=False)


def _say_what_would_be(preview: UndoPreview, transcript: Transcript) -> None:
    """Show what an undo to a point would do to files, before the user confirms it."""
    labels = ", ".join(preview.labels)
    transcript.add(
        BlockKind.NOTE,
        f"Going back to this point undoes step {labels}. Enter puts the command into"
        " the prompt.",
    )
    for label, paths, kind in (
        ("Reverted:", preview.restored, BlockKind.OUTPUT),
        ("merged with your edits:", preview.merged, BlockKind.NOTE),
        ("edited since, left unchanged:", preview.kept, BlockKind.WARNING),
        (
            "restored with the edits made between the steps:",
            preview.edited,
            BlockKind.WARNING,
        ),
    ):
        for path in paths:
            transcript.add(kind, sanitize_for_display(f"{label} {path}"))
