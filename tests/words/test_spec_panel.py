"""The spec beside the conversation, row by row."""

from msgspec.structs import replace

from cdd_agent.events.ticket_events import SpecWords
from cdd_agent.wording.spec_words import spec_in_full, spec_in_short
from tests.tui.test_spec import FULL, panel_of, rows


async def test_it_shows_what_is_known_and_what_is_open() -> None:
    async with panel_of(FULL) as (panel, _):
        assert [row for row in rows(panel) if row] == [
            "Spec 2/4 ━━━━━╌╌╌╌╌",
            "✓ Title",
            "  Monthly expense report",
            "✓ Description",
            "  Whoever keeps a list of expenses",
            "  sees what a month cost.",
            "  By category.",
            "○ Acceptance criteria",
            "  ✓ An empty month is left out",
            "  ? It is fast",
            "✓ Scope",
            "  report: text, no files",
            "✓ Technical notes",
            "  Only the standard library.",
            "? Open questions",
            "  1 How many seconds may it take?",
            "Not in spec.yaml yet: title",
        ]


async def test_words_that_would_be_lost_are_no_progress() -> None:
    lost = (SpecWords("acceptance_criteria", "It prints"), SpecWords("title", "Report"))
    spec = replace(FULL, lost=lost, not_written=("title", "acceptance_criteria"))
    async with panel_of(spec) as (panel, _):
        shown = [row for row in rows(panel) if row]
    assert shown[:2] == ["Spec 1/5 ━━╌╌╌╌╌╌╌╌", "○ Title"]
    assert shown[-5:] == [
        "! To be removed or changed",
        "  - It prints",
        "  - Report",
        "Not in spec.yaml yet: title,",
        "criteria",
    ]
    assert spec_in_short(spec) == (
        "2 criteria · 1 without a check · 1 open question · not written yet · 2 to be"
        " removed or reworded"
    )
    assert (
        "### Open questions\n\n1. How many seconds may it take?\n\nType `drop 1`"
        " to drop question 1.\n\n### To be removed or reworded in spec.yaml\n\n-"
        " It prints\n- Report\n\n"
    ) in spec_in_full(spec)
