"""A whole plan.md within one code block, as people paste it from a chat: where the plan is in it."""

import re
from dataclasses import dataclass
from itertools import islice

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_FENCE = re.compile(r"\ufeff? {0,3}(?P<marks>`{3,}|~{3,})[ \t]*(?P<info>[^`\r\n]*?)[ \t]*[\r\n]*")
_HEADING = re.compile(r"\ufeff? {0,3}#{1,6}[ \t]")
_STEP = re.compile(r" {0,3}#{1,6}[ \t]+\W*step\s+#?[0-9]", re.IGNORECASE)
_OF_TEXT = {"", "markdown", "md", "text", "txt", "plaintext"}
_MOST_TRIED = 20


@dataclass(frozen=True)
class Wrapping:
    """A text whose plan is in a code block: `before`, which ends with the opening fence, `plan`, and `after`."""

    before: str
    plan: str
    after: str

    @property
    def alone(self) -> str:
        """The plan with its lines where they are in the whole text."""
        return "\n" * len(_LINE.findall(self.before)) + self.plan

    def around(self, plan: str) -> str:
        """The whole text with another plan in it, its fences made longer where they have to be."""
        as_it_is = self.before + plan + self.after
        found = wrapping(as_it_is)
        if found is not None and found.plan == plan:
            return as_it_is
        opening: str = _LINE.findall(self.before)[-1]
        marks, closing = _marks(opening), _marks(self.after)
        longest = max((len(run) for run in re.findall(f"{re.escape(marks[0])}{{3,}}", plan)), default=0)
        longer = marks[0] * (longest + 1)
        before = self.before[: -len(opening)] + opening.replace(marks, longer, 1)
        return before + plan + (self.after.replace(closing, longer, 1) if closing else self.after)


def wrapping(text: str) -> Wrapping | None:
    """How a text is wrapped; None for a plan that stands by itself, or where the end of the block is not clear."""
    lines = _LINE.findall(text)
    start = next((at for at, line in enumerate(lines) if _FENCE.fullmatch(line) or _HEADING.match(line)), len(lines))
    opening = _FENCE.fullmatch(lines[start]) if start < len(lines) else None
    if opening is None or re.split(r"[\s:{,]", opening["info"])[0].lower() not in _OF_TEXT:
        return None
    end = _end(lines, start, opening["marks"])
    if end is None or not any(map(_STEP.match, lines[start:end])):
        return None
    before, plan, after = lines[: start + 1], lines[start + 1 : end], lines[end:]
    return Wrapping("".join(before), "".join(plan), "".join(after))


def _end(lines: list[str], start: int, marks: str) -> int | None:
    """The line of the closing fence, or the end of a text that has none.

    Whoever pastes a plan does not count marks, so a bare fence may as well open a block inside: the last one counts
    that leaves only whole blocks before and behind it, and no step behind it.
    """
    fences = [at for at in range(start + 1, len(lines)) if _is_as_long(lines[at], marks)]
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
            fence = _FENCE.fullmatch(line)
            opening, is_guess = (fence["marks"], _closes(line, marks)) if fence else ("", False)
            if is_guess and not is_closed:
                return False
        elif _closes(line, opening):
            opening = ""
        elif is_guess and _STEP.match(line):
            return False
    return not opening


def _is_as_long(line: str, marks: str) -> bool:
    fence = _FENCE.fullmatch(line)
    return fence is not None and fence["marks"].startswith(marks)


def _closes(line: str, marks: str) -> bool:
    fence = _FENCE.fullmatch(line)
    return fence is not None and not fence["info"] and fence["marks"].startswith(marks)


def _marks(text: str) -> str:
    found = re.match(r"[ \ufeff]*(`{3,}|~{3,})", text)
    return found[1] if found else ""
