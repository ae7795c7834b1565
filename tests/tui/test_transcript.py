import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import pairwise
from random import Random
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from textual.app import App, ComposeResult
from textual.color import Color
from textual.geometry import Offset
from textual.pilot import Pilot
from textual.selection import SELECT_ALL, Selection

from cdd_agent.events.stream import beside_the_turn
from cdd_agent.tui.contrast import readable_variables
from cdd_agent.tui.transcript.actions import show_diff
from cdd_agent.tui.transcript.blocks import BlockKind
from cdd_agent.tui.transcript.lines import Gutter, Mark, TranscriptLine
from cdd_agent.tui.transcript.markdown_stream import MarkdownLines
from cdd_agent.tui.transcript.widget import Transcript
from cdd_agent.tui.transcript.wrapping import wrap
from tests.support.examples import count_examples

MARKUP = "[bold]x[/bold] [@click=app.quit]y[/] :smile:"
STATUS = "the reply holds no change for this step"
CODE = "/retry [b]1 or *stop*"
LINES = "first line\nsecond line"
DIFF = "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-old\n+new\n"
LONG = "one two three four five six seven eight"
LAID_OUT = [
    "Title",
    "",
    "Text with code, a link (http://x.y) and http://z.",
    "",
    "• one",
    "  ◦ two",
    "",
    "3. three",
    "4. four",
    "",
    "▌ quote",
    "",
    "",
]

NASTY = """\
Setext
===
A paragraph right above a list:
- one
- two

  still two

  ```sh
  echo "- not an item"

  # not a heading
  ```
- three
    1. nested
    2. deeper

       > quoted *in* a list

10. ten
11. eleven
- - -
~~~python:src/a.py
def f():

    return "```"
```
~~~ not the end
~~~
``` a`b is no fence
|a|b|
|-|:-:|
|`x|y`|**z**|
| long | 日本語のテキスト |

> quote
lazy
>
> > deeper

    indented code

    more of it
&amp; &#x202e; <b>html</b> \\*no em\\* [a](b "t") ![i](u) <https://e.org>\tTab  \n\
hard break\r
\r
[ref]: /url
# Heading #
#no heading
```unknown:x
open fence
  \x1b[31mred
"""


KINDS = [kind for kind in BlockKind if kind is not BlockKind.ACTION]
"""Of blocks that are given as text."""


class TranscriptApp(App[None]):
    def get_css_variables(self) -> dict[str, str]:
        return readable_variables(super().get_css_variables())

    def __init__(self, max_lines: int = 20_000) -> None:
        super().__init__()
        self.max_lines = max_lines
        self.animation_level = "none"

    def compose(self) -> ComposeResult:
        yield Transcript(max_lines=self.max_lines)


@asynccontextmanager
async def shown(
    width: int = 80, height: int = 24, **options: int
) -> AsyncIterator[tuple[Transcript, Pilot[None]]]:
    app = TranscriptApp(**options)
    async with app.run_test(size=(width, height)) as pilot:
        await pilot.pause()
        yield app.query_one(Transcript), pilot


def screen(transcript: Transcript) -> list[str]:
    return [
        transcript.render_line(y).text.rstrip() for y in range(transcript.size.height)
    ]


def text(transcript: Transcript) -> str:
    return "\n".join(screen(transcript)).rstrip()


def colours(transcript: Transcript, part: str) -> set[tuple[str | None, str | None]]:
    """Foreground and background of the segments in which this text is drawn."""
    found = set()
    for y in range(transcript.size.height):
        for segment in transcript.render_line(y):
            if part in segment.text and segment.style:
                fore, back = segment.style.color, segment.style.bgcolor
                found.add((fore.name if fore else None, back.name if back else None))
    return found


def numbered(count: int) -> str:
    return "\n".join(f"line {number}" for number in range(count))


def pieces(source: str, random: Random, longest: int) -> Iterator[str]:
    while source:
        size = random.randint(1, longest)
        yield source[:size]
        source = source[size:]


class Shown(NamedTuple):
    text: str
    gutter: Gutter
    ink: str
    marks: list[Mark]


def described(lines: list[TranscriptLine], width: int = 40) -> list[Shown]:
    rows = [row for line in lines for row in line.rows(width)]
    return [
        Shown(
            line.text[start:end],
            line.hang if start else line.gutter,
            line.ink,
            list(line.inks()),
        )
        for line, start, end in rows
    ]


