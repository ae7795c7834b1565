"""Files that the model has seen in part: the lines that it may change, and the lines
that it has seen after a change.
"""

from cdd_agent.changes.look_alikes import common_ends
from cdd_agent.files.line_ranges import Ranges, join_ranges, subtract_ranges
from cdd_agent.files.text import lines_of


def find_seen_after(before: str, after: str, shown: Ranges) -> Ranges | None:
    """Return the lines of the new text that a model has seen if it saw these lines of
    the old text and made the change. None if the change affects a line it did not see.

    The new text must have every unseen line, in the same order, and no new line between
    two that followed each other.
    """
    old_lines, new_lines = lines_of(before), lines_of(after)
    seen: list[tuple[int, int]] = []
    done = 0
    for first, last in subtract_ranges(((1, len(old_lines)),), shown):
        unseen = old_lines[first - 1 : last]
        if last == len(old_lines):
            start = len(new_lines) - len(unseen)
            is_present = start >= done and new_lines[start:] == unseen
        else:
            start = _find_run(new_lines, unseen, done)
            is_present = start >= done
        if not is_present or (first == 1 and start != 0):
            return None
        seen.append((done + 1, start))
        done = start + len(unseen)
    seen.append((done + 1, len(new_lines)))
    return join_ranges(seen)


def find_changed_range(before: str, after: str) -> tuple[int, int]:
    """Return the first and the last line of the old text that differ. If lines were
    only inserted, return the lines around them.
    """
    old_lines, new_lines = lines_of(before), lines_of(after)
    head, tail = common_ends(old_lines, new_lines)
    first, last = head + 1, len(old_lines) - tail
    if first <= last:
        return first, last
    return max(1, last), min(len(old_lines), first)


def _find_run(lines: list[str], run: list[str], start: int) -> int:
    """Find lines that follow each other, from `start` on; -1 if there are none."""
    for place in range(start, len(lines) - len(run) + 1):
        if lines[place] == run[0] and lines[place : place + len(run)] == run:
            return place
    return -1
