"""Jupyter notebooks as models see them: without outputs, attachments and long lines."""

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import PurePosixPath

from cdd_agent.files.kinds import FileKind, kinds_by_name

Lines = tuple[tuple[int, int], ...]
"""Ranges of lines in their order, with the first and the last line, from 1."""
LARGEST_NOTEBOOK = 20_000_000
"""Bytes of a notebook that is shown without its outputs."""
_LONGEST_LINE = 4_000
"""Characters. A longer line is a picture in a text, or a notebook without line ends."""
_ITEM = ""
"""Each item of a list, in a path."""
_HIDDEN_VALUES = (
    ("cells", _ITEM, "outputs"),
    ("cells", _ITEM, "attachments"),
    # format 3
    ("worksheets", _ITEM, "cells", _ITEM, "outputs"),
    ("metadata", "widgets"),
)
"""Keys that lead to values that models do not see."""
_DECODER = json.JSONDecoder()
_BLANKS = re.compile(r"[ \t\r\n]*")


def is_notebook(path: PurePosixPath | str) -> bool:
    """True for a file that is a notebook by its name."""
    return FileKind.NOTEBOOK in kinds_by_name(PurePosixPath(path))


def find_hidden_lines(path: PurePosixPath | str, text: str) -> Lines:
    """Return the lines of a notebook that models do not see: those of outputs,
    attachments and states of widgets, and too long ones. Empty for other files.
    """
    if not is_notebook(path):
        return ()
    lines = text.split("\n")
    hidden = {
        number
        for number, line in enumerate(lines, start=1)
        if len(line) > _LONGEST_LINE
    }
    line_starts = [0]
    for line in lines:
        line_starts.append(line_starts[-1] + len(line) + 1)
    for start, end in _find_hidden_values(text):
        # The first line has the key, and the last one the closing bracket.
        first = bisect_right(line_starts, start) + 1
        hidden.update(range(first, bisect_right(line_starts, end - 1)))
    return _as_ranges(sorted(hidden))


def has_hidden_lines(path: PurePosixPath | str, data: bytes) -> bool:
    """True for a notebook that has outputs, attachments or too long lines."""
    return bool(find_hidden_lines(path, data.decode("utf-8-sig", errors="replace")))


def subtract_lines(ranges: Lines, hidden: Lines) -> Lines:
    """Return the lines of the ranges that are not hidden."""
    visible = []
    for start, end in ranges:
        first = start
        for hidden_start, hidden_end in hidden:
            if hidden_end < first or hidden_start > end:
                continue
            if first < hidden_start:
                visible.append((first, hidden_start - 1))
            first = hidden_end + 1
        if first <= end:
            visible.append((first, end))
    return tuple(visible)


def _find_hidden_values(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each hidden value; none in a text that is not JSON."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return
    yield from _find_values(text, _skip_blanks(text, 0), _HIDDEN_VALUES)


def _find_values(
    text: str, start: int, paths: Iterable[Sequence[str]]
) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each value that one of these paths leads to from the
    object or list at `start`.
    """
    for key, value, end in _members(text, start):
        inner = [path[1:] for path in paths if path[0] == key]
        if any(not path for path in inner):
            yield value, end
        elif inner:
            yield from _find_values(text, value, inner)


def _members(text: str, start: int) -> Iterator[tuple[str, int, int]]:
    """Yield the key, start and end of each value in an object or list of valid JSON.
    Other values have no members.
    """
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


def _as_ranges(numbers: list[int]) -> Lines:
    ranges = []
    for _, group in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        run = [number for _, number in group]
        ranges.append((run[0], run[-1]))
    return tuple(ranges)