def markdown(*chunks: str) -> list[Shown]:
    stream = MarkdownLines()
    lines = []
    for chunk in chunks:
        lines += stream.feed(chunk)
        stream.tail()
    return described(lines + stream.finish())


def rendered(source: str, width: int = 40) -> list[str]:
    stream = MarkdownLines()
    rows = described([*stream.feed(source), *stream.finish()], width)
    return [
        ("".join(piece for piece, _ in row.gutter) + row.text).rstrip() for row in rows
    ]


# --- kinds


async def test_every_kind_has_its_look() -> None:
    async with shown() as (transcript, pilot):
        transcript.add(BlockKind.USER, "/run slugs\nsecond line")
        transcript.add(BlockKind.HEADING, "Step 1")
        transcript.add(BlockKind.NOTE, "a note")
        transcript.add(BlockKind.GOOD, "good")
        transcript.add(BlockKind.WARNING, "warning")
        transcript.add(BlockKind.ERROR, "error")
        transcript.add(BlockKind.OUTPUT, "4 passed\n")
        transcript.add(BlockKind.MARKDOWN, "**reply**")
        await pilot.pause()
        lines = screen(transcript)
        assert lines[:3] == ["❯ /run slugs", "  second line", ""]
        assert re.fullmatch("── Step 1 ─+", lines[3])
        assert lines[4:13] == [
            "",
            "a note",
            "✓ good",
            "! warning",
            "✗ error",
            "",
            "│ 4 passed",
            "",
            "reply",
        ]
        assert (
            len(transcript.render_line(3).text)
            == transcript.scrollable_content_region.width
        )


async def test_long_status_lines_hang_under_their_text() -> None:
    async with shown(width=30) as (transcript, _):
        transcript.add(BlockKind.ERROR, STATUS)
        assert screen(transcript)[:2] == [f"✗ {STATUS[:25]}", f"  {STATUS[26:]}"]


def test_a_long_line_of_code_goes_on_with_a_mark_and_is_no_line_of_its_own() -> None:
    source = "```diff\n+    " + "x" * 40 + "\n context\n```\n"
    assert rendered(source, width=30) == [
        " +    " + "x" * 24,
        "↳" + "x" * 16,
        "  context",
    ]


async def test_empty_text_shows_nothing() -> None:
    async with shown() as (transcript, _):
        for kind in KINDS:
            if kind is not BlockKind.THOUGHTS:
                transcript.clear()
                transcript.add(kind, "")
                transcript.add(kind, "\n\n")
                assert text(transcript) in ("", "│\n│"), kind


async def test_text_is_never_markup() -> None:
    async with shown() as (transcript, _):
        for kind in KINDS:
            assert MARKUP in text_of(transcript, kind, MARKUP), kind


async def test_control_characters_are_shown_as_symbols() -> None:
    source = "a\x07b\x7f\u202e\u2028\ud800c\td"
    async with shown() as (transcript, _):
        for kind in KINDS:
            shown_text = text_of(transcript, kind, source)
            assert re.search("a␇b␡\ufffd\ufffd\ufffdc +d", shown_text), kind


async def test_escape_sequences_are_removed_except_in_markdown() -> None:
    source = "\x1b[1;31mred\x1b[0m \x1b]8;;http://x\x1b\\link\x1b]8;;\x07\x1b(B\x1b[2K"
    async with shown() as (transcript, _):
        for kind in KINDS:
            if kind not in (BlockKind.MARKDOWN, BlockKind.REPLY):
                assert "red link" in text_of(transcript, kind, source), kind


def text_of(transcript: Transcript, kind: BlockKind, source: str) -> str:
    """Return what is shown of this block alone."""
    transcript.clear()
    transcript.add(kind, source)
    if kind is BlockKind.THOUGHTS:
        transcript.toggle_thoughts()
    return text(transcript)


async def test_a_line_that_begins_with_a_bold_label_is_a_line_of_its_own() -> None:
    async with shown() as (transcript, _):
        source = (
            "**Ticket:** `a`\n"
            "**Type:** feature,\n"
            "and **this:** is prose\n"
            "as **that** is\n"
            "**and** so on"
        )
        transcript.add(BlockKind.MARKDOWN, source)
        first, second = text(transcript).split("\n")
        assert first == "Ticket: a"
        assert second.count(" and ") == 2


async def test_markdown_shows_escapes_harmlessly() -> None:
    async with shown() as (transcript, _):
        transcript.add(BlockKind.MARKDOWN, "\x1b[31mred &#27; `\x1b[0m`")
        assert screen(transcript)[0].startswith("␛[31mred")


