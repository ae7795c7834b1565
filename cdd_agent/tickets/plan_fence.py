"""Finds a plan.md inside one code block, as pasted from a chat."""

import re
from collections.abc import Sequence

from cdd_agent.pattern import Pattern

_FENCE = Pattern(
    r"\ufeff? {0,3}(?P<marks>`{3,}|~{3,})[ \t]*(?P<info>[^`\r\n]*?)[ \t]*[\r\n]*"
)
_HEADING = Pattern(r"\ufeff? {0,3}#{1,6}[ \t]")
_STEP = Pattern(r" {0,3}#{1,6}[ \t]\W*(?:step|task)\s+#?[0-9]", re.IGNORECASE)
_TEXT_FORMATS = {"", "markdown", "md", "text", "txt", "plaintext"}


def plan_lines(lines: Sequence[str]) -> range:
    """Return the lines inside the code block; all if there is none."""
    start, marks = _find_opening(lines)
    last_step = max(
        (number for number, line in enumerate(lines) if _STEP.match(line)), default=-1
    )
    if start is None or last_step < start:
        return range(len(lines))
    ends = _possible_ends(lines, start, marks)
    if not ends:
        return range(start + 1, len(lines))
    # A bare fence may also open a block of the plan, so only the last can be the end.
    return range(start + 1, ends[-1]) if ends[-1] > last_step else range(len(lines))


def _find_opening(lines: Sequence[str]) -> tuple[int | None, str]:
    """Return the line and marks of a text block before any heading."""
    for number, line in enumerate(lines):
        fence = _FENCE.fullmatch(line)
        if fence:
            language = re.split(r"[\s:{,]", fence["info"])[0].lower()
            return (number, fence["marks"]) if language in _TEXT_FORMATS else (None, "")
        if _HEADING.match(line):
            break
    return None, ""


def _possible_ends(lines: Sequence[str], start: int, marks: str) -> list[int]:
    """Return bare fences that do not end a block with a language."""
    ends = []
    inner_marks = ""
    for number in range(start + 1, len(lines)):
        fence = _FENCE.fullmatch(lines[number])
        if not fence or not fence["marks"].startswith(inner_marks or marks):
            continue
        if fence["info"]:
            inner_marks = inner_marks or fence["marks"]
        elif inner_marks:
            inner_marks = ""
        else:
            ends.append(number)
    return ends
