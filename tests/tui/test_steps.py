from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from textual.app import App, ComposeResult
from textual.pilot import Pilot

from cdd_agent.cost import Cost
from cdd_agent.events.step_events import StepStarted
from cdd_agent.events.step_summary import StepFinished, StepSummary
from cdd_agent.tickets.status import Evidence, StepStatus, Verification
from cdd_agent.tui.widgets.steps import StepList

DONE, FAILED = StepStatus.COMPLETED, StepStatus.FAILED
PASSED = Verification.PASSED
TITLE = "Sum up the prices of a cart"


class ListApp(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.opened: list[int] = []

    def compose(self) -> ComposeResult:
        yield StepList()

    def on_step_list_step_chosen(self, event: StepList.StepChosen) -> None:
        self.opened.append(event.number)


@asynccontextmanager
async def list_of(
    *steps: StepSummary, size: tuple[int, int] = (40, 10)
) -> AsyncIterator[tuple[StepList, Pilot[None]]]:
    app = ListApp()
    async with app.run_test(size=size) as pilot:
        step_list = app.query_one(StepList)
        step_list.show(steps)
        await pilot.pause()
        await pilot.pause()
        yield step_list, pilot


def rows(step_list: StepList) -> list[str]:
    return [
        step_list.render_line(y).text.rstrip() for y in range(step_list.size.height)
    ]


def many(count: int, done: int = 0) -> list[StepSummary]:
    return [
        StepSummary(
            number,
            f"Step of {count}",
            *((DONE, PASSED) if number <= done else (StepStatus.PENDING,)),
        )
        for number in range(1, count + 1)
    ]


def over(
    number: int,
    verification: Verification = Verification.PASSED,
    title: str = "Step of 2",
    **more: Any,
) -> StepFinished:
    return StepFinished(
        number,
        title,
        StepStatus.COMPLETED,
        verification,
        None,
        None,
        (),
        (),
        done=1,
        total=2,
        **more,
    )


async def test_every_status_has_its_sign() -> None:
    steps = [
        StepSummary(number, "Do it", status, PASSED)
        for number, status in enumerate(StepStatus, 1)
    ]
    async with list_of(*steps) as (step_list, _):
        shown = dict(zip(StepStatus, rows(step_list)[1:], strict=False))
        assert shown[StepStatus.PENDING] == "○ 1. Do it"
        assert shown[StepStatus.IN_PROGRESS] == "◐ 2. Do it"
        assert shown[StepStatus.COMPLETED] == "✓ 3. Do it"
        assert shown[StepStatus.FAILED] == "✗ 4. Do it"
        assert shown[StepStatus.SKIPPED] == "– 5. Do it"
        assert rows(step_list)[0] == "Plan 2/5 ━━╍╍╌╌╌╌╌╌ 1–"


async def test_marking_a_step_changes_its_row_and_the_progress() -> None:
    async with list_of(*many(2)) as (step_list, _):
        step_list.finish(over(1, Verification.NONE))
        assert rows(step_list)[:2] == [
            "Plan 1/2 ╍╍╍╍╍╌╌╌╌╌ 1?",
            "? 1. Step of 2 (unverified)",
        ]


async def test_a_completed_step_shows_why_it_is_not_fully_verified() -> None:
    async with list_of(*many(2)) as (step_list, _):
        step_list.finish(over(1, Verification.BASELINE))
        step_list.finish(over(2))
        assert rows(step_list)[1:3] == [
            "! 1. Step of 2 (old failures remain)",
            "✓ 2. Step of 2",
        ]


async def test_the_progress_keeps_each_kind_of_proof_apart() -> None:
    excused = Evidence("", failed=1, excused=1, excused_until="7")
    steps = [
        StepSummary(1, "Do it", DONE, PASSED),
        StepSummary(2, "Do it", DONE, Verification.EXIT_CODE),
        StepSummary(3, "Do it", DONE, Verification.BASELINE),
        StepSummary(4, "Do it", DONE, Verification.BASELINE, evidence=excused),
        StepSummary(5, "Do it", DONE, Verification.NONE),
        StepSummary(6, "Do it", StepStatus.SKIPPED),
        StepSummary(7, "Do it"),
    ]
    async with list_of(*steps, size=(60, 10)) as (step_list, _):
        assert rows(step_list)[:8] == [
            "Plan 6/7 ━╍╍╍╍╍╍╍╌╌ 1~ 1! 1› 1? 1–",
            "✓ 1. Do it",
            "~ 2. Do it (by exit code)",
            "! 3. Do it (old failures remain)",
            "› 4. Do it (1 test may fail until step 7)",
            "? 5. Do it (unverified)",
            "– 6. Do it",
            "○ 7. Do it",
        ]


async def test_in_a_narrow_list_the_bar_gives_way_to_the_signs() -> None:
    steps = [
        StepSummary(1, "Do it", DONE, PASSED, cost=Cost(9, 0.5)),
        StepSummary(2, "Do it", DONE, Verification.NONE),
    ]
    for width, progress in (
        (40, "Plan 2/2 ━━━━━╍╍╍╍╍ 1?  $0.50"),
        (24, "Plan 2/2 ━━━━━╍╍╍╍╍ 1?"),
        (18, "Plan 2/2 ━━╍╍ 1?"),
    ):
        async with list_of(*steps, size=(width, 5)) as (step_list, _):
            assert rows(step_list)[0] == progress


async def test_without_steps_it_is_hidden() -> None:
    async with list_of(*many(2)) as (step_list, pilot):
        step_list.show(())
        await pilot.pause()
        assert not step_list.display


async def test_the_current_step_is_in_view_and_the_progress_stays() -> None:
    for height in (2, 5, 40):
        async with list_of(size=(40, height)) as (step_list, pilot):
            for current in (1, 2, 500, 998, 1000):
                step_list.show(many(1000, current - 1))
                await pilot.pause()
                assert rows(step_list)[0].startswith(f"Plan {current - 1}/1000")
                assert f"○ {current}. Step of 1000" in rows(step_list)


async def test_the_current_step_stays_in_view_when_the_window_gets_smaller() -> None:
    async with list_of(*many(1000, 499), size=(40, 40)) as (step_list, pilot):
        await pilot.resize_terminal(30, 5)
        await pilot.pause()
        assert "○ 500. Step of 1000" in rows(step_list)


async def test_the_list_follows_the_run() -> None:
    async with list_of(*many(100), size=(40, 6)) as (step_list, pilot):
        for number in range(1, 61):
            step_list.finish(over(number))
        step_list.begin(StepStarted(61, "", 1))
        await pilot.pause()
        assert "◐ 61. Step of 100" in rows(step_list)


async def test_a_long_title_is_cut_at_the_edge_where_there_is_no_room() -> None:
    async with list_of(size=(24, 3)) as (step_list, pilot):
        for title in ("x" * 100, "日" * 50, "e\u0301" * 60, "👩‍🚀" * 30):
            step_list.show((StepSummary(1, title),))
            await pilot.pause()
            strip = step_list.render_line(1)
            assert strip.cell_length == step_list.scrollable_content_region.width
            assert strip.text.rstrip().endswith("…")


async def test_long_titles_are_shown_in_full_where_all_have_room() -> None:
    steps = (StepSummary(1, TITLE), StepSummary(2, "Count"))
    async with list_of(*steps, size=(24, 5)) as (step_list, pilot):
        assert rows(step_list)[1:] == [
            f"○ 1. {TITLE[:17]}",
            f"     {TITLE[18:]}",
            "○ 2. Count",
            "",
        ]
        step_list.finish(over(2, Verification.NONE, "Count"))
        await pilot.pause()
        assert rows(step_list)[3:] == ["? 2. Count", "     (unverified)"]
        await pilot.resize_terminal(24, 4)
        await pilot.pause()
        assert rows(step_list)[1] == f"○ 1. {TITLE[:16]}…"
        assert [row[-1:] for row in rows(step_list)[2:]] == ["…", ""]


async def test_where_a_title_is_cut_is_not_behind_the_scrollbar() -> None:
    async with list_of(
        *(StepSummary(number, "x" * 100) for number in range(1, 10)), size=(24, 4)
    ) as (step_list, _):
        assert step_list.show_vertical_scrollbar
        shown = [len(row) for row in rows(step_list)[1:]]
        assert shown == [step_list.size.width - 1] * 3
        assert all(row.endswith("…") for row in rows(step_list)[1:])


async def test_control_characters_in_a_title_are_not_sent_to_the_terminal() -> None:
    async with list_of(StepSummary(1, "a\x1b[31mb\tc\nd\x07")) as (step_list, _):
        assert not set(rows(step_list)[1]) & set(map(chr, range(32)))


GREEN = Evidence("", passed=44, fixed=3, new=1)


FACTS = (
    (StepSummary(2, "Do it", DONE, PASSED, seconds=12.3, evidence=GREEN), "12s 44✓ +4"),
    (
        StepSummary(
            2, "Do it", DONE, PASSED, seconds=700, evidence=Evidence("", passed=41)
        ),
        "12m 41✓",
    ),
    (
        StepSummary(
            2, "Do it", DONE, PASSED, seconds=7200, evidence=Evidence("`make` passed")
        ),
        "2h",
    ),
    (
        StepSummary(
            2,
            "Do it",
            FAILED,
            seconds=3,
            attempts=3,
            evidence=Evidence("", 40, failed=3, old_failures=1),
        ),
        "3s 40✓ 2✗ ↻3",
    ),
    (StepSummary(2, "Do it", StepStatus.IN_PROGRESS, attempts=2), "↻2"),
    (StepSummary(2, "Do it", StepStatus.SKIPPED, seconds=0.1), ""),
    (StepSummary(2, "Do it", depends_on=(1,)), ""),
    (StepSummary(2, "Do it", depends_on=(3,)), "← 3"),
    (StepSummary(2, "Do it", depends_on=(3, 4)), "← 3,4"),
    (StepSummary(2, "Do it", depends_on=(3, 4, 5)), "← 3,4,…"),
    (StepSummary(2, "Do it", depends_on=(3, 99)), "← 3"),
)
"""Steps, and the facts that are shown next to their titles."""


async def test_the_facts_about_a_step_are_shown_next_to_its_title() -> None:
    others = tuple(StepSummary(number, "Other") for number in (3, 4, 5))
    async with list_of() as (step_list, pilot):
        for step, facts in FACTS:
            step_list.show((StepSummary(1, "First", DONE, PASSED), step, *others))
            await pilot.pause()
            row = rows(step_list)[2]
            assert row.split("Do it")[1].strip() == facts
            assert len(row) == step_list.scrollable_content_region.width or not facts


async def test_a_step_that_waits_for_all_others_says_so() -> None:
    steps = [
        *(StepSummary(number, "Do it") for number in (1, 2, 3)),
        StepSummary(4, "Test it", depends_on=(1, 2, 3)),
    ]
    async with list_of(*steps) as (step_list, _):
        assert rows(step_list)[4].endswith("← all")


async def test_a_dependency_is_shown_until_it_is_completed() -> None:
    async with list_of(
        StepSummary(1, "Make"), StepSummary(2, "Use", depends_on=(1,))
    ) as (
        step_list,
        _,
    ):
        assert rows(step_list)[2].endswith("← 1")
        step_list.finish(over(1, seconds=2.0, evidence=GREEN))
        assert rows(step_list)[1].endswith("2s 44✓ +4")
        assert rows(step_list)[2] == "○ 2. Use"


async def test_facts_make_room_for_a_title_in_a_narrow_list() -> None:
    async with list_of(
        StepSummary(1, TITLE, DONE, PASSED, seconds=12, evidence=GREEN), size=(18, 2)
    ) as (step_list, _):
        assert rows(step_list)[1] == f"✓ 1. {TITLE[:10]}…"


COSTS = (
    (Cost(), ""),
    (Cost(41_230, 0.0812), "$0.08"),
    (Cost(41_230, 12.345, estimated=True), "~$12.35"),
    (Cost(900, 0.0004), "$0.0004"),
    (Cost(41_230, 0.0), "41k tok"),
    (Cost(1_234, estimated=True), "~1.2k tok"),
    (Cost(999), "999 tok"),
    (Cost(1_234_567), "1.2M tok"),
)


async def test_costs_are_shown_in_tokens_where_the_price_is_unknown() -> None:
    async with list_of(size=(60, 3)) as (step_list, pilot):
        for cost, shown in COSTS:
            step_list.show(
                (StepSummary(1, "Do it", DONE, PASSED, seconds=12, cost=cost),)
            )
            await pilot.pause()
            facts = rows(step_list)[1].split("Do it")[1].strip()
            assert facts == f"12s {shown}".strip()
            assert rows(step_list)[0].endswith(shown or "━")


async def test_the_cost_grows_with_each_call_and_ends_as_the_state_says() -> None:
    async with list_of(*many(2), size=(60, 4)) as (step_list, _):
        step_list.show(many(2), Cost(100, 1.0))
        step_list.begin(StepStarted(1, "", 1))
        step_list.spend(1, Cost(10, 0.25))
        step_list.spend(1, Cost(10, 0.25))
        assert [row.split()[-1] for row in rows(step_list)[:2]] == ["$1.50", "$0.50"]
        step_list.finish(over(1, cost=Cost(30, 0.75)))
        assert [row.split()[-1] for row in rows(step_list)[:2]] == ["$1.75", "$0.75"]


async def test_in_a_narrow_list_the_cost_is_dropped_first_and_the_title_last() -> None:
    step = StepSummary(
        1, TITLE, DONE, PASSED, seconds=12, evidence=GREEN, cost=Cost(9, 0.5)
    )
    shown = dict[int, str]()
    async with list_of(step, size=(60, 2)) as (step_list, pilot):
        for width in (60, 36, 28, 18):
            await pilot.resize_terminal(width, 2)
            await pilot.pause()
            shown[width] = rows(step_list)[1]
    assert shown[60].endswith(" 12s 44✓ +4 $0.50")
    assert shown[36].endswith(" 12s 44✓ +4")
    assert shown[28].endswith(" 12s 44✓ +4")
    assert shown[18] == f"✓ 1. {TITLE[:10]}…"


async def test_one_walks_through_the_steps_and_opens_one() -> None:
    async with list_of(*many(30, 9), size=(40, 8)) as (step_list, pilot):
        app = pilot.app
        assert isinstance(app, ListApp)
        await pilot.press(
            "enter",
            "down",
            "down",
            "enter",
            "end",
            "down",
            "enter",
            "home",
            "up",
            "enter",
        )
        await pilot.pause()
        assert app.opened == [10, 12, 30, 1]
        assert "✓ 1. Step of 30" in rows(step_list)


async def test_a_click_opens_the_step_under_it_also_with_a_title_of_two_rows() -> None:
    async with list_of(
        StepSummary(1, TITLE), StepSummary(2, "Count"), size=(24, 6)
    ) as (
        _,
        pilot,
    ):
        app = pilot.app
        assert isinstance(app, ListApp)
        for y in (0, 1, 2, 3, 4):
            await pilot.click(StepList, offset=(5, y))
        await pilot.pause()
        assert app.opened == [1, 1, 2]
