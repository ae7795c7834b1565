"""How the screens around the work look, in each theme and in sixteen colours."""

import os
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import pytest
from textual.pilot import Pilot

from cdd_agent.llm.offered_model import OfferedModel
from cdd_agent.tui.app import Shell
from cdd_agent.tui.screens.first_run import FirstRun, Wish
from cdd_agent.tui.screens.palette import Palette
from cdd_agent.tui.screens.settings import SettingsScreen
from cdd_agent.tui.screens.tickets import TicketsScreen
from cdd_agent.tui.themes import use_theme
from tests.support.projects import Sandbox
from tests.tui.person import shell
from tests.tui.test_snapshots import OPENING, SLUG, shop, showing

__all__ = ["shop"]
Compare = Callable[..., bool]
LOOKS = [
    ((80, 24), "dark", "truecolor"),
    ((120, 40), "dark", "truecolor"),
    ((120, 40), "light", "truecolor"),
    ((120, 40), "contrast", "truecolor"),
    ((80, 24), "light", ""),
]
everywhere = pytest.mark.parametrize(
    ("size", "theme", "colours"),
    LOOKS,
    ids=[f"{w}x{h}-{theme}{'' if c else '-16'}" for (w, h), theme, c in LOOKS],
)
Look = tuple[tuple[int, int], str]


@pytest.fixture
def look(
    size: tuple[int, int],
    theme: str,
    colours: str,
    shop: Sandbox,
    monkeypatch: pytest.MonkeyPatch,
) -> Look:
    monkeypatch.setenv("COLORTERM", colours)
    monkeypatch.setenv("TERM", "xterm-256color" if colours else "xterm")
    for number, name in enumerate((SLUG, "feature-login", "bug-rounding")):
        for file in (shop.root / "tickets" / name).iterdir():
            os.utime(file, (1_700_000_000 - number * 90_000,) * 2)
    monkeypatch.setattr("cdd_agent.tui.screens.tickets.datetime", Noon)
    return size, theme


class Noon(datetime):
    """An hour and a half after the first ticket was touched."""

    @classmethod
    def now(cls, tz: object = None) -> "Noon":
        return cls.fromtimestamp(1_700_005_400, UTC)


def doing(
    theme: str, do: Callable[[Shell, Pilot[None]], Awaitable[None]]
) -> Callable[[Pilot[None]], Awaitable[None]]:
    async def run(pilot: Pilot[None]) -> None:
        await showing()(pilot)
        app = pilot.app
        assert isinstance(app, Shell)
        use_theme(app, theme)
        await do(app, pilot)
        await at_rest(app, pilot)

    return run


async def at_rest(app: Shell, pilot: Pilot[None]) -> None:
    """Wait until what a screen shows has come."""
    while [worker for worker in app.workers if worker.group != "turn"]:
        await pilot.pause(0.01)
    await pilot.pause()


def pressing(*keys: str) -> Callable[[Shell, Pilot[None]], Awaitable[None]]:
    async def press(app: Shell, pilot: Pilot[None]) -> None:
        await pilot.press(*keys[:1])
        while (
            not isinstance(app.screen, Palette | TicketsScreen | SettingsScreen)
            and keys[0] != "f1"
        ):
            await pilot.pause(0.01)
        await at_rest(app, pilot)
        await pilot.press(*keys[1:])

    return press


def snap(
    compare: Compare,
    shop: Sandbox,
    look: Look,
    do: Callable[[Shell, Pilot[None]], Awaitable[None]],
) -> bool:
    size, theme = look
    return compare(
        shell(shop, opening=OPENING), run_before=doing(theme, do), terminal_size=size
    )


@everywhere
def test_the_palette(shop: Sandbox, look: Look, snap_compare: Compare) -> None:
    assert snap(snap_compare, shop, look, pressing("ctrl+p", "down", "down"))


@everywhere
def test_the_palette_filtered(shop: Sandbox, look: Look, snap_compare: Compare) -> None:
    assert snap(snap_compare, shop, look, pressing("ctrl+p", *"plan", "down"))


@everywhere
def test_help(shop: Sandbox, look: Look, snap_compare: Compare) -> None:
    assert snap(snap_compare, shop, look, pressing("f1"))


@everywhere
def test_tickets(shop: Sandbox, look: Look, snap_compare: Compare) -> None:
    assert snap(snap_compare, shop, look, pressing("f4", "down"))


@everywhere
def test_settings(shop: Sandbox, look: Look, snap_compare: Compare) -> None:
    shop.flags = {"max_attempts": 5}
    (shop.root / ".cdd" / "config.yaml").write_text(
        "approval: ask\nbudget:\n  usd: 2\n"
    )
    assert snap(snap_compare, shop, look, pressing("f5", "down"))


OFFERS = (
    OfferedModel("qwen3-coder:30b", "Ollama", "http://127.0.0.1:11434"),
    OfferedModel(
        "mistralai/devstral-small-2507", "LM Studio", "http://127.0.0.1:1234/v1"
    ),
)


@everywhere
def test_the_first_run(
    shop: Sandbox, look: Look, snap_compare: Compare, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "cdd_agent.tui.screens.first_run.choices.__defaults__",
        ({"ANTHROPIC_API_KEY": "a"},),
    )

    async def offer(app: Shell, pilot: Pilot[None]) -> None:
        app.push_screen(FirstRun(OFFERS, lambda: 0.0))
        await pilot.pause()
        await pilot.press("down")

    assert snap(snap_compare, shop, look, offer)


@everywhere
def test_the_wish(shop: Sandbox, look: Look, snap_compare: Compare) -> None:
    async def wish(app: Shell, pilot: Pilot[None]) -> None:
        app.push_screen(Wish())
        await pilot.pause()
        await pilot.press(*"CSV")

    assert snap(snap_compare, shop, look, wish)
