"""Finds web addresses and lines of files in text."""

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from rich.cells import cell_len

from cdd_agent.pattern import Pattern
from cdd_agent.tui.transcript.lines import LineRow, TranscriptLine

_ADDRESS = Pattern(r"https?://[^\s<>\"'`\x00-\x20]+")
_AFTER_ADDRESS = ".,;:!?"
_FILE = Pattern(
    r"(?<![\w/.@+-])((?:[\w.@+-]+/)*[\w@+-][\w.@+-]*\.\w{1,8}):(\d{1,7})(?!\w)"
)
_TRACEBACK = Pattern(r'File "([^"]{1,500})", line (\d{1,7})')
_LONGEST_ADDRESS = 2_000


class WebPlace(NamedTuple):
    start: int
    end: int
    address: str
    """Escaped for the terminal."""


class FilePlace(NamedTuple):
    start: int
    end: int
    path: str
    line: int


def web_places(text: str) -> Iterator[WebPlace]:
    for match in _ADDRESS.finditer(text) if "://" in text else ():
        address = match[0].rstrip(_AFTER_ADDRESS)
        while address.endswith(")") and address.count(")") > address.count("("):
            address = address[:-1].rstrip(_AFTER_ADDRESS)
        if len(address) <= _LONGEST_ADDRESS:
            yield WebPlace(
                match.start(),
                match.start() + len(address),
                quote(address, safe="%/:=&?~#+!$,;'@()*[]"),
            )


def file_places(text: str) -> Iterator[FilePlace]:
    """Yield file names with a line number. The files may not exist."""
    if ":" in text:
        for match in _FILE.finditer(text):
            yield FilePlace(match.start(), match.end(), match[1], int(match[2]))
    for match in _TRACEBACK.finditer(text) if 'File "' in text else ():
        yield FilePlace(match.start(), match.end(), match[1], int(match[2]))


@lru_cache(maxsize=512)
def _find_file(root: Path, path: str) -> Path:
    """Raise `FileNotFoundError`, which is not cached: the file may be created later."""
    place = (root / path).resolve()
    if not place.is_relative_to(root.resolve()) or not place.is_file():
        raise FileNotFoundError(path)
    return place


def in_project(root: Path, path: str) -> Path | None:
    try:
        return _find_file(root, path)
    except (OSError, ValueError, RuntimeError):
        # This includes invalid names and circular links.
        return None


class PlaceFinder:
    """Finds places in the lines of a transcript. Without `root`, the project's folder,
    it finds only addresses.
    """

    def __init__(self, root: Path | None) -> None:
        self._root = root

    def places(self, line: TranscriptLine) -> Iterator[WebPlace | FilePlace]:
        """Yield the addresses in a line, and the files that exist."""
        yield from web_places(line.text)
        if self._root is not None:
            for place in file_places(line.text):
                if in_project(self._root, place.path):
                    yield place

    def target_at(self, row: LineRow, x: int) -> str | tuple[Path, int] | None:
        at = _place_in_text(row, x)
        for place in self.places(row.line):
            if not place.start <= at < place.end:
                continue
            if isinstance(place, WebPlace):
                return place.address
            path = in_project(self._root, place.path) if self._root else None
            return None if path is None else (path, place.line)
        return None


def _place_in_text(row: LineRow, x: int) -> int:
    """Return the index of the character at a column; -1 for the gutter."""
    line, start, end = row
    gutter = line.hang if start else line.gutter
    x -= sum(cell_len(text) for text, _ in gutter)
    if x < 0:
        return -1
    for place in range(start, end):
        if cell_len(line.text[start : place + 1]) > x:
            return place
    return end