async def test_status_lines_show_code_between_backticks() -> None:
    async with shown() as (transcript, pilot):
        for kind in (BlockKind.NOTE, BlockKind.GOOD, BlockKind.WARNING):
            transcript.clear()
            transcript.add(kind, "`/retry [b]1` or *stop*")
            transcript.add(BlockKind.MARKDOWN, "`code`")
            await pilot.pause()
            assert screen(transcript)[0].endswith(CODE), kind
            code = colours(transcript, "code")
            assert colours(transcript, "/retry [b]1") == code, kind
            assert code != colours(transcript, "or"), kind
            assert transcript.plain_text().startswith(
                CODE.replace("/retry [b]1", "`/retry [b]1`")
            ), kind


async def test_only_pairs_of_single_backticks_are_code() -> None:
    expected = {
        "`a` and `b`": "a and b",
        "`a` and `b": "a and `b",
        "`a\nb`": "`a\nb`",
        "``a`` ``` ``": "``a`` ``` ``",
        "\x1b[1m`a\tb`": "a  b",
    }
    async with shown() as (transcript, _):
        texts = {s: text_of(transcript, BlockKind.NOTE, s) for s in expected}
    assert texts == expected


# --- thoughts


async def test_thoughts_are_one_line_that_opens_and_folds_by_a_click() -> None:
    async with shown() as (transcript, pilot):
        transcript.add(BlockKind.USER, "why?")
        for piece, measure in (
            ("They ask\n", "0 s, ~3 tokens"),
            ("why.", "2 s, ~5 tokens"),
        ):
            transcript.think(piece, measure)
        await pilot.pause()
        assert screen(transcript)[2].startswith("▸ Thinking … 2 s")
        transcript.write("Because.")
        transcript.settle()
        assert transcript.end_thoughts("2 s, 7 tokens")

        folded = ["❯ why?", "", "▸ Thought for 2 s, 7 tokens", "", "Because."]
        opened = [
            *folded[:2],
            "▾ Thought for 2 s, 7 tokens",
            "│ They ask",
            "│ why.",
            *folded[3:],
        ]
        assert text(transcript).split("\n") == folded
        await pilot.click(Transcript, offset=(5, 2))
        assert text(transcript).split("\n") == opened
        await pilot.click(Transcript, offset=(5, 3))  # not on its line
        await pilot.click(Transcript, offset=(5, 2))
        assert text(transcript).split("\n") == folded


async def test_opened_thoughts_keep_their_place_and_live_ones_are_followed() -> None:
    async with shown(height=8) as (transcript, pilot):
        transcript.add(BlockKind.NOTE, "\n".join(f"line {n}" for n in range(20)))
        transcript.think("\n".join(f"thought {n}" for n in range(20)), "1 s")
        await pilot.pause()
        transcript.toggle_thoughts()
        await pilot.pause()
        assert screen(transcript)[-1] == "│ thought 19"
        transcript.think("\nthought 20", "2 s")
        await pilot.pause()
        assert screen(transcript)[-1] == "│ thought 20"

        transcript.toggle_thoughts()
        transcript.settle()
        await pilot.pause()
        place = screen(transcript).index("▸ Thought for 2 s")
        transcript.toggle_thoughts()
        await pilot.pause()
        assert screen(transcript)[place] == "▾ Thought for 2 s"


async def test_where_nothing_was_thought_there_is_nothing_to_open() -> None:
    async with shown() as (transcript, _):
        transcript.add(BlockKind.NOTE, "a note")
        transcript.toggle_thoughts()
        assert (text(transcript), transcript.end_thoughts("1 s")) == ("a note", False)


async def test_a_line_of_the_user_keeps_its_backticks() -> None:
    async with shown() as (transcript, _):
        transcript.add(BlockKind.USER, "use `a`")
        assert text(transcript) == "❯ use `a`"


async def test_output_keeps_the_last_state_of_a_progress_line() -> None:
    async with shown() as (transcript, _):
        transcript.begin(BlockKind.OUTPUT)
        for percent in range(101):
            transcript.write(f"\r{percent} %")
        transcript.write("\r\ndone")
        transcript.settle()
        assert screen(transcript)[:2] == ["│ 100 %", "│ done"]


