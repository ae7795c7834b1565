"""Styled lines, and Markdown turned into them while it arrives. Nothing here draws.

A `Line` names its looks with *inks*, words that the drawing widget maps to styles, and knows no width. So a
new theme costs nothing, and a new width only costs new breaks between rows.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import takewhile, zip_longest
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from rich.cells import cell_len, split_graphemes

# markdown_it and pygments are imported when the first Markdown or code is met: the shell's start must not
# wait for them.
if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token
    from pygments.lexer import Lexer  # type: ignore[import-untyped]  # it ships no types

LIMIT = 8_000
"""Characters of source that may stay unsettled. Longer paragraphs, tables and lines are cut."""

Ink: TypeAlias = str
"""Names of looks, separated by spaces; empty for plain text."""
Piece: TypeAlias = tuple[str, Ink]
Gutter: TypeAlias = tuple[Piece, ...]
Mark: TypeAlias = tuple[int, int, Ink]
"""Where an ink starts and ends in a text."""

_UNSAFE = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def harmless(text: str) -> str:
    """The text with tabs expanded and control characters shown as symbols."""
    return _UNSAFE.sub(_symbol, text.expandtabs(4) if "\t" in text else text)


def _symbol(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else "\ufffd"


class Row(NamedTuple):
    """What is shown of a line on one row of the screen."""

    line: "Line"
    start: int
    end: int


@dataclass(slots=True, eq=False, kw_only=True)
class Line:
    """A line of text before it is broken into rows."""

    text: str = ""
    marks: Sequence[Mark] = ()
    ink: Ink = ""
    """Of the whole text; marks come on top."""
    gutter: Gutter = ()
    hang: Gutter = ()
    """The gutter of the second row and those below, as wide as the first."""
    fill: Piece = (" ", "")
    """A character that fills the last row to its end; a space fills every row."""
    by_words: bool = True

    @property
    def final(self) -> bool:
        """Whether the colours can no longer change."""
        return True

    def inks(self) -> Sequence[Mark]:
        return self.marks

    def rows(self, width: int) -> list[Row]:
        room = _room(width, self.gutter)
        return [Row(self, start, end) for start, end in wrap(self.text, room, by_words=self.by_words)]


def _room(width: int, gutter: Gutter) -> int:
    return max(width - sum(cell_len(text) for text, _ in gutter), 4)


def wrap(text: str, room: int, *, by_words: bool) -> list[tuple[int, int]]:
    """Where each row of the text starts and ends; spaces at a break between words belong to no row."""
    if text.isascii():
        if len(text) <= room:
            return [(0, len(text))]
        return list(_wrap_narrow(text, room, by_words)) or [(0, 0)]
    graphemes, width = split_graphemes(text)
    if width <= room:
        return [(0, len(text))]
    return list(_wrap_wide(text, graphemes, room, by_words)) or [(0, 0)]


def _wrap_narrow(text: str, room: int, by_words: bool) -> Iterator[tuple[int, int]]:
    start = 0
    while len(text) - start > room:
        end = following = start + room
        if by_words and (space := text.rfind(" ", start, end + 1)) > start:
            end = start + len(text[start:space].rstrip(" "))
            following = space + len(text[space:]) - len(text[space:].lstrip(" "))
        yield start, end
        start = following
    if start < len(text):
        yield start, len(text)


def _wrap_wide(
    text: str, graphemes: Iterable[tuple[int, int, int]], room: int, by_words: bool
) -> Iterator[tuple[int, int]]:
    """As `_wrap_narrow`, in cells. A row may also end beside any wide character."""
    start = used = 0
    chance = used_at_chance = 0  # the last place to end the row, and the cells used up to it
    for begin, end, cells in graphemes:
        space = by_words and text[begin:end] == " "
        if space and begin == start > 0:
            start = end
            continue
        if cells > 1:
            chance, used_at_chance = begin, used
        if used + cells > room and begin > start:
            cut = chance if by_words and chance > start and not space else begin
            yield start, start + len(text[start:cut].rstrip(" ") if by_words else text[start:cut])
            used -= used_at_chance if cut == chance else used
            start = cut if not space else end
            if space:
                continue
        used += cells
        if space or cells > 1:
            chance, used_at_chance = end, used
    if start < len(text):
        yield start, len(text)


def clip(marks: Iterable[Mark], start: int, end: int, shift: int = 0) -> Iterator[Mark]:
    """The marks between two places, moved by `shift`."""
    for begin, stop, ink in marks:
        if begin < end and stop > start:
            yield max(begin, start) + shift, min(stop, end) + shift, ink


# --- code ---------------------------------------------------------------------------------------------------

_WINDOW_LINES = 200
_TOKEN_INKS = {
    "Comment": "comment",
    "Keyword": "keyword",
    "Literal.Number": "number",
    "Literal.String": "string",
    "Name.Builtin": "builtin",
    "Name.Class": "name",
    "Name.Decorator": "name",
    "Name.Function": "name",
    "Name.Tag": "keyword",
    "Name.Attribute": "name",
    "Operator.Word": "keyword",
    "Generic.Deleted": "deleted",
    "Generic.Inserted": "inserted",
    "Generic.Heading": "name",
    "Generic.Subheading": "name",
}


@dataclass(slots=True, eq=False)
class _Window:
    """Neighbouring lines of code that are coloured together, when one of them is first drawn.

    Until its last line has come, each line is coloured by itself, so a stream never colours a line twice.
    """

    language: str
    texts: list[str] = field(default_factory=list)
    size: int = 0
    closed: bool = False

    def add(self, text: str) -> None:
        self.texts.append(text)
        self.size += len(text)
        self.closed = len(self.texts) >= _WINDOW_LINES or self.size >= 2 * LIMIT


@dataclass(slots=True, eq=False, kw_only=True)
class _CodeLine(Line):
    window: _Window
    number: int

    @property
    def final(self) -> bool:
        return self.window.closed

    def inks(self) -> Sequence[Mark]:
        if self.window.closed:
            return _window_inks(self.window)[self.number]
        return _line_inks(self.window.language, self.text)


@lru_cache(maxsize=32)
def _window_inks(window: _Window) -> list[list[Mark]]:
    return _highlight(window.language, window.texts)


@lru_cache(maxsize=128)
def _line_inks(language: str, text: str) -> list[Mark]:
    return _highlight(language, [text])[0]


def _highlight(language: str, texts: list[str]) -> list[list[Mark]]:
    inks: list[list[Mark]] = [[] for _ in texts]
    if (lexer := _lexer(language)) is None:
        return inks
    starts = [0]
    for text in texts:
        starts.append(starts[-1] + len(text) + 1)
    row = 0
    for index, token, value in lexer.get_tokens_unprocessed("\n".join(texts)):
        if ink := _token_ink(token):
            end = index + len(value)
            while row < len(texts) and starts[row + 1] <= index:
                row += 1
            for number in range(row, len(texts)):
                if starts[number] >= end:
                    break
                inks[number] += clip([(index, end, ink)], starts[number], starts[number + 1] - 1, -starts[number])
    return inks


@cache
def _token_ink(token: tuple[str, ...]) -> Ink:
    for length in range(len(token), 0, -1):
        if ink := _TOKEN_INKS.get(".".join(token[:length])):
            return ink
    return ""


@lru_cache(maxsize=64)
def _lexer(language: str) -> "Lexer | None":
    from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]  # it ships no types
    from pygments.util import ClassNotFound  # type: ignore[import-untyped]  # it ships no types

    try:
        return get_lexer_by_name(language)
    except ClassNotFound:
        return None


class _Code:
    """A code block that grows: hands out its lines. An info of `python:src/app.py` gives it a title."""

    def __init__(self, info: str, gutter: Gutter = (), hang: Gutter = ()) -> None:
        language, _, path = info.strip().partition(":")
        self._language = language.partition(" ")[0].lower()
        self._path = path.strip()
        self._gutter = (*gutter, (" ", "code"))
        self._hang = (*hang, (" ", "code"))
        self._window = _Window(self._language)

    def title(self) -> list[Line]:
        if not self._path:
            return []
        title = harmless(self._path)
        return [Line(text=title, ink="code path", gutter=self._next_gutter(), hang=self._hang, fill=(" ", "code"))]

    def line(self, text: str) -> Line:
        if self._window.closed:
            self._window = _Window(self._language)
        text = harmless(text)
        self._window.add(text)
        return self._line(text, self._window)

    def preview(self, text: str) -> Line:
        """A line that is still being written."""
        return self._line(harmless(text), _Window(self._language))

    def close(self) -> None:
        self._window.closed = True

    def _line(self, text: str, window: _Window) -> Line:
        return _CodeLine(
            text=text,
            ink="code",
            gutter=self._next_gutter(),
            hang=self._hang,
            fill=(" ", "code"),
            by_words=False,
            window=window,
            number=len(window.texts) - 1,
        )

    def _next_gutter(self) -> Gutter:
        gutter, self._gutter = self._gutter, self._hang
        return gutter


# --- tables -------------------------------------------------------------------------------------------------

_Cell: TypeAlias = tuple[str, tuple[Mark, ...]]


@dataclass(slots=True, eq=False, kw_only=True)
class _Table(Line):
    """A table; which lines it has depends on the width."""

    head: list[_Cell]
    body: list[list[_Cell]]
    aligns: list[str]

    def rows(self, width: int) -> list[Row]:
        room = _room(width, self.gutter) - 3 * (len(self.head) - 1)
        lines = self._grid(room) if room >= 4 * len(self.head) else self._records()
        rows: list[Row] = []
        for line in lines:
            line.gutter, line.hang = self.hang if rows else self.gutter, self.hang
            rows += line.rows(width)
        return rows

    def _grid(self, room: int) -> Iterator[Line]:
        natural = [max(cell_len(cell[0]) for cell in column) for column in zip(self.head, *self.body, strict=True)]
        cap = max(cap for cap in range(1, room + 1) if sum(min(w, cap) for w in natural) <= room)
        widths = [min(width, cap) for width in natural]
        yield from self._cells(self.head, widths, "strong")
        yield Line(text="─┼─".join("─" * width for width in widths), ink="rule")
        for cells in self.body:
            yield from self._cells(cells, widths, "")

    def _cells(self, cells: list[_Cell], widths: list[int], ink: Ink) -> Iterator[Line]:
        wrapped = [wrap(text, width, by_words=True) for (text, _), width in zip(cells, widths, strict=True)]
        for parts in zip_longest(*wrapped, fillvalue=(0, 0)):
            text, marks = "", list[Mark]()
            for (source, inks), (start, end), width, align in zip(cells, parts, widths, self.aligns, strict=True):
                if text:
                    marks.append((len(text) + 1, len(text) + 2, "rule"))
                    text += " │ "
                space = width - cell_len(source[start:end])
                left = {"right": space, "center": space // 2}.get(align, 0)
                text += " " * left
                marks += clip(inks, start, end, len(text) - start)
                text += source[start:end] + " " * (space - left)
            yield Line(text=text, marks=marks, ink=ink)

    def _records(self) -> Iterator[Line]:
        """Too many columns for the width: one line for each cell."""
        for number, cells in enumerate(self.body):
            if number:
                yield Line(text="───", ink="rule")
            for (name, _), (text, marks) in zip(self.head, cells, strict=True):
                label = f"{name}: "
                yield Line(
                    text=label + text,
                    marks=[(0, len(label), "strong"), *clip(marks, 0, len(text), len(label))],
                )


# --- blocks -------------------------------------------------------------------------------------------------

_BULLETS = "•◦▪"
_TAG_INKS = {"strong": "strong", "em": "em", "s": "strike"}


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False, "maxNesting": 100}).enable(["table", "strikethrough"])


def markdown_blocks(source: str) -> list[Line]:
    """The lines of a piece of Markdown that stands by itself."""
    writer = _Blocks()
    writer.write(_parser().parse(source))
    return writer.lines


@dataclass(slots=True)
class _Container:
    """A quote, a list or a list item that is open."""

    first: Gutter = ()
    rest: Gutter = ()
    ink: Ink = ""
    tight: bool = False
    number: int | None = None
    used: bool = True
    """Whether the first gutter has been written."""


class _Blocks:
    """Writes lines for the parser's flat tokens."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self._open: list[_Container] = []
        self._gap = False
        """A blank line is owed before the next block."""

    def write(self, tokens: "Sequence[Token]") -> None:
        for index, token in enumerate(tokens):
            match token.type:
                case "paragraph_open":
                    self._leaf(self._prose(tokens[index + 1], ""))
                case "heading_open":
                    self._leaf(self._prose(tokens[index + 1], f"title {token.tag}"))
                case "fence" | "code_block":
                    self._leaf(self._code(token))
                case "hr":
                    self._leaf([Line(fill=("─", "rule"), gutter=self._gutter())])
                case "table_open":
                    self._leaf([self._table(tokens, index)])
                case "bullet_list_open" | "ordered_list_open":
                    self._enter(_list(tokens, index))
                case "list_item_open":
                    self._enter(self._item(token))
                case "blockquote_open":
                    bar = (("▌ ", "bar"),)
                    self._enter(_Container(first=bar, rest=bar, ink="quote", used=False))
                case "bullet_list_close" | "ordered_list_close" | "list_item_close" | "blockquote_close":
                    self._leave()

    def _enter(self, container: _Container) -> None:
        self._separate()
        self._open.append(container)

    def _leave(self) -> None:
        if not self._open[-1].used:
            self.lines.append(Line(gutter=self._gutter()))
        self._open.pop()
        self._gap = not self._tight()

    def _leaf(self, lines: Iterable[Line]) -> None:
        self._separate()
        self.lines += lines
        self._gap = not self._tight()

    def _separate(self) -> None:
        if self._gap:
            self.lines.append(Line(gutter=self._hang()))
        self._gap = False

    def _tight(self) -> bool:
        return bool(self._open) and self._open[-1].tight

    def _gutter(self) -> Gutter:
        gutter: Gutter = ()
        for container in self._open:
            gutter += container.rest if container.used else container.first
            container.used = True
        return gutter

    def _hang(self) -> Gutter:
        return tuple(piece for container in self._open for piece in container.rest)

    def _item(self, token: "Token") -> _Container:
        parent = self._open[-1]
        if parent.number is None:
            depth = sum(container.number is None and not container.first for container in self._open)
            marker = f"{_BULLETS[(depth - 1) % len(_BULLETS)]} "
        else:
            marker = f"{parent.number}{token.markup} "
            parent.number += 1
        rest = ((" " * len(marker), ""),)
        return _Container(first=((marker, "bullet"),), rest=rest, tight=parent.tight, used=False)

    def _prose(self, inline: "Token", ink: Ink) -> Iterator[Line]:
        ink = " ".join(filter(None, (*(container.ink for container in self._open), ink)))
        for text, marks in _inline(inline):
            yield Line(text=text, marks=marks, ink=ink, gutter=self._gutter(), hang=self._hang())

    def _code(self, token: "Token") -> Iterator[Line]:
        code = _Code(token.info, self._gutter(), self._hang())
        yield from code.title()
        for text in token.content.removesuffix("\n").split("\n"):
            yield code.line(text)
        code.close()

    def _table(self, tokens: "Sequence[Token]", start: int) -> Line:
        rows: list[list[_Cell]] = []
        aligns: list[str] = []
        for token in takewhile(lambda token: token.type != "table_close", tokens[start:]):
            match token.type:
                case "tr_open":
                    rows.append([])
                case "th_open":
                    aligns.append(str(token.attrs.get("style", "")).removeprefix("text-align:"))
                case "inline":
                    rows[-1] += _inline(token)
        return _Table(head=rows[0], body=rows[1:], aligns=aligns, gutter=self._gutter(), hang=self._hang())


