import pytest
from textual.app import App, ComposeResult

from cdd_agent.tui.widgets import bars
from cdd_agent.tui.widgets.bars import ActivityBar, TitleBar


class BarsApp(App[None]):
    def compose(self) -> ComposeResult:
        title = TitleBar("shop")
        title.model = "openai/gpt"
        title.spent, title.context = "1,234 tokens", "ctx 31%"
        yield title
        yield ActivityBar("the keys")


TITLES: tuple[tuple[int, str], ...] = (
    (
        100,
        "cdd  shop ⎇ main"
        + " " * 22
        + "executor · feature-pay · openai/gpt · 1,234 tokens · ctx 31%",
    ),
    (
        78,
        "cdd  shop ⎇ main"
        + " " * 10
        + "executor · feature-pay · openai/gpt · 1,234 tokens",
    ),
    (60, "cdd  shop ⎇ main" + " " * 7 + "executor · feature-pay · openai/gpt"),
    (50, "cdd  shop ⎇ main" + " " * 10 + "executor · feature-pay"),
    (38, "cdd  shop" + " " * 5 + "executor · feature-pay"),
    (32, "cdd" + " " * 5 + "executor · feature-pay"),
    (20, "cdd executor · feature-pay"),
)


async def test_the_title_gives_up_what_matters_least() -> None:
    app = BarsApp()
    async with app.run_test(size=(100, 5)) as pilot:
        title = app.query_one(TitleBar)
        title.agent, title.branch = "executor · feature-pay", "main"
        for width, shown in TITLES:
            await pilot.resize_terminal(width, 5)
            assert title.render().plain == shown
            assert len(app.screen._compositor.render_strips()[0].text) == width


async def test_the_activity_is_shown_with_its_time_and_the_key_that_stops_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr(bars, "monotonic", lambda: now)
    app = BarsApp()
    async with app.run_test(size=(40, 5)):
        activity = app.query_one(ActivityBar)
        activity.busy("Running tests")
        now += 12
        activity.busy("Running tests")  # still: the time goes on
        told = activity.render().plain
        assert told[1:].startswith(" Running tests  12 s")
        assert told.endswith("Esc stops")

        activity.busy("Running " + "a very long command " * 5)
        told = activity.render().plain
        assert len(told) <= 40
        assert "… " in told
        assert told.endswith("Esc stops")

        activity.rest("Waiting")
        assert activity.render().plain == "Waiting"

        activity.rest()
        assert activity.render().plain == "the keys"


async def test_the_activity_is_redrawn_only_while_something_runs() -> None:
    app = BarsApp()
    async with app.run_test(size=(40, 5)):
        activity = app.query_one(ActivityBar)
        assert not activity._timers
        activity.busy("Running")
        activity.busy("Running something else")
        assert len(activity._timers) == 1
        activity.rest()
        assert not [
            timer
            for timer in activity._timers
            if timer._task and not timer._task.cancelling()
        ]
