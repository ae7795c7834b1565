"""Bytes of a terminal become the same events wherever they are cut."""

import re
from codecs import getincrementaldecoder

from hypothesis import assume, given
from hypothesis import strategies as st
from textual import events

from cdd_agent.text.sanitize import is_text, text_of_paste
from cdd_agent.tui.terminal_input.splitting import (
    PASTE_END,
    PASTE_PAUSE,
    PASTE_START,
    Splitter,
)
from tests.tui.terminal_input.reading import Piece, described, read

A_MOMENT = 0.02
"""Seconds that end a burst."""
LONG = 1.5
"""Seconds after which nothing is waited for any more."""

TYPED = st.text(st.characters(exclude_categories=["Cs"]).filter(is_text), max_size=8)
PASTES = st.text(st.characters(exclude_categories=["Cs"])) | st.text(
    "a\x1b[]0O~;m\r\n\x00"
)
KEYS = {
    "\x1b[A": "up None",
    "\x1b[1;5C": "ctrl+right None",
    "\x1bOP": "f1 None",
    "\x1b[13;2u": "shift+enter None",
    "\x1b[97;;97u": "a 'a'",
    "\x1ba": "alt+a 'a'",
    "\x01": "ctrl+a None",
    "\x7f": "backspace None",
    "\x1b[<35;2;3M": None,
    "\x1b[<0;2;3M": None,
    "\x1b[<65;2;3M": None,
    "\x1b[I": "AppFocus {}",
    "\x1b[O": "AppBlur {}",
    "\x1b]11;rgb:11/22/33\x1b\\": "BackgroundReported {'colour': 'rgb:11/22/33'}",
    "\x1b]11;#123456\x07": "BackgroundReported {'colour': '#123456'}",
    "\x1b[?2026;1$y": "TerminalSupportsSynchronizedOutput {}",
    "\x1b[?62;1;4c": None,
}
KINDS = st.sampled_from(["text", "key", "paste", "enter", "escape"])


@st.composite
def cut(draw: st.DrawFn, data: bytes) -> list[Piece]:
    """The bytes in pieces, which are read one right after the other."""
    places = sorted(draw(st.lists(st.integers(0, len(data)), max_size=6)))
    starts, ends = [0, *places], [*places, len(data)]
    return [data[start:end] for start, end in zip(starts, ends, strict=True)]


@st.composite
def inputs(draw: st.DrawFn) -> tuple[list[Piece], list[str]]:
    """What a user and the terminal send, cut anywhere, and what the shell gets of
    it.
    """
    pieces: list[Piece] = []
    expected: list[str] = []
    for kind in draw(
        st.lists(st.sampled_from(["text", "key", "paste", "enter", "escape"]))
    ):
        match kind:
            case "text":
                text = draw(TYPED)
                pieces += draw(cut(text.encode()))
                expected += [f"? {character!r}" for character in text]
            case "key":
                sequence = draw(st.sampled_from(list(KEYS)))
                pieces += draw(cut(sequence.encode()))
                alone = described(read([sequence.encode()]))
                assert KEYS[sequence] is None or alone == [KEYS[sequence]]
                expected += alone
            case "paste":
                text = draw(PASTES)
                pieces += draw(cut(f"{PASTE_START}{text}{PASTE_END}".encode()))
                pieces.append(A_MOMENT)
                text = text_of_paste(text)
                expected += [f"paste {text!r}"] if text else []
            case "enter":
                pieces += [A_MOMENT, b"\r", A_MOMENT]
                expected.append("enter None")
            case "escape":
                pieces += [b"\x1b", LONG]
                expected.append("escape None")
    return pieces, expected


def comparable(words: list[str]) -> list[str]:
    """The events without the places of the mouse, which count from where it was, and
    without the names of keys that type something.
    """
    return [
        re.sub(r"^Mouse(\w+)\(.*|^(?!paste )\S+ (?=['\"])", r"\1", text)
        for text in words
    ]


@given(inputs())
def test_events_come_complete_and_in_order_wherever_the_bytes_are_cut(
    sent: tuple[list[Piece], list[str]],
) -> None:
    pieces, expected = sent
    assert comparable(described(read(pieces))) == comparable(expected)


NOISE = (
    st.lists(
        st.sampled_from(
            [
                PASTE_START,
                PASTE_END,
                *KEYS,
                *"\x1b[]OPM<;0123~$\r\n\x07\\ amé漢\u200d\U0001f600",
            ]
        )
    ).map(lambda parts: "".join(parts).encode())
    | st.binary()
)


def begins_with_a_key(pieces: list[Piece]) -> bool:
    """True if the first character is read alone, as a key that is typed."""
    splitter, decoder = Splitter(), getincrementaldecoder("utf-8")("replace")
    for piece in pieces:
        assert isinstance(piece, bytes)
        tokens = splitter.feed(decoder.decode(piece), 0.0)
        if any(not isinstance(token, str) or len(token) == 1 for token in tokens):
            return len(tokens) == 1
    return False


@given(st.data(), NOISE)
def test_cuts_make_no_difference(data: st.DataObject, noise: bytes) -> None:
    """Unless the first character comes alone: it is typed, and not held."""
    pieces = data.draw(cut(noise))
    assume(not begins_with_a_key(pieces))
    assert described(read(pieces)) == described(read([noise]))


@given(st.data(), PASTES, st.sampled_from(["", PASTE_END[:3], PASTE_END]))
def test_a_paste_presses_no_key(data: st.DataObject, text: str, end: str) -> None:
    """Also with end markers in it, and with half an end marker or none."""
    sent = f"{PASTE_START}{text}{end}".encode()
    found = read([*data.draw(cut(sent)), LONG])
    assert [type(event) for event in found if not isinstance(event, events.Paste)] == []


@given(st.data(), PASTES)
def test_after_a_lost_end_marker_typing_works_again(
    data: st.DataObject, text: str
) -> None:
    text = text.replace("\x1b", "")
    sent = data.draw(cut(f"{PASTE_START}{text}".encode()))
    typed: list[Piece] = [b"x", A_MOMENT, b"\r", A_MOMENT, b"\x1b[201~", b"y"]
    found = described(read([*sent, PASTE_PAUSE + A_MOMENT, *typed]))
    pasted = text_of_paste(text)
    assert found == [
        *([f"paste {pasted!r}"] if pasted else []),
        "x 'x'",
        "enter None",
        "y 'y'",
    ]


LINES = st.lists(
    st.text(st.characters(exclude_categories=["Cs"]).filter(is_text), min_size=1),
    min_size=2,
    max_size=5,
)


@given(st.data(), LINES, st.sampled_from(["\r", "\n", "\r\n"]))
def test_lines_that_come_at_once_are_a_paste(
    data: st.DataObject, lines: list[str], line_end: str
) -> None:
    sent = "".join(line + line_end for line in lines).encode()
    text = "".join(f"{line}\n" for line in lines)
    pieces = data.draw(cut(sent))
    assume(not begins_with_a_key(pieces))
    assert described(read(pieces)) == [f"paste {text!r}"]
