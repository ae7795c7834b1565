"""A reply as lines, without the parts around its answer.

Other lines become blank instead of being removed, so line numbers are the same in every
stage and message.
"""

import re
from collections.abc import Sequence

from msgspec import Struct

from cdd_agent.changes.formats.all_forms import all_forms
from cdd_agent.changes.formats.form import Span
from cdd_agent.changes.formats.project_names import NO_PROJECT_NAMES, ProjectNames
from cdd_agent.changes.model import BlockFate, ReplyBlock, ReplyFault, ReplyRefused
from cdd_agent.changes.reply.calls import lay_out_with_calls
from cdd_agent.llm.reply_marks import (
    LAST_MARK,
    THOUGHTS_BEGIN,
    THOUGHTS_END,
    end_of_thoughts,
)
from cdd_agent.pattern import Pattern

_ANY_NAME = "a"
"""A name for edits that take theirs from the surrounding text."""
_WRAPPER = Pattern(r"^(?P<mark>`{3,}|~{3,})(?P<info>.*)$")
WRAPPER_LANGUAGES = {"", "markdown", "md", "text", "txt", "plaintext"}


class ReplyLines(Struct, frozen=True):
    """Lines without line ends, numbered from 0."""

    lines: tuple[str, ...]
    crlf: frozenset[int] = frozenset()
    """Lines with CRLF, if others lack it: the file is meant to have it."""
    thoughts: int = 0
    """Number of leading lines with the model's thoughts."""


def split_lines(text: str) -> ReplyLines:
    """Raises `ReplyRefused` for a null character."""
    if "\0" in text:
        number = text[: text.index("\0")].count("\n") + 1
        reason = "The reply has a null character in it, which is no part of a text."
        block = ReplyBlock(
            number, number, "null character", BlockFate.REFUSED, reason=reason
        )
        raise ReplyRefused(reason, blocks=(block,))
    pieces = re.split(r"(\r\n|\r|\n)", text.removeprefix("\ufeff"))
    lines, ends = pieces[::2], pieces[1::2]
    crlf = frozenset(place for place, end in enumerate(ends) if end == "\r\n")
    if len(crlf) == len(ends):
        crlf = frozenset()
    return ReplyLines(tuple(lines), crlf)


def hide_thoughts(
    reply: ReplyLines, project_names: ProjectNames = NO_PROJECT_NAMES
) -> ReplyLines:
    """Blank the model's thoughts: drafts in them are not edits.

    Some servers remove the opening tag, or leave the channel marks of gpt-oss. Raises
    `ReplyRefused` for thoughts that never end.
    """
    lines = list(reply.lines)
    lines[-1:] = [LAST_MARK.sub("", line) for line in lines[-1:]]
    answer = _end_without_beginning(lines, project_names)
    lines[:answer] = [""] * answer
    while True:
        first = _first_line(lines)
        begun = THOUGHTS_BEGIN.match(lines[first]) if first is not None else None
        if first is None or begun is None:
            return ReplyLines(tuple(lines), reply.crlf, answer)
        lines[first] = lines[first][begun.end() :]
        if (begun["channel"] or "").lower() == "final":
            continue
        end = end_of_thoughts(begun)
        last = next(
            (place for place in range(first, len(lines)) if end.search(lines[place])),
            None,
        )
        if last is None:
            raise _endless_thoughts(first, len(lines))
        rest = end.split(lines[last], maxsplit=1)[1]
        lines[: last + 1] = [*[""] * last, rest]
        answer = last + 1


def hide_wrapper(reply: ReplyLines) -> ReplyLines | None:
    """Blank the fences around a whole reply. None if there are none."""
    lines = list(reply.lines)
    filled = [place for place, line in enumerate(lines) if line.strip()]
    if len(filled) < 3:
        return None
    first, last = filled[0], filled[-1]
    opening = _WRAPPER.match(lines[first])
    if opening is None or lines[last].strip() != opening["mark"]:
        return None
    if opening["info"].strip().lower() not in WRAPPER_LANGUAGES:
        return None
    lines[first] = lines[last] = ""
    return ReplyLines(tuple(lines), reply.crlf, reply.thoughts)


def _end_without_beginning(lines: Sequence[str], project_names: ProjectNames) -> int:
    """Return the line after thoughts that lack a beginning, or 0."""
    end = next(
        (place for place, line in enumerate(lines) if THOUGHTS_END.match(line)), None
    )
    if end is None or any(THOUGHTS_BEGIN.match(line) for line in lines[:end]):
        return 0
    return 0 if _is_in_a_block(lines, end, project_names) else end + 1


def _is_in_a_block(
    lines: Sequence[str], place: int, project_names: ProjectNames
) -> bool:
    """True for a line within a code block, diff or other complete edit."""
    try:
        layout = lay_out_with_calls(lines, project_names, all_forms())
    except ReplyRefused:
        return False
    for fence in layout.fences:
        is_whole = fence.is_closed and not fence.holds_an_opening
        if fence.start < place < fence.end and (fence.path or is_whole):
            return True
    spans = (*layout.marked, *layout.in_prose)
    return any(span.start < place < span.end and _is_readable(span) for span in spans)


def _is_readable(span: Span) -> bool:
    try:
        span.read(span.path or _ANY_NAME)
    except ReplyRefused:
        return False
    return True


def _first_line(lines: Sequence[str]) -> int | None:
    return next((place for place, line in enumerate(lines) if line.strip()), None)


def _endless_thoughts(first: int, end: int) -> ReplyRefused:
    reason = "The reply ends within its thoughts, and no answer follows."
    block = ReplyBlock(first + 1, end, "thoughts", BlockFate.REFUSED, reason=reason)
    return ReplyRefused(
        reason,
        hint="End them with their closing tag, then give the edits.",
        fault=ReplyFault.UNFINISHED,
        blocks=(block,),
    )
