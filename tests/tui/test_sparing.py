"""What goes to the terminal: less than Textual sends, to the same screen. A terminal emulator is the judge."""

import pyte
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.color import ColorSystem
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.geometry import Region, Size
from textual.strip import Strip

from cdd_agent.tui.sparing import SentScreen

SIZE = Size(12, 6)
STYLES = [Style.parse(text) for text in ("white on black", "bold red on black", "reverse #102030 on black", "none")]
TEXTS = st.text("ab é漢", min_size=1, max_size=9)
ROWS = st.lists(st.tuples(TEXTS, st.sampled_from(STYLES)), min_size=1, max_size=3).map(
    lambda parts: Strip([Segment(text, style) for text, style in parts]).adjust_cell_length(SIZE.width, STYLES[0])
)
SCREENS = st.lists(ROWS, min_size=SIZE.height, max_size=SIZE.height)
MOVED = st.none() | st.tuples(
    st.builds(Region, st.just(0), st.integers(0, 3), st.just(9), st.integers(1, 6)), st.integers(-3, 3)
)
CONSOLE = Console(force_terminal=True, color_system="truecolor", width=SIZE.width, legacy_windows=False)


class Emulator:
    def __init__(self) -> None:
        self.screen = pyte.Screen(SIZE.width, SIZE.height)
        self._stream = pyte.Stream(self.screen)

    def feed(self, text: str) -> None:
        self._stream.feed(text)

    def seen(self) -> list[list[tuple[object, ...]]]:
        """Each cell, by what a person can tell apart."""
        rows = ([self.screen.buffer[y][x] for x in range(SIZE.width)] for y in range(SIZE.height))
        return [
            [
                (c.data, c.bg, c.reverse)
                if c.data == " " and not c.reverse
                else (c.data, c.fg, c.bg, c.bold, c.reverse)
                for c in row
                if c.data  # not right of one that takes two cells: terminals differ in what they keep there
            ]
            for row in rows
        ]


def whole(rows: list[Strip]) -> LayoutUpdate:
    return LayoutUpdate([[row] for row in rows], SIZE.region)


@settings(deadline=None)
@given(first=SCREENS, later=st.lists(st.tuples(SCREENS, MOVED), max_size=4), erases=st.booleans())
def test_the_screen_is_the_same_as_if_all_was_sent(
    first: list[Strip], later: list[tuple[list[Strip], tuple[Region, int] | None]], erases: bool
) -> None:
    sent, ours = SentScreen(ColorSystem.TRUECOLOR, SIZE, erases=erases), Emulator()
    ours.feed(sent.sequence(whole(first)))
    for rows, moved in later:
        ours.feed(sent.sequence(whole(rows), moved))
        theirs = Emulator()
        theirs.feed(whole(rows).render_segments(CONSOLE))
        assert ours.seen() == theirs.seen()


@settings(deadline=None)
@given(first=SCREENS, second=SCREENS, x=st.integers(0, 11), width=st.integers(1, 12), y=st.integers(0, 5), moved=MOVED)
def test_a_part_of_the_screen_is_all_that_changes(
    first: list[Strip], second: list[Strip], x: int, width: int, y: int, moved: tuple[Region, int] | None
) -> None:
    end = min(x + width, SIZE.width)
    cuts = sorted({0, x, end, SIZE.width})
    chops = [dict.fromkeys(cuts[:-1]) for _ in range(SIZE.height)]
    chops[y] = {**chops[y], x: second[y].crop(x, end)}
    update = ChopsUpdate(chops, [(y, x, end)], [cuts[1:]] * SIZE.height)
    sent, ours, theirs = SentScreen(ColorSystem.TRUECOLOR, SIZE, erases=True), Emulator(), Emulator()
    ours.feed(sent.sequence(whole(first)))
    ours.feed(sent.sequence(update, moved))
    expected = [*first]
    expected[y] = Strip.join([first[y].crop(0, x), second[y].crop(x, end), first[y].crop(end, SIZE.width)])
    theirs.feed(whole(expected).render_segments(CONSOLE))
    assert ours.seen() == theirs.seen()


def test_rows_that_did_not_change_are_not_sent() -> None:
    rows = [Strip([Segment(f"row {number}      ", STYLES[0])]) for number in range(SIZE.height)]
    sent = SentScreen(ColorSystem.TRUECOLOR, SIZE, erases=True)
    assert "row 3" in sent.sequence(whole(rows))
    assert sent.sequence(whole(rows)) == ""
    rows[3] = Strip([Segment("row x      ", STYLES[0])])
    assert sent.sequence(whole(rows)).endswith("Hx")


def test_text_that_moves_up_is_not_sent_again() -> None:
    rows = [Strip([Segment(f"row {number}".ljust(12), STYLES[0])]) for number in range(SIZE.height + 1)]
    sent = SentScreen(ColorSystem.TRUECOLOR, SIZE, erases=True)
    sent.sequence(whole(rows[:-1]))
    text = sent.sequence(whole(rows[1:]), (SIZE.region, 1))
    assert "row 6" in text
    assert "row 5" not in text
