"""The names of keys, in what terminals send: as Textual names them."""

import re
from collections.abc import Iterator

import pytest
from textual.message import Message

from tests.tui.terminal_input.reading import described, keys, read

NAMED = {
    "a": "a",
    "A": "A",
    "/": "slash",
    "_": "underscore",
    "é": "é",
    " ": "space",
    "\r": "enter",
    "\n": "ctrl+j",
    "\t": "tab",
    "\x03": "ctrl+c",
    "\x7f": "backspace",
    "\x1f": "ctrl+underscore",
    "\x1b": "escape",
    "\x1b[A": "up",
    "\x1bOA": "up",
    "\x1b[1;2A": "shift+up",
    "\x1b[1;3A": "alt+up",
    "\x1b[1;8A": "alt+ctrl+shift+up",
    # old terminals, rxvt, the Linux console
    "\x1b[5A": "ctrl+up",
    "\x1b[a": "shift+up",
    "\x1bOb": "ctrl+down",
    "\x1b[7^": "ctrl+home",
    "\x1b[23$": "shift+f11",
    "\x1b[[C": "f3",
    "\x1b[3~": "delete",
    "\x1b[5;5~": "ctrl+pageup",
    "\x1b[25~": "f13",
    "\x1b[34~": "f20",
    "\x1bOP": "f1",
    "\x1b[1;5P": "ctrl+f1",
    "\x1b[Z": "shift+tab",
    "\x1bOM": "enter",
    "\x1bOs": "3",
    "\x1b[1;5u": "ctrl+5",
    # kitty's protocol, and modifyOtherKeys
    "\x1b[97;;97u": "a",
    "\x1b[97;2;65u": "A",
    "\x1b[97;2u": "A",
    "\x1b[97;66u": "A",
    "\x1b[49:33;2u": "exclamation_mark",
    "\x1b[32;2u": "shift+space",
    "\x1b[97;5u": "ctrl+a",
    "\x1b[97;6u": "ctrl+shift+a",
    "\x1b[13u": "enter",
    "\x1b[13;2u": "shift+enter",
    "\x1b[27u": "escape",
    "\x1b[57441;2u": "left_shift",
    "\x1b[57399;;48u": "0",
    "\x1b[27;5;13~": "ctrl+enter",
    "\x1b[27;2;13~": "shift+enter",
    "\x1b[27;3;8~": "alt+backspace",
    # a key that comes up again
    "\x1b[97;1:3u": None,
    "\x1b[1;1:3A": None,
    # Alt, in terminals that send an Escape for it
    "\x1ba": "alt+a",
    "\x1bA": "alt+shift+a",
    "\x1b\r": "alt+enter",
    "\x1bf": "ctrl+right",
    "\x1b\x7f": "ctrl+w",
    "\x1b[": "alt+left_square_bracket",
    "\x1b]": "alt+right_square_bracket",
    "\x1bO": "alt+shift+o",
    # nobody knows these
    "\x1b[99~": None,
    "\x1b[?1;2c": None,
    "\x1b[>41;390;0c": None,
    "\x1bP>|XTerm(390)\x1b\\": None,
    "\x1b_Gi=31;OK\x1b\\": None,
    "\x1b[1114112u": None,
    "\x1b[1;": None,
    "\x1b[12é": "é",
}


def test_keys_have_their_names() -> None:
    wrong = {}
    for sequence, name in NAMED.items():
        found = keys(sequence.encode())
        if found != ([name] if name else []):
            wrong[sequence] = found
    assert wrong == {}


def test_keys_that_follow_at_once_stay_apart() -> None:
    assert keys(b"\x1b\x1b[A\x1b\x1b", 1.0, b"x") == [
        "escape",
        "up",
        *["escape"] * 2,
        "x",
    ]
    assert keys(b"\x1b", 0.05, b"[", 0.05, b"A") == ["up"]
    assert keys(b"\x1b", 0.2, b"[A") == ["escape", "left_square_bracket", "A"]


def test_an_alt_key_and_text_behind_it_are_typed() -> None:
    """Also where they begin like an answer of the terminal."""
    for first in "]P_^X":
        typed = read([b"\x1b" + first.encode() + "w\u00f6rd ".encode(), b"\r"])
        text = [words.split(" ", 1)[1] for words in described(typed)]
        assert text[-6:] == ["'w'", "'ö'", "'r'", "'d'", "' '", "None"], first


