"""The output of a program, without its colours."""

from rich.cells import cell_len

from cdd_agent.pattern import Pattern
from cdd_agent.text.sanitize import remove_escapes, sanitize_for_display
from cdd_agent.tui.transcript.bounds import bounded
from cdd_agent.tui.transcript.lines import Gutter, LineRow, TranscriptLine
from cdd_agent.tui.transcript.wrapping import wrap

_BAR: Gutter = (("│ ", "bar"),)
_RULE_CHARACTERS = frozenset("=-_~*#+!>─━═—")
_SHORTEST_RULE = 3
_PROGRESS = Pattern(r" {3,}(\[ *\d+%\])$")
"""A test runner's progress, right-aligned for a wider terminal."""


class OutputLines:
    """Makes lines from chunks of output. An overwritten line shows its last state."""

    def __init__(self) -> None:
        self._partial = ""

    def feed(self, text: str) -> list[TranscriptLine]:
        *complete, partial = (self._partial + text).split("\n")
        lines = [line for text in complete for line in _lines(_last_state(text))]
        *overlong, self._partial = bounded(_last_state(partial))
        return lines + [_line(text) for text in overlong]

    def tail(self) -> list[TranscriptLine]:
        return _lines(self._partial) if self._partial else []

    def finish(self) -> list[TranscriptLine]:
        lines = self.tail()
        self._partial = ""
        return lines


def _last_state(text: str) -> str:
    """Return the text after carriage returns. One at the end may belong to the line
    end, and stays.
    """
    body = text.removesuffix("\r")
    return body.rpartition("\r")[2] + text[len(body) :]


def _lines(text: str) -> list[TranscriptLine]:
    return [_line(part) for part in bounded(text)]


def _line(source: str) -> TranscriptLine:
    text = _PROGRESS.sub(
        r"  \1", sanitize_for_display(remove_escapes(source).expandtabs(8))
    )
    if rule := _rule_around(text):
        leading, trailing = rule
        return _OutputRule(
            text=text,
            ink="output",
            gutter=_BAR,
            hang=_BAR,
            before=leading,
            after=trailing,
        )
    return TranscriptLine(text=text, ink="output", gutter=_BAR, hang=_BAR)


def _rule_around(text: str) -> tuple[int, int] | None:
    if text[:1] not in _RULE_CHARACTERS:
        return None
    leading = len(text) - len(text.lstrip(text[0]))
    trailing = len(text) - leading - len(text[leading:].rstrip(text[0]))
    words = text[leading : len(text) - trailing]
    if leading < _SHORTEST_RULE or (words and trailing < _SHORTEST_RULE):
        return None
    if words and not (
        words[0] == words[-1] == " " and any(character.isalnum() for character in words)
    ):
        return None
    return leading, trailing


class _OutputRule(TranscriptLine, eq=False, kw_only=True):
    """A rule such as `==== 5 passed ====`, whose ends are shortened to fit one row."""

    before: int
    """Characters of the rule before the text; all of them without a text."""
    after: int

    def rows(self, width: int) -> list[LineRow]:
        room = self.room(width)
        excess = max(cell_len(self.text) - room, 0)
        shown_rows = max(self.before + self.after - excess, 2)
        kept_before = min(self.before, max(shown_rows // 2, shown_rows - self.after))
        first = self.before - kept_before
        shown = self.text[
            first : len(self.text) - self.after + shown_rows - kept_before
        ]
        return [
            LineRow(self, first + start, first + end)
            for start, end in wrap(shown, room, by_words=True)
        ]
