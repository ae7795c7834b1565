"""A file of which only some lines were shown: what of it may be changed, and what is
known of it afterwards.
"""

from collections.abc import Iterable, Iterator

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
    said = (
        str(first) if first == last else f"{first} to {last}" for first, last in ranges
    )
    return (
        f"line{'' if len(ranges) == 1 and ranges[0][0] == ranges[0][1] else 's'}"
        f" {', '.join(said)}"
        if ranges
        else ""
    )


def lines_of(content: bytes) -> list[bytes]:
    """With their ends, as editors count them."""
    lines = content.split(b"\n")
    last = lines.pop()
    return [line + b"\n" for line in lines] + ([last] if last else [])


def known_after(before: bytes, after: bytes, shown: Ranges) -> Ranges | None:
    """The lines that are known of a file's new content to someone who saw these of the
    old one and made the change. None: the change goes beyond what they saw.

    All that was not shown has to be there still, in its order, with nothing new in the
    middle of it.
    """
    at, known, number = 0, list[tuple[int, int]](), 1
    for unseen, is_first, is_last in _unseen(before, shown):
        if is_last:
            found = len(after) - len(unseen)
            is_there = (
                found >= at and after.endswith(unseen) and _begins_a_line(after, found)
            )
        else:
            found = _find_lines(after, unseen, at)
            is_there = found >= 0
        if not is_there or (is_first and found != 0):
            return None
        between = _count(after[at:found])
        known.append((number, number + between - 1))
        number += between + _count(unseen)
        at = found + len(unseen)
    known.append((number, number + _count(after[at:]) - 1))
    return joined(known)


def changed_lines(before: bytes, after: bytes) -> tuple[int, int]:
    """The lines of the old content from the first to the last that differ; where lines
    were put in, those around.
    """
    old, new = lines_of(before), lines_of(after)
    most = min(len(old), len(new))
    head = next((place for place in range(most) if old[place] != new[place]), most)
    tail = next(
        (place for place in range(most - head) if old[-1 - place] != new[-1 - place]),
        most - head,
    )
    first, last = head + 1, len(old) - tail
    return (first, last) if first <= last else (max(1, last), min(len(old), first))


def _unseen(content: bytes, shown: Ranges) -> Iterator[tuple[bytes, bool, bool]]:
    """The texts between what was shown; and of each whether the file begins with it,
    and ends with it.
    """
    lines, at = lines_of(content), 0
    for first, last in (*shown, (len(lines) + 1, len(lines) + 1)):
        if at < first - 1:
            yield b"".join(lines[at : first - 1]), at == 0, first > len(lines)
        at = max(at, last)


def _find_lines(text: bytes, lines: bytes, at: int) -> int:
    while (found := text.find(lines, at)) >= 0 and not _begins_a_line(text, found):
        at = found + 1
    return found


def _begins_a_line(text: bytes, at: int) -> bool:
    return at == 0 or text[at - 1 : at] == b"\n"


def _count(text: bytes) -> int:
    return text.count(b"\n") + (bool(text) and not text.endswith(b"\n"))
