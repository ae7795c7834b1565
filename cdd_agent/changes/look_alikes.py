"""Texts that look alike but differ in their characters.

A model often writes `"` for the file's `“`, a space for a no-break space, or an `ü` of
one character instead of two. `fold` gives both the same text. `keep_characters` then
writes the file's characters wherever the new text only quotes them.
"""

import difflib
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence

from cdd_agent.files.text import normalize

_QUOTES = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u02bc", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033", '"'),
}
_WITHOUT_WIDTH = frozenset(
    "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
    "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
) | {chr(code) for code in range(0xFE00, 0xFE10)}
"""Invisible characters: soft hyphens, joiners, direction marks, variation selectors."""
_MOST_PAIRS = 50_000
"""Most equal pairs of items for a full comparison, to limit its time."""
_MOST_RARE_PAIRS = 1_000_000
"""The limit for items that are at most a hundredth of a sequence."""
_LONGEST_QUOTED = 500
"""Longest lines, in characters, that are compared as one text."""

Opcode = tuple[str, int, int, int, int]


def fold(text: str) -> str:
    """Return the common form of all texts that look like this one."""
    if text.isascii():
        return text
    return normalize("NFD", text).translate(_FOLDED)


class _FoldedCharacters(dict[int, str]):
    """Maps characters to folded ones, computed on first use."""

    def __missing__(self, code: int) -> str:
        self[code] = _fold_character(chr(code))
        return self[code]


_FOLDED = _FoldedCharacters()


def _fold_character(char: str) -> str:
    category = unicodedata.category(char)
    if char in _WITHOUT_WIDTH:
        return ""
    if category == "Zs":
        return " "
    if category == "Pd" or char == "\u2212":
        return "-"
    if char in _QUOTES:
        return _QUOTES[char]
    if char == "\u2026":
        return "..."
    # an undecodable byte, shown as U+FFFD
    if category == "Cs":
        return "\ufffd"
    if unicodedata.decomposition(char).startswith(("<wide>", "<narrow>")):
        return unicodedata.normalize("NFKD", char)
    return char


def find_boundaries(text: str) -> dict[int, int]:
    """Map the end of each character, with its accents: in the folded text → in the
    text.
    """
    ends: dict[int, int] = {}
    folded = start = 0
    for end in range(1, len(text) + 1):
        if end < len(text) and unicodedata.combining(text[end]):
            continue
        folded += len(fold(text[start:end]))
        ends[folded] = end
        start = end
    return ends


def keep_characters(present: str, find: str, new: str) -> str:
    """Return the new text, with the file's characters where it quotes `find`. `present`
    is the file's text, which looks like `find`.
    """
    if present == find:
        return new
    lines = [text.split("\n") for text in (present, find, new)]
    counts = {len(each) for each in lines}
    if len(find) > _LONGEST_QUOTED and len(counts) == 1 and counts != {1}:
        return "\n".join(keep_characters(*each) for each in zip(*lines, strict=True))
    pieces = list(pair_pieces(find, present))
    written: list[str] = []
    for tag, find_from, find_to, new_from, new_to in compare(find, new):
        if tag != "equal":
            written.append(new[new_from:new_to])
            continue
        # where the file's piece is cut, the new text has the rest
        moved = new_from - find_from
        at = find_from
        for start, end, present_piece in pieces:
            if at <= start and end <= find_to:
                written += (new[at + moved : start + moved], present_piece)
                at = end
        written.append(new[at + moved : new_to])
    return "".join(written)


def pair_pieces(find: str, present: str) -> Iterator[tuple[int, int, str]]:
    """Yield the smallest matching pieces of two look-alikes: start and end in the
    first, and the text in the second.
    """
    find_ends, present_ends = find_boundaries(find), find_boundaries(present)
    start = present_start = 0
    for folded, end in find_ends.items():
        if folded and folded in present_ends:
            yield start, end, present[present_start : present_ends[folded]]
            start, present_start = end, present_ends[folded]


def compare(old: Sequence[str], new: Sequence[str]) -> Sequence[Opcode]:
    """Return opcodes as `difflib` does."""
    counts = Counter(new)
    if sum(counts[item] for item in old) <= _MOST_PAIRS:
        matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
        return matcher.get_opcodes()
    # `difflib` ignores frequent items if enough others exist
    rare = len(new) // 100 + 1
    pairs = [counts[item] for item in old if counts[item] <= rare]
    if len(pairs) * 2 >= len(old) >= 200 and sum(pairs) <= _MOST_RARE_PAIRS:
        return difflib.SequenceMatcher(None, old, new).get_opcodes()
    head, tail = common_ends(old, new)
    old_end, new_end = len(old) - tail, len(new) - tail
    return [
        ("equal", 0, head, 0, head),
        ("replace", head, old_end, head, new_end),
        ("equal", old_end, len(old), new_end, len(new)),
    ]


def common_ends(old: Sequence[object], new: Sequence[object]) -> tuple[int, int]:
    """Return the lengths of the common beginning and of the common end."""
    most = min(len(old), len(new))
    head = 0
    while head < most and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < most - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return head, tail
