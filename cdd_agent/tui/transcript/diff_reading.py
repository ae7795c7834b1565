"""A unified diff as text, read into the lines that show it. Whoever wrote it: what is
long is cut, and says so.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from cdd_agent.sanitize import sanitize_for_display
from cdd_agent.tui.transcript.code import CodeWindow
from cdd_agent.tui.transcript.colouring import language_of
from cdd_agent.tui.transcript.diff import (
    LINE_INKS,
    SIGN_INKS,
    WORD,
    DiffLayout,
    DiffLine,
)
from cdd_agent.tui.transcript.lines import Gutter, TranscriptLine

MOST_LINES = 3_000
"""Lines of a file's difference that are shown."""
MOST_TEXT = 4_000_000
"""Characters of a diff that are read."""
_LONGEST_LINE = 1_000
_MOST_COMPARED = 400
"""Pairs of lines in a hunk that are compared to find which belong together."""

_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@ ?(.*)")
_GIT_HEAD = re.compile(r"diff --git (?:.* b/)?(.*)")


class DiffOfFile(NamedTuple):
    """The difference of one file."""

    path: str
    """Without control characters; empty where the diff does not say it."""
    added: int
    removed: int
    lines: list[TranscriptLine]
    source: str


def diff_files(text: str, layout: DiffLayout) -> list[DiffOfFile]:
    """Return the files of a unified diff, in order. Text that is not a diff is shown
    unchanged, in a file without a name.
    """
    files, reader = list[DiffOfFile](), _FileReader(layout)
    cut = text[:MOST_TEXT]
    lines = cut.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    for place, line in enumerate(lines):
        following = lines[place + 1] if place + 1 < len(lines) else ""
        if reader.is_over(line, following):
            files += reader.file()
            reader = _FileReader(layout)
        reader.take(line)
    if len(text) > len(cut):
        reader.note(f"… {len(text) - len(cut):,} more characters")
    return [*files, *reader.file()]


