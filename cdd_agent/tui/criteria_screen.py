"""A ticket's acceptance criteria: of each the steps that serve it, the tests they
turned green, what they changed.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len, set_cell_size
from textual import work
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import OptionList, Static

from cdd_agent.errors import CddError
from cdd_agent.sanitize import sanitize_for_display
from cdd_agent.tickets.outcome_words import evidence_in_words
from cdd_agent.tickets.status import CriterionEdit
from cdd_agent.tui.faults import GuardedWidget
from cdd_agent.tui.transcript.actions import show_diff
from cdd_agent.tui.transcript.blocks import BlockKind
from cdd_agent.tui.transcript.folds import Opening, shortened
from cdd_agent.tui.transcript.widget import Transcript
from cdd_agent.tui.widgets.key_line import KeyLine
from cdd_agent.wording.step_signs import step_glyph, step_remark
from cdd_agent.wording.strength_words import rate_in_words
from cdd_agent.wording.ticket_words import criterion_sign, not_in_this_tree, unserved

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from textual.app import ComposeResult

    from cdd_agent.engine.step_details import StepDetails
    from cdd_agent.events.ticket_events import CriteriaShown, CriterionProof

_SHOWN_STEPS = 20
"""Steps of a criterion that are shown in full."""
_SHOWN_TESTS = 12
"""Of a step."""
_NARROW = 100
"""Cells from which on there is a frame around the screen."""
_LEAST_TEXT = 24
"""Cells of a criterion's words, beside which there is more."""


