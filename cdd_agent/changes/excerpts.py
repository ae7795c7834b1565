"""A file of which only some lines were shown: which lines of it may be changed, and
which are known afterwards.
"""

from collections.abc import Iterable, Iterator

from cdd_agent.changes.look_alikes import common_ends
from cdd_agent.files.text import lines_of

Ranges = tuple[tuple[int, int], ...]
"""Lines of a file, from 1, each range with its last one: in order, and none touches
another.
"""


def joined(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """The same lines, in order, with ranges that overlap or touch as one."""
    whole: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if last < first:
            continue
        if whole and first <= whole[-1][1] + 1:
            whole[-1] = whole[-1][0], max(last, whole[-1][1])
        else:
            whole.append((first, last))
    return tuple(whole)


def in_words(ranges: Ranges) -> str:
    """`lines 1 to 20, 40 to 78`; empty for none."""
    if not ranges:
        return ""
    words: list[str] = []
    for first, last in ranges:
        words.append(str(first) if first == last else f"{first} to {last}")
    is_one = len(ranges) == 1 and ranges[0][0] == ranges[0][1]
    return f"{'line' if is_one else 'lines'} {', '.join(words)}"


def known_after(before: str, after: str, shown: Ranges) -> Ranges | None:
    """The lines that are known of a file's new text to a model that saw these of the
    old one and made the change. None: the change goes beyond what the model saw.

    All lines that were not shown must still be there, in their order, with nothing new
    between those that followed each other.
    """
    old_lines, new_lines = lines_of(before), lines_of(after)
    known: list[tuple[int, int]] = []
    at = 0
    for first, last in _unseen_ranges(len(old_lines), shown):
        unseen = old_lines[first - 1 : last]
        if last == len(old_lines):
            start = len(new_lines) - len(unseen)
            is_there = start >= at and new_lines[start:] == unseen
        else:
            start = _find_run(new_lines, unseen, at)
            is_there = start >= at
        if not is_there or (first == 1 and start != 0):
            return None
        known.append((at + 1, start))
        at = start + len(unseen)
    known.append((at + 1, len(new_lines)))
    return joined(known)


def changed_lines(before: str, after: str) -> tuple[int, int]:
    """The lines of the old text from the first to the last that differ; where lines
    were inserted, those around.
    """
    old_lines, new_lines = lines_of(before), lines_of(after)
    head, tail = common_ends(old_lines, new_lines)
    first, last = head + 1, len(old_lines) - tail
    if first <= last:
        return first, last
    return max(1, last), min(len(old_lines), first)


def _unseen_ranges(count: int, shown: Ranges) -> Iterator[tuple[int, int]]:
    """The ranges of a file's lines that were not shown."""
    at = 0
    for first, last in shown:
        if at < first - 1:
            yield at + 1, min(first - 1, count)
        at = max(at, last)
    if at < count:
        yield at + 1, count


def _find_run(lines: list[str], run: list[str], start: int) -> int:
    """Find lines that follow each other, from `start` on; -1 if there are none."""
    for place in range(start, len(lines) - len(run) + 1):
        if lines[place] == run[0] and lines[place : place + len(run)] == run:
            return place
    return -1
