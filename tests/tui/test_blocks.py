"""Blocks that fold: opened by keys and by the mouse, chosen, and copied as a whole."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from cdd_agent.tui.transcript.blocks import BlockKind
from cdd_agent.tui.transcript.folds import (
    Fold,
    Foldable,
    FoldHeader,
    Opening,
    shortened,
)
from cdd_agent.tui.transcript.lines import READING_WIDTH, TranscriptLine
from cdd_agent.tui.transcript.scrollback import BlockPart, Scrollback
from cdd_agent.tui.transcript.widget import Transcript
from tests.tui.test_transcript import numbered, screen, shown, text


def block(
    title: str,
    *lines: str,
    sample: int = 0,
    remark: str = "",
    opening: Opening = Opening.HEADER,
) -> Foldable:
    header = FoldHeader(
        fold=Fold(opening),
        title=title,
        remark=remark,
        ink="action",
        remark_ink="remark",
    )
    return Foldable(
        header,
        [TranscriptLine(text=line) for line in lines],
        "\n".join((title, *lines)),
        sample,
    )


OPENINGS = st.sampled_from(Opening)
LINES = tuple(f"line {number}" for number in range(6))


async def test_a_header_opens_what_is_below_it_by_a_click_and_folds_it_again() -> None:
    async with shown() as (transcript, pilot):
        transcript.add_foldable(block("read a.py", *LINES))
        transcript.add(BlockKind.NOTE, "below")
        folded = ["▸ read a.py", "", "below"]
        assert text(transcript).split("\n") == folded
        await pilot.click(Transcript, offset=(5, 0))
        assert text(transcript).split("\n") == ["▾ read a.py", *LINES, "", "below"]
        await pilot.click(Transcript, offset=(5, 2))  # not the header
        await pilot.click(Transcript, offset=(5, 0))
        assert text(transcript).split("\n") == folded


@pytest.mark.parametrize(
    ("sample", "shown_so"),
    [
        (2, ["line 0", "line 1", "    … 4 more lines"]),
        (-2, ["    … 4 more lines", "line 4", "line 5"]),
    ],
)
async def test_a_sample_says_how_much_more_there_is(
    sample: int, shown_so: list[str]
) -> None:
    async with shown() as (transcript, pilot):
        transcript.add_foldable(
            block("edit a.py", *LINES, sample=sample, opening=Opening.SOME)
        )
        await pilot.pause()
        assert text(transcript).split("\n") == ["▾ edit a.py", *shown_so]
        await pilot.click(
            Transcript,
            offset=(8, 1 + next(y for y, row in enumerate(shown_so) if "more" in row)),
        )
        assert text(transcript).split("\n") == ["▾ edit a.py", *LINES]
        await pilot.click(Transcript, offset=(8, 0))
        assert text(transcript) == "▸ edit a.py"
        await pilot.click(Transcript, offset=(8, 0))
        assert text(transcript).split("\n") == ["▾ edit a.py", *shown_so]


async def test_a_header_with_nothing_below_cannot_be_opened() -> None:
    async with shown() as (transcript, pilot):
        transcript.add_foldable(block("list src"))
        await pilot.click(Transcript, offset=(3, 0))
        assert text(transcript) == "  list src"


async def test_actions_stand_close_together() -> None:
    async with shown() as (transcript, _):
        transcript.add(BlockKind.NOTE, "before")
        for title in ("read a", "read b"):
            transcript.add_foldable(block(title, "x"))
        assert text(transcript).split("\n") == ["before", "", "▸ read a", "▸ read b"]


async def test_a_header_is_one_row_and_its_remark_gives_way_last() -> None:
    for width in (4, 8, 20, 40, 200):
        async with shown(width=width) as (transcript, _):
            transcript.add_foldable(
                block("edit src/a_long_name.py", "x", remark="+12 −3")
            )
            transcript.add_foldable(block("読む 日本語のテキスト.py", "x", remark="+1"))
            first, second, *_ = screen(transcript)
            assert len(transcript._scrollback.rows) == 2
            if width >= 20:
                assert re.fullmatch(r"▸ edit s.* \+12 −3", first)
                assert second.endswith("+1")
            assert len(first) <= min(width, READING_WIDTH)


async def test_keys_choose_blocks_open_them_and_fold_them() -> None:
    async with shown(height=12) as (transcript, pilot):
        transcript.add_foldable(block("first", *LINES))
        transcript.add(BlockKind.NOTE, "a note")
        transcript.add_foldable(block("second", *LINES, sample=2))
        await pilot.pause()
        assert not transcript.keeps("enter")
        transcript.choose_block(-1)
        assert transcript.has_focus
        assert transcript.chosen_text == "second\n" + "\n".join(LINES)
        await pilot.press("enter")
        assert "line 1\n    … 4 more lines" in text(transcript)
        await pilot.press("right")
        assert "line 5" in text(transcript)
        await pilot.press("right")  # there is no more to open
        assert "line 5" in text(transcript)
        await pilot.press("left")
        assert "line" not in text(transcript)
        transcript.choose_block(-1)
        assert transcript.chosen_text == "a note"
        await pilot.press("enter")  # it does not fold
        for _ in range(3):  # and no further than the first one
            transcript.choose_block(-1)
        assert transcript.chosen_text == "first\n" + "\n".join(LINES)
        transcript.choose_block(1)
        transcript.choose_block(1)
        assert transcript.chosen_text.startswith("second")
        transcript.blur()
        await pilot.pause()
        assert (transcript.chosen_text, transcript.keeps("ctrl+c")) == ("", False)


async def test_the_chosen_block_is_marked_and_comes_into_sight() -> None:
    async with shown(height=10) as (transcript, pilot):
        for number in range(30):
            transcript.add_foldable(block(f"action {number}", *LINES))
        await pilot.pause()

        def marked() -> list[str]:
            rows = (transcript.render_line(y) for y in range(transcript.size.height))
            return [
                row.text.strip()
                for row in rows
                if any(part.style and part.style.reverse for part in row)
            ]

        assert marked() == []
        transcript.choose_block(-1)
        await pilot.pause()
        assert marked() == ["▸ action 29"]
        for _ in range(20):
            transcript.choose_block(-1)
        await pilot.pause()
        assert marked() == ["▸ action 9"]
        await pilot.press("enter")
        assert [row.strip() for row in screen(transcript)[:3]] == [
            "▾ action 9",
            "line 0",
            "line 1",
        ]


async def test_opening_a_block_above_does_not_move_what_is_read() -> None:
    async with shown(height=6) as (transcript, pilot):
        above = block("above", *LINES)
        transcript.add_foldable(above)
        transcript.add(BlockKind.OUTPUT, numbered(40))
        await pilot.pause()
        transcript.scroll_to(y=20, animate=False)
        await pilot.pause()
        before = screen(transcript)
        transcript._turn(above.header.fold)
        await pilot.pause()
        assert screen(transcript)[:-1] == before[:-1]


async def test_a_block_that_folds_goes_above_folded_output_that_still_comes() -> None:
    async with shown() as (transcript, pilot):
        header = FoldHeader(fold=Fold(), title="$ pytest", ink="action", is_over=False)
        transcript.begin_output(header, glimpse=2, sample=-1)
        transcript.write(numbered(10))
        await pilot.pause()
        assert text(transcript).split("\n") == ["▸ $ pytest", "│ line 8", "│ line 9"]
        transcript.add_foldable(
            block("✗ test_a", "assert 1 == 2", opening=Opening.ALL), above_live=True
        )
        transcript.settle()
        await pilot.pause()
        assert text(transcript).split("\n") == [
            "▾ ✗ test_a",
            "assert 1 == 2",
            "▸ $ pytest",
        ]
        assert transcript.plain_text().endswith("\n" + numbered(10))


async def test_output_that_is_opened_while_it_grows_continues_and_settles() -> None:
    async with shown(height=30) as (transcript, pilot):
        header = FoldHeader(fold=Fold(), title="$ make", ink="action", is_over=False)
        transcript.begin_output(header, glimpse=2, sample=-1)
        transcript.write(numbered(5))
        await pilot.pause()
        await pilot.click(Transcript, offset=(3, 0))
        assert screen(transcript)[1:6] == [f"│ line {number}" for number in range(5)]
        transcript.write("\nline 5\nline 6")
        await pilot.pause()
        transcript.settle()
        await pilot.pause()
        assert screen(transcript)[:8] == [
            "▾ $ make",
            *(f"│ line {number}" for number in range(7)),
        ]
        await pilot.click(Transcript, offset=(3, 0))
        assert text(transcript) == "▸ $ make"


async def test_folded_output_without_end_keeps_its_last_lines() -> None:
    async with shown() as (transcript, pilot):
        header = FoldHeader(fold=Fold(), title="$ yes", ink="action", is_over=False)
        transcript.begin_output(header, glimpse=2, sample=-3)
        for start in range(0, 20_000, 500):
            transcript.write(
                "".join(f"line {start + number}\n" for number in range(500))
            )
            await pilot.pause()
        transcript.settle()
        await pilot.pause()
        assert text(transcript) == "▸ $ yes"
        await pilot.click(Transcript, offset=(3, 0))
        await pilot.pause()
        assert screen(transcript)[2:5] == [
            "│ line 19997",
            "│ line 19998",
            "│ line 19999",
        ]
        assert sum(1 for _ in transcript._scrollback.lines()) < 6_000


async def test_folded_lines_count_for_the_limit_too() -> None:
    async with shown(max_lines=500) as (transcript, _):
        for number in range(100):
            transcript.add_foldable(block(f"action {number}", *LINES * 5))
        assert sum(1 for _ in transcript._scrollback.lines()) <= 540
        assert "action 99" in transcript.plain_text()
        assert "action 10\n" not in transcript.plain_text()


@given(
    st.lists(
        st.tuples(
            st.lists(st.text("ab \t日x", max_size=30), max_size=12),
            st.integers(-4, 4),
            OPENINGS,
        ),
        min_size=1,
        max_size=6,
    ),
    st.lists(
        st.tuples(
            st.integers(0, 5), st.one_of(st.none(), OPENINGS), st.integers(2, 60)
        ),
        max_size=12,
    ),
)
def test_folding_never_loses_a_line_and_a_copy_is_the_whole_text(
    blocks: list[tuple[list[str], int, Opening]],
    turns: list[tuple[int, Opening | None, int]],
) -> None:
    """However blocks are opened and folded, at whatever width, what is shown is what a
    new layout shows; and all of it is there once they are open.
    """
    scrollback = Scrollback(20_000)
    scrollback.fit(40, ())
    made = [
        block(f"block {number}", *lines, sample=sample, opening=opening)
        for number, (lines, sample, opening) in enumerate(blocks)
    ]
    scrollback.place(
        [
            BlockPart(one.source, one.lines(), begins=True, fold=one.header.fold)
            for one in made
        ],
        (),
    )
    for number, opening, width in turns:
        fold = made[number % len(made)].header.fold
        if opening is None:
            fold.turn()
        else:
            fold.opening = opening
        before = len(scrollback.rows)
        _, more = scrollback.break_again(fold)
        assert len(scrollback.rows) - before == more
        rows = [(row.line, row.start, row.end) for row in scrollback.rows]
        scrollback.fit(scrollback.width, ())
        assert [(row.line, row.start, row.end) for row in scrollback.rows] == rows
        scrollback.fit(width, ())
    assert [one.source for one in scrollback.blocks()] == [one.source for one in made]
    for one in made:
        one.header.fold.opening = Opening.ALL
        scrollback.break_again(one.header.fold)
    shown_lines = list(dict.fromkeys(row.line for row in scrollback.rows))
    headers = {one.header for one in made}
    assert [line.text for line in shown_lines if line not in headers] == [
        line for lines, _, _ in blocks for line in lines
    ]
    assert scrollback.settled == len(scrollback.rows)


@given(st.text("abc 日é", max_size=40), st.integers(1, 30))
def test_a_shortened_text_is_its_beginning(source: str, room: int) -> None:
    short = shortened(source, room)
    assert cell_len(short) <= room
    assert short == source or source.startswith(short.removesuffix("…"))
