"""Jupyter notebooks as models see them: without outputs, attachments and long lines."""

import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import groupby
from pathlib import PurePosixPath

from cdd_agent.files.kinds import FileKind, kinds_by_name

Lines = tuple[tuple[int, int], ...]
"""Ranges of lines in their order, with the first and the last line, from 1."""
LARGEST_NOTEBOOK = 20_000_000
"""Bytes of a notebook that is shown without its outputs."""
_LONGEST_LINE = 4_000
"""Characters. A longer line is a picture in a text, or a notebook without line ends."""
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
    """Yield the places of outputs, attachments and states of widgets in a notebook;
    none if it is not valid JSON.
    """
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return
    for key, start, _ in _members(text, _skip_blanks(text, 0)):
        if key == "cells":
            yield from _find_in_cells(text, start)
        elif key == "worksheets":
            for _, sheet, _ in _members(text, start):
                for name, cells, _ in _members(text, sheet):
                    if name == "cells":
                        yield from _find_in_cells(text, cells)
        elif key == "metadata":
            for name, value, end in _members(text, start):
                if name == "widgets":
                    yield value, end


def _find_in_cells(text: str, cells: int) -> Iterator[tuple[int, int]]:
    for _, cell, _ in _members(text, cells):
        for key, start, end in _members(text, cell):
            if key in ("outputs", "attachments"):
                yield start, end


def _members(text: str, start: int) -> Iterator[tuple[str, int, int]]:
    """Yield the key of each value in a valid object or list, and where the value starts
    and ends. Keys in a list are empty. No other value has members.
    """
    if text[start] not in "{[":
        return
    position = _skip_blanks(text, start + 1)
    while text[position] not in "}]":
        key = ""
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
