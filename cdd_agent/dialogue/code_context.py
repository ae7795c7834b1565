"""Code as a prompt shows it: whole files, parts, outlines; and of what ranks best as
much as there is room for.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.changes.excerpts import Ranges, in_words, joined
from cdd_agent.context.places import RankedFile, in_order
from cdd_agent.errors import CddError
from cdd_agent.files.atomic import digest, read_bytes
from cdd_agent.files.charsets import Charsets
from cdd_agent.files.hidden_from_models import HiddenFiles
from cdd_agent.files.notebooks import (
    LARGEST_NOTEBOOK,
    find_hidden_lines,
    is_notebook,
    subtract_lines,
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
        return f"{self.path} ({in_words(self.lines) or 'its outline'})"

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
        return subtract_lines(((1, self.count),), self._hidden)

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
        ranges = subtract_lines(ranges, self._hidden)
        shown = [
            f"{in_words((lines,))}:\n{fenced(text, self._language)}"
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
        """Lines, and above them those that say what they are in, by their
        indentation.
        """
        first, last = max(1, lines[0]), min(lines[1], self.count)
        if last < first:
            return ()
        heads, indent = (
            list[tuple[int, int]](),
            _indent(next(filter(str.strip, self._lines[first - 1 : last]), "")),
        )
        for number in range(first - 1, 0, -1):
            if not indent or len(heads) == _ABOVE:
                break
            line = self._lines[number - 1]
            if line.strip() and _indent(line) < indent:
                indent = _indent(line)
                heads.append((number, number))
        return joined((*heads, (first, last)))

    def _rounded(self, ranges: Ranges) -> Ranges:
        """The same, with what is too little to be left out between two of them."""
        kept = joined((first, min(last, self.count)) for first, last in ranges)
        edges = (0, *(line for lines in kept for line in lines), self.count + 1)
        gaps = zip(edges[::2], edges[1::2], strict=True)
        return joined(
            (
                *kept,
                *(
                    (after + 1, before - 1)
                    for after, before in gaps
                    if before - after - 1 <= _GAP
                ),
            )
        )


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
    """Of one file as much as there is room for: the lines `also` asked for, then its
    places, the best first, and if it `grows`, what is around them; without any, how it
    begins. With it what else is in it, by its `outline`. None where not even a part
    fits.
    """
    why = ranked.reasons[0] if ranked and ranked.reasons else ""
    about = source.outline(outline).text if outline.strip() else ""
    about = f"\n{about}" if about and estimated_tokens(about) * 3 <= tokens else ""
    left = tokens - estimated_tokens(about)
    places = ((place.first, place.last) for place in (ranked.places if ranked else ()))
    wanted = [lines for lines in (*also, *places) if source.has(lines)]
    beginnings = (
        (1, _FIRST_LINES * times)
        for times in range(1, source.count // _FIRST_LINES + 2)
    )
    shown, ranges = None, Ranges()
    for lines in wanted or beginnings:
        more = joined((*ranges, *source.with_heads(lines)))
        candidate = source.parts(more, why)
        if candidate.tokens <= left:
            shown, ranges = candidate, more
        elif not wanted:
            break
    # what is around them, as far as it goes
    while grows and wanted and shown is not None and shown.lines is not None:
        ranges = joined(
            (max(1, first - _GROWTH), min(last + _GROWTH, source.count))
            for first, last in ranges
        )
        if (candidate := source.parts(ranges, why)).tokens > left:
            break
        shown = candidate
    return (
        replace(shown, text=shown.text + about)
        if shown and shown.lines is not None
        else shown
    )


def packed(
    root: Path,
    ranked: Sequence[RankedFile],
    outline: Callable[[str], str],
    tokens: int,
    *,
    but: Collection[str] = (),
    known: Mapping[str, Ranges] | None = None,
) -> CodeContext:
    """The best of what ranks, in so many tokens: small files whole, of others the
    places that matter, then outlines.

    Nothing of the files in `but`, which are shown already; nor of the lines `known` of
    others.
    """
    return _Packing(
        root, [file for file in ranked if file.path not in but], tokens, known or {}
    ).done(outline)


class _Packing(Struct, dict=True):
    root: Path
    ranked: Sequence[RankedFile]
    tokens: int
    known: Mapping[str, Ranges]
    _sources: dict[str, CodeText | None] = field(default_factory=dict)
    _ranges: dict[str, Ranges] = field(default_factory=dict)
    _shown: dict[str, ShownCode] = field(default_factory=dict)
    _used: int = 0

    def done(self, outline: Callable[[str], str]) -> CodeContext:
        most = self.tokens - int(self.tokens * _OUTLINES)
        # what is named is there before anything else of others
        for file in self.ranked:
            if file.is_named:
                first = next(
                    ((place.first, place.last) for place in file.places),
                    (1, _FIRST_LINES),
                )
                self._take_place(file, first, self.tokens)
        missed = 0
        for file, place in in_order(self.ranked):
            missed = (
                0
                if self._take_place(file, (place.first, place.last), most)
                else missed + 1
            )
            if missed == _MOST_MISSED:
                break
        outlined = dict[str, ShownCode]()
        for file in self.ranked:
            if (
                file.path in self._shown
                or file.path in self.known
                or self._source(file.path) is None
            ):
                continue
            source = self._source(file.path)
            if source is None or not (text := outline(file.path).strip()):
                continue
            shown = source.outline(text, file.reasons[0] if file.reasons else "")
            if self._used + shown.tokens > self.tokens:
                break
            outlined[file.path] = shown
            self._used += shown.tokens
        order = [
            *(file.path for file in self.ranked if file.path in self._shown),
            *outlined,
        ]
        left = [
            file.path
            for file in self.ranked
            if file.path not in order and file.path not in self.known
        ]
        everything = self._shown | outlined
        return CodeContext(
            tuple(everything[path] for path in order), tuple(left[:_MOST_NAMED])
        )

    def _take_place(self, file: RankedFile, lines: tuple[int, int], most: int) -> bool:
        """Show these lines besides what is shown already; False where there is no room
        for them.
        """
        source, before = self._source(file.path), self._shown.get(file.path)
        is_known = any(
            first <= lines[0] and lines[1] <= last
            for first, last in self.known.get(file.path, ())
        )
        if (
            source is None
            or is_known
            or not source.has(lines)
            or (before is not None and before.lines is None)
        ):
            return True
        why = file.reasons[0] if file.reasons else ""
        ranges = joined((*self._ranges.get(file.path, ()), *source.with_heads(lines)))
        part = source.parts(ranges, why)
        is_whole = source.tokens <= _SMALL or part.tokens >= source.tokens * _MOSTLY
        for shown in (
            (source.whole(why), part)
            if is_whole and file.path not in self.known
            else (part,)
        ):
            used = self._used - (before.tokens if before else 0) + shown.tokens
            if used <= most:
                self._used, self._ranges[file.path], self._shown[file.path] = (
                    used,
                    ranges,
                    shown,
                )
                return True
        return False

    def _source(self, path: str) -> CodeText | None:
        if path not in self._sources:
            self._sources[path] = source_of(self.root, path, self._charsets)
        return self._sources[path]

    @cached_property
    def _charsets(self) -> Charsets:
        return Charsets(self.root)


def _indent(line: str) -> int:
    return len(line.expandtabs(8)) - len(line.expandtabs(8).lstrip())
