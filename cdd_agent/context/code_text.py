"""The code of one file as a prompt shows it: whole, in part, or as an outline."""

from collections.abc import Collection
from functools import cached_property
from pathlib import Path, PurePosixPath

from msgspec import Struct

from cdd_agent.errors import CddError
from cdd_agent.files.atomic import digest, read_bytes
from cdd_agent.files.charsets import Charsets
from cdd_agent.files.hidden_from_models import HiddenFiles
from cdd_agent.files.line_ranges import (
    Ranges,
    describe_ranges,
    join_ranges,
    subtract_ranges,
)
from cdd_agent.files.notebooks import LARGEST_NOTEBOOK, find_hidden_lines, is_notebook
from cdd_agent.files.text import decode_file, lines_of
from cdd_agent.llm.token_estimates import estimate_tokens
from cdd_agent.text.sanitize import fenced

LARGEST_IN_PART = 1_000_000
"""Maximum bytes of a file to show in part."""
_SMALLEST_GAP = 4
"""Minimum number of lines to omit between two ranges."""
_MOST_HEADS = 3
"""Maximum number of lines to show above a range, such as its class."""
_LONGEST_OUTLINE = 300
"""Tokens."""


class ShownCode(Struct, frozen=True):
    """A file, or a part of it, as a prompt shows it."""

    path: str
    text: str
    digest: str | None
    lines: Ranges | None = None
    """None: the whole file. Empty: only an outline."""
    why: str = ""
    is_without_outputs: bool = False
    """True for a notebook that is shown whole except for outputs and attachments."""

    @property
    def name(self) -> str:
        """The path and the shown part, for the user."""
        if self.lines is None:
            return self.path
        if self.is_without_outputs:
            return f"{self.path} (without outputs)"
        return f"{self.path} ({describe_ranges(self.lines) or 'its outline'})"

    @property
    def form(self) -> str:
        if self.lines is None:
            return "whole"
        return "in part" if self.lines else "outline"

    @property
    def tokens(self) -> int:
        return estimate_tokens(self.text)


class CodeText:
    """The text of a file, to show any part of it."""

    def __init__(self, path: str, data: bytes, charsets: Charsets) -> None:
        decoded = decode_file(PurePosixPath(path), data, charsets)
        self.path = path
        self.digest = digest(data)
        self.is_binary = decoded.is_binary
        self._size = len(data)
        self._text = decoded.shown
        self._lines = [line.rstrip("\r\n") for line in lines_of(self._text)]
        self._hidden = find_hidden_lines(path, self._text)
        self._heading = f"{path} ({decoded.note})" if decoded.note else path
        _, dot, suffix = path.rpartition("/")[2].rpartition(".")
        self._language = suffix if dot else ""

    @property
    def count(self) -> int:
        return len(self._lines)

    @property
    def visible_lines(self) -> Ranges:
        """The lines that may be shown: all except outputs of a notebook."""
        return subtract_ranges(((1, self.count),), self._hidden)

    @property
    def is_shown_by_lines(self) -> bool:
        """False if the text has lines but none may be shown."""
        return not self.count or bool(self.visible_lines)

    @property
    def visible_size(self) -> int:
        """Bytes of the lines that may be shown."""
        if not self._hidden:
            return self._size
        size = 0
        for first, last in self.visible_lines:
            for line in self._lines[first - 1 : last]:
                size += len(line.encode()) + 1
        return size

    @cached_property
    def tokens(self) -> int:
        """Tokens of the whole file in a prompt."""
        return self.whole().tokens

    def reaches(self, line: int) -> bool:
        """True if the file has this line. It may have become shorter."""
        return line <= max(self.count, 1)

    def whole(self, why: str = "") -> ShownCode:
        if self._hidden:
            return self.parts(((1, self.count),), why)
        text = f"{self._heading}:\n{fenced(self._text, self._language)}"
        return ShownCode(self.path, text, self.digest, None, why)

    def parts(self, ranges: Ranges, why: str = "") -> ShownCode:
        """Show some lines, and small gaps between them. All lines mean the whole
        file.
        """
        ranges = self._close_gaps(ranges)
        is_all = ranges == ((1, self.count),)
        if is_all and not self._hidden:
            return self.whole(why)
        ranges = subtract_ranges(ranges, self._hidden)
        without = ", without outputs and attachments" if self._hidden else ""
        heading = (
            f"{self._heading}, in part{without} (it has {self.count:,} lines; only what"
            " is seen of it can be changed):"
        )
        shown = [heading]
        for first, last in ranges:
            text = "\n".join(self._lines[first - 1 : last])
            which = describe_ranges(((first, last),))
            shown.append(f"{which}:\n{fenced(text, self._language)}")
        return ShownCode(self.path, "\n".join(shown), self.digest, ranges, why, is_all)

    def outline(self, outline: str, why: str = "") -> ShownCode:
        """Show an outline of the file, cut to a length."""
        lines = []
        size = 0
        for line in outline.splitlines():
            size += estimate_tokens(line) + 1
            if size > _LONGEST_OUTLINE:
                lines.append("…")
                break
            lines.append(line.rstrip())
        text = "\n".join(lines)
        shown = f"{self.path}, its outline:\n{fenced(text)}"
        return ShownCode(self.path, shown, None, (), why)

    def with_heads(self, lines: tuple[int, int]) -> Ranges:
        """Return these lines, and the less indented ones above that begin their class
        or function.
        """
        first, last = max(1, lines[0]), min(lines[1], self.count)
        if last < first:
            return ()
        shown = [(first, last)]
        indent = 0
        for line in self._lines[first - 1 : last]:
            if line.strip():
                indent = _measure_indent(line)
                break
        for number in range(first - 1, 0, -1):
            if not indent or len(shown) > _MOST_HEADS:
                break
            line = self._lines[number - 1]
            if line.strip() and _measure_indent(line) < indent:
                indent = _measure_indent(line)
                shown.append((number, number))
        return join_ranges(shown)

    def _close_gaps(self, ranges: Ranges) -> Ranges:
        closed = list(
            join_ranges((first, min(last, self.count)) for first, last in ranges)
        )
        gaps = subtract_ranges(((1, self.count),), tuple(closed))
        for first, last in gaps:
            if last - first + 1 < _SMALLEST_GAP:
                closed.append((first, last))
        return join_ranges(closed)


class CodeReader:
    """Reads the code of a project that models may see. Each file is read once."""

    def __init__(self, root: Path, allowed: Collection[str] = ()) -> None:
        """`allowed` are paths of hidden files that the user shows to models."""
        self.root = root
        self.hidden = HiddenFiles(root, allowed=allowed)
        self._texts: dict[str, CodeText | None] = {}

    @cached_property
    def charsets(self) -> Charsets:
        return Charsets(self.root)

    def read(self, path: str) -> CodeText | None:
        """Return the text of a file. None if it is missing, hidden from models, or has
        no text to show in part.
        """
        if path not in self._texts:
            self._texts[path] = self._read(path)
        return self._texts[path]

    def _read(self, path: str) -> CodeText | None:
        place = self.root / path
        largest = LARGEST_NOTEBOOK if is_notebook(path) else LARGEST_IN_PART
        try:
            if not place.is_file() or place.stat().st_size > largest:
                return None
            data = read_bytes(place)
            if data is None or self.hidden.why(path, data):
                return None
        except (OSError, CddError):
            return None
        text = CodeText(path, data, self.charsets)
        if text.is_binary or not text.is_shown_by_lines:
            return None
        return text


def _measure_indent(line: str) -> int:
    spaced = line.expandtabs(8)
    return len(spaced) - len(spaced.lstrip())
