"""Replaces lines of a text, and keeps all others byte for byte."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from cdd_agent.pattern import Pattern

_LINE = Pattern(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_LINE_END = Pattern(r"[\r\n]+$")


class LineEdit(Struct, frozen=True):
    """Lines to insert, without line ends, and lines to remove."""

    lines: range
    new: Sequence[str] = ()


def split_lines(text: str) -> list[str]:
    return _LINE.findall(text)


def apply_edits(lines: Sequence[str], edits: Iterable[LineEdit]) -> list[str]:
    """Apply edits, which must not overlap. Edits at the same position keep their order.

    New lines get the line end of the line they replace, else of the first line.
    """
    result: list[str] = []
    position = 0
    for edit in sorted(edits, key=lambda edit: (edit.lines.start, edit.lines.stop)):
        result += lines[position : edit.lines.start]
        position = edit.lines.stop
        end = (
            _line_end(lines, position - 1 if edit.lines else 0)
            or _line_end(lines, 0)
            or "\n"
        )
        if edit.new and result and not _line_end(result, -1):
            result[-1] += end
        result += [line + end for line in edit.new]
    result += lines[position:]
    return result if _line_end(lines, -1) else _without_last_end(result)


def _without_last_end(lines: list[str]) -> list[str]:
    return [*lines[:-1], lines[-1].rstrip("\r\n")] if lines else []


def _line_end(lines: Sequence[str], index: int) -> str:
    match = _LINE_END.search(lines[index]) if lines else None
    return match[0] if match else ""
