import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.app import App, ComposeResult

from cdd_agent.cost import Cost
from cdd_agent.tui.widgets import bars
from cdd_agent.tui.widgets.bars import ActivityBar
from cdd_agent.tui.widgets.status_line import (
    StatusLine,
    StatusPlace,
    StatusValues,
    cost_with_unit,
    lay_out_status,
    shorten,
)
from tests.support.tables import each_row


class BarsApp(App[None]):
    def compose(self) -> ComposeResult:
        yield ActivityBar("the keys")
        line = StatusLine("shop")
        line.agent, line.ticket, line.branch = "executor", "feature-pay", "main"
        line.model, line.context = "openai/gpt", "31%"
        line.cost = Cost(1_234, 0.04)
        yield line


ROWS: tuple[tuple[int, str], ...] = (
    (
        82,
        "shop  ⎇ main  executor · feature-pay"
        + " " * 13
        + "openai/gpt   ctx 31%        $0.04",
    ),
    (71, "shop  ⎇ main  executor · feature-pay  openai/gpt   ctx 31%        $0.04"),
    (60, "shop  ⎇ main  executor · feature-pay" + " " * 4 + "openai/gpt   ctx 31%"),
    (50, "shop  executor · feature-pay" + " " * 2 + "openai/gpt   ctx 31%"),
    (40, "shop  executor · feature-pay  openai/gpt"),
    (36, "executor · feature-pay" + " " * 4 + "openai/gpt"),
    (30, "executor · feature-pay"),
    (20, "executor · feature-…"),
)


async def test_a_narrow_status_line_drops_what_matters_least() -> None:
    app = BarsApp()
    async with app.run_test(size=(100, 5)) as pilot:
        line = app.query_one(StatusLine)
        for width, shown in ROWS:
            await pilot.resize_terminal(width + 2, 5)
            assert line.render().plain == shown
            assert len(app.screen._compositor.render_strips()[1].text) == width + 2


UNKNOWN = StatusValues(model=None, context="", cost=Cost())
VALUES: tuple[StatusValues, ...] = (
    UNKNOWN,
    StatusValues(model="gpt", context="1%", cost=Cost(999, 0.00004)),
    StatusValues(model="gpt", context="~12%", cost=Cost(12_345, 12.5)),
    StatusValues(model="gpt", context="100%", cost=Cost(123_456_789)),
    StatusValues(model="gpt", context="", cost=Cost(5, 0.0)),
)


async def test_numbers_come_and_grow_without_moving_their_neighbours() -> None:
    app = BarsApp()
    async with app.run_test(size=(100, 5)):
        line = app.query_one(StatusLine)
        ends = set()
        for values in VALUES:
            line.model, line.context, line.cost = values
            row = line.render().plain
            assert cell_len(row) == 98
            name = values.model or "no model"
            ends.add((row.index("executor"), row.index(name) + len(name)))
            assert row.index("ctx") < row.index("%" if values.context else "–")
        assert len(ends) == 1


@each_row(
    ("cost", "shown"),
    [
        (Cost(), "0 tokens"),
        (Cost(0, 0.0), "$0.00"),
        (Cost(5, 0.0), "$0.00"),
        (Cost(5), "5 tokens"),
        (Cost(1_234), "1.2k tokens"),
        (Cost(12_345, estimated=True), "~12k tokens"),
        (Cost(1_234, 0.04), "$0.04"),
        (Cost(1_234, 0.004), "$0.0040"),
        (Cost(1_234, 0.04, estimated=True), "~$0.04"),
    ],
)
def test_an_unknown_price_is_not_zero(cost: Cost, shown: str) -> None:
    assert cost_with_unit(cost) == shown


TEXTS = st.text(
    st.sampled_from("ab1/-· 支払い👩\u200d🚀é…~%[]\\"), min_size=1, max_size=60
)
COSTS = st.builds(
    Cost,
    st.integers(0, 10**9),
    st.none() | st.floats(0, 9_999),
    estimated=st.booleans(),
)


@given(
    width=st.integers(20, 200),
    folder=TEXTS,
    agent=st.sampled_from(["chat", "socrates", "planner", "executor"]),
    texts=st.tuples(TEXTS | st.just(""), TEXTS | st.just(""), TEXTS | st.none()),
    context=st.sampled_from(["", "0%", "7%", "~12%", "100%", "~100%"]),
    cost=COSTS,
)
def test_a_status_line_of_any_width_is_whole(
    width: int,
    folder: str,
    agent: str,
    texts: tuple[str, str, str | None],
    context: str,
    cost: Cost,
) -> None:
    ticket, branch, model = texts
    place = StatusPlace(folder, branch, agent, ticket)
    row = lay_out_status(place, StatusValues(model, context, cost), width).plain
    assert cell_len(row) == width or (cell_len(row) < width and "ctx" not in row)
    assert agent in row
    shown = [cost_with_unit(cost)] if cost_with_unit(cost) in row else []
    context = f"ctx {context or '–'}"
    if shown:
        assert row.endswith(shown[0])
        assert context in row
        assert "⎇" in row
    if "⎇" in row:
        assert row.index("⎇") < row.index(agent)
        assert context in row
    rest = row.rstrip()
    is_number_last = rest.endswith((context, *shown))
    assert is_number_last or context not in row


@each_row(
    ("text", "cells", "keep_end", "shown"),
    [
        ("feature-pay", 11, False, "feature-pay"),
        ("feature-pay", 8, False, "feature…"),
        ("feature-pay", 8, True, "…ure-pay"),
        ("支払いの画面", 8, False, "支払い…"),
        ("支払いの画面", 8, True, "…の画面"),
        ("ab", 1, False, "…"),
        ("ab", 0, False, ""),
    ],
)
def test_a_text_is_shortened_by_cells(
    text: str, cells: int, keep_end: bool, shown: str
) -> None:
    assert shorten(text, cells, keep_end=keep_end) == shown


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
