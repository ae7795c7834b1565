"""All text can be read in each theme: by the table of pairs, and as it is drawn."""

from itertools import product

import pytest
from textual.color import Color
from textual.pilot import Pilot

from cdd_agent.changes.file_diff import FileDiff
from cdd_agent.events.notices import Notice, Tone
from cdd_agent.events.step_events import ChangesApplied, StepDiff
from cdd_agent.settings.config import Approval
from cdd_agent.tui.app import Shell
from cdd_agent.tui.contrast import (
    BACKGROUNDS_OF,
    LEAST_CONTRAST,
    contrast_ratio,
    readable_on,
    readable_variables,
)
from cdd_agent.tui.themes import THEMES, use_theme
from cdd_agent.tui.transcript.blocks import BlockKind
from tests.support.drawn_colours import drawn_texts
from tests.support.projects import Sandbox
from tests.tui.screens.test_looks import STATES, Show, at_rest, back, showing_screens
from tests.tui.test_snapshots import DIFF, REVIEW, TITLES, shop

__all__ = ["shop"]
COLOUR_THEMES = [name for name in THEMES if not name.startswith("ansi")]
LEVELS = (0, 51, 102, 153, 204, 255)
COLOURS = [Color(*parts) for parts in product(LEVELS, repeat=3)]


def test_black_on_white_has_the_highest_contrast() -> None:
    assert contrast_ratio(Color(0, 0, 0), Color(255, 255, 255)) == pytest.approx(21)
    assert contrast_ratio(Color(119, 119, 119), Color(255, 255, 255)) < LEAST_CONTRAST
    assert contrast_ratio(Color(118, 118, 118), Color(255, 255, 255)) > LEAST_CONTRAST


def test_each_colour_becomes_readable_on_each_background() -> None:
    for colour, background in product(COLOURS[::5], COLOURS):
        readable = readable_on(colour, [background])
        assert contrast_ratio(readable, background) >= LEAST_CONTRAST
        if contrast_ratio(colour, background) >= 5:
            assert readable == colour


@pytest.mark.parametrize("name", COLOUR_THEMES)
def test_each_pair_of_the_table_can_be_read(name: str) -> None:
    theme = THEMES[name]
    generated = theme.to_color_system().generate() | theme.variables
    variables = readable_variables(generated)
    low = []
    for text, backgrounds in BACKGROUNDS_OF.items():
        for background in backgrounds:
            ratio = contrast_ratio(
                Color.parse(variables[text]), Color.parse(variables[background])
            )
            if ratio < LEAST_CONTRAST:
                low.append((text, background, round(ratio, 2)))
    assert low == []


KEEP_BEFORE = b"""\
import os


class A:
    n = 1  # one
    s = "x"
    size = len(s)
"""
KEEP_AFTER = b"""\
import sys


@final
class A:
    n = 2  # two
    s = "y"
    size = max(s)
"""
KEEP = FileDiff.compare("tally/keep.py", KEEP_BEFORE, KEEP_AFTER)
MARKDOWN = """\
# One
## Two
### Three
**Strong**, *emphasis*, ~~struck~~, `code`, [a link](https://example.com).

> A quote with `code`.

1. first
   - second

| key | action |
|---|---|
| F1 | Help |

```python:tally/keep.py
# A comment.
@final
class Month(Base):
    'A text.'

    async def total(self) -> int:
        return sum(1, 2.5, None) if self else print(f"{self}")
```

```diff
-old
+new
```
"""


async def show_every_ink(app: Shell, pilot: Pilot[None]) -> None:
    """Show code, an open diff, all tones, a notification, and a selection."""
    transcript = app.home.transcript
    for tone in Tone:
        app.show(Notice(f"A notice: `{tone.value}`.", tone))
    transcript.add(BlockKind.MARKDOWN, MARKDOWN)
    transcript.add(BlockKind.USER, "A line of the user.")
    transcript.add(BlockKind.THOUGHTS, "A thought.")
    app.show(StepDiff(3, TITLES[2], DIFF))
    app.show(ChangesApplied(3, (), (), (), (), (KEEP,)))
    app.notify("A notification.", title="Title", severity="warning", timeout=600)
    app.home.prompt.replace("selected")
    app.home.prompt.area.select_all()
    await pilot.press("ctrl+f")
    await pilot.pause()
    await pilot.press(*"line")


async def select_all(app: Shell, pilot: Pilot[None]) -> None:
    await show_every_ink(app, pilot)
    app.home.transcript.text_select_all()


async def review(app: Shell, pilot: Pilot[None]) -> None:
    del pilot
    app.run_worker(app.asking.review(REVIEW), group="asking")


def in_mode(mode: Approval) -> Show:
    async def change(app: Shell, pilot: Pilot[None]) -> None:
        del pilot
        assert app.session is not None
        app.session.change_approval(mode)

    return change


def editing(*lines: str | list[str]) -> Show:
    """Open the settings, type to find one of them, and press more keys."""

    async def edit(app: Shell, pilot: Pilot[None]) -> None:
        await pilot.press("f5")
        await at_rest(app, pilot)
        for line in lines:
            await pilot.press(*(["enter"] if line == "enter" else line))
            await pilot.pause(0.05)

    return edit


DIALOGS = {
    "choice": editing("approval mode", "enter"),
    "place": editing("bell", "enter", ["down"], "enter"),
    "wrong value": editing("attempts", "enter", "00"),
    "themes": editing("theme", "enter"),
}
MODES = {"edits": in_mode("edits"), "auto": in_mode("auto")}
INKS = {"every ink": show_every_ink, "selection": select_all, "review": review}
HARD_THEMES = ("light", "atom-one-dark")
"""The themes in which most text is unreadable without the table."""


def unreadable(app: Shell, about: tuple[str, ...]) -> list[tuple[object, ...]]:
    region = None if app.screen is app.home else app.screen.children[0].region
    low = []
    for text, colour, background in drawn_texts(app, region):
        ratio = contrast_ratio(colour, background)
        if ratio < LEAST_CONTRAST:
            low.append((*about, text, colour.hex, background.hex, round(ratio, 2)))
    return low


@pytest.mark.long
async def test_all_text_of_each_screen_can_be_read_in_each_theme(
    shop: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dialog dims the shell behind it on purpose."""
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("TERM", "xterm-256color")
    low = []
    async with showing_screens(shop, monkeypatch, (120, 75)) as (app, pilot):
        for state, show in (STATES | DIALOGS | MODES | INKS).items():
            await show(app, pilot)
            await at_rest(app, pilot)
            for name in COLOUR_THEMES if state in INKS else HARD_THEMES:
                use_theme(app, name)
                await pilot.pause()
                low += unreadable(app, (name, state))
            await back(app, pilot)
    assert low == []
