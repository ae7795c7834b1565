"""Code as a prompt shows it: whole files, parts, outlines; and of what ranks best as
much as there is room for.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.context.places import RankedFile, in_order
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
from cdd_agent.files.notebooks import (
    LARGEST_NOTEBOOK,
    find_hidden_lines,
    is_notebook,
)
from cdd_agent.files.text import decode_file, lines_of
from cdd_agent.llm.budget import estimated_tokens
from cdd_agent.sanitize import fenced

_SMALL = 500
"""Tokens of a file that is shown whole where any part of it would be."""
_MOSTLY = 0.7
"""A file is shown whole where its parts have so much of it."""
_GAP = 3
"""Lines between two parts that are shown with them."""
_ABOVE = 3
"""Lines above a part that say what it is in, such as the class."""
_OUTLINES = 0.15
"""The share of outlines in the room that there is."""
_LONGEST_OUTLINE = 300
"""Tokens of one file's."""
_LARGEST = 1_000_000
"""Bytes of a file of which parts are shown."""
_MOST_NAMED = 12
"""Files that are named at the end, as ones that may matter too."""
_MOST_MISSED = 20
"""Places in a row that there is no room for, after which no others are tried."""
_GROWTH = 20
"""Lines that are shown before and after places while there is room."""
_FIRST_LINES = 40
"""Lines of a file of which nobody knows which part matters."""


class ShownCode(Struct, frozen=True):
    """A file as a prompt shows it."""

    path: str
    text: str
    """As it stands in the prompt."""
    digest: str | None
    lines: Ranges | None = None
    """None: all of them; empty where only an outline is shown."""
    why: str = ""
    is_without_outputs: bool = False
    """True for a notebook that is shown whole but for its outputs and attachments."""

    @property
    def name(self) -> str:
        """For people: the path, and what of the file is shown."""
        if self.lines is None:
            return self.path
        if self.is_without_outputs:
            return f"{self.path} (without outputs)"
        return f"{self.path} ({describe_ranges(self.lines) or 'its outline'})"

    @property
    def form(self) -> str:
        return "whole" if self.lines is None else "in part" if self.lines else "outline"

    @property
    def tokens(self) -> int:
        return estimated_tokens(self.text)


class CodeContext(Struct, frozen=True):
    """The part of a prompt that shows code which a text may be about."""

    files: tuple[ShownCode, ...] = ()
    further: tuple[str, ...] = ()
    """Files that rank next, and are only named."""

    @property
    def text(self) -> str:
        parts = [file.text for file in self.files]
        if self.further:
            parts.append(
                f"Not shown, and perhaps about it too: {', '.join(self.further)}."
            )
        return "\n\n".join(parts)


class CodeText:
    """The text of a file, of which any part can be shown."""

    def __init__(self, path: str, data: bytes, charsets: Charsets) -> None:
        decoded = decode_file(PurePosixPath(path), data, charsets)
        self.path = path
        self.digest = digest(data)
        self.is_binary = decoded.is_binary
        self._text = decoded.shown
        self._lines = [line.rstrip("\r\n") for line in lines_of(self._text)]
        self._heading = f"{path} ({decoded.note})" if decoded.note else path
        self._size = len(data)
        self._hidden = find_hidden_lines(path, self._text)
        self._language = (
            path.rpartition(".")[2] if "." in path.rpartition("/")[2] else ""
        )

    @property
    def count(self) -> int:
        """Of its lines."""
        return len(self._lines)

    @property
    def visible_lines(self) -> Ranges:
        """The lines that can be shown: all, but for outputs of a notebook."""
        return subtract_ranges(((1, self.count),), self._hidden)

    @property
    def visible_size(self) -> int:
        """Bytes of the lines that can be shown."""
        if not self._hidden:
            return self._size
        size = 0
        for first, last in self.visible_lines:
            size += sum(
                len(line.encode()) + 1 for line in self._lines[first - 1 : last]
            )
        return size

    def has(self, lines: tuple[int, int]) -> bool:
        """Whether any of these is there: the file may have changed since somebody spoke
        of them.
        """
        return lines[0] <= max(self.count, 1)

    @cached_property
    def tokens(self) -> int:
        """Of all of it."""
        return self.whole().tokens

    def whole(self, why: str = "") -> ShownCode:
        if self._hidden:
            return self.parts(((1, self.count),), why)
        text = f"{self._heading}:\n{fenced(self._text, self._language)}"
        return ShownCode(self.path, text, self.digest, None, why)

    def parts(self, ranges: Ranges, why: str = "") -> ShownCode:
        """Some of its lines; all of them where that is what the ranges come to."""
        ranges = self._rounded(ranges)
        is_all = ranges == ((1, self.count),)
        if is_all and not self._hidden:
            return self.whole(why)
        ranges = subtract_ranges(ranges, self._hidden)
        shown = [
            f"{describe_ranges((lines,))}:\n{fenced(text, self._language)}"
            for lines in ranges
            for text in ["\n".join(self._lines[lines[0] - 1 : lines[1]])]
        ]
        without = ", without outputs and attachments" if self._hidden else ""
        head = (
            f"{self._heading}, in part{without} (it has {self.count:,} lines; only what"
            " is seen of it can be changed):"
        )
        text = "\n".join((head, *shown))
        return ShownCode(self.path, text, self.digest, ranges, why, is_all)

    def outline(self, text: str, why: str = "") -> ShownCode:
        """Only what is in it, as the map has it, cut to a length."""
        lines, size = list[str](), 0
        for line in text.splitlines():
            size += estimated_tokens(line) + 1
            if size > _LONGEST_OUTLINE:
                lines.append("…")
                break
            lines.append(line.rstrip())
        return ShownCode(
            self.path,
            f"{self.path}, its outline:\n{fenced(chr(10).join(lines))}",
            None,
            (),
            why,
        )

    def with_heads(self, lines: tuple[int, int]) -> Ranges:
        """These lines, and the less indented ones above them that say what they are in:
        the head of a class, of a function.
        """
        first, last = max(1, lines[0]), min(lines[1], self.count)
        if last < first:
            return ()
        shown = [(first, last)]
        filled = [line for line in self._lines[first - 1 : last] if line.strip()]
        indent = _indent(filled[0]) if filled else 0
        for number in range(first - 1, 0, -1):
            if not indent or len(shown) > _ABOVE:
                break
            line = self._lines[number - 1]
            if line.strip() and _indent(line) < indent:
                indent = _indent(line)
                shown.append((number, number))
        return join_ranges(shown)

    def _rounded(self, ranges: Ranges) -> Ranges:
        """The ranges, and the gaps between them that are too small to be left out."""
        rounded = list(
            join_ranges((first, min(last, self.count)) for first, last in ranges)
        )
        end = 0
        for first, last in (*rounded, (self.count + 1, self.count + 1)):
            if first - end - 1 <= _GAP:
                rounded.append((end + 1, first - 1))
            end = last
        return join_ranges(rounded)


