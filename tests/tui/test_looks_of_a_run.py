"""How the plan, a step, the criteria and earlier sessions look. What has another layout
in a small window or a large one is shown in both.
"""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from textual.pilot import Pilot

from cdd_agent.cost import Cost
from cdd_agent.events.dialogue_events import ReplyDelta
from cdd_agent.events.notices import Answer
from cdd_agent.events.run_events import RunFinished
from cdd_agent.events.shell_events import PersonSaid, SessionView
from cdd_agent.events.step_events import (
    CommandOutput,
    StepDiff,
    StepStarted,
    TestsStarted,
)
from cdd_agent.events.step_summary import StepSummary
from cdd_agent.events.stream import SessionRestored
from cdd_agent.events.ticket_events import PlanOpened
from cdd_agent.tickets.status import Evidence, RunStatus, StepStatus, Verification
from cdd_agent.tui.app import Shell
from cdd_agent.tui.screens.sessions import SessionsScreen
from tests.support.projects import Sandbox
from tests.tui.person import shell
from tests.tui.test_snapshots import (
    CHECK,
    DIFF,
    FAILED_RUN,
    OPENING,
    REPLY,
    SLUG,
    TITLES,
    shop,
    showing,
)

__all__ = ["shop"]
Compare = Callable[..., bool]
Size = tuple[int, int]


def at(*sizes: Size) -> pytest.MarkDecorator:
    """Run the test at each size of the window, in columns and rows."""
    return pytest.mark.parametrize(
        "size", sizes, ids=lambda size: f"{size[0]}x{size[1]}"
    )


GREEN = Evidence("", 44, fixed=2, new=1)
VIEWS = (
    StepSummary(
        1,
        TITLES[0],
        StepStatus.COMPLETED,
        Verification.PASSED,
        seconds=12,
        evidence=GREEN,
        cost=Cost(9_000, 0.03),
    ),
    StepSummary(
        2,
        "Add them up, by month and by category, and sort what comes out by its amount",
        StepStatus.COMPLETED,
        Verification.NONE,
        seconds=99,
        attempts=3,
        cost=Cost(41_230, 0.1812),
    ),
    StepSummary(
        3,
        TITLES[2],
        StepStatus.IN_PROGRESS,
        attempts=2,
        cost=Cost(12_345, estimated=True),
    ),
    StepSummary(4, TITLES[3], depends_on=(1, 2, 3)),
)


def running(app: Shell) -> None:
    app.home.steps.show(VIEWS, Cost(1_000, 0.01))
    app.home.show(StepStarted(3, TITLES[2], 2))


@at((80, 24), (120, 40))
def test_a_plan_with_its_money(
    shop: Sandbox, snap_compare: Compare, size: Size
) -> None:
    async def look(pilot: Pilot[None]) -> None:
        await showing()(pilot)
        assert isinstance(pilot.app, Shell)
        pilot.app.home.show(
            PlanOpened(SLUG, "Monthly expense report", VIEWS, True, Cost(1_000, 0.01))
        )
        running(pilot.app)
        pilot.app.home.activity.rest()
        await pilot.pause()

    assert snap_compare(
        shell(shop, f"/exec {SLUG}", opening=OPENING),
        run_before=look,
        terminal_size=size,
    )


MAY_FAIL = Evidence("", 4, new=4, failed=2, excused=2, excused_until="7")
PROVED = (
    (StepStatus.COMPLETED, Verification.PASSED, GREEN),
    (StepStatus.COMPLETED, Verification.EXIT_CODE, Evidence("`make lint` ended")),
    (StepStatus.COMPLETED, Verification.BASELINE, Evidence("", 9, failed=1)),
    (StepStatus.COMPLETED, Verification.BASELINE, MAY_FAIL),
    (StepStatus.COMPLETED, Verification.NONE, None),
    (StepStatus.SKIPPED, None, None),
    (StepStatus.FAILED, None, Evidence("", 4, failed=1)),
    (StepStatus.PENDING, None, None),
)
"""A step for each way in which it can be shown to be done, or not."""


@at((60, 20), (100, 30))
def test_each_kind_of_proof(shop: Sandbox, snap_compare: Compare, size: Size) -> None:
    steps = tuple(
        StepSummary(number, f"Step {number} of many", *proof[:2], evidence=proof[2])
        for number, proof in enumerate(PROVED, 1)
    )
    opened = PlanOpened(SLUG, "Monthly expense report", steps, resumed=True)
    finished = RunFinished(
        *(SLUG, RunStatus.FAILED, 5, 1, 1, 8, 75.0, ("a.py", "b.py")),
        tally=opened.tally,
    )

    async def look(pilot: Pilot[None]) -> None:
        await showing()(pilot)
        assert isinstance(pilot.app, Shell)
        for event in (opened, finished):
            pilot.app.home.show(event)
        pilot.app.home.steps.show(steps)
        pilot.app.home.activity.rest()
        await pilot.pause()

    assert snap_compare(
        shell(shop, f"/exec {SLUG}", opening=OPENING),
        run_before=look,
        terminal_size=size,
    )


SESSIONS = (
    SessionView(
        SLUG,
        "executor",
        "2026-11-22T10:00:00+00:00",
        "2/4 failed",
        f"step 3 failed: `{CHECK}` failed (exit code 1)",
    ),
    SessionView(
        "chat-1",
        "chat",
        "2026-11-21T09:00:00+00:00",
        "12 messages",
        "The amounts are set flush right.",
    ),
    SessionView(
        "feature-login",
        "socrates",
        "2026-11-11T09:00:00+00:00",
        "spec",
        "Who is to log in?",
    ),
    SessionView(
        "bug-rounding",
        "planner",
        "2026-10-01T09:00:00+00:00",
        "0/7 planned",
        "Wrote plan.md.",
    ),
)


class Noon(datetime):
    @classmethod
    def now(cls, tz: object = None) -> "Noon":
        return cls(2026, 11, 22, 12, 0, tzinfo=UTC)


@at((40, 12), (120, 40))
def test_earlier_sessions(
    shop: Sandbox,
    snap_compare: Compare,
    size: Size,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cdd_agent.tui.screens.sessions.datetime", Noon)

    async def look(pilot: Pilot[None]) -> None:
        await showing()(pilot)
        await pilot.app.push_screen(SessionsScreen(SESSIONS))
        await pilot.pause()

    assert snap_compare(
        shell(shop, opening=OPENING), run_before=look, terminal_size=size
    )


@at((80, 24))
def test_a_session_that_is_gone_on_with(
    shop: Sandbox, snap_compare: Compare, size: Size
) -> None:
    finished = next(
        event for event in FAILED_RUN if type(event).__name__ == "TestsFinished"
    )
    events = (
        PersonSaid("continue"),
        StepStarted(3, TITLES[2], 1),
        ReplyDelta(3, REPLY),
        StepDiff(3, "", DIFF),
        TestsStarted(3, "pytest"),
        CommandOutput(3, "1 failed, 5 passed\n"),
        finished,
        FAILED_RUN[-3],
        PersonSaid("why did it fail?"),
        Answer("The amounts have **one** decimal."),
    )

    async def look(pilot: Pilot[None]) -> None:
        await showing()(pilot)
        assert isinstance(pilot.app, Shell)
        pilot.app.home.show(SessionRestored(SLUG, events, left_out=True))
        await pilot.pause()

    assert snap_compare(
        shell(shop, opening=OPENING), run_before=look, terminal_size=size
    )