UNLIKE_TEXTUAL = (
    # Textual takes the number of a function key for a character.
    r"\x1b\[(25|26|28|29|3[1-4])~",
    # Keys that scroll the Linux console.
    r"\x1b\[6[23]~",
    # rxvt: the modifiers, not another key; Home and End are exchanged.
    r"\x1b\[2[34][$@]",
    r"\x1b\[[78]\^",
    # Modifiers alone; Down is Down.
    r"\x1b\[5[A-D]",
    r"\x1bOb",
    # Alt is a modifier here, too, and no Escape.
    r"\x1b\[1;[5-8][p-y]",
    # A control character is no key.
    r"\x9b",
    # A sign, in kitty's protocol, if the terminal does not report its text.
    r"\x1b\[\d+;1?u",
    # Shift with a letter or a blank types it.
    r"\x1b\[\d+;2u",
    # Alt with a sign has Alt in its name.
    r"\x1b[\W_]",
    # Blanks are typed.
    r"(?s:.*)(\u3000|12288)(?s:.*)",
)


def sequences() -> Iterator[str]:
    """All sequences that Textual knows, and kitty's with all modifiers."""
    yield from pytest.importorskip("textual._ansi_sequences").ANSI_SEQUENCES_KEYS
    functional = pytest.importorskip("textual._keyboard_protocol").FUNCTIONAL_KEYS
    for key in functional:
        number, final = key[:-1], key[-1]
        yield f"\x1b[{number}{final}"
        for modifiers in range(1, 17):
            yield f"\x1b[{number};{modifiers}{final}"
    for code in (*range(32, 127), 0xE9, 0x4E2D, 0x1F600, 0x3000):
        yield chr(code)
        yield f"\x1b{chr(code)}"
        for modifiers in ("", "1", "2", "3", "5", "6", "9"):
            yield f"\x1b[{code};{modifiers}u"
            yield f"\x1b[{code};{modifiers};{code}u"
    yield from map(chr, range(32))


def read_by_textual(sequence: str, monkeypatch: pytest.MonkeyPatch) -> list[Message]:
    parsers = pytest.importorskip("textual._xterm_parser")
    times = pytest.importorskip("textual._parser")
    parser = parsers.XTermParser()
    monkeypatch.setattr(times, "get_time", lambda: 0.0)
    messages = list(parser.feed(sequence))
    monkeypatch.setattr(times, "get_time", lambda: 1.0)
    return [*messages, *parser.tick()]


def test_keys_have_the_names_that_textual_gives_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unlike = re.compile("|".join(f"(?:{pattern})" for pattern in UNLIKE_TEXTUAL))
    wrong = {}
    for sequence in sequences():
        expected = described(read_by_textual(sequence, monkeypatch))
        found = described(read([sequence.encode()]))
        if found != expected and not unlike.fullmatch(sequence):
            wrong[sequence] = found, expected
    assert wrong == {}


MOUSE = """
<0;3;4M <0;3;4m <1;3;4M <2;3;4M <4;3;4M <8;3;4M <16;3;4M <28;3;4M <32;5;6M <35;7;8M
<64;1;1M <65;1;1M <66;1;1M <67;1;1M <0;0;1M <0;-1;5M 32;10;10M
"""
ANSWERS = """
I O 3;4R 1;2R ?2026;2$y ?2026;0$y ?2048;2$y ?2048;1$y ?2048;0$y ?2048;4$y
48;24;80;480;800t 48;24:1;80;480:2;800t
"""


def test_the_mouse_and_answers_are_read_as_textual_reads_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for end in (*MOUSE.split(), *ANSWERS.split()):
        sequence = f"\x1b[{end}"
        expected = described(read_by_textual(sequence, monkeypatch))
        assert described(read([sequence.encode()])) == expected, end
    stream = "\x1b[48;24;80;480;800t\x1b[<0;100;100M\x1b[<35;105;120M"
    expected = described(read_by_textual(stream, monkeypatch)[-1:])
    found = described(read([stream.encode()])[-1:])
    assert "MouseMove" in found[0]
    assert found[0][:40] == expected[0][:40]