def source_of(root: Path, path: str, charsets: Charsets) -> CodeText | None:
    """Return the text of a file; None if it has no text that could be shown in part, is
    hidden from models, or does not exist.
    """
    try:
        largest = LARGEST_NOTEBOOK if is_notebook(path) else _LARGEST
        if not (root / path).is_file() or (root / path).stat().st_size > largest:
            return None
        data = read_bytes(root / path)
        if data is None or HiddenFiles(root).why(path, data):
            return None
    except (OSError, CddError):
        return None
    source = CodeText(path, data, charsets)
    if source.is_binary or (source.count and not source.visible_lines):
        return None
    return source


def parts_that_matter(
    source: CodeText,
    ranked: RankedFile | None,
    tokens: int,
    *,
    also: Ranges = (),
    outline: str = "",
    grows: bool = False,
) -> ShownCode | None:
    """Return as much of a file as `tokens` allow: the lines `also`, then the places of
    `ranked`, the best first; the beginning of the file if there are none of these. The
    `outline` follows. If it `grows`, the lines around the places are added. None if not
    even one part fits.
    """
    why = _why(ranked)
    about = ""
    if outline.strip():
        about = f"\n{source.outline(outline).text}"
    if estimated_tokens(about) * 3 > tokens:
        about = ""
    room = tokens - estimated_tokens(about)
    wanted = list(also)
    if ranked is not None:
        wanted += [(place.first, place.last) for place in ranked.places]
    wanted = [lines for lines in wanted if source.has(lines)]
    if wanted:
        shown, ranges = _first_parts(source, wanted, room, why)
    else:
        shown, ranges = _beginning(source, room, why), ()
    if grows and ranges and shown is not None:
        shown = _grown(source, shown, ranges, room)
    if shown is None or shown.lines is None:
        return shown
    return replace(shown, text=shown.text + about)


def _first_parts(
    source: CodeText, wanted: Sequence[tuple[int, int]], room: int, why: str
) -> tuple[ShownCode | None, Ranges]:
    """Return the places for which there is room, the first of them first."""
    shown: ShownCode | None = None
    ranges: Ranges = ()
    for lines in wanted:
        more = join_ranges((*ranges, *source.with_heads(lines)))
        candidate = source.parts(more, why)
        if candidate.tokens <= room:
            shown, ranges = candidate, more
    return shown, ranges


