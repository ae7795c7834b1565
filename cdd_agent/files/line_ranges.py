from collections.abc import Iterable

Ranges = tuple[tuple[int, int], ...]
"""The first and last line of each range, from 1. Sorted, without overlap or contact."""


def join_ranges(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Sort ranges, and merge those that overlap or touch."""
    whole: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if last < first:
            continue
        if whole and first <= whole[-1][1] + 1:
            whole[-1] = whole[-1][0], max(last, whole[-1][1])
        else:
            whole.append((first, last))
    return tuple(whole)


def subtract_ranges(ranges: Ranges, removed: Ranges) -> Ranges:
    remaining: list[tuple[int, int]] = []
    for first, last in ranges:
        start = first
        for removed_first, removed_last in removed:
            if removed_last >= start and removed_first <= last:
                remaining.append((start, removed_first - 1))
                start = removed_last + 1
        remaining.append((start, last))
    return join_ranges(remaining)


def describe_ranges(ranges: Ranges) -> str:
    """Return `lines 1 to 20, 40 to 78`, or an empty text for no lines."""
    if not ranges:
        return ""
    words: list[str] = []
    for first, last in ranges:
        words.append(str(first) if first == last else f"{first} to {last}")
    noun = "line" if words == [str(ranges[0][0])] else "lines"
    return f"{noun} {', '.join(words)}"
