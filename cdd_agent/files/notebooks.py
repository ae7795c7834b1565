"""Jupyter notebooks as models see them: without outputs, attachments and long lines."""

import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import PurePosixPath

from cdd_agent.files.kinds import FileKind, kinds_by_name
from cdd_agent.files.line_ranges import Ranges
from cdd_agent.files.text import lines_of
from cdd_agent.pattern import Pattern

LARGEST_NOTEBOOK = 20_000_000
"""Maximum bytes of a notebook to show without its outputs."""
_LONGEST_LINE = 4_000
"""Characters. A longer line is an embedded picture or a notebook without line ends."""
_ITEM = ""
"""In a path: each item of a list."""
_HIDDEN_VALUES = (
    ("cells", _ITEM, "outputs"),
    ("cells", _ITEM, "attachments"),
    # format 3
    ("worksheets", _ITEM, "cells", _ITEM, "outputs"),
    ("metadata", "widgets"),
)
"""Key paths of values that models do not see."""
_DECODER = json.JSONDecoder()
_BLANKS = Pattern(r"[ \t\r\n]*")


def is_notebook(path: PurePosixPath | str) -> bool:
    return FileKind.NOTEBOOK in kinds_by_name(PurePosixPath(path))


def find_hidden_lines(path: PurePosixPath | str, text: str) -> Ranges:
    """Return the lines of a notebook that models do not see: outputs, attachments,
    widget states, and lines that are too long. Empty for other files.
    """
    if not is_notebook(path):
        return ()
    hidden = set()
    line_starts = [0]
    for number, line in enumerate(lines_of(text), start=1):
        if len(line) > _LONGEST_LINE:
            hidden.add(number)
        line_starts.append(line_starts[-1] + len(line))
    for start, end in _find_hidden_values(text):
        # the first line has the key, the last one the closing bracket
        first = bisect_right(line_starts, start) + 1
        hidden.update(range(first, bisect_right(line_starts, end - 1)))
    return _as_ranges(sorted(hidden))


def replace_hidden_lines(text: str, first: int, hidden: Ranges) -> str:
    """Return the lines of a notebook from number `first` on. Remarks replace the hidden
    ones.
    """
    lines = lines_of(text)
    last = first + len(lines) - 1
    shown = []
    start = first
    for hidden_start, hidden_end in (*hidden, (last + 1, last + 1)):
        shown += lines[start - first : max(hidden_start - first, 0)]
        if hidden_end >= first and hidden_start <= last:
            which = f"lines {hidden_start} to {hidden_end} are"
            if hidden_start == hidden_end:
                which = f"line {hidden_start} is"
            shown.append(f"… ({which} not shown)\n")
        start = max(start, hidden_end + 1)
    return "".join(shown)


def find_shown_lines(
    path: PurePosixPath | str, text: str, shown: str, first: int
) -> Ranges:
    """Return the lines of a notebook that are in the text `shown`. It begins at line
    `first` and has the remarks of `replace_hidden_lines`.
    """
    lines = lines_of(text)
    ends = dict(_each_line(find_hidden_lines(path, text)))
    number = first
    numbers = []
    for line in lines_of(shown):
        if number in ends:
            number = ends[number] + 1
        elif number <= len(lines) and line.rstrip() == lines[number - 1].rstrip():
            numbers.append(number)
            number += 1
        else:
            break
    return _as_ranges(numbers)


def _each_line(ranges: Ranges) -> Iterator[tuple[int, int]]:
    for start, end in ranges:
        for number in range(start, end + 1):
            yield number, end


def _find_hidden_values(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each hidden value; none if the text is not JSON."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return
    yield from _find_values(text, _skip_blanks(text, 0), _HIDDEN_VALUES)


def _find_values(
    text: str, start: int, paths: Iterable[Sequence[str]]
) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each value at one of these paths below `start`."""
    for key, value, end in _members(text, start):
        inner = [path[1:] for path in paths if path[0] == key]
        if any(not path for path in inner):
            yield value, end
        elif inner:
            yield from _find_values(text, value, inner)


def _members(text: str, start: int) -> Iterator[tuple[str, int, int]]:
    """Yield the key, start and end of each value in an object or list of valid JSON."""
    if text[start] not in "{[":
        return
    position = _skip_blanks(text, start + 1)
    while text[position] not in "}]":
        key = _ITEM
        if text[start] == "{":
            key, position = _DECODER.raw_decode(text, position)
            colon = _skip_blanks(text, position)
            position = _skip_blanks(text, colon + 1)
        _, end = _DECODER.raw_decode(text, position)
        yield key, position, end
        position = _skip_blanks(text, end)
        if text[position] == ",":
            position = _skip_blanks(text, position + 1)


def _skip_blanks(text: str, position: int) -> int:
    blanks = _BLANKS.match(text, position)
    assert blanks is not None, "blanks may be none"
    return blanks.end()


def _as_ranges(numbers: list[int]) -> Ranges:
    ranges = []
    for _, group in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        run = [number for _, number in group]
        ranges.append((run[0], run[-1]))
    return tuple(ranges)