RULES: dict[str, list[str]] = {
    "=" * 31 + " 5 passed in 0.2s " + "=" * 31: ["===== 5 passed in 0.2s ====="],
    "-" * 80: ["-" * 28],
    "─" * 30 + " 日本 " + "─" * 30: ["───────────" + " 日本 " + "───────────"],
    "=" * 20 + " words that do not fit in one row " + "=" * 20: [
        "= words that do not fit in",
        "one row =",
    ],
    "____ test_a ____": ["____ test_a ____"],
    "=" * 20 + " short tail =": ["=" * 20 + " short", "tail ="],
    "-----+-----" * 3: ["-----+----------+----------+", "-----"],
    "=====  =====  " * 2 + "=====": ["=====  =====  =====  =====", "====="],
    "." * 30: ["." * 28, ".."],
}
"""Lines of output, and their rows in 28 columns."""


async def test_rules_in_output_are_shortened_to_one_row() -> None:
    async with shown(33, 40) as (transcript, pilot):
        transcript.add(BlockKind.OUTPUT, "\n".join(RULES))
        rows = [f"│ {row}" for rows in RULES.values() for row in rows]
        assert text(transcript).split("\n") == rows
        await pilot.resize_terminal(100, 40)
        await pilot.pause()
        assert text(transcript).split("\n") == [f"│ {line}" for line in RULES]
        assert transcript.plain_text() == "\n".join(RULES)


async def test_output_is_settled_alike_whatever_its_chunks() -> None:
    source = (
        "\x1b[32mok\x1b[0m \x1b]0;title\x07\r\n  two\tthree\n" + "\x1b[1mlong " * 4_000
    )
    async with shown() as (transcript, _):
        transcript.add(BlockKind.OUTPUT, source)
        whole = transcript.get_selection(SELECT_ALL)
        transcript.clear()
        transcript.begin(BlockKind.OUTPUT)
        for chunk in pieces(source, Random(1), 50):
            transcript.write(chunk)
        transcript.settle()
        assert transcript.get_selection(SELECT_ALL) == whole
        assert whole[0].splitlines()[:2] == ["ok ", "  two   three"]


# --- Markdown


@given(st.lists(st.integers(1, len(NASTY) - 1), max_size=40, unique=True))
@settings(
    max_examples=count_examples(40), deadline=None, derandomize=True, database=None
)
def test_chunks_do_not_change_the_lines(cuts: list[int]) -> None:
    chunks = (
        NASTY[start:end] for start, end in pairwise([0, *sorted(cuts), len(NASTY)])
    )
    assert markdown(*chunks) == markdown(NASTY)


LONG_TEXTS = {
    "words": "word " * 2_000,
    "one word": "x" * 10_000,
    "code line": "```\n" + "x" * 10_000 + "\n```\n\nafter",
    "list": "- item\n  more\n\n" * 300,
    "table": "| a | b |\n|---|---|\n" + "| some | cells |\n" * 300,
    "quote": "> quoted\n" * 500,
    "backticks": "`" * 5_000 + "\n" + "#" * 3_000,
    "nasty": NASTY * 3,
}


def test_chunks_do_not_change_long_texts() -> None:
    for name, source in LONG_TEXTS.items():
        longest = len(source) // 8
        chunks = pieces(source, Random(0), longest)
        assert markdown(*chunks) == markdown(source), name


def test_character_by_character_is_the_same_too() -> None:
    assert markdown(*NASTY) == markdown(NASTY)


def test_markdown_is_laid_out() -> None:
    source = (
        "# Title\nText with `code`,\n[a link](http://x.y) and <http://z>.\n\n"
        "- one\n  - two\n\n3. three\n4. four\n\n> quote\n\n---"
    )
    assert rendered(source, 60) == LAID_OUT


def test_fence_in_markdown_keeps_blank_lines_and_shows_its_path() -> None:
    assert rendered("```python:a.py\na = 1\n\n\nb = 2\n```\n.") == [
        " a.py",
        " a = 1",
        "",
        "",
        " b = 2",
        "",
        ".",
    ]


def test_fence_in_a_list_belongs_to_its_item() -> None:
    item = "1. do\n\n   ```sh\n   a\n\n   b\n   ```\n\n2. done"
    assert rendered(item) == ["1. do", "", "    a", "", "    b", "", "2. done"]


def test_table_columns_are_aligned() -> None:
    assert rendered("| a | bb |\n|---|--:|\n| xyz | 1 |\n| 日本 | 22 |") == [
        "a    │ bb",
        "─────┼───",
        "xyz  │  1",
        "日本 │ 22",
    ]


def test_too_many_columns_become_records() -> None:
    table = "|a|b|c|d|e|f|g|h|\n" + "|-" * 8 + "|\n" + "|1|2|3|4|5|6|7|8|\n"
    assert rendered(table, 30)[:3] == ["a: 1", "b: 2", "c: 3"]


