"""The places of the blocks of a reply: edits by marks, code blocks, diffs in prose."""

from bisect import bisect_left
from collections.abc import Sequence

from msgspec import Struct

from cdd_agent.changes.formats.diffs import find_quoted_fences
from cdd_agent.changes.formats.fences import Fence, find_fences
from cdd_agent.changes.formats.form import Form, Span
from cdd_agent.changes.formats.project_names import ProjectNames
from cdd_agent.changes.model import BlockFate, ReplyBlock, ReplyRefused

_ROUNDS = 8
"""Number of times that fences are searched because a diff in prose contains fences."""


class Layout(Struct, frozen=True):
    """The blocks of a reply, each kind in the order of the reply."""

    marked: tuple[Span, ...]
    """Edits that begin and end with marks, in prose or in a code block."""
    fences: tuple[Fence, ...]
    in_prose: tuple[Span, ...]
    """Diffs and the like without marks around them."""

    def marked_in(self, fence: Fence) -> list[Span]:
        """Return the edits by marks in a code block."""
        first, last = (
            bisect_left(self.marked, line, key=lambda span: span.start)
            for line in (fence.start, fence.end)
        )
        return list(self.marked[first:last])

    def fences_from(self, start: int, stop: int) -> Sequence[Fence]:
        """Return the code blocks that begin in these lines."""
        first, last = (
            bisect_left(self.fences, line, key=lambda fence: fence.start)
            for line in (start, stop)
        )
        return self.fences[first:last]

    def covered(self) -> set[int]:
        """Return the lines of all blocks."""
        return _places(self.marked) | _places(self.fences) | _places(self.in_prose)


def lay_out(
    lines: Sequence[str],
    project_names: ProjectNames,
    forms: Sequence[Form],
    calls: Sequence[Span] = (),
) -> Layout:
    """Find the blocks of a reply around its calls of tools. Raises `ReplyRefused` if
    diffs in prose and code blocks cannot be distinguished.
    """
    spans = [span for form in forms for span in form.marked(lines, project_names)]
    marked = _drop_overlapping([*calls, *spans])
    in_marks = _places(marked)
    in_diffs = find_quoted_fences(lines)
    # a fence in a diff may be a line of the changed file: then later fences change
    for _ in range(_ROUNDS):
        fences = find_fences(lines, in_marks | in_diffs, project_names)
        occupied = in_marks | _places(fences)
        in_prose = [
            span for form in forms for span in form.in_prose(lines, occupied, in_marks)
        ]
        in_prose.sort(key=lambda span: span.start)
        prose_lines = _places(in_prose)
        if not any(fence.start in prose_lines for fence in fences):
            return Layout(tuple(marked), tuple(fences), tuple(in_prose))
        in_diffs |= prose_lines
    raise _unclear_diffs(in_prose)


def _drop_overlapping(spans: list[Span]) -> list[Span]:
    """Return the spans in order. One that begins in another is a part of its text."""
    separate: list[Span] = []
    for span in sorted(spans, key=lambda span: span.start):
        if not separate or span.start >= separate[-1].end:
            separate.append(span)
    return separate


def _places(blocks: Sequence[Span | Fence]) -> set[int]:
    return {place for block in blocks for place in range(block.start, block.end)}


def _unclear_diffs(spans: Sequence[Span]) -> ReplyRefused:
    reason = "It is unclear where the diffs of the reply end."
    hint = "Put each in a ```diff block."
    blocks = tuple(
        ReplyBlock(
            span.start + 1, span.end, span.kind, BlockFate.REFUSED, reason=reason
        )
        for span in spans
    )
    return ReplyRefused(reason, hint=hint, blocks=blocks)
