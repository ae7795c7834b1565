"""How the screens look, in several sizes and themes. One shell shows many of them."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace
from pytest_textual_snapshot import SVGImageExtension
from syrupy.assertion import SnapshotAssertion
from textual.pilot import Pilot

from cdd_agent.engine.step_details import StepDetails
from cdd_agent.events.question_events import CommandProposed
from cdd_agent.events.step_events import AttemptFailed, StepStarted
from cdd_agent.events.step_summary import StepSummary
from cdd_agent.events.ticket_events import CriterionProof
from cdd_agent.llm.offered_model import OfferedModel
from cdd_agent.tickets.status import StepStatus, Verification
from cdd_agent.tui.answering import KeyClock
from cdd_agent.tui.app import Shell
from cdd_agent.tui.inspector.source import InspectorTab
from cdd_agent.tui.screens.model_setup import ModelSetup
from cdd_agent.tui.screens.wish import Wish
from cdd_agent.tui.themes import use_theme
from cdd_agent.tui.transcript.find_bar import FindInput
from tests.support.projects import Sandbox
from tests.tui.inspector.examples import (
    FakeRun,
    inspection_of,
    inspector,
    timeline_of,
)
from tests.tui.person import shell
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
    StepSummary(
        number,
        TITLES[number - 1],
        StepStatus.COMPLETED,
        Verification.PASSED,
        evidence=SEEN[number],
        seconds=12.0 * number,
    )
    for number in (1, 2)
]
FAILED = StepSummary(
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
OFFERS = (
    OfferedModel("qwen3-coder:30b", "Ollama", "http://127.0.0.1:11434"),
    OfferedModel(
        "mistralai/devstral-small-2507", "LM Studio", "http://127.0.0.1:1234/v1"
    ),
)


class Noon(datetime):
    """An hour and a half after the first ticket was changed."""

    @classmethod
    def now(cls, tz: object = None) -> "Noon":
        return cls.fromtimestamp(1_700_005_400, UTC)


RUN = FakeRun(
    replace(inspection_of([*VIEWS, FAILED]), criteria=CRITERIA),
    lambda number: DETAILS,
    timeline_of(
        StepStarted(3, TITLES[2], 1), AttemptFailed(3, 1, "no", will_retry=False)
    ),
)


async def at_rest(app: Shell, pilot: Pilot[None]) -> None:
    """Wait until the screen has read what it shows."""
    await pilot.pause()
    while [w for w in app.workers if w.group not in ("turn", "asking", "edit")]:
        await pilot.pause(0.01)
    await pilot.pause()


def pressing(opening: str, *keys: str) -> Show:
    """Press a key that opens something, and others once it is there."""

    async def press(app: Shell, pilot: Pilot[None]) -> None:
        await pilot.press(opening)
        await at_rest(app, pilot)
        await pilot.press(*keys)

    return press


def over(make: Callable[[], object], *keys: str) -> Show:
    """Show a screen over the shell, and press keys."""

    async def push(app: Shell, pilot: Pilot[None]) -> None:
        app.push_screen(make())  # type: ignore[call-overload]
        await pilot.pause()
        await pilot.press(*keys)

    return push


async def nothing(app: Shell, pilot: Pilot[None]) -> None:
    del app, pilot


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
    "home": nothing,
    "typing": pressing("/", *"he"),
    "plan": pressing("f2", "up"),
    "find": find,
    "question": ask,
    "palette": pressing("ctrl+p", "down", "down"),
    "palette filtered": pressing("ctrl+p", *"plan", "down"),
    "help": pressing("f1"),
    "tickets": pressing("f4", "down"),
    "settings": pressing("f5", "down"),
    "step": over(lambda: inspector(RUN)),
    "criteria": over(lambda: inspector(RUN, InspectorTab.CRITERIA)),
    "timeline": over(lambda: inspector(RUN, InspectorTab.TIMELINE)),
    "strength": over(lambda: inspector(RUN, InspectorTab.STRENGTH)),
    "model setup": over(
        lambda: ModelSetup(OFFERS, KeyClock(), environment={"ANTHROPIC_API_KEY": "a"}),
        "down",
    ),
    "wish": over(Wish, *"CSV"),
}
LOOKS: dict[str, tuple[tuple[int, int], str, str, list[str]]] = {
    "dark": (
        (80, 24),
        "dark",
        "truecolor",
        [
            "palette",
            "palette filtered",
            "help",
            "tickets",
            "settings",
            "model setup",
            "wish",
        ],
    ),
    "narrow": ((20, 24), "dark", "truecolor", ["home", "palette", "step"]),
    "light": ((120, 40), "light", "truecolor", ["criteria"]),
    "contrast": ((80, 24), "contrast", "truecolor", ["typing", "question"]),
    "16 colours": ((80, 24), "dark", "", ["plan"]),
    "no colour": ((80, 24), "dark", "none", ["find", "question"]),
}
"""Size, theme and colours of a terminal, and the screens to show on it."""


@asynccontextmanager
async def showing_screens(
    shop: Sandbox, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> AsyncIterator[tuple[Shell, Pilot[None]]]:
    """Open a shell after a run, in which everything has the same time on each day."""
    monkeypatch.setattr("cdd_agent.tui.screens.tickets.datetime", Noon)
    for number, name in enumerate((SLUG, "feature-login", "bug-rounding")):
        for file in (shop.root / "tickets" / name).iterdir():
            os.utime(file, (1_700_000_000 - number * 90_000,) * 2)
    shop.flags = {"max_attempts": 5}
    config = shop.root / ".cdd" / "config.yaml"
    config.write_text("approval: ask\nbudget:\n  usd: 2\n")
    app = shell(shop, f"/exec {SLUG}", opening=OPENING)
    async with app.run_test(size=size) as pilot:
        await showing(*FAILED_RUN)(pilot)
        yield app, pilot


async def back(app: Shell, pilot: Pilot[None]) -> None:
    """Close what is open, so that only the shell is there."""
    while app.screen is not app.home:
        app.pop_screen()
        await pilot.pause()
    app.workers.cancel_group(app, "asking")
    await pilot.press("escape")
    app.home.prompt.replace("")
    app.home.set_focus(app.home.prompt.area)
    app.home.transcript.follow()
    await pilot.pause()
    app.home.say_that_nothing_is_done("")  # Escape may have said so by now


@pytest.mark.parametrize("look", LOOKS)
async def test_the_screens_look_as_before(
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
    pictures = snapshot.use_extension(SVGImageExtension)
    different = []
    async with showing_screens(shop, monkeypatch, size) as (app, pilot):
        use_theme(app, theme)
        for state in states:
            await STATES[state](app, pilot)
            await at_rest(app, pilot)
            if app.export_screenshot(title="cdd") != pictures(name=state):
                different.append(state)
            await back(app, pilot)
    assert different == []


async def test_each_screen_fits_into_a_small_window(
    shop: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No row is longer than the window, and each screen shows some text of its own."""
    wrong = []
    async with showing_screens(shop, monkeypatch, (20, 12)) as (app, pilot):
        home = set[str]()
        for state, show in STATES.items():
            await show(app, pilot)
            await at_rest(app, pilot)
            strips = app.screen._compositor.render_strips()
            if {strip.cell_length for strip in strips} != {20}:
                wrong.append((state, "too long"))
            texts = {strip.text.strip() for strip in strips}
            if len(strips) != 12 or not texts - home:
                wrong.append((state, "shows nothing"))
            if state == "home":
                home = texts
            await back(app, pilot)
    assert wrong == []
