"""What a model thought before its answer, where it is part of the text: drafts in it are no edits."""

import re
from collections.abc import Sequence

from cdd_agent.edits.formats.fences import find_fences
from cdd_agent.edits.model import ReplyRefused

_BEGIN = re.compile(r"^\s*<(?P<tag>think|thinking|thoughts?|reasoning|scratchpad)>", re.IGNORECASE)
_END_ALONE = re.compile(r"^\s*</(?:think|thinking)>\s*$", re.IGNORECASE)


def without_thoughts(lines: Sequence[str]) -> list[str]:
    """The lines of the answer. Raises `ReplyRefused` for thoughts that never end.

    Thoughts stand at the very beginning. Some servers keep the tag that begins them to themselves.
    """
    answer = list(lines)
    ends = [place for place, line in enumerate(answer) if _END_ALONE.match(line)][:1]
    if ends and not any(_BEGIN.match(line) for line in answer[: ends[0]]):
        fences = find_fences(answer)
        if not any(fence.path and fence.start < ends[0] < fence.end for fence in fences):
            answer = answer[ends[0] + 1 :]
    while begun := _begun(answer):
        first, tag = begun
        answer = _after(answer[first:], re.compile(rf"</{tag}>", re.IGNORECASE))
    return answer


def _begun(lines: Sequence[str]) -> tuple[int, str] | None:
    first = next((place for place, line in enumerate(lines) if line.strip()), None)
    found = _BEGIN.match(lines[first]) if first is not None else None
    return (first, found["tag"]) if first is not None and found else None


def _after(lines: Sequence[str], end: re.Pattern[str]) -> list[str]:
    for place, line in enumerate(lines):
        if found := end.search(line):
            return [line[found.end() :], *lines[place + 1 :]]
    raise ReplyRefused(
        "The reply ends within its thoughts, and no answer follows.",
        hint="End them with their closing tag, then give the edits.",
    )