def _list(tokens: "Sequence[Token]", start: int) -> _Container:
    opening = tokens[start]
    tight = True
    for token in tokens[start + 1 :]:
        if token.level == opening.level and token.nesting == -1:
            break
        if token.type == "paragraph_open" and token.level == opening.level + 2:
            tight = token.hidden
            break
    ordered = opening.type == "ordered_list_open"
    return _Container(tight=tight, number=int(opening.attrs.get("start", 1)) if ordered else None)


def _inline(token: "Token") -> list[_Cell]:
    """The text of a paragraph, heading or cell with its marks; several where the source forces breaks."""
    texts, text, marks = list[_Cell](), "", list[Mark]()
    for content, ink in _inline_pieces(token):
        if ink == "break":
            texts.append((text, tuple(marks)))
            text, marks = "", []
            continue
        begin = len(text)
        text += harmless(content)
        if ink:
            marks.append((begin, len(text), ink))
    return [*texts, (text, tuple(marks))]


def _inline_pieces(token: "Token") -> Iterator[Piece]:
    inks: list[Ink] = []
    address = label = ""  # of the last link; links do not nest
    for child in token.children or ():
        match child.type:
            case "softbreak":
                yield " ", " ".join(inks)
            case "hardbreak":
                yield "", "break"
            case "link_open":
                inks.append("link")
                address, label = str(child.attrs.get("href", "")), ""
            case "link_close":
                inks.pop()
                if address not in (label, f"mailto:{label}"):
                    yield " ", ""
                    yield f"({address})", "address"
            case "image":
                yield child.content or "image", " ".join([*inks, "link"])
                yield " ", ""
                yield f"({child.attrs.get('src', '')})", "address"
            case "code_inline":
                label += child.content
                yield child.content, " ".join([*inks, "verbatim"])
            case _ if child.nesting == 1:
                inks.append(_TAG_INKS.get(child.tag, ""))
            case _ if child.nesting == -1:
                inks.pop()
            case _:
                label += child.content
                yield child.content, " ".join(inks)


