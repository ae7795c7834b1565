"""What goes to the terminal: less than Textual sends, to the same screen. A terminal
emulator is the judge.
"""

import random
import re

import pyte
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.color import ColorSystem
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.driver import Driver
from textual.geometry import Region, Size
from textual.pilot import Pilot
from textual.strip import Strip

from cdd_agent.events.dialogue_events import ReplyDelta, ReplyStarted
from cdd_agent.events.step_summary import StepSummary
from cdd_agent.tickets.status import StepStatus
from cdd_agent.tui.sparing import SentScreen
from tests.support.projects import Sandbox
from tests.tui.person import opened, shell

SIZE = Size(12, 6)
STYLES = [
    Style.parse(text)
    for text in (
        "white on black",
        "bold red on black",
        "reverse #102030 on black",
        "none",
    )
]
TEXTS = st.text("ab é漢", min_size=1, max_size=9)
ROWS = st.lists(st.tuples(TEXTS, st.sampled_from(STYLES)), min_size=1, max_size=3).map(
    lambda parts: Strip(
        [Segment(text, style) for text, style in parts]
    ).adjust_cell_length(SIZE.width, STYLES[0])
)
SCREENS = st.lists(ROWS, min_size=SIZE.height, max_size=SIZE.height)
MOVED = st.none() | st.tuples(
    st.builds(Region, st.just(0), st.integers(0, 3), st.just(9), st.integers(1, 6)),
    st.integers(-3, 3),
)
FEW = settings(max_examples=settings().max_examples // 4)
"""Fewer examples than elsewhere, because each one takes long."""
CONSOLE = Console(
    force_terminal=True,
    color_system="truecolor",
    width=SIZE.width,
    legacy_windows=False,
)


class Emulator:
    def __init__(self) -> None:
        self.screen = pyte.Screen(SIZE.width, SIZE.height)
        self._stream = pyte.Stream(self.screen)

    def feed(self, text: str) -> None:
        self._stream.feed(text)

    def seen(self) -> list[list[tuple[object, ...]]]:
        """Each cell, by what a person can tell apart."""
        rows = (
            [self.screen.buffer[y][x] for x in range(SIZE.width)]
            for y in range(SIZE.height)
        )
        return [
            [
                (c.data, c.bg, c.reverse)
                if c.data == " " and not c.reverse
                else (c.data, c.fg, c.bg, c.bold, c.reverse)
                for c in row
                # not right of one that takes two cells: terminals differ in what they
                # keep there
                if c.data
            ]
            for row in rows
        ]


def whole(rows: list[Strip]) -> LayoutUpdate:
    return LayoutUpdate([[row] for row in rows], SIZE.region)


@given(first=SCREENS, later=st.lists(st.tuples(SCREENS, MOVED), max_size=3))
@FEW
def test_the_screen_is_the_same_as_if_all_was_sent(
    first: list[Strip], later: list[tuple[list[Strip], tuple[Region, int] | None]]
) -> None:
    sent, ours = SentScreen(SIZE, ColorSystem.TRUECOLOR), Emulator()
    ours.feed(sent.sequence(whole(first)))
    for rows, moved in later:
        ours.feed(sent.sequence(whole(rows), moved))
        theirs = Emulator()
        theirs.feed(whole(rows).render_segments(CONSOLE))
        assert ours.seen() == theirs.seen()


@given(
    first=SCREENS,
    second=SCREENS,
    x=st.integers(0, 11),
    width=st.integers(1, 12),
    y=st.integers(0, 5),
    moved=MOVED,
)
@FEW
def test_a_part_of_the_screen_is_all_that_changes(
    first: list[Strip],
    second: list[Strip],
    x: int,
    width: int,
    y: int,
    moved: tuple[Region, int] | None,
) -> None:
    end = min(x + width, SIZE.width)
    cuts = sorted({0, x, end, SIZE.width})
    chops = [dict.fromkeys(cuts[:-1]) for _ in range(SIZE.height)]
    chops[y] = {**chops[y], x: second[y].crop(x, end)}
    update = ChopsUpdate(chops, [(y, x, end)], [cuts[1:]] * SIZE.height)
    sent, ours, theirs = SentScreen(SIZE, ColorSystem.TRUECOLOR), Emulator(), Emulator()
    ours.feed(sent.sequence(whole(first)))
    ours.feed(sent.sequence(update, moved))
    expected = [*first]
    expected[y] = Strip.join(
        [first[y].crop(0, x), second[y].crop(x, end), first[y].crop(end, SIZE.width)]
    )
    theirs.feed(whole(expected).render_segments(CONSOLE))
    assert ours.seen() == theirs.seen()


def test_rows_that_did_not_change_are_not_sent() -> None:
    rows = [
        Strip([Segment(f"row {number}      ", STYLES[0])])
        for number in range(SIZE.height)
    ]
    sent = SentScreen(SIZE, ColorSystem.TRUECOLOR)
    assert "row 3" in sent.sequence(whole(rows))
    assert sent.sequence(whole(rows)) == ""
    rows[3] = Strip([Segment("row x      ", STYLES[0])])
    assert sent.sequence(whole(rows)).endswith("Hx")


def test_a_row_whose_width_terminals_differ_about_is_sent_whole() -> None:
    sent = SentScreen(SIZE, ColorSystem.TRUECOLOR)
    rows = [
        Strip([Segment("cafe\u0301 1", STYLES[0])]).adjust_cell_length(
            SIZE.width, STYLES[0]
        )
    ] * SIZE.height
    sent.sequence(whole(rows))
    assert "cafe\u0301 2" in sent.sequence(
        whole(
            [
                Strip([Segment("cafe\u0301 2", STYLES[0])]).adjust_cell_length(
                    SIZE.width, STYLES[0]
                ),
                *rows[1:],
            ]
        )
    )


def test_text_that_moves_up_is_not_sent_again() -> None:
    rows = [
        Strip([Segment(f"row {number}".ljust(12), STYLES[0])])
        for number in range(SIZE.height + 1)
    ]
    sent = SentScreen(SIZE, ColorSystem.TRUECOLOR)
    sent.sequence(whole(rows[:-1]))
    text = sent.sequence(whole(rows[1:]), (SIZE.region, 1))
    assert "row 6" in text
    assert "row 5" not in text


class Line(Driver):
    """What is sent comes to an emulator, which changes its size when it is told."""

    emulator: Emulator

    def write(self, data: str) -> None:
        self.emulator.feed(re.sub(r"\x1b\[[<>=?][0-9;]*\$?[a-zA-Z]", "", data))

    def start_application_mode(self) -> None:
        self.resize(Size(80, 24))

    def resize(self, size: Size) -> None:
        self.emulator.screen.resize(size.height, size.width)
        self.process_message(events.Resize(size, size))

    def disable_input(self) -> None: ...

    def stop_application_mode(self) -> None: ...


async def test_the_terminal_always_shows_what_the_shell_has_drawn(
    sandbox: Sandbox,
) -> None:
    chance = random.Random(0)
    emulator = Line.emulator = Emulator()
    steps = tuple(
        StepSummary(number, f"Step {number}", StepStatus.PENDING, depends_on=())
        for number in range(1, 9)
    )

    async def walk(pilot: Pilot[object]) -> None:
        await opened(app, pilot)
        line = app._driver
        assert isinstance(line, Line)
        app.receive(ReplyStarted(1, "a/model"))
        for turn in range(25):
            act = chance.choice(["text", "text", "text", "key", "plan", "resize"])
            if act == "text":
                words = chance.choices(
                    ["word", "漢字", "*loud*", "\n\n", "- item\n", "`code`"],
                    k=chance.randint(1, 30),
                )
                app.receive(ReplyDelta(1, " ".join(words)))
            elif act == "key":
                await pilot.press(
                    chance.choice(
                        [
                            "pageup",
                            "pagedown",
                            "f1",
                            "escape",
                            "ctrl+p",
                            "f2",
                            "x",
                            "ctrl+end",
                        ]
                    )
                )
            elif act == "plan":
                app.home.steps.show(chance.choice([steps, steps[:3]]))
            else:
                line.resize(
                    Size(chance.choice([30, 80, 120]), chance.choice([8, 24, 40]))
                )
            await pilot.pause()
            drawn = [
                "".join(part.text for part in strip)
                for strip in app.screen._compositor.render_strips()
            ]
            shown = [
                "".join(
                    emulator.screen.buffer[y][x].data for x in range(app.size.width)
                )
                for y in range(app.size.height)
            ]
            assert shown == drawn, f"{turn}: {act}"
        app.exit()

    app = shell(sandbox.write())
    app.driver_class = Line
    await app.run_async(auto_pilot=walk)
    assert app.return_code == 0
