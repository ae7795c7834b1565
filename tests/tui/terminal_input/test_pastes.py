"""A paste is text. Enter is a key that a user presses."""

from math import inf
from time import process_time

import pytest

from cdd_agent.text.sanitize import text_of_paste
from cdd_agent.tui.terminal_input.parser import TerminalParser
from tests.tui.terminal_input.reading import Piece, described, keys, pastes, read

START, END = b"\x1b[200~", b"\x1b[201~"

UNSEEN = "\u3000\u00a0\u200b\u200d\u00ad\u2066\ue000e\u0301"
TEXTS = {
    "plain": "plain",
    "\x1b[31mFAILED\x1b[0m test_a\r\nmore": "FAILED test_a\nmore",
    "a\rb\nc\r\nd\n\re": "a\nb\nc\nd\n\ne",
    "next\x85line\u2028separator": "next\nline\nseparator",
    "a\tb": "a\tb",
    "a\x00b\x01c\x07d\x08e\x0bf\x0cg\x7fh": "abcdefgh",
    "\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\ end": "link end",
    "\x1b]8;;https://example.org\x07link\x1b]8;;\x07 end": "link end",
    "\x9d8;;https://example.org\x9clink": "link",
    "\x1b]0;title\x07prompt$ ": "prompt$ ",
    "\x1bP1$r0m\x1b\\a\x1b_Gi=1;OK\x1b\\b\x1b^pm\x1b\\c\x1bXsos\x1b\\d": "abcd",
    "\x90q\n#0\x9ca": "a",
    "\x1b[97;5uctrl\x1b[13;2u": "ctrl",
    "\x1b[A\x1b[1;5C\x1bOA\x1bOMup": "up",
    "\x1b[[Af1": "f1",
    "\x9b31mred\x9b0m": "red",
    "\x8fPss3": "ss3",
    "\x1b(B\x1b7\x1b=\x1bcsingle": "single",
    "\x1b\x1b\x1b[31mtwice": "twice",
    "\x1b[200~nested\x1b[200~": "nested",
    "half a sequence\x1b": "half a sequence",
    "half a sequence\x1b[": "half a sequence",
    "half a sequence\x1b[38;5": "half a sequence",
    "half a sequence\x1bO": "half a sequence",
    "half a sequence\x1b]8;;https://exam": "half a sequence",
    "a link\x1b]8;;without an end\nand text": "a link8;;without an end\nand text",
    "wrong \x1b[31\u00e9": "wrong \u00e9",
    UNSEEN: UNSEEN,
    "👩\u200d💻 漢字": "👩\u200d💻 漢字",
    "": None,
    "\x1b[0m": None,
}


def test_a_paste_is_its_text_without_escape_sequences() -> None:
    wrong = {}
    for pasted, text in TEXTS.items():
        sent = START + pasted.encode() + END
        found = described(read([sent]))
        if found != ([f"paste {text!r}"] if text else []):
            wrong[pasted] = found
    assert wrong == {}


def test_bytes_that_are_no_text_are_marked() -> None:
    assert pastes(START + b"caf\xe9!" + END) == ["caf\ufffd!"]


