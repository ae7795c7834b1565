"""A model's thoughts before its answer, where they are part of the text: drafts in them
are no edits.
"""

import re
from collections.abc import Sequence

from cdd_agent.changes.formats.fences import find_fences
from cdd_agent.changes.model import ReplyRefused

_BEGIN = re.compile(
    r"^\s*<(?P<tag>think|thinking|thoughts?|reasoning|scratchpad)>", re.IGNORECASE
)
_END_ALONE = re.compile(r"^\s*</(?:think|thinking)>\s*$", re.IGNORECASE)


def without_thoughts(lines: Sequence[str]) -> list[str]:
    """The lines of the answer. Raises `ReplyRefused` for thoughts that never end.

    Thoughts stand at the very beginning. Some servers keep the tag that begins them to
    themselves.
    """
    answer = list(lines)
    ends = [place for place, line in enumerate(answer) if _END_ALONE.match(line)][:1]
    if ends and not any(_BEGIN.match(line) for line in answer[: ends[0]]):
        fences = find_fences(answer)
        if not any(
            fence.path and fence.start < ends[0] < fence.end for fence in fences
        ):
            answer = answer[ends[0] + 1 :]
    while True:
        first = next(
            (place for place, line in enumerate(answer) if line.strip()), len(answer)
        )
        begun = _BEGIN.match(answer[first]) if first < len(answer) else None
        if begun is None:
            return answer
        end = re.compile(rf"</{begun['tag']}>", re.IGNORECASE)
        last = next(
            (place for place in range(first, len(answer)) if end.search(answer[place])),
            None,
        )
        if last is None:
            raise ReplyRefused(
                "The reply ends within its thoughts, and no answer follows.",
                hint="End them with their closing tag, then give the edits.",
            )
        answer = [end.split(answer[last], maxsplit=1)[1], *answer[last + 1 :]]
