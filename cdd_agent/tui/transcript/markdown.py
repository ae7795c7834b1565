from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import takewhile
from typing import TYPE_CHECKING

from msgspec import Struct

from cdd_agent.tui.transcript.code import CodeBlock
from cdd_agent.tui.transcript.inline import inline_texts
from cdd_agent.tui.transcript.lines import Gutter, Ink, TranscriptLine, blank
from cdd_agent.tui.transcript.tables import Cell, Table

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_MOST_BRACKETS = 400
"""Maximum opening brackets of a text with links: for each, the parser may search the
whole text.
"""
_BULLETS = "•◦▪"
_QUOTE_BAR: Gutter = (("▌ ", "bar"),)


def markdown_lines(source: str) -> list[TranscriptLine]:
    writer = _LineWriter()
    has_links = source.count("[") <= _MOST_BRACKETS
    writer.write(_parser(has_links=has_links).parse(source))
    return writer.lines


@cache
def _parser(*, has_links: bool) -> "MarkdownIt":
    # late: the first screen shows sooner
    from markdown_it import MarkdownIt  # noqa: PLC0415

    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": 100})
    parser.enable(["table", "strikethrough"])
    if not has_links:
        parser.disable(["link", "image"])
    return parser


class _Container(Struct):
    first: Gutter = ()
    rest: Gutter = ()
    ink: Ink = ""
    tight: bool = False
    number: int | None = None
    """The number of the next item in an ordered list."""
    used: bool = True


class _LineWriter:
    def __init__(self) -> None:
        self.lines: list[TranscriptLine] = []
        self._open: list[_Container] = []
        self._gap = False
        """True if a blank line must precede the next block."""

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
                    self._leaf(
                        [TranscriptLine(fill=("─", "rule"), gutter=self._gutter())]
                    )
                case "table_open":
                    self._leaf([self._table(tokens, index)])
                case "bullet_list_open" | "ordered_list_open":
                    self._enter(_list(tokens, index))
                case "list_item_open":
                    self._enter(self._item(token))
                case "blockquote_open":
                    self._enter(
                        _Container(
                            first=_QUOTE_BAR, rest=_QUOTE_BAR, ink="quote", used=False
                        )
                    )
                case (
                    "bullet_list_close"
                    | "ordered_list_close"
                    | "list_item_close"
                    | "blockquote_close"
                ):
                    self._leave()

    def _enter(self, container: _Container) -> None:
        self._separate()
        self._open.append(container)

    def _leave(self) -> None:
        if not self._open[-1].used:
            self.lines.append(TranscriptLine(gutter=self._gutter()))
        self._open.pop()
        self._gap = not self._tight()

    def _leaf(self, lines: Iterable[TranscriptLine]) -> None:
        self._separate()
        self.lines += lines
        self._gap = not self._tight()

    def _separate(self) -> None:
        if self._gap:
            self.lines.append(TranscriptLine(gutter=self._hang()))
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
            depth = sum(
                container.number is None and not container.first
                for container in self._open
            )
            marker = f"{_BULLETS[(depth - 1) % len(_BULLETS)]} "
        else:
            marker = f"{parent.number}{token.markup} "
            parent.number += 1
        first = ((marker, "bullet"),)
        return _Container(
            first=first, rest=blank(first), tight=parent.tight, used=False
        )

    def _prose(self, inline: "Token", ink: Ink) -> Iterator[TranscriptLine]:
        ink = " ".join(
            filter(None, (*(container.ink for container in self._open), ink))
        )
        for text, marks in inline_texts(inline):
            gutter, hang = self._gutter(), self._hang()
            yield TranscriptLine(
                text=text, marks=marks, ink=ink, gutter=gutter, hang=hang, is_prose=True
            )

    def _code(self, token: "Token") -> Iterator[TranscriptLine]:
        code = CodeBlock(token.info, self._gutter(), self._hang())
        yield from code.title()
        for text in token.content.removesuffix("\n").split("\n"):
            yield code.line(text)
        code.close()

    def _table(self, tokens: "Sequence[Token]", start: int) -> TranscriptLine:
        rows: list[list[Cell]] = []
        aligns: list[str] = []
        for token in takewhile(
            lambda token: token.type != "table_close", tokens[start:]
        ):
            match token.type:
                case "tr_open":
                    rows.append([])
                case "th_open":
                    aligns.append(
                        str(token.attrs.get("style", "")).removeprefix("text-align:")
                    )
                case "inline":
                    rows[-1] += inline_texts(token)
        return Table(
            head=rows[0],
            body=rows[1:],
            aligns=aligns,
            gutter=self._gutter(),
            hang=self._hang(),
        )


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
    return _Container(
        tight=tight, number=int(opening.attrs.get("start", 1)) if ordered else None
    )