class _FileReader:
    """Reads the lines about one file."""

    def __init__(self, layout: DiffLayout) -> None:
        self._layout = layout
        self._source: list[str] = []
        self._names = ["", ""]
        self._language = ""
        self._lines: list[TranscriptLine] = []
        self._left_out = 0
        self._added = self._removed = 0
        self._has_hunks = False
        self._old = self._new = 0
        """The numbers of the next lines."""
        self._old_left = self._new_left = 0
        """The number of lines that follow in this hunk."""
        self._windows = [CodeWindow(""), CodeWindow("")]
        self._digits = 3
        self._run: tuple[list[DiffLine], list[DiffLine]] = ([], [])
        """The lines that were removed and added, one after the other."""

    @property
    def _in_hunk(self) -> bool:
        return self._old_left > 0 or self._new_left > 0

    def is_over(self, line: str, following: str) -> bool:
        """True if a line begins another file."""
        if self._in_hunk or not self._source:
            return False
        if line.startswith("diff --git "):
            return True
        begins = line.startswith("--- ") and following.startswith("+++ ")
        return begins and any(self._names)

    def take(self, line: str) -> None:
        self._source.append(line)
        if self._in_hunk and line[:1] in (" ", "+", "-", ""):
            self._take_code(line[:1] or " ", line[1:])
        elif found := _HUNK.match(line):
            self._begin_hunk(found)
        elif not self._has_hunks and line.startswith("--- "):
            self._names[0] = _name(line[4:])
        elif not self._has_hunks and line.startswith("+++ "):
            self._names[1] = _name(line[4:])
            self._language = language_of(self._path)
        elif not line.startswith(("diff --git ", "index ")):
            self.note(line.removeprefix("\\ "))

    def note(self, text: str) -> None:
        shown = sanitize_for_display(text[:_LONGEST_LINE])
        self._add(
            TranscriptLine(
                text=shown, ink="hunk", gutter=((" " * 4, ""),), hang=((" " * 4, ""),)
            )
        )

    def file(self) -> list[DiffOfFile]:
        """The file that was read; none, if none was."""
        self._pair()
        self._close_windows()
        if not self._source:
            return []
        if self._left_out:
            self._lines.append(
                TranscriptLine(
                    text=f"… {self._left_out:,} more lines",
                    ink="hunk",
                    gutter=((" " * 4, ""),),
                )
            )
        return [
            DiffOfFile(
                self._path,
                self._added,
                self._removed,
                self._lines,
                "\n".join(self._source) + "\n",
            )
        ]

    @property
    def _path(self) -> str:
        old, new = self._names
        path = old if new in ("", "/dev/null") else new
        if found := _GIT_HEAD.match(self._source[0]):
            path = path.removeprefix("a/" if path is old else "b/") or _name(found[1])
        return path

    def _begin_hunk(self, found: re.Match[str]) -> None:
        self._pair()
        self._close_windows()
        old, old_count, new, new_count, section = found.groups()
        self._old, self._new = int(old), int(new)
        self._old_left, self._new_left = int(old_count or 1), int(new_count or 1)
        self._windows = [CodeWindow(self._language), CodeWindow(self._language)]
        self._digits = max(
            len(str(self._old + self._old_left)),
            len(str(self._new + self._new_left)),
            3,
        )
        if self._has_hunks or section:
            gutter: Gutter = ((f"{'⋯':>{self._digits}}   ", "line-number"),)
            shown = sanitize_for_display(section[:_LONGEST_LINE])
            self._add(
                TranscriptLine(
                    text=shown, ink="hunk", gutter=gutter, hang=gutter, by_words=False
                )
            )
        self._has_hunks = True

    def _take_code(self, sign: str, text: str) -> None:
        is_old, is_new = sign != "+", sign != "-"
        self._added += not is_old
        self._removed += not is_new
        if len(self._lines) >= MOST_LINES:
            self._left_out += 1
        else:
            self._add_code(sign, text)
        self._old, self._old_left = self._old + is_old, self._old_left - is_old
        self._new, self._new_left = self._new + is_new, self._new_left - is_new

    def _add_code(self, sign: str, text: str) -> None:
        more = len(text) - _LONGEST_LINE
        shown = sanitize_for_display(text[:_LONGEST_LINE].removesuffix("\r")) + (
            f" … {more:,} more characters" if more > 0 else ""
        )
        for side in (0, 1):
            if self._windows[side].closed:
                self._windows[side] = CodeWindow(self._language)
        old, new = self._windows
        window = old if sign == "-" else new
        if sign != "+":
            old.add(shown)
        if sign != "-":
            new.add(shown)
        number = self._old if sign == "-" else self._new
        ink = LINE_INKS[sign]
        line = DiffLine(
            text=shown,
            ink=ink,
            gutter=(
                (f"{number:>{self._digits}} ", f"{ink} line-number"),
                (f"{sign} ", f"{ink} {SIGN_INKS[sign]}".strip()),
            ),
            hang=((" " * (self._digits + 1) + "↳ ", f"{ink} line-number"),),
            fill=(" ", ink),
            by_words=False,
            sign=sign,
            number=number,
            number_before=self._old,
            digits=self._digits,
            window=window,
            place=len(window.texts) - 1,
            layout=self._layout,
        )
        self._add(line)
        if sign == " " or (sign == "-" and self._run[1]):
            self._pair()
        if sign != " ":
            self._run[sign == "+"].append(line)

    def _add(self, line: TranscriptLine) -> None:
        if len(self._lines) < MOST_LINES:
            self._lines.append(line)
        else:
            self._left_out += 1

    def _pair(self) -> None:
        """Say of the lines that were removed and added, one after the other, which
        belong together.
        """
        removed, added = self._run
        self._run = ([], [])
        for old, new in zip(removed, added, strict=False):
            old.beside, new.beside = new, old
        if len(removed) == len(added) or len(removed) * len(added) > _MOST_COMPARED:
            pairs = list(zip(removed, added, strict=False))
        else:
            pairs = list(_alike(removed, added))
        for old, new in pairs:
            old.was, new.was = new, old

    def _close_windows(self) -> None:
        for window in self._windows:
            window.closed = True


def _alike(
    removed: list[DiffLine], added: list[DiffLine]
) -> Iterator[tuple[DiffLine, DiffLine]]:
    """For each removed line the first one added that has most of its words, in
    order.
    """
    first = 0
    for old in removed:
        words = set(WORD.findall(old.text))
        for place in range(first, len(added)):
            others = set(WORD.findall(added[place].text))
            if 4 * len(words & others) > len(words) + len(others):
                yield old, added[place]
                first = place + 1
                break


def _name(text: str) -> str:
    """A file's name in a diff's header, without the time that may stand behind it."""
    return sanitize_for_display(text.rstrip("\r").partition("\t")[0])