class CriteriaScreen(GuardedWidget, ModalScreen[None]):
    """Criteria above, what serves the chosen one below."""

    DEFAULT_CSS = """
    CriteriaScreen {
        align: center middle;
        & > #criteria {
            width: 94%; height: 94%; border: round $foreground 40%;
            background: $background;
        }
        & OptionList {
            height: auto; max-height: 40%; background: $surface; text-wrap: nowrap;
            text-overflow: ellipsis;
            scrollbar-size-vertical: 1;
        }
        & OptionList, & OptionList:focus { border: none; }
        & #heading { height: 1; padding: 0 1; text-style: bold; }
        & #keys {
            height: 1; padding: 0 1; color: $text-muted; text-wrap: nowrap;
            text-overflow: ellipsis;
        }
    }
    CriteriaScreen.-narrow > #criteria { width: 100%; height: 100%; border: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,f3", "dismiss", "Close", show=False),
        Binding("pageup", "scroll('page_up')", "Page up", show=False, priority=True),
        Binding(
            "pagedown", "scroll('page_down')", "Page down", show=False, priority=True
        ),
        Binding(
            "ctrl+up", "choose_block(-1)", "Change above", show=False, priority=True
        ),
        Binding(
            "ctrl+down", "choose_block(1)", "Change below", show=False, priority=True
        ),
        Binding("up", "walk('cursor_up')", "Criterion above", show=False),
        Binding("down", "walk('cursor_down')", "Criterion below", show=False),
    ]

    KEYS: ClassVar[str] = "↑↓ criterion · Ctrl+↑↓ change · Enter: open · Esc: close"

    def __init__(
        self, shown: CriteriaShown, look_at: Callable[[int], StepDetails]
    ) -> None:
        """`look_at` reads all that is known of a step; it may raise `CddError`."""
        super().__init__()
        self._shown, self._look_at = shown, look_at

    def compose(self) -> ComposeResult:
        seen = sum(criterion.is_seen for criterion in self._shown.criteria)
        title = (
            f"{self._shown.title or self._shown.ticket_slug}: {seen} of"
            f" {len(self._shown.criteria)} criteria verified"
        )
        with Widget(id="criteria"):
            yield Static(sanitize_for_display(title), id="heading", markup=False)
            yield OptionList(*self._rows(), markup=False)
            transcript = Transcript(follows=False)
            transcript.can_focus = bool(self._shown.criteria)
            yield transcript
            yield KeyLine(self.KEYS, id="keys", markup=False)

    def on_mount(self) -> None:
        self.query_one(OptionList).focus()
        if not self._shown.criteria:
            self.query_one(Transcript).add(
                BlockKind.NOTE, "The spec has no acceptance criteria yet."
            )

    def seen(self) -> Hashable:
        return self.query_one(OptionList).highlighted

    def _rows(self) -> list[str]:
        """A row each, whatever its length and that of its list of steps; all of it is
        below when it is chosen.
        """
        width = self.app.size.width
        room = max(width - 5 if width < _NARROW else width * 94 // 100 - 7, 8)
        return [_row(criterion, room) for criterion in self._shown.criteria]

    def on_resize(self) -> None:
        options = self.query_one(OptionList)
        with self.prevent(OptionList.OptionHighlighted):
            chosen = options.highlighted
            options.set_options(self._rows())
            options.highlighted = chosen

    def on_option_list_option_highlighted(
        self, event: OptionList.OptionHighlighted
    ) -> None:
        self.fill(self._shown.criteria[event.option_index])

    @work(exclusive=True)
    async def fill(self, criterion: CriterionProof) -> None:
        """Show the evidence for a criterion, one step after the other."""
        transcript = self.query_one(Transcript)
        transcript.clear()
        transcript.add(BlockKind.MARKDOWN, criterion.text)
        if not criterion.steps:
            words = unserved(criterion)
            where = "a new step" if criterion.edit else "a step"
            transcript.add(
                BlockKind.WARNING,
                f"{words[0].upper()}{words[1:]}. To fix this, add"
                f" `**Serves:** {criterion.number}` to {where} in plan.md.",
            )
        if criterion.missing:
            words = not_in_this_tree(criterion)
            transcript.add(BlockKind.WARNING, f"{words[0].upper()}{words[1:]}")
        if criterion.strength:
            weak = criterion.strength.is_weak
            transcript.add(
                BlockKind.WARNING if weak else BlockKind.NOTE,
                f"Strength of the tests: {rate_in_words(criterion.strength)}",
            )
        self.call_after_refresh(transcript.scroll_home, animate=False)
        opening = Opening.ALL if len(criterion.steps) == 1 else Opening.HEADER
        for step in criterion.steps[:_SHOWN_STEPS]:
            try:
                details = await asyncio.to_thread(self._look_at, step.number)
            except CddError as error:
                self.notify(error.message, severity="warning", markup=False)
                return
            view = details.view
            remark = f" ({step_remark(view)})" if step_remark(view) else ""
            transcript.add(
                BlockKind.HEADING,
                f"{step_glyph(view)} Step {view.label}: {view.title}{remark}",
            )
            if view.status.is_over and view.evidence is not None:
                transcript.add(
                    BlockKind.WARNING if remark else BlockKind.GOOD,
                    f"Evidence: {evidence_in_words(view.evidence)}",
                )
            last = details.attempts[-1] if details.attempts else None
            tests = [
                test.name
                for test in (last.tests if last else ())
                if test.name in criterion.tests
            ]
            for name in tests[:_SHOWN_TESTS]:
                transcript.add(BlockKind.GOOD, name)
            if len(tests) > _SHOWN_TESTS:
                transcript.add(
                    BlockKind.NOTE, f"and {len(tests) - _SHOWN_TESTS:,} more tests"
                )
            if last and last.diff:
                show_diff(transcript, last.diff, opening)
        if others := criterion.steps[_SHOWN_STEPS:]:
            titles = "\n".join(
                f"{step_glyph(view)} Step {view.label}: {view.title}" for view in others
            )
            transcript.add(
                BlockKind.NOTE,
                f"and {len(others):,} more. Open each from the plan (F2):\n{titles}",
            )
        self.call_after_refresh(transcript.scroll_home, animate=False)

    def action_choose_block(self, step: int) -> None:
        self.query_one(Transcript).choose_block(step)

    def action_walk(self, how: str) -> None:
        """Also from the changes below."""
        options = self.query_one(OptionList)
        options.focus()
        getattr(options, f"action_{how}")()

    def action_scroll(self, how: str) -> None:
        getattr(self.query_one(Transcript), f"scroll_{how}")(animate=False)


def _row(criterion: CriterionProof, room: int) -> str:
    """Return a criterion in `room` cells: its text, shortened, and the number of its
    steps and tests.
    """
    steps, tests = len(criterion.steps), len(criterion.tests)
    facts = f"{steps} step{'s' * (steps != 1)}" if steps else "no step"
    if criterion.edit:
        facts = "new" if criterion.edit is CriterionEdit.NEW else "changed"
    facts += f" · {tests} test{'s' * (tests != 1)}" if tests else ""
    words = sanitize_for_display(
        " ".join(
            f"{criterion_sign(criterion)} {criterion.number}. {criterion.text}".split()
        )
    )
    left = room - cell_len(facts) - 2
    if left < _LEAST_TEXT:
        return shortened(words, room)
    return f"{set_cell_size(shortened(words, left), left)}  {facts}"
