"""The lines that a step changed, located in the current file."""

from collections.abc import Iterator
from difflib import SequenceMatcher

_MOST_LINES = 10_000
"""Longest file to compare, in lines."""


def find_changed_lines(before: str, after: str, current: str) -> frozenset[int]:
    """Return the lines of `current`, from 1, that the change from `before` to `after`
    added, except blank ones and those changed again. Empty for a very long file.
    """
    old, new, current_lines = _split(before), _split(after), _split(current)
    if max(len(old), len(new), len(current_lines)) > _MOST_LINES:
        return frozenset()
    unchanged = {place for _, place in _find_equal_lines(old, new)}
    lines = set()
    for place, number in _find_equal_lines(new, current_lines):
        if place not in unchanged and new[place - 1].strip():
            lines.add(number)
    return frozenset(lines)


def _split(text: str) -> list[str]:
    """Return the lines of a text. Git may have converted the line ends."""
    return [line.removesuffix("\r") for line in text.split("\n")]


def _find_equal_lines(old: list[str], new: list[str]) -> Iterator[tuple[int, int]]:
    """Yield numbers, from 1, of lines that both texts share."""
    head = _length_of_common(old, new)
    tail = _length_of_common(old[head:][::-1], new[head:][::-1])
    middle = SequenceMatcher(
        None, old[head : len(old) - tail], new[head : len(new) - tail]
    )
    blocks = [
        (0, 0, head),
        *((a + head, b + head, size) for a, b, size in middle.get_matching_blocks()),
        (len(old) - tail, len(new) - tail, tail),
    ]
    for start, new_start, size in blocks:
        for offset in range(size):
            yield start + offset + 1, new_start + offset + 1


def _length_of_common(one: list[str], other: list[str]) -> int:
    length = 0
    for first, right in zip(one, other, strict=False):
        if first != right:
            break
        length += 1
    return length
