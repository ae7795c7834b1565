"""A reply as it is shown while it streams."""

import re
import time

from hypothesis import given
from hypothesis import strategies as st

from cdd_agent.dialogue.hidden_blocks import HiddenBlockFilter
from tests.support.tables import each_row

JSON = frozenset({"json"})


def played(text: str, size: int = 1) -> HiddenBlockFilter:
    screen = HiddenBlockFilter(JSON)
    shown = (
        "".join(
            screen.hear(text[start : start + size])
            for start in range(0, len(text), size)
        )
        + screen.end()
    )
    assert shown == screen.text
    return screen


@each_row(
    ("text", "seen", "blocks"),
    [
        ("Hello.", "Hello.", []),
        ("Hello.\n```json\n{}\n```\n", "Hello.\n", ["{}\n"]),
        ("```json\n{}\n```\nBye.", "Bye.", ["{}\n"]),
        ("```json\n{}", "", ["{}"]),
        ("~~~json\n{}\n~~~", "", ["{}\n"]),
        ("````json\n```\n````", "", ["```\n"]),
        ("```JSON\n{}\n```", "", ["{}\n"]),
        ("```json\r\n{}\r\n```\r\n", "", ["{}\r\n"]),
        ("``` json\n{}\n```", "", ["{}\n"]),
        ("  ```json\n{}\n  ```", "", ["{}\n"]),
        ("```python\nx = 1\n```\n", "```python\nx = 1\n```\n", []),
        ("````md\n```json\n{}\n```\n````\n", "````md\n```json\n{}\n```\n````\n", []),
        ("Use `json` and ``x``\n", "Use `json` and ``x``\n", []),
        ("`json`", "`json`", []),
        ("```jsonc\n{}\n```", "```jsonc\n{}\n```", []),
        ("a ```json\nb", "a ```json\nb", []),
        ("```json\n{}\n```\n```json\n[]\n```", "", ["{}\n", "[]\n"]),
        ("", "", []),
    ],
)
@each_row("size", [1, 3, 1000])
def test_only_blocks_for_the_program_are_hidden(
    text: str, seen: str, blocks: list[str], size: int
) -> None:
    screen = played(text, size)
    assert screen.text == seen
    assert list(screen.of("json")) == blocks


def test_words_are_shown_as_they_arrive() -> None:
    screen = HiddenBlockFilter(JSON)
    assert screen.hear("No line") == "No line"
    assert screen.hear(" end yet") == " end yet"


@given(st.text(alphabet="`~jso n{}\n\r x", max_size=80), st.integers(1, 9))
def test_cutting_the_reply_does_not_change_the_result(text: str, size: int) -> None:
    # A lone carriage return is a line end of old Macs: it may be told apart from the
    # next character, or not.
    text = re.sub("\r(?!\n)", "", text)
    by_pieces, at_once = played(text, size), played(text, 1000)
    assert (by_pieces.text, by_pieces.blocks) == (at_once.text, at_once.blocks)


@each_row("size", [1, 7, 10_000])
@each_row("length", [199, 200, 201, 202, 300])
@each_row("end", ["\n", "\r\n"])
def test_a_line_that_is_too_long_is_not_a_fence(
    size: int, length: int, end: str
) -> None:
    line = "```json ".ljust(length, "x") + end
    screen = played(f"{line}{{}}\n```\n", size)
    assert bool(screen.blocks) is (length <= 200)


@each_row("text", ["word ", "x", "x" * 40 + "\n", "`", " ", "```json\n{}\n```\n"])
@each_row("opening", ["", "```json\n"])
def test_the_time_of_a_long_reply_grows_with_its_length(
    text: str, opening: str
) -> None:
    began = time.process_time()
    played(opening + text * (500_000 // len(text)), 16)
    # a twentieth of a second on a machine that is not busy
    assert time.process_time() - began < 1
