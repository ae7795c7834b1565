"""How every screen looks where there is little room or much, on light and dark, in high
contrast, in sixteen colours and in none. One shell is walked through all of them.
"""

import os
from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace
from pytest_textual_snapshot import SVGImageExtension
from syrupy.assertion import SnapshotAssertion
from textual.pilot import Pilot

from cdd_agent.engine.step_details import StepDetails
from cdd_agent.engine.timeline import Timeline
from cdd_agent.events import (
    CommandProposed,
    CriteriaShown,
    CriterionProof,
    StepView,
    UndoPreview,
)
from cdd_agent.tickets.status import StepStatus, Verification
from cdd_agent.tui.app import Shell
from cdd_agent.tui.criteria_screen import CriteriaScreen
from cdd_agent.tui.screens.first_run import FirstRun
from cdd_agent.tui.step_screen import StepScreen
from cdd_agent.tui.themes import use_theme
from cdd_agent.tui.timeline_screen import TimelineScreen
from cdd_agent.tui.transcript.find_bar import FindInput
from tests.support.projects import Sandbox
from tests.tui.person import shell
from tests.tui.screens.test_looks import OFFERS, Noon
from tests.tui.test_snapshots import (
    ATTEMPT,
    FAILED_RUN,
    OPENING,
    PLAN_STEP,
    SEEN,
    SLUG,
    TITLES,
    shop,
    showing,
)

__all__ = ["shop"]
Show = Callable[[Shell, Pilot[None]], Awaitable[None]]
VIEWS = [
    StepView(
        n,
        TITLES[n - 1],
        StepStatus.COMPLETED,
        Verification.PASSED,
        evidence=SEEN[n],
        seconds=12.0 * n,
    )
    for n in (1, 2)
]
FAILED = StepView(
    3,
    TITLES[2],
    StepStatus.FAILED,
    error="`pytest` failed",
    attempts=2,
    seconds=36.0,
    evidence=SEEN[3],
)
DETAILS = StepDetails(SLUG, PLAN_STEP, FAILED, (ATTEMPT, ATTEMPT))
CRITERIA = (
    CriterionProof(
        1,
        "Months are added up",
        (VIEWS[0],),
        ("tests/test_report.py::test_order",),
        ("tally/totals.py",),
    ),
    CriterionProof(2, "An empty list is no error"),
)


async def preview(number: int) -> UndoPreview:
    return UndoPreview((number,), ("tally/report.py",), ("README.md",), ())


def pressing(*keys: str) -> Show:
    async def press(app: Shell, pilot: Pilot[None]) -> None:
        del app
        await pilot.press(*keys)

    return press


def over(make: Callable[[], object]) -> Show:
    async def push(app: Shell, pilot: Pilot[None]) -> None:
        del pilot
        app.push_screen(make())  # type: ignore[call-overload]

    return push


async def ask(app: Shell, pilot: Pilot[None]) -> None:
    del pilot
    app.run_worker(
        app.asking.approve(CommandProposed("rm -r build", "`rm` is not on the list")),
        group="asking",
    )


async def find(app: Shell, pilot: Pilot[None]) -> None:
    await pilot.press("ctrl+f")
    await pilot.pause()
    app.query_one(FindInput).cursor_blink = False
    await pilot.press(*"report")


STATES: dict[str, Show] = {
    "home": pressing(),
    "typing": pressing(*"/he"),
    "plan": pressing("f2", "up"),
    "find": find,
    "question": ask,
    "palette": pressing("ctrl+p"),
    "help": pressing("f1"),
    "tickets": pressing("f4"),
    "settings": pressing("f5"),
    "step": over(lambda: StepScreen(DETAILS, lambda by: None)),
    "criteria": over(
        lambda: CriteriaScreen(
            CriteriaShown(SLUG, "Expenses", CRITERIA), lambda _: replace(DETAILS)
        )
    ),
    "timeline": over(
        lambda: TimelineScreen(
            Timeline(SLUG, tuple(VIEWS), (FAILED,)), lambda _: DETAILS, preview
        )
    ),
    "first run": over(lambda: FirstRun(OFFERS, lambda: 0.0)),
}
LOOKS = {
    "20x24": ((20, 24), "dark", "truecolor", STATES),
    "40x12 light": (
        (40, 12),
        "light",
        "truecolor",
        ("home", "question", "step", "palette"),
    ),
    "200x50": ((200, 50), "dark", "truecolor", STATES),
    "200x50 light": (
        (200, 50),
        "light",
        "truecolor",
        ("home", "question", "step", "criteria"),
    ),
    "120x40 contrast": (
        (120, 40),
        "contrast",
        "truecolor",
        ("home", "typing", "question", "step", "timeline", "find"),
    ),
    "80x24 16 colours": (
        (80, 24),
        "dark",
        "",
        ("home", "typing", "plan", "question", "step", "find"),
    ),
    "80x24 no colour": (
        (80, 24),
        "dark",
        "none",
        ("home", "typing", "plan", "question", "step", "find"),
    ),
}


@pytest.mark.parametrize("look", LOOKS)
async def test_all_screens(
    shop: Sandbox,
    snapshot: SnapshotAssertion,
    monkeypatch: pytest.MonkeyPatch,
    look: str,
) -> None:
    size, theme, colours, states = LOOKS[look]
    monkeypatch.setenv("COLORTERM", colours)
    monkeypatch.setenv("TERM", "xterm-256color" if colours == "truecolor" else "xterm")
    if colours == "none":
        monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("cdd_agent.tui.screens.tickets.datetime", Noon)
    monkeypatch.setattr(
        "cdd_agent.tui.screens.first_run.choices.__defaults__",
        ({"ANTHROPIC_API_KEY": "a"},),
    )
    for number, name in enumerate((SLUG, "feature-login", "bug-rounding")):
        for file in (shop.root / "tickets" / name).iterdir():
            os.utime(file, (1_700_000_000 - number * 90_000,) * 2)
    pictures = snapshot.use_extension(SVGImageExtension)
    app = shell(shop, f"/exec {SLUG}", opening=OPENING)
    different = []
    async with app.run_test(size=size) as pilot:
        await showing(*FAILED_RUN)(pilot)
        use_theme(app, theme)
        for state in states:
            await STATES[state](app, pilot)
            await pilot.pause()
            while [
                worker
                for worker in app.workers
                if worker.group not in ("turn", "asking")
            ]:
                await pilot.pause(0.01)
            await pilot.pause()
            if app.export_screenshot(title="cdd") != pictures(name=state):
                different.append(state)
            await back(app, pilot)
    assert different == []


async def back(app: Shell, pilot: Pilot[None]) -> None:
    while app.screen is not app.home:
        app.pop_screen()
        await pilot.pause()
    app.workers.cancel_group(app, "asking")
    await pilot.press("escape")
    app.home.prompt.replace("")
    app.home.set_focus(app.home.prompt.area)
    app.home.transcript.follow()
    await pilot.pause()
