"""Markdown as lines: where the headings and the code are, and how text is written so that it stays text.

Knows CommonMark, but nothing of plans.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

from msgspec import Struct

from cdd_agent.errors import BadInput
from cdd_agent.late_regex import late_regex

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_MAX_NESTING = 100
"""Lists and quotes within each other. Beyond it the parser gives up on everything that follows."""


_UNWRITABLE = re.compile("[\x00\ud800-\udfff]")  # NUL is no Markdown, half a surrogate pair no UTF-8
_BLANK_LINE = re.compile(r"^[ \t]+$", re.MULTILINE)
_RULE = re.compile(r"[ \t]*([-*_])(?:[ \t]*\1){2,}[ \t]*")
_ITEM = re.compile(r"(?P<indent>[ \t]*)(?:[-*+•]|[0-9]{1,9}[.)])(?:[ \t]+(?P<text>.*)|$)", re.DOTALL)


def plain_text(text: str) -> str:
    """`text` as Markdown can carry it: LF line ends, empty blank lines, no blank space around it."""
    text = _UNWRITABLE.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    return _BLANK_LINE.sub("", text).strip()


def one_line(text: str) -> str:
    """`text` on one line, every run of white space being one space."""
    return " ".join(_UNWRITABLE.sub("", text).split())


def split_lines(text: str) -> list[str]:
    """The lines of a text with their ends, as `Document` counts them."""
    return re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text)


# ------------------------------------------------------------------------------------------------- blocks


class Heading(Struct, frozen=True):
    """A heading that is not inside a list or a quote; `end` is the line after it (setext ones have more)."""

    line: int
    end: int
    depth: int
    text: str


class Line(Struct, frozen=True):
    """A line of text; `code` if it is to be taken as it is."""

    text: str
    code: bool = False

    @property
    def separates(self) -> bool:
        return not self.text.strip() or (not self.code and is_rule(self.text))

    @property
    def item(self) -> tuple[int, str] | None:
        """The indent and the text of a list item that begins in this line."""
        found = None if self.code or is_rule(self.text) else _ITEM.match(self.text)
        return (len(found["indent"]), found["text"] or "") if found else None


class Document(Struct, frozen=True):
    """The lines of a Markdown text, counted from 0, and what CommonMark says about them."""

    lines: list[str]
    headings: dict[int, Heading]
    """By line, in the order of the text."""
    code: bytearray
    """1 for a line inside fenced or indented code or an HTML block; the line that opens one is outside."""

    def at(self, span: range) -> list[Line]:
        return [Line(self.lines[at], self.code[at] == 1) for at in span]

    def written(self, span: range) -> range:
        """The lines without the blank ones and the rules at either end; where nothing is left, the place they begin."""
        told = [at for at, line in zip(span, self.at(span), strict=True) if not line.separates]
        return range(told[0], told[-1] + 1) if told else range(span.start, span.start)


@cache
def _parser() -> MarkdownIt:
    """Asked for blocks only: reading the inline text of every line is the slow part. Imported when a plan is read."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"maxNesting": _MAX_NESTING}).disable(["inline", "text_join"])


