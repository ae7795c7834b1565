"""The spec beside the conversation, row by row."""

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
            "  3 How many seconds may it take?",
            "Not in spec.yaml yet: title",
        ]
