"""A unified diff as lines: numbered, coloured by language, the changed words marked; side by side where there is room.

Made of text alone, whoever wrote it. What is long is cut, and says so.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise, zip_longest
from typing import NamedTuple

from rich.cells import cell_len

from cdd_agent.sanitize import sanitize_for_display
from cdd_agent.tui.transcript.code import CodeWindow
from cdd_agent.tui.transcript.colouring import language_of
from cdd_agent.tui.transcript.lines import Gutter, Ink, Mark, Row, TranscriptLine, clip
from cdd_agent.tui.transcript.wrapping import wrap

SIDE_BY_SIDE_WIDTH = 140
"""Cells from which on there is room for two columns."""
MOST_LINES = 3_000
"""Lines of a file's difference that are shown."""
MOST_TEXT = 4_000_000
"""Characters of a diff that are read."""
_LONGEST_LINE = 1_000
_MOST_WORDS = 120
"""In which two lines are compared word by word; beyond, what is between their common ends counts as changed."""
_ALIKE = 0.35
"""From how much in common on, two lines are told as one that changed."""
_MOST_COMPARED = 400
"""Pairs of lines in a hunk that are compared to find which belong together."""

_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@ ?(.*)")
_GIT_HEAD = re.compile(r"diff --git (?:.* b/)?(.*)")
_WORD = re.compile(r"\w+|\s+|[^\w\s]")
_SIGN_INKS = {" ": "", "-": "deleted", "+": "inserted"}
_LINE_INKS = {" ": "diff", "-": "diff removed", "+": "diff added"}
_WORD_INKS = {"-": "removed-word", "+": "added-word"}


@dataclass
class DiffLayout:
    """Whether the diffs of a transcript are shown side by side where there is room for it. The lines look here."""

    is_side_by_side: bool = True

    def splits(self, width: int) -> bool:
        return self.is_side_by_side and width >= SIDE_BY_SIDE_WIDTH


class DiffOfFile(NamedTuple):
    """What is different in one file."""

    path: str
    """Without control characters; empty where the diff does not say it."""
    added: int
    removed: int
    lines: list[TranscriptLine]
    source: str


