"""The tab of acceptance criteria: a list of criteria and steps, with the evidence of
the current row below.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.binding import Binding, BindingType

from cdd_agent.errors import CddError
from cdd_agent.events.ticket_events import CriterionProof
from cdd_agent.tickets.outcome_words import evidence_in_words
from cdd_agent.tickets.status import StepOutcome
from cdd_agent.tui.inspector.list_tab import ListTab
from cdd_agent.tui.inspector.row_list import ListRow, RowGroup, RowList
from cdd_agent.tui.inspector.words import count_of, step_look, step_name
from cdd_agent.tui.transcript.actions import show_diff
from cdd_agent.tui.transcript.blocks import BlockKind
from cdd_agent.tui.transcript.folds import Opening
from cdd_agent.tui.transcript.widget import Transcript
from cdd_agent.wording.step_signs import step_remark
from cdd_agent.wording.strength_words import rate_in_words
from cdd_agent.wording.ticket_words import criterion_sign, not_in_this_tree, unserved

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from textual.app import ComposeResult

    from cdd_agent.engine.step_details import StepDetails
    from cdd_agent.events.step_summary import StepSummary

_SHOWN_STEPS = 20
"""Maximum steps of a criterion with a row and evidence."""
_SHOWN_TESTS = 12


class CriteriaTab(ListTab):
    DEFAULT_CSS = """
    CriteriaTab {
        & > RowList { height: auto; max-height: 50%; background: $surface; }
        & > Transcript { height: 1fr; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("pageup", "scroll('page_up')", "Page up", show=False, priority=True),
        Binding(
            "pagedown", "scroll('page_down')", "Page down", show=False, priority=True
        ),
    ]

    def __init__(self, read_step: Callable[[int], StepDetails], *, id: str) -> None:  # noqa: A002  # Textual's name
        super().__init__(id=id)
        self._read_step = read_step
        self._criteria: dict[int, CriterionProof] = {}

    def compose(self) -> ComposeResult:
        yield from super().compose()
        transcript = Transcript(follows=False)
        transcript.can_focus = False
        yield transcript

    @property
    def transcript(self) -> Transcript:
        return self.query_one(Transcript)

    def show_criteria(
        self, criteria: Sequence[CriterionProof], number: int | None = None
    ) -> None:
        """Show the criteria. `number` moves the cursor to that step."""
        current = self.rows.row
        self._criteria = {each.number: each for each in criteria}
        verified = sum(each.is_seen for each in criteria)
        facts = f"{verified} of {count_of(len(criteria), 'criterion')} verified"
        if len(criteria) != 1:
            facts = f"{verified} of {len(criteria)} criteria verified"
        groups = [_group(each) for each in criteria]
        self.show(facts, groups, _find_key(groups, number))
        row = self.rows.row
        if row is not None and row == current:
            self.show_evidence(row)

    def on_row_list_highlighted(self, event: RowList.Highlighted) -> None:
        self.show_evidence(event.row)

    @work(exclusive=True)
    async def show_evidence(self, row: ListRow) -> None:
        place, number = _read_key(row)
        criterion = self._criteria.get(place)
        if criterion is None:
            return
        transcript = self.transcript
        transcript.clear()
        transcript.add(BlockKind.MARKDOWN, criterion.text)
        for kind, text in _notes(criterion):
            transcript.add(kind, text)
        steps = [step for step in criterion.steps if number in (None, step.number)]
        opening = Opening.ALL if len(steps) == 1 else Opening.HEADER
        for step in steps[:_SHOWN_STEPS]:
            try:
                details = await asyncio.to_thread(self._read_step, step.number)
            except CddError as error:
                transcript.add(BlockKind.WARNING, f"Step {step.label}: {error.message}")
                continue
            _add_step(transcript, criterion, details, opening)
        others = len(steps) - _SHOWN_STEPS
        if others > 0:
            transcript.add(BlockKind.NOTE, f"and {count_of(others, 'more step')}")
        self.call_after_refresh(transcript.scroll_home, animate=False)

    def action_scroll(self, how: str) -> None:
        getattr(self.transcript, f"scroll_{how}")(animate=False)


def criterion_state(criterion: CriterionProof) -> str:
    if criterion.edit is not None:
        return criterion.edit.value
    if not criterion.steps:
        return "not covered"
    if criterion.is_seen:
        return "verified"
    if criterion.missing:
        return "files missing"
    passed = sum(step.outcome is StepOutcome.PASSED for step in criterion.steps)
    return f"{passed} of {count_of(len(criterion.steps), 'step')} verified"


def _group(criterion: CriterionProof) -> RowGroup:
    facts = [criterion_state(criterion)]
    if criterion.tests:
        facts.append(count_of(len(criterion.tests), "test"))
    if criterion.strength:
        facts.append(f"strength {criterion.strength.percent} %")
    look = ""
    if criterion.is_seen:
        look = "good"
    elif criterion.edit or not criterion.steps or criterion.missing:
        look = "warning"
    text = f"{criterion_sign(criterion)} {criterion.number}. {criterion.text}"
    key = ("criterion", criterion.number, None)
    head = ListRow(key, text, " · ".join(facts), look)
    rows = [
        _step_row(criterion.number, step) for step in criterion.steps[:_SHOWN_STEPS]
    ]
    others = len(criterion.steps) - len(rows)
    if others > 0:
        more = ("criterion", criterion.number, None, "more")
        rows.append(ListRow(more, f"and {count_of(others, 'more step')}", "", "muted"))
    return RowGroup(head, tuple(rows))


def _step_row(place: int, step: StepSummary) -> ListRow:
    facts = []
    evidence = step.evidence
    if evidence is not None and evidence.fixed + evidence.new:
        facts.append(f"+{count_of(evidence.fixed + evidence.new, 'test')}")
    if step.files:
        facts.append(count_of(len(step.files), "file"))
    key = ("criterion", place, step.number)
    return ListRow(
        key, step_name(step), " · ".join(facts), step_look(step), step.number
    )


def _find_key(groups: Sequence[RowGroup], number: int | None) -> object:
    for group in groups:
        for row in group.rows:
            if number is not None and row.target == number:
                return row.key
    return None


def _read_key(row: ListRow) -> tuple[int, int | None]:
    assert isinstance(row.key, tuple)
    return row.key[1], row.key[2]


def _notes(criterion: CriterionProof) -> list[tuple[BlockKind, str]]:
    notes = []
    if not criterion.steps:
        words = unserved(criterion)
        where = "a new step" if criterion.edit else "a step"
        text = (
            f"{words[0].upper()}{words[1:]}. To fix this, add"
            f" `**Serves:** {criterion.number}` to {where} in plan.md."
        )
        notes.append((BlockKind.WARNING, text))
    if criterion.missing:
        words = not_in_this_tree(criterion)
        notes.append((BlockKind.WARNING, f"{words[0].upper()}{words[1:]}"))
    if criterion.strength:
        kind = BlockKind.WARNING if criterion.strength.is_weak else BlockKind.NOTE
        rate = rate_in_words(criterion.strength)
        notes.append((kind, f"Strength of the tests: {rate}"))
    return notes


def _add_step(
    transcript: Transcript,
    criterion: CriterionProof,
    details: StepDetails,
    opening: Opening,
) -> None:
    view = details.view
    transcript.add(BlockKind.HEADING, f"Step {step_name(view)}")
    if view.status.is_over and view.evidence is not None:
        kind = BlockKind.WARNING if step_remark(view) else BlockKind.GOOD
        transcript.add(kind, f"Evidence: {evidence_in_words(view.evidence)}")
    tests = []
    if details.attempts:
        for test in details.attempts[-1].tests:
            if test.name in criterion.tests:
                tests.append(test.name)
    for name in tests[:_SHOWN_TESTS]:
        transcript.add(BlockKind.GOOD, name)
    others = len(tests) - _SHOWN_TESTS
    if others > 0:
        transcript.add(BlockKind.NOTE, f"and {count_of(others, 'more test')}")
    if details.attempts and details.attempts[-1].diff:
        show_diff(transcript, details.attempts[-1].diff, opening)