def test_a_long_table_repeats_its_head() -> None:
    rows = rendered("| a | b |\n|---|---|\n" + "| some | cells |\n" * 1_500)
    assert all("|" not in row for row in rows)


async def test_narrow_widths_do_no_harm() -> None:
    async with shown() as (transcript, pilot):
        transcript.add(BlockKind.MARKDOWN, NASTY)
        transcript.add(BlockKind.HEADING, "A heading that is too long")
        for width in (30, 12, 5, 2, 1):
            await pilot.resize_terminal(width, 24)
            await pilot.pause()
            widths = [transcript.render_line(y).cell_length for y in range(24)]
            assert max(widths) <= width


async def test_code_is_coloured_and_follows_the_theme() -> None:
    async with shown() as (transcript, pilot):
        transcript.add(BlockKind.MARKDOWN, '```python\nreturn "text"\n```\nplain words')
        await pilot.pause()
        dark = {part: colours(transcript, part) for part in ("return", "text", "plain")}
        assert len(set(map(frozenset, dark.values()))) == 3
        pilot.app.theme = "textual-light"
        await pilot.pause()
        light = {
            part: colours(transcript, part) for part in ("return", "text", "plain")
        }
        assert all(dark[part].isdisjoint(light[part]) for part in dark)
        ((_, background),) = light["plain"]
        assert background is not None
        assert Color.parse(background).brightness > 0.5


def test_strings_over_several_lines_are_coloured_when_the_fence_is_closed() -> None:
    lines = markdown('```python\nx = """\nreturn\n"""\n```')
    assert [ink for _, _, ink in lines[1].marks] == ["string"]


# --- wrapping


WRAPPED: dict[tuple[str, int], list[str]] = {
    ("", 5): [""],
    ("one two three", 7): ["one two", "three"],
    ("one   two", 4): ["one", "two"],
    ("abcdefghij", 4): ["abcd", "efgh", "ij"],
    ("日本語テキスト", 6): ["日本語", "テキス", "ト"],
    ("ab 日本 cd", 5): ["ab 日", "本 cd"],
    ("wörter brechen um", 8): ["wörter", "brechen", "um"],
    ("👨‍👩‍👧👨‍👩‍👧👨‍👩‍👧", 4): ["👨‍👩‍👧👨‍👩‍👧", "👨‍👩‍👧"],
    ("x" + " " * 20, 4): ["x"],
    ("ö" + " " * 20, 4): ["ö"],
    ("日", 1): ["日"],
}
"""Texts and the columns that they have, and their rows."""


def test_words_are_wrapped() -> None:
    wrapped = {
        (text, room): [text[a:b] for a, b in wrap(text, room, by_words=True)]
        for text, room in WRAPPED
    }
    assert wrapped == WRAPPED


@given(
    st.text(alphabet="ab ö日👍\u0301", max_size=60), st.integers(2, 12), st.booleans()
)
@settings(
    max_examples=count_examples(60), deadline=None, derandomize=True, database=None
)
def test_wrapping_loses_only_spaces(source: str, room: int, by_words: bool) -> None:
    rows = [source[start:end] for start, end in wrap(source, room, by_words=by_words)]
    joined, expected = "".join(rows), source
    assert joined.replace(" ", "") == expected.replace(" ", "")
    if not by_words:
        assert joined == expected


# --- live blocks


async def test_a_live_block_shows_its_tail() -> None:
    async with shown() as (transcript, pilot):
        transcript.write("First **bo")
        await pilot.pause()
        assert text(transcript) == "First **bo"
        transcript.write("ld**\n\n```py\nx =")
        await pilot.pause()
        assert text(transcript) == "First bold\n\n x ="
        transcript.settle()
        assert text(transcript) == "First bold\n\n x ="


async def test_adding_a_block_settles_the_live_one() -> None:
    async with shown() as (transcript, pilot):
        transcript.write("reply")
        transcript.add(BlockKind.GOOD, "done")
        transcript.write("next")
        await pilot.pause()
        assert text(transcript).split("\n\n") == ["reply", "✓ done", "next"]
        assert transcript.plain_text().split() == ["reply", "done", "next"]