@dataclass(slots=True, eq=False, kw_only=True)
class DiffLine(TranscriptLine):
    """A line of a file, as it was or is. Side by side, what was added is shown by the line that it stands beside."""

    sign: str
    number: int
    """In the file as it is; of a removed line, as it was."""
    number_before: int
    """In the file as it was, of a line that did not change."""
    digits: int
    window: CodeWindow
    place: int
    """In the window."""
    layout: DiffLayout
    beside: "DiffLine | None" = None
    """What stands on the other side, side by side."""
    was: "DiffLine | None" = None
    """The line that became this one, or that this one became."""
    _lines: Sequence[TranscriptLine] | None = None
    """Those that its rows are of; None: itself."""

    def laid_out(self) -> Sequence[TranscriptLine]:
        return (self,) if self._lines is None else self._lines

    def rows(self, width: int) -> list[Row]:
        if not self.layout.splits(width):
            self._lines = None
            return [Row(self, start, end) for start, end in wrap(self.text, self.room(width), by_words=False)]
        if self.sign == "+" and self.beside is not None:
            self._lines = ()
            return []
        old = None if self.sign == "+" else self
        new = self.beside if self.sign == "-" else self
        self._lines = list(_side_by_side(old, new, (width - 1) // 2))
        return [Row(line, 0, len(line.text)) for line in self._lines]

    def inks(self) -> Sequence[Mark]:
        code = self.window.inks(self.place)
        if self.was is None or self.sign == " ":
            return code
        old, new = (self, self.was) if self.sign == "-" else (self.was, self)
        before, after = changed_words(old.text, new.text)
        return _on_top(code, before if self.sign == "-" else after, _WORD_INKS[self.sign], len(self.text))


@dataclass(slots=True, eq=False, kw_only=True)
class _TwoColumns(TranscriptLine):
    """One row of two lines beside each other."""

    halves: tuple["_Half", "_Half"]

    def inks(self) -> Sequence[Mark]:
        left, right = self.halves
        return [*left.marks(0), *right.marks(len(left.text))]


@dataclass(slots=True, eq=False)
class _Half:
    """What one column holds of a line, with its number where it begins."""

    line: DiffLine | None
    part: tuple[int, int]
    number: int
    width: int
    gutter: str = field(init=False, default="")
    text: str = field(init=False, default="")

    def __post_init__(self) -> None:
        if (line := self.line) is not None:
            start, end = self.part
            self.gutter = " " * (line.digits + 1) + "↳ " if start else f"{self.number:>{line.digits}} {line.sign} "
            self.text = self.gutter + line.text[start:end]
        self.text += " " * (self.width - cell_len(self.text))

    def marks(self, shift: int) -> Iterator[Mark]:
        """Its inks, the whole column's beneath them."""
        if (line := self.line) is None:
            return
        ink, first = _LINE_INKS[line.sign], shift + len(self.gutter)
        yield shift, first, f"{ink} {_SIGN_INKS[line.sign] or 'line-number'}"
        place = first
        for begin, stop, code in clip(line.inks(), *self.part, first - self.part[0]):
            if place < begin:
                yield place, begin, ink
            yield begin, stop, f"{ink} {code}"
            place = stop
        if place < shift + len(self.text):
            yield place, shift + len(self.text), ink


def _side_by_side(old: DiffLine | None, new: DiffLine | None, column: int) -> Iterator[TranscriptLine]:
    """The rows of two lines, of which one may be missing. A line that did not change is on both sides."""
    parts = [wrap(line.text, max(column - line.digits - 3, 1), by_words=False) if line else [] for line in (old, new)]
    number = new.number_before if new is not None and new is old else old.number if old else 0
    for left, right in zip_longest(*parts, fillvalue=None):
        halves = (
            _Half(old if left else None, left or (0, 0), number, column),
            _Half(new if right else None, right or (0, 0), new.number if new else 0, column),
        )
        yield _TwoColumns(text=halves[0].text + halves[1].text, halves=halves, by_words=False)


def _on_top(below: Sequence[Mark], spans: Sequence[tuple[int, int]], ink: Ink, length: int) -> list[Mark]:
    """The marks, with one more ink on some spans; both are in order."""
    ends = [(start, end) for start, end, _ in below] + list(spans)
    places = sorted({0, length, *(place for span in ends for place in span)})
    marks = list[Mark]()
    first, over = 0, 0
    for start, end in pairwise(places):
        while first < len(below) and below[first][1] <= start:
            first += 1
        while over < len(spans) and spans[over][1] <= start:
            over += 1
        inks = [below[first][2]] if first < len(below) and below[first][0] <= start else []
        inks += [ink] if over < len(spans) and spans[over][0] <= start else []
        if inks:
            marks.append((start, end, " ".join(inks)))
    return marks


@lru_cache(maxsize=1024)
def changed_words(before: str, after: str) -> tuple[Sequence[tuple[int, int]], Sequence[tuple[int, int]]]:
    """Where the words are that two lines do not have in common; nowhere, if they have too little in common."""
    old, new = _WORD.findall(before), _WORD.findall(after)
    head = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    most = min(len(old), len(new)) - head
    tail = next((n for n, (a, b) in enumerate(zip(reversed(old), reversed(new), strict=False)) if a != b), most)
    tail = min(tail, most)
    inner = old[head : len(old) - tail], new[head : len(new) - tail]
    if max(map(len, inner)) > _MOST_WORDS:
        same = [(0, 0, head), (len(old) - tail, len(new) - tail, tail)]
    else:
        matcher = SequenceMatcher(None, *inner, autojunk=False)
        blocks = [(a + head, b + head, size) for a, b, size in matcher.get_matching_blocks()]
        same = [(0, 0, head), *blocks, (len(old) - tail, len(new) - tail, tail)]
    common = sum(len(word.strip()) for start, _, size in same for word in old[start : start + size])
    whole = sum(len(word.strip()) for word in (*old, *new))
    if not whole or 2 * common / whole < _ALIKE:
        return (), ()
    return (
        _spans(old, [(start, start + size) for start, _, size in same]),
        _spans(new, [(start, start + size) for _, start, size in same]),
    )


def _spans(words: list[str], same: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Where the words are, in characters, that are not among the same; with the space between them."""
    kept = {place for start, end in same for place in range(start, end)}
    spans, at = list[tuple[int, int]](), 0
    for place, word in enumerate(words):
        if place not in kept:
            if spans and (spans[-1][1] == at):
                spans[-1] = (spans[-1][0], at + len(word))
            else:
                spans.append((at, at + len(word)))
        at += len(word)
    return spans


# ---------------------------------------------------------------------------------------------------------- reading it


def diff_files(text: str, layout: DiffLayout) -> list[DiffOfFile]:
    """The files of a unified diff, in its order. What is no diff is shown as it is, in a file without a name."""
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
        self._old = self._new = 0
        """The numbers of the next lines."""
        self._old_left = self._new_left = 0
        """How many lines there are to come in this hunk."""
        self._windows = [CodeWindow(""), CodeWindow("")]
        self._digits = 3
        self._run: tuple[list[DiffLine], list[DiffLine]] = ([], [])
        """The lines that were removed and added, one after the other."""

    @property
    def _in_hunk(self) -> bool:
        return self._old_left > 0 or self._new_left > 0

    def is_over(self, line: str, following: str) -> bool:
        """Whether a line begins another file."""
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
        elif not self._lines and line.startswith("--- "):
            self._names[0] = _name(line[4:])
        elif not self._lines and line.startswith("+++ "):
            self._names[1] = _name(line[4:])
            self._language = language_of(self._path)
        elif not line.startswith(("diff --git ", "index ")):
            self.note(line.removeprefix("\\ "))

    def note(self, text: str) -> None:
        shown = sanitize_for_display(text[:_LONGEST_LINE])
        self._add(TranscriptLine(text=shown, ink="hunk", gutter=((" " * 4, ""),), hang=((" " * 4, ""),)))

    def file(self) -> list[DiffOfFile]:
        """What was read; nothing, if nothing was."""
        self._pair()
        self._close_windows()
        if not self._source:
            return []
        if self._left_out:
            self._lines.append(
                TranscriptLine(text=f"… {self._left_out:,} more lines", ink="hunk", gutter=((" " * 4, ""),))
            )
        return [DiffOfFile(self._path, self._added, self._removed, self._lines, "\n".join(self._source) + "\n")]

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
        self._digits = max(len(str(self._old + self._old_left)), len(str(self._new + self._new_left)), 3)
        if self._lines or section:
            gutter: Gutter = ((f"{'⋯':>{self._digits}}   ", "line-number"),)
            shown = sanitize_for_display(section[:_LONGEST_LINE])
            self._add(TranscriptLine(text=shown, ink="hunk", gutter=gutter, hang=gutter, by_words=False))

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
        ink = _LINE_INKS[sign]
        line = DiffLine(
            text=shown,
            ink=ink,
            gutter=(
                (f"{number:>{self._digits}} ", f"{ink} line-number"),
                (f"{sign} ", f"{ink} {_SIGN_INKS[sign]}".strip()),
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
        """Say of the lines that were removed and added, one after the other, which belong together."""
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


def _alike(removed: list[DiffLine], added: list[DiffLine]) -> Iterator[tuple[DiffLine, DiffLine]]:
    """For each removed line the first one added that has most of its words, in order."""
    first = 0
    for old in removed:
        words = set(_WORD.findall(old.text))
        for place in range(first, len(added)):
            others = set(_WORD.findall(added[place].text))
            if 4 * len(words & others) > len(words) + len(others):
                yield old, added[place]
                first = place + 1
                break


def _name(text: str) -> str:
    """A file's name in a diff's header, without the time that may stand behind it."""
    return sanitize_for_display(text.rstrip("\r").partition("\t")[0])
