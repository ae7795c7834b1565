"""The spec beside the conversation."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec.structs import replace
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from cdd_agent.events.notices import NoticeKind
from cdd_agent.events.ticket_events import CriterionView, QuestionView, SpecShown
from cdd_agent.tui.widgets.spec import SpecPanel
from tests.agents.asking import COMPLETE, TEMPLATE, asks
from tests.support.projects import SLUG, Sandbox, noticed
from tests.tui.person import person_at

EMPTY = SpecShown(
    ticket_slug=SLUG,
    title="",
    type="feature",
    priority="medium",
    description="",
    criteria=(),
    scope=(),
    technical_notes="",
    missing=(
        "title: one line",
        "description: what",
        "acceptance_criteria: at least one",
    ),
    open_questions=(),
    not_written=(),
)
FULL = replace(
    EMPTY,
    title="Monthly expense report",
    description=(
        "Whoever keeps a list of expenses sees what a month cost.\n\nBy category."
    ),
    criteria=(
        CriterionView("An empty month is left out", "test_report.py"),
        CriterionView("It is fast"),
    ),
    scope=(("report", ("text", "no files")),),
    technical_notes="Only the standard library.",
    missing=(),
    open_questions=(QuestionView(1, "How many seconds may it take?"),),
    not_written=("title",),
)


class PanelApp(App[None]):
    def compose(self) -> ComposeResult:
        yield SpecPanel()


@asynccontextmanager
async def panel_of(
    spec: SpecShown | None, size: tuple[int, int] = (38, 30)
) -> AsyncIterator[tuple[SpecPanel, Pilot]]:
    app = PanelApp()
    async with app.run_test(size=size) as pilot:
        panel = app.query_one(SpecPanel)
        panel.show(spec)
        await pilot.pause()
        await pilot.pause()
        yield panel, pilot


def rows(panel: SpecPanel) -> list[str]:
    return [panel.render_line(y).text.rstrip() for y in range(panel.size.height)]


async def test_an_empty_spec_shows_what_is_missing() -> None:
    async with panel_of(EMPTY) as (panel, _):
        assert [row for row in rows(panel) if row] == [
            *(
                "Spec 0/3 ╌╌╌╌╌╌╌╌╌╌",
                "○ Title",
                "○ Description",
                "○ Acceptance criteria",
            )
        ]


async def test_without_a_spec_it_is_hidden() -> None:
    async with panel_of(FULL) as (panel, pilot):
        panel.show(None)
        await pilot.pause()
        assert not panel.display


async def test_a_long_or_odd_text_stays_in_its_place() -> None:
    async with panel_of(FULL, (24, 40)) as (panel, pilot):
        for text in ("x" * 500, "日本" * 100, "word " * 100, "a\x1b[31mb\tc\x07"):
            panel.show(replace(FULL, title=text, description=text))
            await pilot.pause()
            strips = [panel.render_line(y) for y in range(panel.size.height)]
            assert {strip.cell_length for strip in strips} == {panel.size.width}
            assert not set("".join(rows(panel))) & set(map(chr, range(32)))
            assert "○ Acceptance criteria" in rows(panel)


async def test_a_long_spec_scrolls_and_the_first_line_stays() -> None:
    criteria = tuple(CriterionView(f"Criterion {number}", "x") for number in range(100))
    full = replace(FULL, criteria=criteria, open_questions=())
    async with panel_of(full, (38, 12)) as (panel, pilot):
        panel.scroll_end(animate=False)
        await pilot.pause()
        assert rows(panel)[0] == "Spec 3/3 ━━━━━━━━━━"
        assert rows(panel)[-1].endswith(": title")


async def test_the_spec_is_shown_next_to_the_conversation_and_fills_up(
    sandbox: Sandbox,
) -> None:
    sandbox.write(spec=TEMPLATE).replies(
        asks("Who needs it?"), asks("What for?", **COMPLETE)
    )
    async with person_at(sandbox, f"/socrates {SLUG}", (100, 30)) as person:
        assert "○ Title" in person.screen
        await person.say("Readers.")
        assert "✓ Title" in person.screen
        assert "1 criterion" not in person.told

        # in a narrow window a line takes the place of the panel
        await person.pilot.resize_terminal(80, 40)
        await person.pilot.pause()
        assert "✓ Title" not in person.screen
        await person.say("summary")
        assert COMPLETE["acceptance_criteria"][0]["check"] in person.told

        await person.say("approve anyway")
        assert NoticeKind.SPEC_WRITTEN in noticed(person.shown)


async def test_escape_stops_the_reply_and_keeps_what_was_said(sandbox: Sandbox) -> None:
    sandbox.write(spec=TEMPLATE).replies(
        asks("Who needs it?"), asks("What for? " + "word " * 50)
    )
    async with person_at(sandbox, f"/socrates {SLUG}", (80, 40)) as person:
        sandbox.model.pace = 20
        await person.begin("Readers do.")
        await person.until_told("What for?")
        await person.press("escape")
        await person.until(lambda: not person.is_waiting)
        assert NoticeKind.UNANSWERED in noticed(person.shown)
        sandbox.model.pace = 0
        await person.say("continue")
        assert "Readers do." in sandbox.prompt()
