"""The user or the terminal's background chooses a theme, and all text can be read."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.color import ColorSystem
from rich.style import Style

from cdd_agent.settings.user_folders import state_folder
from cdd_agent.tui.screens.palette import Palette
from cdd_agent.tui.terminal_input.driver_messages import BackgroundReported
from cdd_agent.tui.themes import (
    LastTheme,
    load_last_theme,
    save_last_theme,
    theme_for_background,
    use_theme,
)
from tests.support.examples import IS_THOROUGH
from tests.support.projects import SLUG, Sandbox, Step
from tests.tui.person import Person, person_at


@pytest.fixture(autouse=True)
def truecolour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("COLORFGBG", raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)


def file() -> Path:
    return state_folder() / "theme.json"


async def drawn_in(person: Person, name: str) -> None:
    await person.until(lambda: person.app.theme == name)


async def test_the_chosen_theme_is_used_at_once_and_at_the_next_start(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:
        assert person.app.theme == "textual-dark"
        await person.press("ctrl+p")
        await person.until(lambda: isinstance(person.app.screen, Palette))
        person.app.screen.type("theme: light")
        await person.press("enter")
        await drawn_in(person, "textual-light")
        await person.say("/theme contr")
        await drawn_in(person, "cdd-contrast")
    async with person_at(sandbox) as person:
        assert person.app.theme == "cdd-contrast"
        person.app.post_message(BackgroundReported("rgb:ffff/ffff/ffff"))
        await person.pilot.pause()
        assert person.app.theme == "cdd-contrast"
    assert not (sandbox.root / ".cdd").exists()


async def test_the_theme_follows_the_background_until_one_is_chosen_and_after_auto(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:
        person.app.post_message(BackgroundReported("rgb:fafa/fafa/fafa"))
        await drawn_in(person, "textual-light")
        assert load_last_theme() == LastTheme("light")
        await person.say("/theme contrast")
        await drawn_in(person, "cdd-contrast")
        await person.say("/theme auto")
        person.app.post_message(BackgroundReported("rgb:1e1e/1e1e/1e1e"))
        await drawn_in(person, "textual-dark")
        assert load_last_theme() == LastTheme("dark")


async def test_an_unknown_theme_is_refused_with_the_names_of_the_themes(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:
        await person.say("/theme neon")
        await person.until(lambda: person.app._notifications)
        (note,) = person.app._notifications
        assert "contrast" in note.message
        assert not file().exists()


def test_an_unreadable_theme_file_means_the_default() -> None:
    file().parent.mkdir(parents=True)
    for text in ("", "{", "[1]", '{"theme": "neon"}', "\xff"):
        file().write_text(text, encoding="latin-1")
        assert load_last_theme({}) == LastTheme("dark"), text


def test_colorfgbg_chooses_the_theme() -> None:
    themes = {
        "15;0": "dark",
        "0;15": "light",
        "0;default;7": "light",
        "": "dark",
        "x;y": "dark",
    }
    assert {v: load_last_theme({"COLORFGBG": v}).name for v in themes} == themes


@pytest.mark.skipif(
    os.name == "nt" or os.geteuid() == 0, reason="root writes everywhere"
)
def test_a_theme_that_cannot_be_saved_is_no_error() -> None:
    state_folder().parent.mkdir(parents=True, exist_ok=True)
    state_folder().parent.chmod(0o500)
    save_last_theme(LastTheme("light"))
    assert load_last_theme({}) == LastTheme("dark")


def test_the_choice_is_saved_as_json() -> None:
    save_last_theme(LastTheme("light", is_chosen=True))
    assert json.loads(file().read_text()) == {"theme": "light", "chosen": True}


def test_the_background_is_read_in_each_format_that_terminals_write() -> None:
    themes = {
        "rgb:1e1e/1e1e/1e1e": "dark",
        "rgb:ffff/ffff/ffff": "light",
        "rgb:fd/f6/e3": "light",
        "rgba:0000/0000/0000/ffff": "dark",
        "#FDF6E3": "light",
        "?": None,
        "rgb:zz/00/00": None,
    }
    assert {colour: theme_for_background(colour) for colour in themes} == themes


SCREENS = ("", "f1", "ctrl+p")


ALL = ("dark", "light", "ansi-light", "contrast", "nord")


async def test_text_and_background_differ_in_sixteen_colours(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLORTERM", "")
    monkeypatch.setenv("TERM", "xterm")
    sandbox.write(Step("a.txt"))
    unreadable = set()
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        for name in ALL if IS_THOROUGH else ALL[:3]:
            use_theme(person.app, name)
            for key in SCREENS:
                await person.press(*filter(None, [key]))
                await person.pilot.pause()
                for text, style in texts_on_top(person):
                    if not can_be_read(style):
                        unreadable.add((name, key, text.strip(), str(style)))
                if key:
                    await person.press("escape")
                    await person.until(lambda: person.app.screen is person.app.home)
    assert unreadable == set()


def texts_on_top(person: Person) -> Iterator[tuple[str, Style]]:
    """Yield the texts of the screen, or those of the dialog over it."""
    screen = person.app.screen
    dialogs = screen.query("#overlay")
    area = dialogs.first().region if dialogs else screen.region
    for strip in screen._compositor.render_strips()[area.y : area.bottom]:
        for text, style, _ in strip.crop(area.x, area.right):
            if style is not None and text.strip(" │─┼╭╮╰╯━╌▏▁▂▃▄▅▆▇█"):
                yield text, style


def can_be_read(style: Style) -> bool:
    front, back = style.color, style.bgcolor
    if front is None or back is None:
        return True
    front, back = (c.downgrade(ColorSystem.STANDARD) for c in (front, back))
    return front != back or front.is_default


async def test_without_colours_the_chosen_and_the_found_stand_out(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    sandbox.write(Step("a.txt"))

    def standing_out() -> str:
        segments = [
            part
            for strip in person.app.screen._compositor.render_strips()
            for part in strip
        ]
        for text, style, _ in segments:
            colours = (style.color, style.bgcolor) if style is not None else ()
            assert all(colour is None or colour.is_default for colour in colours), (
                text,
                style,
            )
        return "|".join(
            text.strip()
            for text, style, _ in segments
            if style is not None and (style.reverse or style.underline)
        )

    async with person_at(sandbox, f"/exec {SLUG}") as person:
        for key, shown in (("ctrl+p", "/new TYPE NAME"), ("f4", SLUG), ("f5", "Model")):
            await person.press(key)
            await person.until(lambda shown=shown: shown in standing_out())
            await person.press("escape")
            await person.until(lambda: person.app.screen is person.app.home)
        await person.type("/st")
        assert "/status" in standing_out()
        await person.press("escape", "backspace", "backspace", "backspace", "ctrl+f")
        await person.until(lambda: person.app.home.query("FindInput"))
        await person.type("step")
        assert "step" in standing_out()


async def test_the_words_about_themes_fit_a_window_of_80_columns(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox, size=(80, 24)) as person:
        await person.say("/theme")
        await person.until(lambda: "by the background" in person.screen)
        assert "for dark terminals" in person.screen
        assert "your 16 colours" in person.screen
