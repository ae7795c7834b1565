from collections.abc import Iterator
from typing import ClassVar

from cdd_agent.events.ticket_events import PlanProposed, ProposedStep
from cdd_agent.tickets.plan_comparison import StepChangeKind
from cdd_agent.tui.widgets.row_panel import PanelRow, RowPanel, wrapped_rows
from cdd_agent.wording.proposal_words import STEP_SIGNS

_COMPLETED = "✓"
_UNCHANGED = "·"
_MOST_ROWS = 3


class ProposalPanel(RowPanel):
    """Shows an unapproved plan. Its steps cannot be opened or run."""

    PREFIX = "proposal"
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"proposal--{look}"
        for look in ("total", "text", "quiet", "done", "removed", "changed")
    }
    DEFAULT_CSS = """
    ProposalPanel {
        & > .proposal--total { text-style: bold; color: $text-warning; }
        & > .proposal--quiet { color: $text-muted; }
        & > .proposal--done { color: $text-success; }
        & > .proposal--changed { color: $text-accent; }
        & > .proposal--removed { color: $text-error; }
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._proposal: PlanProposed | None = None

    @property
    def has_plan(self) -> bool:
        return self._proposal is not None

    def show(self, proposal: PlanProposed | None) -> None:
        """Show a proposal; None hides the panel. The same plan keeps its marks."""
        shown = self._proposal
        if proposal is not None and shown is not None and proposal.text == shown.text:
            return
        self._proposal = proposal
        self.scroll_home(animate=False)
        self.show_rows(is_empty=proposal is None)

    def heading(self) -> str:
        if self._proposal is None:
            return ""
        count = len(self._proposal.steps)
        return f"Proposed · {count} step{'s' * (count != 1)} · not approved"

    def rows(self, width: int) -> Iterator[PanelRow]:
        assert self._proposal is not None
        for step in self._proposal.steps:
            yield from _step_rows(step, width, is_new=self._proposal.changes is None)
        if self._proposal.changes is None:
            return
        for change in self._proposal.changes.steps:
            if change.kind is StepChangeKind.REMOVED:
                sign = STEP_SIGNS[change.kind]
                first = f"{sign} {change.label}. "
                text = f"{change.title} (removed)"
                yield from wrapped_rows(text, width, first, "removed", _MOST_ROWS)


def _step_rows(step: ProposedStep, width: int, *, is_new: bool) -> Iterator[PanelRow]:
    sign, look = _UNCHANGED, "text"
    if step.is_completed:
        sign, look = _COMPLETED, "done"
    if step.kind is not None:
        sign, look = STEP_SIGNS[step.kind], "changed"
    elif is_new and not step.is_completed:
        sign = STEP_SIGNS[StepChangeKind.NEW]
    first = f"{sign} {step.label}. "
    yield from wrapped_rows(step.title, width, first, look, _MOST_ROWS)
    indent = " " * len(first)
    details = [", ".join(step.files)]
    if not step.is_completed:
        checks = ", ".join(step.checks).replace("`", "")
        details.append(f"check: {checks}")
    for text in details:
        if text:
            yield from wrapped_rows(text, width, indent, "quiet", _MOST_ROWS)
