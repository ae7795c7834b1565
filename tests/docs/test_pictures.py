"""Pictures of the docs load nothing from elsewhere. A film shows each change."""

import re
from pathlib import Path

from textual.app import App, ComposeResult
from textual.widgets import Static

from tools.film import Film, without_fonts

DOCS = Path(__file__).parents[2] / "docs"
NAMES_ONLY = {"http://www.w3.org/2000/svg", "https://www.textualize.io"}
"""Addresses that name something and are not fetched."""


class Counter(App[None]):
    def compose(self) -> ComposeResult:
        yield Static("one  1")

    def show(self, text: str) -> None:
        self.query_one(Static).update(text)


async def film_of(*texts: str) -> Film:
    """Film a screen that shows these texts, a second each."""
    film = Film()
    app = Counter()
    async with app.run_test(size=(20, 4)) as pilot:
        for second, text in enumerate(texts):
            app.show(text)
            await pilot.pause()
            film.add(app.export_screenshot(), second)
    return film


async def still(text: str) -> str:
    app = Counter()
    async with app.run_test(size=(20, 4)) as pilot:
        app.show(text)
        await pilot.pause()
        return app.export_screenshot()


def addresses_in(svg: str) -> set[str]:
    return set(re.findall(r"https?://[^\"') ]+", svg))


def test_pictures_load_nothing_from_elsewhere() -> None:
    pictures = sorted(DOCS.rglob("*.svg"))
    assert pictures
    for picture in pictures:
        svg = picture.read_text(encoding="utf-8")
        assert addresses_in(svg) <= NAMES_ONLY, picture
        assert "<script" not in svg, picture


async def test_a_film_has_a_frame_for_each_change() -> None:
    film = await film_of("one", "one", "two")
    assert [frame.at for frame in film.frames] == [0, 2]
    assert film.durations() == [film.longest, film.last]
    svg = film.svg()
    assert svg.count('class="f"') == 2
    assert svg.count(">one") == svg.count(">two") == 1
    assert addresses_in(svg) <= NAMES_ONLY


async def test_a_row_of_several_frames_is_in_the_film_once() -> None:
    film = await film_of("same\na", "same\nb", "same\nc")
    assert film.svg().count(">same") == 1
    assert len(film.frames) == 3


async def test_a_change_of_a_quiet_row_makes_no_frame() -> None:
    film = Film(quiet_rows=frozenset({1}))
    for second, text in enumerate(("a\n1 s", "a\n2 s", "b\n3 s")):
        film.add(await still(text), second)
    assert [frame.at for frame in film.frames] == [0, 2]


async def test_frames_that_are_held_and_the_last_one_are_not_thinned_out() -> None:
    film = await film_of(*"abcdefgh")
    film.frames[3].hold = 2
    film.thin_out(4)
    assert len(film.frames) == 4
    assert {3, 7} <= {frame.at for frame in film.frames}
    assert 2 in film.durations()


async def test_a_still_picture_loads_no_font() -> None:
    assert addresses_in(without_fonts(await still("a"))) <= NAMES_ONLY
