"""The code blocks of a reply, and which file each is.

Fences are found by CommonMark's rules (https://spec.commonmark.org/0.31.2/#fenced-code-blocks). What stands inside of
search/replace blocks and patches is kept out of its sight: the marks of these forms say better where they end.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from cdd_agent.actions.formats.naming import in_comment, in_info, in_line

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_OPENING = re.compile(r"^(?P<container>[\s>]*)(?P<mark>`{3,}|~{3,})(?P<info>.*)$")
_WRAPPERS = {"", "markdown", "md", "text", "txt", "plaintext"}
_STAND_INS = [chr(code) for code in (*range(0xE000, 0xF900), *range(0xF0000, 0xFFFFE))]
"""Characters that mean nothing: a pair that a text does not have hides fences in it."""


@dataclass(frozen=True)
class Fence:
    """One code block. Lines are numbered from 0; `end` is the line after its closing fence."""

    start: int
    end: int
    mark: str
    language: str
    path: str | None
    content: str
    is_closed: bool
    info: str = ""
    is_named_apart: bool = True
    """Its name is in its info string, or stands after a blank line: it is not the end of what was before."""
    above: str | None = None
    """The file that the line above names, whatever the language: for edits in any kind of code block."""

    @property
    def lines(self) -> list[str]:
        return self.content.removesuffix("\n").split("\n") if self.content else []

    @property
    def holds_an_opening(self) -> bool:
        """A line that opens a fence just like this one: perhaps this one should have ended later."""
        opening = re.compile(rf"^[ \t>]*{re.escape(self.mark)}[`~]*[ \t]*[A-Za-z{{]", re.MULTILINE)
        return opening.search(self.content) is not None


def find_fences(lines: Sequence[str], hidden: Collection[int] = ()) -> list[Fence]:
    """The fences of a text, in its order; `hidden` are lines in which none begins or ends."""
    hidden_lines = set(hidden)
    lines = _straightened(lines, hidden_lines)
    hide, show = _tables(lines) if hidden_lines else ({}, {})
    text = "\n".join(line.translate(hide) if place in hidden_lines else line for place, line in enumerate(lines))
    fences: list[Fence] = []
    last_end = 0
    for token in _parser().parse(text):
        if token.type != "fence" or token.map is None:
            continue
        start, end = token.map
        content = token.content.translate(show)
        is_closed = _is_closed(token.markup, lines[start:end])
        fences.append(_named(lines, last_end, start, end, token.markup, token.info, content, is_closed))
        last_end = end
    return fences


def unwrapped(lines: Sequence[str]) -> list[str] | None:
    """The text inside of a reply that is itself in a fence; None for any other."""
    told = [place for place, line in enumerate(lines) if line.strip()]
    if len(told) < 3:
        return None
    opening = _OPENING.match(lines[told[0]])
    if opening is None or opening["container"] or opening["info"].strip().lower() not in _WRAPPERS:
        return None
    if lines[told[-1]].strip() != opening["mark"]:
        return None
    return list(lines[told[0] + 1 : told[-1]])


@cache
def _parser() -> MarkdownIt:
    """Asked for blocks only; imported when the first reply comes. Indented code is what a list makes of a fence."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").disable(["inline", "html_block", "reference"])


def _straightened(lines: Sequence[str], hidden: Collection[int]) -> list[str]:
    """The same lines, but a fence is not indented where a line in it is less so: then only the fence was moved."""
    straight = list(lines)
    place = 0
    while place < len(lines):
        opening = _OPENING.match(lines[place]) if place not in hidden else None
        if opening and not ("`" in opening["mark"] and "`" in opening["info"]):
            start, place = place, _closing(lines, place, opening["mark"], hidden)
            indent = opening["container"]
            inside = (line for line in lines[start + 1 : place] if line.strip())
            is_moved = bool(indent) and not indent.strip() and not all(line.startswith(indent) for line in inside)
            if is_moved and place < len(lines):
                straight[start], straight[place] = lines[start].lstrip(), lines[place].lstrip()
        place += 1
    return straight


def _closing(lines: Sequence[str], start: int, mark: str, hidden: Collection[int]) -> int:
    """Where a fence ends, or the text does."""
    for place in range(start + 1, len(lines)):
        bare = lines[place].strip(" \t>")
        if place not in hidden and len(bare) >= len(mark) and not bare.strip(mark[0]):
            return place
    return len(lines)


def _named(
    lines: Sequence[str], floor: int, start: int, end: int, mark: str, info: str, content: str, is_closed: bool
) -> Fence:
    language, path = in_info(info)
    if path is not None:
        return Fence(start, end, mark, language, path, content, is_closed, info)
    before = start - 1
    if before >= floor and not lines[before].strip(" \t>"):
        before -= 1
    above = lines[before] if before >= floor else ""
    path = in_line(above, language) if above.strip() else None
    apart = path is not None and (before == 0 or (before > floor and not lines[before - 1].strip()) or "#" in above[:4])
    if path is None and content:
        first, _, rest = content.partition("\n")
        path = in_comment(first, language)
        if path is not None and path.endswith(".json"):
            content = rest  # JSON has no comments: the line is not the file's
    return Fence(start, end, mark, language, path, content, is_closed, info, apart or floor == 0, in_line(above))


def _is_closed(mark: str, lines: Sequence[str]) -> bool:
    last = lines[-1].strip(" \t>")
    return len(lines) > 1 and len(last) >= len(mark) and not last.rstrip(mark[0])


def _tables(lines: Sequence[str]) -> tuple[dict[int, str], dict[int, str]]:
    """How to make a line that has no fence of one that may have, also behind the mark of a list, and back."""
    there = set().union(*lines)
    backtick, tilde = [char for char in _STAND_INS if char not in there][:2]
    return {ord("`"): backtick, ord("~"): tilde}, {ord(backtick): "`", ord(tilde): "~"}