INPUTS: dict[str, tuple[list[Piece], list[str]]] = {
    "typed before and behind": (
        [b"ab", 0.1, START + b"x\ny" + END, 0.1, b"c"],
        ["a 'a'", "b 'b'", r"paste 'x\ny'", "c 'c'"],
    ),
    "Enter right behind": ([START + b"x" + END + b"\r"], ["paste 'x'", "enter None"]),
    "two pastes": (
        [START + b"x" + END + START + b"y" + END],
        ["paste 'x'", "paste 'y'"],
    ),
    "an end marker in it": (
        [START + b"x" + END + b"rm\r" + END, 0.1, b"y"],
        [r"paste 'xrm\n'", "y 'y'"],
    ),
    "the end is late": (
        [START + b"x\r", 0.2, b"y\r" + END, 0.1, b"z"],
        [r"paste 'x\ny\n'", "z 'z'"],
    ),
    "the end is too late": (
        [START + b"x\r", 0.5, END, 0.1, b"z\r"],
        [r"paste 'x\n'", "z 'z'", "enter None"],
    ),
    "it pauses twice, and its last line comes alone": (
        [START + b"x\r", 0.5, b"y\rz\r", 0.5, b"last\r" + END, 0.1, b"q\r"],
        [r"paste 'x\n'", r"paste 'y\nz\n'", r"paste 'last\n'", "q 'q'", "enter None"],
    ),
    "it pauses, and one line follows without an end": (
        [START + b"x\r", 0.5, b"rm\r", 0.5],
        [r"paste 'x\n'", r"paste 'rm\n'"],
    ),
    "keys behind a paste whose end is lost": (
        [START + b"x", 0.5, b"\x1b[A", 0.1, b"y", 0.1, b"\r"],
        ["paste 'x'", "up None", "y 'y'", "enter None"],
    ),
    "lines a while behind a paste whose end is lost": (
        [START + b"x", 11.0, b"y\r"],
        ["paste 'x'", "y 'y'", "enter None"],
    ),
    "the end is cut by a pause": (
        [START + b"x" + END[:4], 0.5, END[4:] + b"z"],
        ["paste 'x'", "z 'z'"],
    ),
    "half an end is all that comes": (
        [START + b"x\x1b", 2.0, b"z"],
        ["paste 'x'", "z 'z'"],
    ),
    "an end without a beginning": ([END + b"z"], ["z 'z'"]),
    "one line": ([b"x\r"], ["x 'x'", "enter None"]),
    "one line of Windows": ([b"x\r\n"], ["x 'x'", "enter None"]),
    "one line and more": ([b"x\ry"], ["x 'x'", "enter None", "y 'y'"]),
    "two lines": ([b"x\ry\r"], [r"paste 'x\ny\n'"]),
    "two lines in four reads": (
        [b"x", 0.005, b"\r", 0.005, b"y", 0.005, b"\r"],
        ["x 'x'", r"paste '\ny\n'"],
    ),
    "a slow line": (
        [b"x", 0.008, b"y", 0.008, b"\r", 0.008, b"z", 0.008, b"\r"],
        ["x 'x'", r"paste 'y\nz\n'"],
    ),
    "a key that repeats fast": ([b"j", 0.008] * 4, ["j 'j'"] * 4),
    "two lines, typed": (
        [b"x\r", 0.02, b"y\r"],
        ["x 'x'", "enter None", "y 'y'", "enter None"],
    ),
    "Enter three times": ([b"\r\r\r"], ["enter None"] * 3),
    "Enter three times behind old text": (
        [b"x", 0.1, b"\r\r\r"],
        ["x 'x'", *["enter None"] * 3],
    ),
    "colours in lines": (
        [b"x\r\x1b[31my\x1b[0m\r\x03z"],
        [r"paste 'x\ny\nz'"],
    ),
    "the mouse moves among lines": (
        [b"x\ry\x1b[I\r"],
        ["AppFocus {}", r"paste 'x\ny\n'"],
    ),
    "the mouse moves behind Enter": (
        [b"x\r\x1b[I\x1b[A"],
        ["x 'x'", "enter None", "AppFocus {}", "up None"],
    ),
    "Ctrl+J is no Enter": ([b"x", 0.1, b"\n"], ["x 'x'", "ctrl+j None"]),
}


@pytest.mark.parametrize("name", INPUTS)
def test_pastes_and_lines_are_told_apart(name: str) -> None:
    pieces, expected = INPUTS[name]
    assert described(read(pieces)) == expected


@pytest.mark.parametrize("key", ["x", "漢", "\u3000", "\x7f", "\x03", "\t"])
def test_a_key_that_is_pressed_alone_waits_for_nothing(key: str) -> None:
    parser = TerminalParser()
    for at in (0.0, 0.03, 0.06):
        assert len(parser.feed(key.encode(), at)) == 1
        assert parser.deadline == inf


def test_enter_waits_for_no_mouse() -> None:
    moves: list[Piece] = [b"\x1b[<35;1;1M", 0.004] * 3
    found = described(read([b"x\r", *moves, b"y"]))
    assert found.index("enter None") < found.index("y 'y'")


@pytest.mark.parametrize(
    "line",
    ["text\r\n", "\x1b[31mred\x1b[0m\r\n", "\x1b]", "\x90", "\x1b[", "\x1b", "\r", "é"],
)
def test_a_huge_paste_takes_time_by_its_length(line: str) -> None:
    """Ten times the text takes about ten times as long, and not a hundred times."""

    def seconds(length: int) -> float:
        data = START + (line * (length // len(line))).encode() + END
        pieces = [data[at : at + 4096] for at in range(0, len(data), 4096)]
        begun = process_time()
        read(pieces)
        return process_time() - begun

    short = min(seconds(50_000) for _ in range(3))
    assert seconds(500_000) < 40 * short + 0.2


def test_text_of_paste_changes_no_text_twice() -> None:
    for pasted in TEXTS:
        text = text_of_paste(pasted)
        assert text_of_paste(text) == text


def test_keys_beside_a_paste_are_keys() -> None:
    assert keys(b"\x1b[A" + START + b"\x1b[B" + END + b"\x1b[C") == ["up", "right"]
