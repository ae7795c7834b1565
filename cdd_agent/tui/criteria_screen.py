"""A ticket's acceptance criteria: of each the steps that serve it, the tests they turned green, what they changed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import OptionList, Static

from cdd_agent.errors import CddError
from cdd_agent.sanitize import sanitize_for_display
from cdd_agent.tui.faults import GuardedWidget
from cdd_agent.tui.transcript.actions import show_diff
from cdd_agent.tui.transcript.blocks import BlockKind
from cdd_agent.tui.transcript.widget import Transcript
from cdd_agent.wording import REMARKS, criterion_sign, step_glyph, why

if TYPE_CHECKING:
    from cdd_agent.engine.step_details import StepDetails
    from cdd_agent.events import CriteriaShown, CriterionProof

_SHOWN_STEPS = 20
"""Steps of a criterion that are shown in full: each is read from the run's whole log."""
_KEYS = "↑↓ criterion · PgUp PgDn scroll · Esc closes"


class CriteriaScreen(GuardedWidget, ModalScreen[None]):
    """Criteria above, what serves the chosen one below."""

    DEFAULT_CSS = """
    CriteriaScreen {
        align: center middle;
        & > #criteria { width: 94%; height: 94%; border: round $primary; background: $background; }
        & OptionList { height: auto; max-height: 40%; background: $surface; }
        & OptionList, & OptionList:focus { border: none; }
        & #heading { height: 1; padding: 0 1; text-style: bold; }
        & #keys { height: 1; padding: 0 1; color: $text-muted; text-wrap: nowrap; text-overflow: ellipsis; }
    }
    CriteriaScreen.-narrow > #criteria { width: 100%; height: 100%; border: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,f3", "dismiss", show=False),
        Binding("pageup", "scroll('page_up')", show=False, priority=True),
        Binding("pagedown", "scroll('page_down')", show=False, priority=True),
    ]

    def __init__(self, shown: CriteriaShown, look_at: Callable[[int], StepDetails]) -> None:
        """`look_at` reads all that is known of a step; it may raise `CddError`."""
        super().__init__()
        self._shown, self._look_at = shown, look_at

    def compose(self) -> ComposeResult:
        seen = sum(criterion.is_seen for criterion in self._shown.criteria)
        title = f"{self._shown.title or self._shown.ticket_slug}: {seen} of {len(self._shown.criteria)} criteria seen"
        with Widget(id="criteria"):
            yield Static(sanitize_for_display(title), id="heading", markup=False)
            yield OptionList(*map(_row, self._shown.criteria), markup=False)
            transcript = Transcript()
            transcript.can_focus = False  # the arrows are the list's
            yield transcript
            yield Static(_KEYS, id="keys", markup=False)

    def on_mount(self) -> None:
        self.query_one(OptionList).focus()
        if not self._shown.criteria:
            self.query_one(Transcript).add(BlockKind.NOTE, "The spec has no acceptance criteria yet.")

    def seen(self) -> Hashable:
        return self.query_one(OptionList).highlighted

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        self.fill(self._shown.criteria[event.option_index])

    @work(exclusive=True)
    async def fill(self, criterion: CriterionProof) -> None:
        """Show what serves a criterion."""
        try:
            read = [await asyncio.to_thread(self._look_at, step.number) for step in criterion.steps[:_SHOWN_STEPS]]
        except CddError as error:
            self.notify(error.message, severity="warning", markup=False)
            return
        transcript = self.query_one(Transcript)
        transcript.clear()
        transcript.add(BlockKind.MARKDOWN, criterion.text)
        if not criterion.steps:
            transcript.add(
                BlockKind.WARNING, "No step of the plan serves it; `**Serves:** 1` in a step says that it does."
            )
        for details in read:
            view = details.view
            remark = f" ({REMARKS[view.verification]})" if view.verification in REMARKS else ""
            transcript.add(BlockKind.HEADING, f"{step_glyph(view)} Step {view.number}: {view.title}{remark}")
            if view.status.over and view.evidence is not None:
                transcript.add(BlockKind.WARNING if remark else BlockKind.GOOD, f"Seen: {why(view.evidence)}")
            last = details.attempts[-1] if details.attempts else None
            for name in (test.name for test in (last.tests if last else ()) if test.name in criterion.tests):
                transcript.add(BlockKind.GOOD, name)
            if last and last.diff:
                show_diff(transcript, last.diff)
        if others := criterion.steps[_SHOWN_STEPS:]:
            titles = "\n".join(f"{step_glyph(view)} Step {view.number}: {view.title}" for view in others)
            transcript.add(BlockKind.NOTE, f"and {len(others):,} more; the plan (F2) opens each:\n{titles}")
        transcript.stay_at_top()

    def action_scroll(self, how: str) -> None:
        getattr(self.query_one(Transcript), f"scroll_{how}")(animate=False)


def _row(criterion: CriterionProof) -> str:
    steps = ", ".join(str(step.number) for step in criterion.steps) or "none"
    count = len(criterion.tests)
    tests = f" · {count} test{'s' * (count != 1)}" if count else ""
    text = f"{criterion_sign(criterion)} {criterion.number}. {criterion.text}  (steps: {steps}{tests})"
    return sanitize_for_display(text)
