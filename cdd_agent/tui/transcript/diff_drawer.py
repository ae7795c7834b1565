"""Makes the lines of changed code from signs and texts."""

from collections.abc import Iterator

from cdd_agent.text.sanitize import sanitize_for_display
from cdd_agent.tui.transcript.code import CodeWindow
from cdd_agent.tui.transcript.diff import (
    LINE_INKS,
    SIGN_INKS,
    WORD,
    DiffLayout,
    DiffLine,
    number_text,
)
from cdd_agent.tui.transcript.lines import Gutter, TranscriptLine

LONGEST_LINE = 1_000
_MOST_COMPARED = 400
"""Maximum pairs of lines in a hunk that are compared to find counterparts."""
_LONGEST_RUN = 400
"""Maximum removed and added lines that wait for counterparts."""


class DiffDrawer:
    """Makes the lines of hunks. Consecutive removed and added lines wait for each
    other, so that their changed words can be marked.
    """

    def __init__(self, layout: DiffLayout, language: str, digits: int = 0) -> None:
        """`digits` is the width of line numbers; 0 for none."""
        self._layout = layout
        self.language = language
        self._digits = digits
        self._windows = [CodeWindow(language), CodeWindow(language)]
        self._settled: list[TranscriptLine] = []
        self._run: list[DiffLine] = []

    def begin_hunk(self, section: str = "", *, digits: int = 0) -> None:
        """End the previous hunk, and begin another."""
        self.end_hunk()
        self._digits = digits
        self._windows = [CodeWindow(self.language), CodeWindow(self.language)]
        if section:
            self.separate(section)

    def end_hunk(self) -> None:
        self._end_run()
        for window in self._windows:
            window.closed = True

    def separate(self, section: str = "") -> None:
        """Show a gap, and the section of the next lines."""
        column = number_text("⋯", self._digits) or "⋯ "
        self._add_remark(section, ((f"{column}  ", "line-number"),))

    def note(self, text: str) -> None:
        self._add_remark(text, ((" " * 4, ""),))

    def _add_remark(self, text: str, gutter: Gutter) -> None:
        self._end_run()
        self._settled.append(
            TranscriptLine(
                text=sanitize_for_display(text[:LONGEST_LINE]),
                ink="hunk",
                gutter=gutter,
                hang=gutter,
                by_words=False,
            )
        )

    def add(self, sign: str, text: str, old_number: int = 0, number: int = 0) -> None:
        """Add a line of the old file (`-`), the new file (`+`) or both (a space)."""
        line = self._make_line(sign, text, old_number, number)
        run_is_over = sign == "-" and bool(self._run) and self._run[-1].sign == "+"
        if sign == " " or run_is_over or len(self._run) >= _LONGEST_RUN:
            self._end_run()
        if sign == " ":
            self._settled.append(line)
        else:
            self._run.append(line)

    def take_settled(self) -> list[TranscriptLine]:
        """Return the new lines that can no longer change."""
        lines, self._settled = self._settled, []
        return lines

    def tail(self) -> list[TranscriptLine]:
        """Return the lines that wait for others."""
        return list(self._run)

    def _make_line(
        self, sign: str, text: str, old_number: int, number: int
    ) -> DiffLine:
        shown = sanitize_for_display(text[:LONGEST_LINE].removesuffix("\r"))
        if len(text) > LONGEST_LINE:
            shown += f" … {len(text) - LONGEST_LINE:,} more characters"
        for side in (0, 1):
            if self._windows[side].closed:
                self._windows[side] = CodeWindow(self.language)
        old, new = self._windows
        if sign != "+":
            old.add(shown)
        if sign != "-":
            new.add(shown)
        window = old if sign == "-" else new
        line_number = old_number if sign == "-" else number
        ink = LINE_INKS[sign]
        column = number_text(line_number, self._digits)
        return DiffLine(
            text=shown,
            ink=ink,
            gutter=(
                (column, f"{ink} line-number"),
                (f"{sign} ", f"{ink} {SIGN_INKS[sign]}".strip()),
            ),
            hang=((" " * len(column) + "↳ ", f"{ink} line-number"),),
            fill=(" ", ink),
            by_words=False,
            sign=sign,
            number=line_number,
            number_before=old_number,
            digits=self._digits,
            window=window,
            place=len(window.texts) - 1,
            layout=self._layout,
        )

    def _end_run(self) -> None:
        pair_lines(self._run)
        self._settled += self._run
        self._run = []


def pair_lines(run: list[DiffLine]) -> None:
    """Connect removed lines with the added lines that replace them."""
    removed = [line for line in run if line.sign == "-"]
    added = [line for line in run if line.sign == "+"]
    for old, new in zip(removed, added, strict=False):
        old.partner, new.partner = new, old
    is_large = len(removed) * len(added) > _MOST_COMPARED
    if len(removed) == len(added) or is_large:
        pairs = list(zip(removed, added, strict=False))
    else:
        pairs = list(_alike(removed, added))
    for old, new in pairs:
        old.counterpart, new.counterpart = new, old


def _alike(
    removed: list[DiffLine], added: list[DiffLine]
) -> Iterator[tuple[DiffLine, DiffLine]]:
    """Yield each removed line with the first similar added line, in order."""
    first = 0
    for old in removed:
        for place in range(first, len(added)):
            if is_alike(old.text, added[place].text):
                yield old, added[place]
                first = place + 1
                break


def is_alike(old: str, new: str) -> bool:
    words, others = set(WORD.findall(old)), set(WORD.findall(new))
    return 4 * len(words & others) > len(words) + len(others)
