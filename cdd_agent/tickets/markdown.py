"""Markdown as lines: headings, code, list items, code spans and escapes. Follows
CommonMark, and knows nothing of plans.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

from msgspec import Struct

from cdd_agent.errors import BadInput
from cdd_agent.pattern import Pattern
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.tickets.writable_text import UNWRITABLE

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_MAX_NESTING = 100
_EXAMPLE_START = Pattern(r"\s*<(?:!--|pre\b|script\b|style\b)", re.IGNORECASE)
_EXAMPLE_END = Pattern(r"-->|</(?:pre|script|style)>", re.IGNORECASE)
_RULE = Pattern(r"[ \t]*([-*_])(?:[ \t]*\1){2,}[ \t]*")
_ITEM = Pattern(
    r"(?P<indent>[ \t]*)(?:[-*+•]|[0-9]{1,9}[.)])(?:[ \t]+(?P<text>.*)|$)", re.DOTALL
)


# Blocks


class Heading(Struct, frozen=True):
    """A heading outside lists and quotes."""

    line: int
    end: int
    """The line after the heading. Underlined (setext) headings have several lines."""
    depth: int
    text: str


class ListItem(Struct, frozen=True):
    """A list item's first line."""

    indent: int
    text: str


class Line(Struct, frozen=True):
    text: str
    is_code: bool = False
    """True inside code and HTML blocks, where nothing is markup. The opening line is
    outside.
    """
    is_example: bool = False
    """True in code that is certainly no structure: a closed fence, comment or `pre`."""

    @property
    def is_rule(self) -> bool:
        """True for a thematic break such as `---`."""
        return not self.is_code and _RULE.fullmatch(self.text) is not None

    @property
    def is_separator(self) -> bool:
        """True for blank lines and thematic breaks."""
        return not self.text.strip() or self.is_rule

    @property
    def item(self) -> ListItem | None:
        match = _ITEM.match(self.text)
        if match is None or self.is_code or self.is_rule:
            return None
        return ListItem(len(match["indent"]), match["text"] or "")


class Document(Struct, frozen=True):
    """Lines of a Markdown text, from 0, and headings by line."""

    lines: list[Line]
    headings: dict[int, Heading]

    def without_separators(self, lines: range) -> range:
        """Drop blank lines and thematic breaks at both ends."""
        start, stop = lines.start, lines.stop
        while stop > start and self.lines[stop - 1].is_separator:
            stop -= 1
        while start < stop and self.lines[start].is_separator:
            start += 1
        return range(start, stop) if start < stop else range(lines.start, lines.start)


def parse_markdown(text: str) -> Document:
    """Raises `BadInput` for lists and quotes that are nested too deeply."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    text = UNWRITABLE.sub("", text)
    texts = text.split("\n")
    headings: dict[int, Heading] = {}
    code: set[int] = set()
    examples: set[int] = set()
    tokens = _parser().parse(text)
    for index, token in enumerate(tokens):
        if token.level >= _MAX_NESTING - 2:
            raise BadInput(
                "The Markdown has lists or quotes nested too deeply to be read.",
                refusal=Refusal.PLAN_INVALID,
            )
        if token.map is None:
            continue
        start, end = token.map
        if token.type == "heading_open" and token.level == 0:
            headings[start] = Heading(
                start, end, int(token.tag[1]), tokens[index + 1].content
            )
        elif token.type in {"fence", "html_block"}:
            code.update(range(start + 1, end))
            if _has_end(token, texts[end - 1]):
                examples.update(range(start + 1, end))
        elif token.type == "code_block":
            code.update(range(start, end))
    lines = [
        Line(line, number in code, number in examples)
        for number, line in enumerate(texts)
    ]
    return Document(lines, headings)


@cache
def _parser() -> "MarkdownIt":
    # late: most commands read no plan
    from markdown_it import MarkdownIt  # noqa: PLC0415

    parser = MarkdownIt("commonmark", {"maxNesting": _MAX_NESTING})
    # inline parsing is slow and not needed
    return parser.disable(["inline", "text_join"])


def _has_end(token: "Token", last_line: str) -> bool:
    """True for a closed fence, comment or `pre`. Other HTML is no example."""
    if token.type == "fence":
        closing = last_line.strip(" \t>")
        return closing == token.markup[0] * max(len(closing), len(token.markup))
    opening = _EXAMPLE_START.match(token.content)
    return opening is not None and _EXAMPLE_END.search(token.content) is not None


_CHECKBOX = Pattern(r"^\[[ xX]\][ \t]+")


def without_checkbox(text: str) -> str:
    return _CHECKBOX.sub("", text.strip(), count=1).strip()


def prose(lines: Sequence[Line]) -> str:
    """Return the unescaped text, without thematic breaks and blank lines at both
    ends.
    """
    document = Document(list(lines), {})
    kept_lines = document.without_separators(range(len(lines)))
    texts = []
    for line in lines[kept_lines.start : kept_lines.stop]:
        texts.append(line.text if line.is_code else _unescape(line.text))
    return "\n".join(texts).strip()


# Escapes: a backslash before a line's first punctuation prevents a reading as
# structure.

_LEAD = r"([ \t]*[0-9]{0,9})"
_PUNCTUATION = r"[!-/:-@\[-`{-~]"
_ESCAPED = Pattern(rf"^{_LEAD}\\(?={_PUNCTUATION}|[ \t])")
_ESCAPABLE = Pattern(rf"^{_LEAD}(?={_PUNCTUATION})")
_STRUCTURE = Pattern(
    # a heading or bold label
    r"[ \t]*(?:(?:[-*+]|[0-9]{1,9}[.)])[ \t]+)?(?:#{1,6}|\*\*|__)"
    r"|[ \t]*(?:=+|-+)[ \t]*$"  # a heading's underline
    rf"|{_ESCAPED.pattern}"
)


def spellings(text: str) -> Iterator[str]:
    """Yield ways to write the text, most readable first.

    `prose` restores the text from each, unless the reader takes a line for structure,
    which the last spelling prevents.
    """
    yield text
    with suppress(BadInput):
        lines = []
        for line in parse_markdown(text).lines:
            is_structure = line.is_rule or (
                not line.is_code and _STRUCTURE.match(line.text)
            )
            lines.append(_escape(line.text) if is_structure else line.text)
        yield "\n".join(lines)
    lines = []
    for written in text.split("\n"):
        lines.append(
            "\\" + written if written.startswith((" ", "\t")) else _escape(written)
        )
    yield "\n".join(lines)


def _escape(line: str) -> str:
    return _ESCAPABLE.sub(r"\1\\", line, count=1)


def _unescape(line: str) -> str:
    return _ESCAPED.sub(r"\1", line, count=1)


# Code spans

_CODE_SPAN = Pattern(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)


class CodeSpan(Struct, frozen=True):
    """Positions include the backticks."""

    start: int
    end: int
    text: str


def code_span(text: str) -> str:
    """Return one line of text as code, with as many backticks as it needs."""
    ticks = "`"
    while ticks in re.findall("`+", text):
        ticks += "`"
    padding = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{padding}{text}{padding}{ticks}"


def leading_code(line: str) -> str:
    """Return the text of a leading code span; empty without one."""
    spans = code_spans(line)
    return spans[0].text if spans and spans[0].start == 0 else ""


def code_spans(line: str) -> list[CodeSpan]:
    spans = []
    for match in _CODE_SPAN.finditer(line):
        text = match[2]
        if text.startswith(" ") and text.endswith(" ") and text.strip(" "):
            text = text[1:-1]
        spans.append(CodeSpan(match.start(), match.end(), text))
    return spans