@pytest.mark.parametrize(
    "live", [BlockKind.MARKDOWN, BlockKind.OUTPUT, BlockKind.THOUGHTS]
)
async def test_a_block_that_is_added_next_to_a_live_one_does_not_cut_it(
    live: BlockKind,
) -> None:
    async with shown() as (transcript, pilot):

        def grow(text: str) -> None:
            if live is BlockKind.THOUGHTS:
                transcript.think(text, "1 s")
            else:
                transcript.write(text)

        for kind in BlockKind:
            if kind in (BlockKind.THOUGHTS, BlockKind.ACTION):
                continue
            transcript.clear()
            transcript.add(BlockKind.NOTE, "above")
            transcript.begin(live)
            grow("one\n\ntwo ")
            with beside_the_turn():
                transcript.add(kind, "looked at")
                transcript.settle()
                transcript.add(kind, "and at this")
            assert "looked at" in text(transcript), kind
            grow("three")
            whole = "above\none\n\ntwo three\nlooked at\nand at this"
            assert transcript.plain_text() == whole, kind

            await pilot.pause()
            before = text(transcript)
            transcript.settle()
            await pilot.pause()
            assert transcript.plain_text() == whole, kind
            if live is BlockKind.OUTPUT:
                assert text(transcript) == before, kind
            transcript.add(BlockKind.NOTE, "below")
            assert transcript.plain_text() == f"{whole}\nbelow", kind


async def test_blocks_next_to_a_live_one_fold_and_can_be_found_and_resized() -> None:
    async with shown(height=30) as (transcript, pilot):
        transcript.write("the reply\n\n")
        with beside_the_turn():
            show_diff(transcript, DIFF)
            transcript.add(BlockKind.MARKDOWN, "word " * 60)
        transcript.write("goes on\n\nand on")
        await pilot.pause()
        assert "+new" in text(transcript).replace(" ", "")
        transcript.find("new")
        assert transcript.finder.position == (1, 1)
        transcript.find("")
        transcript.choose_block(-1)
        transcript.choose_block(-1)
        assert transcript.chosen_text.startswith("diff --git")
        transcript.action_fold_block()
        assert "+new" not in text(transcript).replace(" ", "")
        await pilot.resize_terminal(30, 30)
        await pilot.pause()
        assert (
            text(transcript).index("and on")
            < text(transcript).index("a.txt")
            < text(transcript).index("word word")
        )
        transcript.action_open_block()
        transcript.settle()
        await pilot.pause()
        assert "+new" in text(transcript).replace(" ", "")
        assert transcript.plain_text().startswith(
            "the reply\n\ngoes on\n\nand on\ndiff --git"
        )
        transcript.write("again")
        with beside_the_turn():
            transcript.add(BlockKind.NOTE, "gone")
        transcript.clear()
        transcript.add(BlockKind.NOTE, "anew")
        assert transcript.plain_text() == "anew"


async def test_blocks_without_a_live_one_are_whole_next_to_a_turn_too() -> None:
    # F3 opens its screen while a turn may run.
    async with shown() as (transcript, pilot):
        with beside_the_turn():
            for kind in (BlockKind.MARKDOWN, BlockKind.OUTPUT):
                transcript.clear()
                transcript.add(kind, "the criterion")
                transcript.add(BlockKind.NOTE, "its step")
                await pilot.pause()
                assert not transcript.is_growing, kind
                assert "the criterion" in text(transcript), kind
                assert transcript.plain_text() == "the criterion\nits step", kind


async def test_blocks_next_to_an_endless_stream_stay_within_the_limit() -> None:
    async with shown(max_lines=20) as (transcript, pilot):
        transcript.begin(BlockKind.OUTPUT)
        for number in range(16):
            transcript.write(f"line {number}\n")
            with beside_the_turn():
                transcript.add(BlockKind.NOTE, f"look {number}")
            await pilot.pause()
        transcript.settle()
        transcript.add(BlockKind.NOTE, "end")
        await pilot.pause()
        assert "look 15" in text(transcript)
        assert transcript.virtual_size.height <= 22
        transcript.scroll_home(animate=False)
        assert screen(transcript)[0].startswith("… ")


async def test_only_some_kinds_grow() -> None:
    async with shown() as (transcript, _):
        with pytest.raises(ValueError, match="cannot grow"):
            transcript.begin(BlockKind.NOTE)


async def test_text_from_before_the_first_layout_is_shown() -> None:
    class Early(TranscriptApp):
        def compose(self) -> ComposeResult:
            transcript = Transcript()
            transcript.add(BlockKind.NOTE, "early")
            transcript.write("live")
            yield transcript

    app = Early()
    async with app.run_test() as pilot:
        await pilot.pause()
        assert text(app.query_one(Transcript)) == "early\n\nlive"


