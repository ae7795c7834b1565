"""Reads a unified diff into lines. A very long diff is cut, with a note."""

import re
from typing import NamedTuple

from cdd_agent.pattern import Pattern
from cdd_agent.text.sanitize import sanitize_for_display
from cdd_agent.tui.transcript.colouring import language_of
from cdd_agent.tui.transcript.diff import DiffLayout
from cdd_agent.tui.transcript.diff_drawer import DiffDrawer
from cdd_agent.tui.transcript.lines import TranscriptLine

MOST_LINES = 3_000
MOST_TEXT = 4_000_000

_USUAL_MODE = " mode 100644"
"""The usual mode of a file, which is not shown."""
_HUNK = Pattern(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@ ?(.*)")
_GIT_HEAD = Pattern(r"diff --git (?:.* b/)?(.*)")


class DiffOfFile(NamedTuple):
    path: str
    """Without control characters; empty if the diff does not name the file."""
    added: int
    removed: int
    lines: list[TranscriptLine]
    source: str


def diff_files(text: str, layout: DiffLayout) -> list[DiffOfFile]:
    """Return the files of a unified diff. Other text becomes a file without a name."""
    files, reader = list[DiffOfFile](), _FileReader(layout)
    cut = text[:MOST_TEXT]
    lines = cut.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    for place, line in enumerate(lines):
        following = lines[place + 1] if place + 1 < len(lines) else ""
        if reader.is_over(line, following):
            files.append(reader.file())
            reader = _FileReader(layout)
        reader.take(line)
    if len(text) > len(cut):
        reader.note(f"… {len(text) - len(cut):,} more characters")
    if reader.has_lines:
        files.append(reader.file())
    return files


class _FileReader:
    def __init__(self, layout: DiffLayout) -> None:
        self._source: list[str] = []
        self._names = ["", ""]
        self._drawer = DiffDrawer(layout, "")
        self._count = 0
        self._left_out = 0
        self._added = self._removed = 0
        self._has_hunks = False
        self._old = self._new = 0
        self._old_left = self._new_left = 0

    @property
    def has_lines(self) -> bool:
        return bool(self._source)

    @property
    def _in_hunk(self) -> bool:
        return self._old_left > 0 or self._new_left > 0

    def is_over(self, line: str, following: str) -> bool:
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
        elif hunk := _HUNK.match(line):
            self._begin_hunk(hunk)
        elif not self._has_hunks and line.startswith("--- "):
            self._names[0] = _name(line[4:])
        elif not self._has_hunks and line.startswith("+++ "):
            self._names[1] = _name(line[4:])
            self._drawer.language = language_of(self._path)
        elif not line.startswith(("diff --git ", "index ")):
            self.note(line.removeprefix("\\ ").removesuffix(_USUAL_MODE))

    def note(self, text: str) -> None:
        if self._has_room():
            self._drawer.note(text)

    def file(self) -> DiffOfFile:
        self._drawer.end_hunk()
        if self._left_out:
            self._drawer.note(f"… {self._left_out:,} more lines")
        lines = self._drawer.take_settled()
        source = "\n".join(self._source) + "\n"
        return DiffOfFile(self._path, self._added, self._removed, lines, source)

    @property
    def _path(self) -> str:
        old, new = self._names
        path = old if new in ("", "/dev/null") else new
        if head := _GIT_HEAD.match(self._source[0]):
            path = path.removeprefix("a/" if path is old else "b/") or _name(head[1])
        return path

    def _begin_hunk(self, hunk: re.Match[str]) -> None:
        old, old_count, new, new_count, section = hunk.groups()
        self._old, self._new = int(old), int(new)
        self._old_left, self._new_left = int(old_count or 1), int(new_count or 1)
        last_numbers = (self._old + self._old_left, self._new + self._new_left)
        digits = max(3, *(len(str(number)) for number in last_numbers))
        self._drawer.begin_hunk(digits=digits)
        if (self._has_hunks or section) and self._has_room():
            self._drawer.separate(section)
        self._has_hunks = True

    def _take_code(self, sign: str, text: str) -> None:
        is_old, is_new = sign != "+", sign != "-"
        self._added += not is_old
        self._removed += not is_new
        if self._has_room():
            self._drawer.add(sign, text, self._old, self._new)
        self._old, self._old_left = self._old + is_old, self._old_left - is_old
        self._new, self._new_left = self._new + is_new, self._new_left - is_new

    def _has_room(self) -> bool:
        """Count a line. False if it is not shown."""
        if self._count >= MOST_LINES:
            self._left_out += 1
            return False
        self._count += 1
        return True


def _name(text: str) -> str:
    return sanitize_for_display(text.rstrip("\r").partition("\t")[0])
