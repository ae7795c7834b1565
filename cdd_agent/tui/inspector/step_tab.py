"""The tab of one step, live while the step runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from msgspec.structs import replace
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from cdd_agent.tickets.status import StepStatus
from cdd_agent.tui.faults import GuardedWidget
from cdd_agent.tui.inspector.step_page import StepPage, step_facts, step_heading
from cdd_agent.tui.transcript.blocks import BlockKind
from cdd_agent.tui.transcript.widget import Transcript

if TYPE_CHECKING:
    from collections.abc import Hashable

    from textual.app import ComposeResult

    from cdd_agent.engine.step_details import StepDetails
    from cdd_agent.events.step_summary import StepSummary
    from cdd_agent.tui.inspector.step_page import Block
    from cdd_agent.tui.transcript.folds import Fold

_MOST_STREAMED = 100_000


class StepTab(GuardedWidget, Vertical):
    DEFAULT_CSS = """
    StepTab {
        & > #step-heading { height: auto; max-height: 4; padding: 0 1; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right_square_bracket", "attempt(1)", "Next attempt", show=False),
        Binding("left_square_bracket", "attempt(-1)", "Previous attempt", show=False),
    ]

    def __init__(self, *, id: str) -> None:  # noqa: A002  # Textual's name
        super().__init__(id=id)
        self._details: StepDetails | None = None
        self._place = 0
        """The index of the shown attempt."""
        self._folds: dict[str, Fold] = {}
        self._news: tuple[Block, ...] = ()
        self.activity = ""
        self._streamed = ""
        """The part of the arriving reply since the step was opened."""

    def compose(self) -> ComposeResult:
        yield Static(id="step-heading", markup=False)
        yield Transcript(follows=False)

    @property
    def transcript(self) -> Transcript:
        return self.query_one(Transcript)

    @property
    def attempts(self) -> int:
        return len(self._details.attempts) if self._details else 0

    @property
    def details(self) -> StepDetails | None:
        return self._details

    def seen(self) -> Hashable:
        number = self._details.step.number if self._details else None
        return number, self._place, self._news

    def show(self, details: StepDetails) -> None:
        """Show a step. The same step keeps its attempt, its position and its open
        blocks.
        """
        current = self._details
        is_same = current is not None and _identity(current) == _identity(details)
        was_last = current is not None and self._place >= len(current.attempts) - 1
        self._details = details
        if not is_same:
            self._news, self._folds = (), {}
            self.activity = self._streamed = ""
        if not is_same or was_last:
            self._place = max(len(details.attempts) - 1, 0)
        self._write(keeps_place=is_same)

    def show_problem(self, kind: BlockKind, text: str) -> None:
        self._details = None
        self.query_one("#step-heading", Static).update("")
        self.transcript.clear()
        self.transcript.add(kind, text)

    def show_summary(self, view: StepSummary) -> None:
        if self._details is None or self._details.view.number != view.number:
            return
        self._details = replace(self._details, view=view)
        if view.status is not StepStatus.IN_PROGRESS:
            self.activity = self._streamed = ""
        self._write_heading()

    def show_activity(self, activity: str) -> None:
        if activity != self.activity:
            self.activity = activity
            self._write_heading()

    def stream(self, text: str) -> None:
        """Add to the arriving reply at the end of the page."""
        if not self._streamed:
            self.transcript.add(BlockKind.HEADING, "The reply arrives")
        self._streamed = (self._streamed + text)[-_MOST_STREAMED:]
        self.transcript.write(text)

    def end_stream(self) -> None:
        """Forget the arriving reply: the page contains it from now on."""
        self._streamed = ""

    def report(self, *news: Block) -> None:
        """Show the outcome of an edit above the step's text."""
        self._news = news
        self._write(keeps_place=False)

    def action_attempt(self, by: int) -> None:
        self._place = min(max(self._place + by, 0), max(self.attempts - 1, 0))
        self._write(keeps_place=False)

    def _write(self, *, keeps_place: bool) -> None:
        details = self._details
        if details is None:
            return
        self._write_heading()
        transcript = self.transcript
        row = transcript.scroll_offset.y
        transcript.clear()
        for kind, text in self._news:
            transcript.add(kind, text)
        attempts = details.attempts
        attempt = attempts[self._place] if attempts else None
        StepPage(details, attempt, self._folds).write(transcript)
        if self._streamed:
            transcript.add(BlockKind.HEADING, "The reply arrives")
            transcript.write(self._streamed)
        if keeps_place and row:
            self.call_after_refresh(transcript.scroll_to, y=row, animate=False)
        else:
            transcript.scroll_home(animate=False)

    def _write_heading(self) -> None:
        details = self._details
        if details is None:
            return
        facts = step_facts(
            details.view, self._place + 1, len(details.attempts), self.activity
        )
        self.query_one("#step-heading", Static).update(
            Content.assemble(
                (step_heading(details.view), "bold"), "\n", (facts, "$text-muted")
            )
        )


def _identity(details: StepDetails) -> tuple[str, int]:
    return details.ticket_slug, details.step.number