def parse(text: str) -> Document:
    """Raises `BadInput` for text whose lists and quotes nest deeper than a parser can follow."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    text = _UNWRITABLE.sub("", text)  # after the line ends: a NUL may stand within what would be one
    lines = text.split("\n")
    headings: dict[int, Heading] = {}
    code = bytearray(len(lines))
    tokens = _parser().parse(text)
    for index, token in enumerate(tokens):
        if token.level >= _MAX_NESTING - 2:
            raise BadInput("The Markdown has lists or quotes nested too deeply to be read.")
        if token.map is None:
            continue
        start, end = token.map
        if token.type == "heading_open" and token.level == 0:
            headings[start] = Heading(start, end, int(token.tag[1]), tokens[index + 1].content)
        elif token.type in {"fence", "html_block"}:
            code[start + 1 : end] = b"\1" * (end - start - 1)
        elif token.type == "code_block":
            code[start:end] = b"\1" * (end - start)
    return Document(lines, headings, code)


def is_rule(line: str) -> bool:
    """Whether the line is a thematic break, as `---`."""
    return _RULE.fullmatch(line) is not None


def prose(lines: list[Line]) -> str:
    """The text of `lines`, without the thematic breaks at either end: these separate, they say nothing."""
    told = [at for at, line in enumerate(lines) if not line.separates]
    kept = lines[told[0] : told[-1] + 1] if told else []
    return "\n".join(line.text if line.code else unescaped(line.text) for line in kept).strip()


# ------------------------------------------------------------------------------------------------ escapes

_PUNCTUATION = r"!-/:-@\[-`{-~"
_LEAD = re.compile(r"[ \t]*[0-9]{0,9}")
_ESCAPED = re.compile(rf"({_LEAD.pattern})\\(?=[{_PUNCTUATION} \t])")
_ESCAPABLE = re.compile(rf"({_LEAD.pattern})(?=[{_PUNCTUATION}])")
_BULLET = r"(?:(?:[-*+]|[0-9]{1,9}[.)])[ \t]+)?"
_STRUCTURE = late_regex(
    rf"[ \t]*{_BULLET}(?:#{{1,6}}(?:[ \t]|$)|\*\*|__)"  # a heading, a field
    rf"|[ \t]*(?:=+|-+)[ \t]*$"  # what makes a heading of the line above
    rf"|{_ESCAPED.pattern}"
)
_OPENER = late_regex(rf"[ \t]*{_BULLET}(?:```|~~~|<)")
_PLAIN = re.compile(r"(?:[^\W\d_][^\n]*(?:\n+|\Z))*")


def unescaped(line: str) -> str:
    """`line` without the backslash that kept its start from being read as structure."""
    return _ESCAPED.sub(r"\1", line, count=1) if _ESCAPED.match(line) else line


def is_plain(text: str) -> bool:
    """Whether every line starts with a letter: such text is read as paragraphs wherever it stands."""
    return _PLAIN.fullmatch(text) is not None


def spellings(text: str) -> Iterator[str]:
    """Ways to write `text`, the most readable first; `unescaped` turns each line outside code back.

    Which one is right depends on what the reader takes for structure: take the first that reads back as
    `text`. The last always does: each of its lines can only be part of a paragraph.
    """
    yield text
    lines = text.split("\n")
    with suppress(BadInput):  # nested too deeply to know what is code: then everything is escaped
        code = parse(text).code
        structure = [is_rule(line) or _STRUCTURE.match(line) is not None for line in lines]
        yield "\n".join(_escaped(line) if structure[at] and not code[at] else line for at, line in enumerate(lines))
        yield "\n".join(
            _escaped(line) if structure[at] or _OPENER.match(line) else line for at, line in enumerate(lines)
        )
    yield "\n".join("\\" + line if line[:1] in {" ", "\t"} else _escaped(line) for line in lines)


def _escaped(line: str) -> str:
    """`line` with a backslash before its first punctuation, behind a number that makes it a list item."""
    return _ESCAPABLE.sub(r"\1\\", line, count=1) if _ESCAPABLE.match(line) else line


# --------------------------------------------------------------------------------------------- code spans


class CodeSpan(Struct, frozen=True):
    """A code span of a line, and its place there with its backticks."""

    start: int
    end: int
    text: str


def code_span(text: str) -> str:
    """One line of text as a code span, with as many backticks as it needs."""
    runs = {len(run) for run in re.findall("`+", text)}
    length = next(length for length in range(1, len(runs) + 2) if length not in runs)
    padding = " " if text.startswith("`") or text.endswith("`") else ""
    ticks = "`" * length
    return f"{ticks}{padding}{text}{padding}{ticks}"


def code_spans(line: str) -> Iterator[CodeSpan]:
    """The code spans of a line, from left to right, as CommonMark pairs their backticks."""
    runs = list(re.finditer("`+", line))
    last = {len(run[0]): at for at, run in enumerate(runs)}
    at = 0
    while at < len(runs):
        opening = runs[at]
        if last[len(opening[0])] > at:
            closing_at = next(i for i in range(at + 1, len(runs)) if len(runs[i][0]) == len(opening[0]))
            closing = runs[closing_at]
            inside = line[opening.end() : closing.start()]
            is_padded = inside.startswith(" ") and inside.endswith(" ") and inside.strip(" ")
            yield CodeSpan(opening.start(), closing.end(), inside[1:-1] if is_padded else inside)
            at = closing_at
        at += 1