async def test_a_streamed_reply_ends_like_one_that_is_added() -> None:
    async with shown(height=100) as (transcript, pilot):
        transcript.add(BlockKind.MARKDOWN, NASTY)
        await pilot.pause()
        whole = screen(transcript)
        transcript.clear()
        for number, chunk in enumerate(pieces(NASTY, Random(7), 30)):
            transcript.write(chunk)
            if number % 3 == 0:
                await pilot.pause()
        transcript.settle()
        await pilot.pause()
        assert screen(transcript) == whole


async def test_clear_forgets_everything() -> None:
    async with shown() as (transcript, pilot):
        transcript.add(BlockKind.OUTPUT, numbered(100))
        transcript.write("live")
        transcript.clear()
        await pilot.pause()
        assert (text(transcript), transcript.plain_text(), transcript.max_scroll_y) == (
            "",
            "",
            0,
        )
        transcript.add(BlockKind.NOTE, "new")
        assert text(transcript) == "new"


# --- scrolling


async def test_it_stays_at_the_end_while_text_arrives() -> None:
    async with shown() as (transcript, pilot):
        for number in range(60):
            transcript.write(f"paragraph {number}\n\n")
            if number % 10 == 0:
                await pilot.pause()
        await pilot.pause()
        assert transcript.is_vertical_scroll_end
        assert screen(transcript)[-1] == "paragraph 59"


async def test_the_bar_is_at_the_end_when_the_text_is() -> None:
    async with shown() as (transcript, pilot):
        transcript.add(BlockKind.OUTPUT, numbered(30))
        await pilot.pause()
        assert transcript.scroll_y > 0
        assert transcript.vertical_scrollbar.position == transcript.scroll_y


async def test_new_text_does_not_move_a_transcript_that_is_scrolled_up() -> None:
    async with shown() as (transcript, pilot):
        transcript.add(BlockKind.OUTPUT, numbered(100))
        transcript.focus()
        await pilot.pause()
        await pilot.press("pageup")
        before = screen(transcript)
        transcript.add(BlockKind.OUTPUT, numbered(50))
        transcript.write("and\n\nmore")
        await pilot.pause()
        assert screen(transcript)[:-1] == before[:-1]
        await pilot.press("end")
        await pilot.pause()
        assert screen(transcript)[-1] == "more"
        transcript.write("\n\nlast")
        await pilot.pause()
        assert screen(transcript)[-1] == "last"
        await pilot.press("home")
        await pilot.pause()
        assert screen(transcript)[0] == "│ line 0"


async def test_scrolling_up_works_while_text_arrives() -> None:
    async with shown() as (transcript, pilot):
        transcript.add(BlockKind.OUTPUT, numbered(100))
        await pilot.pause()
        pilot.app.animation_level = "full"
        transcript.scroll_page_up()
        transcript.write("more\n\n" * 5)
        await pilot.wait_for_scheduled_animations()
        assert not transcript.is_vertical_scroll_end


async def test_another_size_keeps_the_end_in_sight() -> None:
    async with shown() as (transcript, pilot):
        transcript.add(BlockKind.MARKDOWN, "many words " * 300 + "\n\nthe end")
        for height in (10, 24, 40):
            await pilot.resize_terminal(40, height)
            await pilot.pause()
            assert screen(transcript)[-1] == "the end"
            assert all(len(line) <= 38 for line in screen(transcript))


async def test_another_width_keeps_the_line_at_the_top() -> None:
    async with shown() as (transcript, pilot):
        transcript.add(
            BlockKind.OUTPUT, "\n".join(f"line {n} " + "word " * 30 for n in range(100))
        )
        await pilot.pause()
        transcript.scroll_to(y=60, animate=False)
        await pilot.pause()
        top = screen(transcript)[0]
        await pilot.resize_terminal(50, 24)
        await pilot.pause()
        assert screen(transcript)[0][:10] == top[:10]


async def test_the_oldest_text_is_dropped_beyond_the_limit() -> None:
    async with shown(max_lines=500) as (transcript, pilot):
        for number in range(100):
            transcript.add(BlockKind.OUTPUT, numbered(10) + f"\nblock {number}")
        await pilot.pause()
        assert transcript.virtual_size.height <= 502
        assert "block 99" in transcript.plain_text()
        assert "block 10\n" not in transcript.plain_text()
        transcript.scroll_home(animate=False)
        assert screen(transcript)[0].startswith("… ")
        await pilot.resize_terminal(40, 24)
        await pilot.pause()
        assert screen(transcript)[0].startswith("… ")