# --- a stream -----------------------------------------------------------------------------------------------

_PEEK = 1_000
"""A line is judged by this many characters, so that it need not be complete."""

_LONG_LIST = 2_000
"""Characters after which a list is settled before its next item."""

_FENCE = re.compile(r"( {0,3})(`{3,}(?=[^`]*$)|~{3,})(.*)\n")
_ITEM = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])(?: {1,4}(?! )| |\n)")
_HEADING = re.compile(r"#{1,6}[ \n]")
_TABLE_HEAD = re.compile(r"[^\n]*\|[^\n]*\n[ |:-]*-[ |:-]*\n")
_UNDECIDED = re.compile(r"[\s\-=_#>*+`~|:.)\d]*")
"""The start of a line that says nothing yet (is `-` an item, a rule?): showing it would make text jump."""
_UNDECIDED_CODE = re.compile(r" {0,3}(`+|~+)")


class MarkdownLines:
    """Markdown that arrives in chunks.

    What cannot change any more is handed out once; `tail` shows the rest. The source is taken apart by its
    own lines only, never by its chunks, so every way to cut it gives the same lines.
    """

    def __init__(self) -> None:
        self._out: list[Line] = []
        self._partial = ""
        """The start of a line that cannot be judged yet."""
        self._mid_line = False
        self._block = ""
        """The source of the block that is being written, when it is not a fence."""
        self._blank = False
        self._item_indent = 0
        """Where the text of the list item begins, if the block ends in a list."""
        self._item_start = 0
        """Where in the block its last item begins."""
        self._code: _Code | None = None
        self._code_text = ""
        self._close = re.compile("")
        self._fence_indent = 0
        self._gap = self._continued = False

    def feed(self, text: str) -> list[Line]:
        """Take a chunk; returns the lines that are settled by it."""
        *lines, self._partial = (self._partial + text).split("\n")
        for line in lines:
            self._take(line.removesuffix("\r") + "\n")
        if len(self._partial) >= _PEEK:
            self._take(self._partial)
            self._partial = ""
        return self._handed_out()

    def finish(self) -> list[Line]:
        """The text is complete; returns the lines that were left."""
        if self._partial or self._mid_line:
            self._take(self._partial.removesuffix("\r") + "\n")
            self._partial = ""
        self._settle()
        self._end_code()
        return self._handed_out()

    def tail(self) -> list[Line]:
        """How the part that is not settled looks now."""
        rest = self._partial.removesuffix("\r")
        if self._code is not None:
            text = self._code_text + ("" if _UNDECIDED_CODE.fullmatch(rest) else rest)
            return [self._code.preview(text)] if text else []
        source = self._block + ("" if _UNDECIDED.fullmatch(rest) else rest)
        return self._spaced(markdown_blocks(source)) if source.strip() else []

    def _handed_out(self) -> list[Line]:
        out, self._out = self._out, []
        return out

    def _take(self, line: str) -> None:
        """One line, or so much of a long one as has come."""
        if self._mid_line or not self._begins(line[:_PEEK]):
            if self._code is None:
                self._block += line
                self._cut_block()
            else:
                self._take_code(line)
        self._mid_line = not line.endswith("\n")

    def _begins(self, line: str) -> bool:
        """Settle what ends before this line. Whether the line itself has nothing to show."""
        if self._code is not None:
            if not self._close.fullmatch(line):
                return False
            self._end_code()
            return True
        if not line.strip():
            self._blank = True
            return not self._block
        indent = len(line) - len(line.lstrip(" "))
        inside_item = 0 < self._item_indent <= indent
        fence = None if inside_item else _FENCE.fullmatch(line)
        item = None if inside_item else _ITEM.match(line)
        if fence or (not inside_item and self._ends_block(line, indent, bool(item))):
            self._settle()
        self._blank = False
        if fence:
            self._start_code(fence)
        elif item:
            if len(self._block) > _LONG_LIST:
                self._cut_at(len(self._block))
            self._item_indent = item.end()
            self._item_start = len(self._block)
        return bool(fence)

    def _ends_block(self, line: str, indent: int, item: bool) -> bool:
        if _HEADING.match(line):
            return True
        return self._blank and indent < 4 and not (item and self._item_indent)

    def _settle(self) -> None:
        if self._block.strip():
            self._out += self._spaced(markdown_blocks(self._block))
            self._gap = True
        self._continued = False
        self._block = ""
        self._item_indent = self._item_start = 0

    def _spaced(self, lines: list[Line]) -> list[Line]:
        return [Line(), *lines] if self._gap and not self._continued and lines else lines

    def _cut_block(self) -> None:
        """Settle the beginning of an overlong block, if possible before an item, a line or a word."""
        while len(block := self._block) > LIMIT:
            lines, words = block.rfind("\n", 0, LIMIT) + 1, block.rfind(" ", LIMIT // 2, LIMIT) + 1
            cut = self._item_start or lines or words or LIMIT
            head = _TABLE_HEAD.match(block, 0, LIMIT // 4)
            self._cut_at(cut, again=head[0] if head and head.end() < cut else "")

    def _cut_at(self, cut: int, again: str = "") -> None:
        beginning, rest, item_indent = self._block[:cut], self._block[cut:], self._item_indent
        self._block = beginning
        self._settle()
        self._block, self._item_indent = again + rest, item_indent
        self._continued = not beginning.endswith("\n\n")

    def _start_code(self, fence: re.Match[str]) -> None:
        self._fence_indent = len(fence[1])
        self._close = re.compile(rf" {{0,3}}{fence[2][0]}{{{len(fence[2])},}}[ \t]*\n")
        self._code = _Code(fence[3])
        if self._gap:
            self._out.append(Line())
        self._out += self._code.title()

    def _take_code(self, line: str) -> None:
        assert self._code is not None
        if not self._mid_line and self._fence_indent:
            line = line[min(self._fence_indent, len(line) - len(line.lstrip(" "))) :]
        self._code_text += line.removesuffix("\n")
        while len(self._code_text) > LIMIT:
            self._out.append(self._code.line(self._code_text[:LIMIT]))
            self._code_text = self._code_text[LIMIT:]
        if line.endswith("\n"):
            self._out.append(self._code.line(self._code_text))
            self._code_text = ""

    def _end_code(self) -> None:
        if self._code is not None:
            self._code.close()
            self._code, self._gap = None, True
