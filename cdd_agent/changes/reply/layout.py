"""Locates the blocks of a reply: marked edits, code blocks, diffs in prose."""

from bisect import bisect_left
from collections.abc import Sequence

from msgspec import Struct

from cdd_agent.changes.formats.diffs import find_quoted_fences
from cdd_agent.changes.formats.fences import Fence, find_fences
from cdd_agent.changes.formats.form import Form, Span
from cdd_agent.changes.formats.project_names import ProjectNames
from cdd_agent.changes.model import BlockFate, ReplyBlock, ReplyRefused

_ROUNDS = 8
"""Most searches for fences: each diff in prose may contain some."""


class Layout(Struct, frozen=True):
    """The blocks by kind, in the order of the reply."""

    marked: tuple[Span, ...]
    """Edits between marks, in prose or in code blocks."""
    fences: tuple[Fence, ...]
    in_prose: tuple[Span, ...]
    """Diffs and similar edits without marks."""

    def marked_in(self, fence: Fence) -> list[Span]:
        first, last = (
            bisect_left(self.marked, line, key=lambda span: span.start)
            for line in (fence.start, fence.end)
        )
        return list(self.marked[first:last])

    def fences_from(self, start: int, stop: int) -> Sequence[Fence]:
        first, last = (
            bisect_left(self.fences, line, key=lambda fence: fence.start)
            for line in (start, stop)
        )
        return self.fences[first:last]

    def covered(self) -> set[int]:
        return _places(self.marked) | _places(self.fences) | _places(self.in_prose)


def lay_out(
    lines: Sequence[str],
    project_names: ProjectNames,
    forms: Sequence[Form],
    calls: Sequence[Span] = (),
) -> Layout:
    """Find the blocks around the calls. Raises `ReplyRefused` if diffs in prose and
    code blocks cannot be distinguished.
    """
    spans = [span for form in forms for span in form.marked(lines, project_names)]
    marked = _drop_overlapping([*calls, *spans])
    in_marks = _places(marked)
    in_diffs = find_quoted_fences(lines)
    # a fence in a diff may be a line of the file, which changes later fences
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
    """Return the spans in order, without those inside another."""
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