async def test_a_single_endless_block_is_limited_too() -> None:
    async with shown(max_lines=500) as (transcript, pilot):
        transcript.begin(BlockKind.OUTPUT)
        for number in range(2_000):
            transcript.write(f"line {number}\n")
        await pilot.pause()
        transcript.settle()
        assert transcript.virtual_size.height < 1_000
        assert len(transcript.plain_text()) < 20_000


async def test_dropping_old_lines_does_not_move_the_view() -> None:
    async with shown(max_lines=500) as (transcript, pilot):
        for block in range(10):
            transcript.add(
                BlockKind.OUTPUT,
                "\n".join(f"block {block} line {n}" for n in range(50)),
            )
        await pilot.pause()
        transcript.scroll_to(y=400, animate=False)
        await pilot.pause()
        before = screen(transcript)
        transcript.add(BlockKind.OUTPUT, numbered(120))
        await pilot.pause()
        assert screen(transcript)[:-1] == before[:-1]


async def test_nothing_is_drawn_when_nothing_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with shown() as (transcript, pilot):
        transcript.add(BlockKind.MARKDOWN, NASTY)
        await pilot.pause()
        drawn: list[int] = []
        monkeypatch.setattr(Transcript, "render_line", lambda self, y: drawn.append(y))
        await pilot.pause(0.1)
        assert drawn == []


async def test_a_very_long_line_is_shown() -> None:
    async with shown() as (transcript, pilot):
        transcript.add(BlockKind.OUTPUT, "x" * 200_000)
        transcript.add(BlockKind.NOTE, "y" * 200_000)
        transcript.add(BlockKind.MARKDOWN, "z" * 200_000)
        await pilot.pause()
        assert screen(transcript)[-1].startswith("z")


# --- selection


async def test_selected_text_has_no_gutters_and_no_breaks_of_the_width() -> None:
    async with shown(width=30) as (transcript, _):
        transcript.add(BlockKind.USER, LONG)
        transcript.add(BlockKind.OUTPUT, "first\nsecond")
        chosen, _end = transcript.get_selection(SELECT_ALL)
        assert chosen == f"{LONG}\n\nfirst\nsecond"
        part = Selection.from_offsets(Offset(4, 0), Offset(2, 3))
        assert transcript.get_selection(part)[0] == f"{LONG[4:]}\n\nfi"


async def test_the_mouse_selects_text() -> None:
    async with shown() as (transcript, pilot):
        transcript.add(BlockKind.OUTPUT, LINES)
        await pilot.pause()
        before = screen(transcript)
        await pilot.mouse_down(transcript, offset=(1, 0))
        await pilot.hover(transcript, offset=(8, 1))
        await pilot.mouse_up(transcript, offset=(8, 1))
        await pilot.pause()
        assert pilot.app.screen.get_selected_text() == LINES.removesuffix(" line")
        assert screen(transcript) == before
        plain = colours(transcript, " line")
        assert len(plain | colours(transcript, "second")) == 2


async def test_a_selection_stays_on_its_text_when_old_lines_are_dropped() -> None:
    async with shown(max_lines=100) as (transcript, pilot):
        for block in range(20):
            transcript.add(BlockKind.OUTPUT, f"block {block}\n" + numbered(10))
        last = transcript.virtual_size.height + transcript._row_offset - 1
        selection = Selection.from_offsets(Offset(0, last), Offset(6, last))
        assert transcript.get_selection(selection)[0] == "line 9"
        transcript.add(BlockKind.OUTPUT, "x\n" * 30)
        await pilot.pause()
        assert transcript.get_selection(selection)[0] == "line 9"


async def test_a_long_line_of_a_list_goes_on_below_its_words() -> None:
    async with shown(34, 10) as (transcript, pilot):
        transcript.add(
            BlockKind.NOTE,
            "words: a ticket\n"
            "  ✓ 1. Sum up the prices of a whole cart\n"
            "  ○ 12. Count them",
        )
        assert text(transcript).split("\n") == [
            "words: a ticket",
            "  ✓ 1. Sum up the prices of a",
            "       whole cart",
            "  ○ 12. Count them",
        ]
        transcript.text_select_all()
        assert "1. Sum up the prices of a whole cart" in (
            pilot.app.screen.get_selected_text() or ""
        )
        await pilot.resize_terminal(12, 30)
        assert all(len(row) <= 12 for row in text(transcript).split("\n"))
