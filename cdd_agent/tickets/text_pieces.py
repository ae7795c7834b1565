"""Pieces of Markdown: lines, list items, table rows and code blocks."""

import re
from collections.abc import Sequence
from enum import Enum, auto

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.pattern import Pattern
from cdd_agent.tickets.markdown import Document, Line

_FENCE = Pattern(r"(?:`{3,}[^`]*|~{3,}.*)")
_TABLE_RULE = Pattern(r"\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?")


class PieceKind(Enum):
    LINE = auto()
    ITEM = auto()
    """Without its mark, with continuation lines."""
    ROW = auto()
    TABLE_HEAD = auto()
    """A table's head, or the rule below it."""
    FENCE = auto()
    """A fenced code block. Its text is the language."""
    OTHER = auto()
    """Indented code, HTML or a thematic break."""


class Piece(Struct, frozen=True):
    kind: PieceKind
    text: str
    lines: tuple[int, ...]
    """From 0."""
    indent: int = 0
    is_apart: bool = False
    """True after a blank line."""
    code: tuple[str, ...] = ()
    """The lines inside a fence."""


def split_pieces(document: Document, numbers: Sequence[int]) -> list[Piece]:
    pieces: list[Piece] = []
    start = 0
    is_apart = False
    while start < len(numbers):
        if not document.lines[numbers[start]].text.strip():
            is_apart = True
            start += 1
            continue
        piece = _read_piece(document, numbers[start:], is_apart=is_apart)
        start += len(piece.lines)
        if _is_row(piece, pieces) and _TABLE_RULE.fullmatch(piece.text):
            piece = _as_head(piece)
            if pieces and "|" in pieces[-1].text and not piece.is_apart:
                pieces[-1] = _as_head(pieces[-1])
        elif piece.kind is PieceKind.LINE and _is_row(piece, pieces):
            piece = replace(piece, kind=PieceKind.ROW)
        pieces.append(piece)
        is_apart = False
    return pieces


def table_cells(row: str) -> list[str]:
    """A bar in a code span or after a backslash belongs to its cell."""
    cells = re.findall(r"((?:\\\||`[^`]*`|[^|])+)", row.strip().strip("|"))
    return [cell.replace("\\|", "|").strip() for cell in cells]


def _is_row(piece: Piece, above: Sequence[Piece]) -> bool:
    if piece.kind is PieceKind.ROW:
        return True
    if piece.kind is not PieceKind.LINE or "|" not in piece.text:
        return False
    if not above or piece.is_apart:
        return False
    is_below_head = above[-1].kind is PieceKind.LINE and "|" in above[-1].text
    is_rule = _TABLE_RULE.fullmatch(piece.text) is not None
    is_in_table = above[-1].kind in {PieceKind.ROW, PieceKind.TABLE_HEAD}
    return is_in_table or (is_below_head and is_rule)


def _as_head(piece: Piece) -> Piece:
    return Piece(PieceKind.TABLE_HEAD, piece.text, piece.lines, is_apart=piece.is_apart)


def _read_piece(document: Document, numbers: Sequence[int], *, is_apart: bool) -> Piece:
    line = document.lines[numbers[0]]
    item = line.item
    text = item.text if item else line.text.strip()
    indent = item.indent if item else _indent(line)
    if not line.is_code and _FENCE.fullmatch(text):
        return _read_fence(document, numbers, text, indent, is_apart=is_apart)
    if line.is_code or line.is_rule:
        return Piece(PieceKind.OTHER, text, (numbers[0],), indent, is_apart)
    if item:
        lines = [numbers[0]]
        for number in numbers[1:]:
            below = document.lines[number]
            if not _continues(below, indent):
                break
            lines.append(number)
            text = f"{text} {below.text.strip()}"
        return Piece(PieceKind.ITEM, text, tuple(lines), indent, is_apart)
    kind = PieceKind.ROW if text.startswith("|") else PieceKind.LINE
    return Piece(kind, text, (numbers[0],), indent, is_apart)


def _continues(line: Line, indent: int) -> bool:
    text = line.text.strip()
    if not text or line.is_code or line.item or line.is_rule:
        return False
    return _indent(line) >= indent + 2 and not _FENCE.fullmatch(text)


def _read_fence(
    document: Document,
    numbers: Sequence[int],
    opening: str,
    indent: int,
    *,
    is_apart: bool,
) -> Piece:
    lines = [numbers[0]]
    for number in numbers[1:]:
        if not document.lines[number].is_code:
            break
        lines.append(number)
    code = [document.lines[number].text.strip() for number in lines[1:]]
    if code and _FENCE.fullmatch(code[-1]):
        code.pop()
    language = opening.lstrip("`~").strip().lower()
    return Piece(PieceKind.FENCE, language, tuple(lines), indent, is_apart, tuple(code))


def _indent(line: Line) -> int:
    return len(line.text) - len(line.text.lstrip())
