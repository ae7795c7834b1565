"""Themes: chosen by the person or by the terminal's background, remembered, readable in
each.
"""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from time import sleep

import pytest
from rich.color import Color, ColorSystem
from textual import events
from textual.constants import ESCAPE_DELAY
from textual.message import Message

from cdd_agent.tui.background_message import BackgroundTold
from cdd_agent.tui.themes import (
    THEMES,
    ThemeChoice,
    by_background,
    remember,
    remembered,
    use_theme,
)
from cdd_agent.user_folders import state_folder
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


async def test_what_is_chosen_is_used_at_once_and_at_the_next_start(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:
        assert person.app.theme == "textual-dark"
        await person.say("/theme light")
        await drawn_in(person, "textual-light")
        await person.say("/theme contr")
        await drawn_in(person, "cdd-contrast")
    async with person_at(sandbox) as person:
        assert person.app.theme == "cdd-contrast"
        person.app.post_message(BackgroundTold("rgb:ffff/ffff/ffff"))
        await person.pilot.pause()
        assert person.app.theme == "cdd-contrast"
    assert not (sandbox.root / ".cdd").exists()


async def test_the_palette_changes_it_too(sandbox: Sandbox) -> None:
    async with person_at(sandbox) as person:
        await person.press("ctrl+p")
        await person.until(lambda: person.app.screen is not person.app.home)
        await person.press(*"theme:", "space", *"light", "enter")
        await drawn_in(person, "textual-light")
        assert remembered() == ThemeChoice("light", is_chosen=True)


async def test_the_theme_follows_the_background_until_one_is_chosen_and_after_auto(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:
        person.app.post_message(BackgroundTold("rgb:fafa/fafa/fafa"))
        await drawn_in(person, "textual-light")
        assert remembered() == ThemeChoice("light")
        await person.say("/theme contrast")
        await drawn_in(person, "cdd-contrast")
        await person.say("/theme auto")
        person.app.post_message(BackgroundTold("rgb:1e1e/1e1e/1e1e"))
        await drawn_in(person, "textual-dark")
        assert remembered() == ThemeChoice("dark")


async def test_a_name_that_there_is_not_and_none_at_all_are_answered(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:
        for line in ("/theme neon", "/theme"):
            person.app.clear_notifications()
            await person.say(line)
            await person.until(lambda: person.app._notifications)
            (told,) = person.app._notifications
            assert "contrast" in told.message
        assert not file().exists()


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"theme": "neon"}', "\xff"])
def test_a_file_that_says_nothing_is_passed_over(text: str) -> None:
    file().parent.mkdir(parents=True)
    file().write_text(text, encoding="latin-1")
    assert remembered({}) == ThemeChoice("dark")


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("15;0", "dark"),
        ("0;15", "light"),
        ("0;default;7", "light"),
        ("", "dark"),
        ("x;y", "dark"),
    ],
)
def test_the_environment_may_say_what_the_background_is(value: str, name: str) -> None:
    assert remembered({"COLORFGBG": value}) == ThemeChoice(name)


@pytest.mark.skipif(
    os.name == "nt" or os.geteuid() == 0, reason="root writes everywhere"
)
def test_where_the_disk_refuses_nothing_fails() -> None:
    state_folder().parent.mkdir(parents=True, exist_ok=True)
    state_folder().parent.chmod(0o500)
    remember(ThemeChoice("light"))
    assert remembered({}) == ThemeChoice("dark")


def test_it_is_kept_as_json() -> None:
    remember(ThemeChoice("light", is_chosen=True))
    assert json.loads(file().read_text()) == {"theme": "light", "chosen": True}


@pytest.mark.parametrize(
    ("colour", "name"),
    [
        ("rgb:1e1e/1e1e/1e1e", "dark"),
        ("rgb:ffff/ffff/ffff", "light"),
        ("rgb:fd/f6/e3", "light"),
        ("rgba:0000/0000/0000/ffff", "dark"),
        ("#FDF6E3", "light"),
        ("?", None),
        ("rgb:zz/00/00", None),
    ],
)
def test_a_background_is_read_as_terminals_write_it(
    colour: str, name: str | None
) -> None:
    assert by_background(colour) == name


