"""Checks that the end of each code block is certain.

An unclosed fence was cut. A fence may have closed too early if it contains an opening,
or if a fence without language and name follows.
"""

from collections.abc import Sequence

from cdd_agent.changes.completeness import PROSE
from cdd_agent.changes.formats.diffs import Diffs
from cdd_agent.changes.formats.fences import Fence, find_fences
from cdd_agent.changes.formats.form import Form
from cdd_agent.changes.formats.naming import DIFFS
from cdd_agent.changes.model import ReplyFault, ReplyRefused
from cdd_agent.changes.readability import is_whole
from cdd_agent.changes.reply.layout import Layout
from cdd_agent.changes.reply.parts import Part, suffix

_HOLD_FENCES = PROSE | {"", ".py", ".pyi", ".qmd", ".rmd", ".org", ".jl", ".ex", ".exs"}
"""Suffixes of files that may contain fences: Markdown, and languages whose comments are
Markdown.
"""
_DIFFS = Diffs()


def find_unclear(
    parts: Sequence[Part],
    lines: Sequence[str],
    layout: Layout,
    forms: Sequence[Form],
) -> tuple[Part, ReplyRefused] | None:
    """Return the first code block whose end is unclear, with the reason."""
    previous: Part | None = None
    for part in parts:
        fence = part.fence
        if fence is None:
            continue
        if previous and previous.fence and _may_continue(previous, part, fence):
            name = previous.path
            return previous, _unclear(f"of {name}", previous.fence, name)
        is_cut = not (fence.is_closed or layout.marked_in(fence))
        refusal = _judge_end(part, fence, lines, forms, is_cut=is_cut)
        if refusal is not None:
            return part, refusal
        previous = part if part.path else None
    return None


def _may_continue(previous: Part, part: Part, fence: Fence) -> bool:
    """True if the block may be the rest of the previous file."""
    is_apart = fence.is_named_apart or part.whole is None
    is_labelled = fence.info.strip() or (part.path and is_apart)
    return not is_labelled and not _is_certain(previous)


def _judge_end(
    part: Part,
    fence: Fence,
    lines: Sequence[str],
    forms: Sequence[Form],
    *,
    is_cut: bool,
) -> ReplyRefused | None:
    """Return a refusal if the block's own end is unclear."""
    path = part.path
    if not path:
        is_unclear = fence.holds_an_opening and _holds_edits(fence, forms)
        which = f"in line {fence.start + 1} of the reply"
        return _unclear(which, fence) if is_unclear else None
    if _continues_as_diff(fence, lines):
        return _unclear(f"of {path}", fence, path)
    if is_cut and not _is_complete_file(part, lines):
        return _cut(path)
    if part.whole and fence.holds_an_opening:
        return _unclear(f"of {path}", fence, path)
    return None


def _holds_edits(fence: Fence, forms: Sequence[Form]) -> bool:
    """True if a block that is no edit contains a block that would be one."""
    for inner in find_fences(fence.lines):
        if inner.path or inner.language in DIFFS:
            return True
        if any(form.accepts(inner) for form in forms):
            return True
    return False


def _continues_as_diff(fence: Fence, lines: Sequence[str]) -> bool:
    after = lines[fence.end] if fence.end < len(lines) else ""
    if not after.startswith(("+", "-", "@@")) or after.startswith(("- ", "+ ")):
        return False
    return _DIFFS.accepts(fence)


def _is_certain(part: Part) -> bool:
    """True if the file certainly ends with its block, whatever fences follow."""
    if any(suffix(edit.path) in PROSE for edit in part.edits):
        return False
    if part.whole is None or suffix(part.whole.path) not in _HOLD_FENCES:
        return True
    return is_whole(part.whole.path, part.whole.content)


def _is_complete_file(part: Part, lines: Sequence[str]) -> bool:
    if part.whole is None or lines[-1].strip():
        return False
    return is_whole(part.whole.path, part.whole.content)


def _cut(path: str) -> ReplyRefused:
    return ReplyRefused(
        f"The code block of {path} is never closed: the reply seems to be cut.",
        fault=ReplyFault.UNFINISHED,
        path=path,
    )


def _unclear(which: str, fence: Fence, path: str = "") -> ReplyRefused:
    mark = fence.mark
    return ReplyRefused(
        f"It is unclear where the code block {which} ends.",
        hint="If it contains code blocks itself, open and close it with"
        f" {mark[0] * (len(mark) + 1)}. Give blocks that are not files a language,"
        f" as in {mark}text.",
        path=path,
    )