def _beginning(source: CodeText, room: int, why: str) -> ShownCode | None:
    shown: ShownCode | None = None
    for times in range(1, source.count // _FIRST_LINES + 2):
        candidate = source.parts(source.with_heads((1, _FIRST_LINES * times)), why)
        if candidate.tokens > room:
            break
        shown = candidate
    return shown


def _grown(source: CodeText, shown: ShownCode, ranges: Ranges, room: int) -> ShownCode:
    """Add the lines before and after the ranges while there is room."""
    while shown.lines is not None:
        ranges = join_ranges(
            (max(1, first - _GROWTH), min(last + _GROWTH, source.count))
            for first, last in ranges
        )
        candidate = source.parts(ranges, shown.why)
        if candidate.tokens > room:
            break
        shown = candidate
    return shown


def packed(
    root: Path,
    ranked: Sequence[RankedFile],
    outline: Callable[[str], str],
    tokens: int,
    *,
    but: Collection[str] = (),
    known: Mapping[str, Ranges] | None = None,
) -> CodeContext:
    """Return the best of what ranks in so many tokens: small files whole, the places
    that matter of others, then outlines.

    Files in `but`, and the lines `known` of others, are shown elsewhere.
    """
    wanted = [file for file in ranked if file.path not in but]
    return _Packing(root, wanted, tokens, known or {}).pack(outline)


class _Packing(Struct, dict=True):
    """Fills the room of a prompt with code."""

    root: Path
    ranked: Sequence[RankedFile]
    tokens: int
    known: Mapping[str, Ranges]
    _sources: dict[str, CodeText | None] = field(default_factory=dict)
    _ranges: dict[str, Ranges] = field(default_factory=dict)
    _shown: dict[str, ShownCode] = field(default_factory=dict)
    _used: int = 0

    def pack(self, outline: Callable[[str], str]) -> CodeContext:
        self._add_named()
        self._add_places(self.tokens - int(self.tokens * _OUTLINES))
        outlined = self._outlines(outline)
        files = [self._shown[file.path] for file in self.ranked if self._has(file)]
        files += outlined.values()
        further = [
            file.path
            for file in self.ranked
            if not self._has(file)
            and file.path not in outlined
            and file.path not in self.known
        ]
        return CodeContext(tuple(files), tuple(further[:_MOST_NAMED]))

    def _has(self, file: RankedFile) -> bool:
        return file.path in self._shown

    def _add_named(self) -> None:
        """Show the first place of each file that is named, before anything else."""
        for file in self.ranked:
            if file.is_named:
                lines = (1, _FIRST_LINES)
                if file.places:
                    lines = (file.places[0].first, file.places[0].last)
                self._add_place(file, lines, self.tokens)

    def _add_places(self, most: int) -> None:
        missed = 0
        for file, place in in_order(self.ranked):
            missed += 1
            if self._add_place(file, (place.first, place.last), most):
                missed = 0
            if missed == _MOST_MISSED:
                break

    def _outlines(self, outline: Callable[[str], str]) -> dict[str, ShownCode]:
        """Return the outlines of files of which nothing is shown, by path."""
        outlined: dict[str, ShownCode] = {}
        for file in self.ranked:
            if self._has(file) or file.path in self.known:
                continue
            source = self._source(file.path)
            text = outline(file.path).strip() if source is not None else ""
            if source is None or not text:
                continue
            shown = source.outline(text, _why(file))
            if self._used + shown.tokens > self.tokens:
                break
            outlined[file.path] = shown
            self._used += shown.tokens
        return outlined

    def _add_place(self, file: RankedFile, lines: tuple[int, int], most: int) -> bool:
        """Show these lines in addition. False if there is no room for them."""
        source = self._source(file.path)
        before = self._shown.get(file.path)
        if source is None or not source.has(lines) or self._is_known(file.path, lines):
            return True
        if before is not None and before.lines is None:
            return True
        ranges = join_ranges(
            (*self._ranges.get(file.path, ()), *source.with_heads(lines))
        )
        used = self._used - (before.tokens if before else 0)
        for shown in self._forms(file, source, ranges):
            if used + shown.tokens <= most:
                self._used = used + shown.tokens
                self._ranges[file.path] = ranges
                self._shown[file.path] = shown
                return True
        return False

    def _forms(
        self, file: RankedFile, source: CodeText, ranges: Ranges
    ) -> list[ShownCode]:
        """The file in part, and before that whole if it is not much longer."""
        part = source.parts(ranges, _why(file))
        is_small = source.tokens <= _SMALL
        is_mostly = part.tokens >= source.tokens * _MOSTLY
        if file.path not in self.known and (is_small or is_mostly):
            return [source.whole(_why(file)), part]
        return [part]

    def _is_known(self, path: str, lines: tuple[int, int]) -> bool:
        """True if these lines are shown elsewhere."""
        return any(
            first <= lines[0] and lines[1] <= last
            for first, last in self.known.get(path, ())
        )

    def _source(self, path: str) -> CodeText | None:
        if path not in self._sources:
            self._sources[path] = source_of(self.root, path, self._charsets)
        return self._sources[path]

    @cached_property
    def _charsets(self) -> Charsets:
        return Charsets(self.root)


def _why(ranked: RankedFile | None) -> str:
    """The first reason why a file matters."""
    return ranked.reasons[0] if ranked is not None and ranked.reasons else ""


def _indent(line: str) -> int:
    return len(line.expandtabs(8)) - len(line.expandtabs(8).lstrip())
