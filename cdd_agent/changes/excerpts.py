"""Files that the model has seen in part."""

from cdd_agent.changes.look_alikes import common_ends
from cdd_agent.files.line_ranges import Ranges, join_ranges, subtract_ranges
from cdd_agent.files.text import lines_of


def find_seen_after(before: str, after: str, shown: Ranges) -> Ranges | None:
    """Return the lines of the new text that the model knows, given the lines of the old
    text it saw. None if the change affects an unseen line.

    Every unseen line must remain, in order, with no new line between adjacent ones.
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
    """Return the first and last changed line of the old text. For pure insertions,
    return the lines around them.
    """
    old_lines, new_lines = lines_of(before), lines_of(after)
    head, tail = common_ends(old_lines, new_lines)
    first, last = head + 1, len(old_lines) - tail
    if first <= last:
        return first, last
    return max(1, last), min(len(old_lines), first)


def _find_run(lines: list[str], run: list[str], start: int) -> int:
    """Return where the run begins, from `start` on; -1 if nowhere."""
    for place in range(start, len(lines) - len(run) + 1):
        if lines[place] == run[0] and lines[place : place + len(run)] == run:
            return place
    return -1