ANSWER = "\x1b]11;rgb:fafa/fafa/fafa\x1b\\"


def read(pieces: Iterable[str]) -> list[Message]:
    from cdd_agent.tui.asking_driver import BackgroundParser

    parser = BackgroundParser()
    return [message for piece in filter(None, pieces) for message in parser.feed(piece)]


@pytest.mark.skipif(os.name == "nt", reason="a terminal of another kind")
@pytest.mark.parametrize("end", ["\x1b\\", "\x07"])
@pytest.mark.parametrize("at", range(2, 25))
def test_an_answer_between_keys_is_taken_out_wherever_it_is_cut(
    at: int, end: str
) -> None:
    answer = ANSWER.removesuffix("\x1b\\") + end
    messages = read(["a", answer[:at], answer[at:], "b"])
    keys = [message.key for message in messages if isinstance(message, events.Key)]
    (told,) = [message for message in messages if isinstance(message, BackgroundTold)]
    assert keys == ["a", "b"]
    assert told.colour == "rgb:fafa/fafa/fafa"


@pytest.mark.skipif(os.name == "nt", reason="a terminal of another kind")
def test_keys_that_begin_like_an_answer_stay_keys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from cdd_agent.tui import asking_driver

    parser = asking_driver.BackgroundParser()
    assert list(parser.feed("\x1b]")) == []
    monkeypatch.setattr(asking_driver, "_PAUSE", -1.0)
    told = list(parser.tick())
    sleep(2 * ESCAPE_DELAY)
    told += [*parser.tick(), *parser.feed("x")]
    keys = [message.key for message in told if isinstance(message, events.Key)]
    assert keys[-1] == "x"
    assert len(keys) > 1


def contrast(front: Color, back: Color) -> float:
    """As the Web Content Accessibility Guidelines have it."""

    def luminance(colour: Color) -> float:
        assert colour.triplet is not None
        parts = [part / 255 for part in colour.triplet]
        red, green, blue = (
            part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
            for part in parts
        )
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    darker, lighter = sorted((luminance(front), luminance(back)))
    return (lighter + 0.05) / (darker + 0.05)


SCREENS = ("", "f1", "f4", "ctrl+p")


@pytest.mark.parametrize("colours", ["truecolor", "standard", "none"])
@pytest.mark.parametrize("name", THEMES)
async def test_all_that_is_drawn_can_be_read(
    sandbox: Sandbox, name: str, colours: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text of each screen stands out from what is behind it; in sixteen colours
    they are not the same one.
    """
    if colours == "none":
        monkeypatch.setenv("NO_COLOR", "1")
    elif colours == "standard":
        monkeypatch.setenv("COLORTERM", "")
        monkeypatch.setenv("TERM", "xterm")
    sandbox.write(Step("a.txt"))
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        use_theme(person.app, name)
        for key in SCREENS:
            await person.press(*filter(None, [key]))
            await person.pilot.pause()
            for strip in person.app.screen._compositor.render_strips():
                for text, style, _ in strip:
                    if (
                        not text.strip(" │─┼╭╮╰╯━╌▏▁▂▃▄▅▆▇█")
                        or style is None
                        or style.color is None
                    ):
                        continue
                    front, back = style.color, style.bgcolor
                    if colours == "standard":
                        front = front.downgrade(ColorSystem.STANDARD)
                        back = back.downgrade(ColorSystem.STANDARD) if back else back
                        assert front != back or front.is_default, (key, text)
                    elif back is not None and front.triplet and back.triplet:
                        assert contrast(front, back) >= (
                            4.5 if name == "contrast" else 2.5
                        ), (key, text, style)
            await person.press("escape")


async def test_without_colours_there_are_none_and_what_is_chosen_or_found_is_seen(
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
        for key, shown in (("ctrl+p", "/exec SLUG"), ("f4", SLUG), ("f5", "model")):
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
