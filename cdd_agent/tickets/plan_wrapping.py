"""A whole plan.md within one code block, as people paste it from a chat: which of its lines are the plan."""

import re
from itertools import islice

_FENCE = re.compile(r"\ufeff? {0,3}(?P<marks>`{3,}|~{3,})[ \t]*(?P<info>[^`\r\n]*?)[ \t]*[\r\n]*")
_HEADING = re.compile(r"\ufeff? {0,3}#{1,6}[ \t]")
_STEP = re.compile(r" {0,3}#{1,6}[ \t]+\W*step\s+#?[0-9]", re.IGNORECASE)
_OF_TEXT = {"", "markdown", "md", "text", "txt", "plaintext"}
_MOST_TRIED = 20


def plan_lines(lines: list[str]) -> range:
    """The lines inside the code block; all for a plan that stands by itself, or where the block's end is not clear."""
    start = next((at for at, line in enumerate(lines) if _FENCE.fullmatch(line) or _HEADING.match(line)), len(lines))
    opening = _FENCE.fullmatch(lines[start]) if start < len(lines) else None
    if opening is not None and re.split(r"[\s:{,]", opening["info"])[0].lower() in _OF_TEXT:
        end = _end(lines, start, opening["marks"])
        if end is not None and any(map(_STEP.match, lines[start:end])):
            return range(start + 1, end)
    return range(len(lines))


def wrapped_again(before: list[str], plan: list[str], after: list[str]) -> str:
    """A text with another plan in its code block, whose fences are made longer where they have to be."""
    if before and plan_lines([*before, *plan, *after]) != range(len(before), len(before) + len(plan)):
        fences = before[-1:] + after[:1]
        found = [match["marks"] for match in map(_FENCE.fullmatch, fences) if match]
        mark = found[0][0]
        longest = max((len(run) for run in re.findall(f"{re.escape(mark)}{{3,}}", "".join(plan))), default=0)
        longer = [fence.replace(marks, mark * (longest + 1), 1) for fence, marks in zip(fences, found, strict=True)]
        before, after = [*before[:-1], longer[0]], [*longer[1:], *after[1:]]
    return "".join([*before, *plan, *after])


def _end(lines: list[str], start: int, marks: str) -> int | None:
    """The line of the closing fence, or the end of a text that has none.

    Whoever pastes a plan does not count marks, so a bare fence may as well open a block inside: the last one counts
    that leaves only whole blocks before and behind it, and no step behind it.
    """
    fences = [at for at in range(start + 1, len(lines)) if _fence(lines[at], marks)]
    if len(fences) == 1 and _closes(lines[fences[0]], marks):
        return fences[0]  # whatever is inside has shorter ones
    last_step = max((at for at, line in enumerate(lines) if _STEP.match(line)), default=-1)
    candidates = (at for at in range(len(lines) - 1, max(start, last_step), -1) if _closes(lines[at], marks))
    for at in islice(candidates, _MOST_TRIED):
        if _has_whole_blocks(lines[start + 1 : at], marks) and _has_whole_blocks(lines[at + 1 :], marks):
            return at
    return len(lines) if _has_whole_blocks(lines[start + 1 :], marks, is_closed=False) else None


def _has_whole_blocks(lines: list[str], marks: str, *, is_closed: bool = True) -> bool:
    """Whether every block has its end. What could as well be the closing fence opens only a block without a step, and
    none where nothing else `is_closed` by it."""
    opening, is_guess = "", False
    for line in lines:
        if not opening:
            fence = _fence(line)
            opening, is_guess = (fence["marks"], _closes(line, marks)) if fence else ("", False)
            if is_guess and not is_closed:
                return False
        elif _closes(line, opening):
            opening = ""
        elif is_guess and _STEP.match(line):
            return False
    return not opening


def _fence(line: str, marks: str = "") -> re.Match[str] | None:
    """The fence that a line is, if it is at least as long as these marks."""
    found = _FENCE.fullmatch(line)
    return found if found and found["marks"].startswith(marks) else None


def _closes(line: str, marks: str) -> bool:
    fence = _fence(line, marks)
    return fence is not None and not fence["info"]
