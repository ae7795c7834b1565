"""Splits a terminal's output into characters, escape sequences and pastes.

The text may arrive in any pieces, but time matters: an Escape without a follower is a
key, and a paste without an end marker ends after a pause.
"""

from math import inf

from msgspec import Struct
from textual.constants import ESCAPE_DELAY

from cdd_agent.pattern import Pattern

PASTE_START, PASTE_END = "\x1b[200~", "\x1b[201~"
PASTE_PAUSE = 0.3
"""Seconds without input that end a paste if its end marker is lost."""
STALL_TIME = 10.0
"""Seconds in which a paste may continue after such a pause, on a slow connection."""
SEQUENCE_PAUSE = 1.0
"""Seconds to wait for the rest of a sequence that no user types."""
ANSWER_TIME = 2.0
"""Seconds in which the terminal may answer a question."""
ANSWER_PAUSE = 0.3
"""Seconds for which an Escape may begin such an answer."""
LONGEST_STRING = 8192
"""Maximum characters of a control string."""

_SEQUENCE = Pattern(
    # Old mouse reports: three characters follow.
    r"\x1b\[M(?s:...)"
    # Some terminals report negative positions outside the window.
    r"|\x1b\[<[-\d;]{0,64}[Mm]"
    # Function keys of the Linux console.
    r"|\x1b\[\[[A-E]"
    # Keys of rxvt with Shift.
    r"|\x1b\[\d{1,3}\$"
    r"|\x1b\[(?![M\[])[0-?]{0,64}[ -/]{0,4}[@-~]"
    r"|\x1bO\d{0,2}[@-~]"
    # Answers of the terminal.
    r"|\x1b(?:\]\d|[PX^_])[^\x00-\x1f]*(?:\x07|\x1b\\)"
)
_BEGINNING = Pattern(
    r"\x1b"
    r"|\x1b\[M(?s:.){0,2}"
    r"|\x1b\[<[-\d;]{0,64}"
    r"|\x1b\[\["
    r"|\x1b\[[0-?]{0,64}[ -/]{0,4}"
    r"|\x1bO\d{0,2}"
    rf"|\x1b(?:\]\d|[PX^_])[^\x00-\x1f]{{0,{LONGEST_STRING}}}\x1b?"
    r"|\x1b\]"
)
_CUT_OFF = Pattern(r"\x1b\[[0-?]+[ -/]*|\x1b\[M|\x1bO\d+")
"""Incomplete sequences that no user types."""
_CHARACTERS = Pattern(r"[^\x1b]+")


class Pasted(Struct, frozen=True):
    """A paste as sent by the terminal."""

    text: str


class PasteEnd(Struct, frozen=True):
    """The end marker of a paste that is over, or never began."""


class AltCharacter(Struct, frozen=True):
    """An Escape immediately followed by a character."""

    character: str


Token = str | Pasted | PasteEnd | AltCharacter
"""A string is one character, or an escape sequence."""


class Splitter:
    def __init__(self) -> None:
        self.deadline = inf
        self._rest = ""
        self._is_rest_pasted = False
        """True if the paste ended within `_rest`."""
        self._paste: list[str] | None = None
        self._stalled_until = -inf
        """Until then, several characters at once continue a paused paste."""
        self._answer_until = -inf

    def expect_answer(self, at: float) -> None:
        """Wait longer after an Escape: it may begin an answer."""
        self._answer_until = at + ANSWER_TIME

    def feed(self, text: str, at: float) -> list[Token]:
        tokens: list[Token] = []
        if at < self._stalled_until and self._continues_paste(text):
            self._paste = []
        text = self._rest + text
        self._rest = ""
        position = 0
        while position < len(text) and not self._rest:
            if self._paste is not None:
                position = self._read_paste(self._paste, text, position, tokens)
            elif text[position] == "\x1b":
                position = self._read_sequence(text, position, tokens)
            else:
                characters = _CHARACTERS.match(text, position)
                assert characters is not None
                tokens += characters[0]
                position = characters.end()
        self.deadline = at + self._pause(at)
        return tokens

    def tick(self, at: float) -> list[Token]:
        """Return the tokens whose wait is over."""
        if at < self.deadline:
            return []
        self.deadline = inf
        if self._paste is not None:
            paste, self._paste = self._paste, None
            self._stalled_until = at + STALL_TIME
            if self._rest:
                self._is_rest_pasted = True
                self.deadline = at + SEQUENCE_PAUSE
            return [Pasted("".join(paste))]
        rest, self._rest = self._rest, ""
        if self._is_rest_pasted or _CUT_OFF.fullmatch(rest):
            self._is_rest_pasted = False
            return []
        if len(rest) < 2:
            return [rest] if rest else []
        return [AltCharacter(rest[1]), *rest[2:]]

    def _pause(self, at: float) -> float:
        if self._paste is not None:
            return PASTE_PAUSE
        if not self._rest:
            self._is_rest_pasted = False
            return inf
        if len(self._rest) > 2 or self._is_rest_pasted:
            return SEQUENCE_PAUSE
        return ANSWER_PAUSE if at < self._answer_until else ESCAPE_DELAY

    def _continues_paste(self, text: str) -> bool:
        """True if the text continues a paused paste. A key arrives alone."""
        if self._paste is not None or self._rest:
            return False
        is_key = len(text) < 2 or text[0] == "\x1b"
        return not is_key or text.find(PASTE_END) > 0

    def _read_paste(
        self, paste: list[str], text: str, position: int, tokens: list[Token]
    ) -> int:
        end = text.find(PASTE_END, position)
        if end >= 0:
            tokens.append(Pasted("".join([*paste, text[position:end]])))
            self._paste = None
            self._stalled_until = -inf
            return end + len(PASTE_END)
        stop = len(text)
        for length in range(len(PASTE_END) - 1, 0, -1):
            if text.endswith(PASTE_END[:length], position):
                stop -= length
                break
        paste.append(text[position:stop])
        self._rest = text[stop:]
        return len(text)

    def _read_sequence(self, text: str, position: int, tokens: list[Token]) -> int:
        sequence = _SEQUENCE.match(text, position)
        if sequence is not None:
            self._take_sequence(sequence[0], tokens)
            return sequence.end()
        if _BEGINNING.fullmatch(text, position):
            self._rest = text[position:]
            return len(text)
        cut_off = _CUT_OFF.match(text, position)
        if cut_off is not None:
            return cut_off.end()
        following = text[position + 1]
        if following == "\x1b":
            tokens.append("\x1b")
            return position + 1
        tokens.append(AltCharacter(following))
        return position + 2

    def _take_sequence(self, sequence: str, tokens: list[Token]) -> None:
        match sequence:
            case "\x1b[200~":
                self._paste = []
            case "\x1b[201~":
                self._stalled_until = -inf
                tokens.append(PasteEnd())
            case _:
                tokens.append(sequence)
