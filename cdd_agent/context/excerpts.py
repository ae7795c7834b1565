"""The pieces of a file of which the most useful are shown: its definitions, and what is
between them.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise

from msgspec import Struct

from cdd_agent.context.definitions import Definition
from cdd_agent.context.words import BETWEEN, Vocabulary, words_in

_LINES = 30
"""Of a piece, at most."""
_SMALLEST = 6
"""Lines; smaller neighbours are put together."""
_HEAD = 20
"""Lines of a file's beginning that are shown with its best piece: mostly what it
imports.
"""
_SATURATION, _LENGTH, _AVERAGE = 1.2, 0.75, 120
"""BM25's k1 and b, and how many words a piece has."""
_BESIDE, _WITHIN = 0.2, 0.3
"""How much of its score a piece lends to its neighbours, and to the other parts of the
same definition.
"""
_WORDS = BETWEEN[:10] + b"\n" + BETWEEN[11:]


class Piece(Struct, frozen=True):
    """Some lines."""

    first: int
    last: int
    name: str
    """The innermost definition that it is or is in; of several the first."""
    score: float = 0.0
    words: tuple[str, ...] = ()
    """Those of the question that it has, the rarest first."""
    size: int = 0
    """Bytes."""


def pieces(lines: int, found: Sequence[Definition]) -> list[Piece]:
    """A file of so many lines in pieces: cut where a definition begins or ends, long
    ones further.
    """
    cuts = sorted(
        {
            1,
            lines + 1,
            *(
                line
                for each in found
                for line in (each.first, each.last + 1)
                if 1 <= line <= lines
            ),
        }
    )
    result: list[Piece] = []
    around: list[Definition] = []
    at = 0
    for begin, end in pairwise(cuts):
        while at < len(found) and found[at].first <= begin:
            around.append(found[at])
            at += 1
        around = [each for each in around if each.last >= begin]
        name = around[-1].name if around else ""
        parts = math.ceil((end - begin) / _LINES)
        for part in range(parts):
            first = begin + (end - begin) * part // parts
            last = begin + (end - begin) * (part + 1) // parts - 1
            before = result[-1] if result else None
            if (
                before
                and last - before.first < _LINES
                and min(last - first, before.last - before.first) < _SMALLEST - 1
            ):
                result[-1] = Piece(before.first, last, before.name or name)
            else:
                result.append(Piece(first, last, name))
    return result


class Judged(Struct, frozen=True):
    """A file's text, as far as it is about a question."""

    pieces: tuple[Piece, ...]
    """Those that have words of it, the best first."""
    counts: Mapping[str, int]
    """How often the text has each of its words."""
    length: int
    """Of the text, in words."""


def judged(
    data: bytes,
    found: Sequence[Definition],
    rarity: Mapping[str, float],
    vocabulary: Vocabulary,
) -> Judged:
    """Judge a text by the words of a question; `rarity` is how much each of them
    says.
    """
    lines = data.translate(_WORDS).removesuffix(b"\n").split(b"\n")
    parts = [
        (each, b" ".join(lines[each.first - 1 : each.last]).split())
        for each in pieces(len(lines), found)
    ]
    asked = dict[bytes, list[str]]()
    for identifier in set[bytes]().union(*(there for _, there in parts)):
        words = vocabulary[identifier]
        if not rarity.keys().isdisjoint(words):
            asked[identifier] = [word for word in words if word in rarity]
    plain: list[tuple[Piece, float, Counter[str]]] = []
    for piece, there in parts:
        counts = Counter(word for word in words_in(piece.name) if word in rarity)
        for identifier in filter(asked.__contains__, there):
            for word in asked[identifier]:
                counts[word] += 1
        own = relevance(counts, len(there) / _AVERAGE, rarity)
        plain.append((piece, own, counts))
    best: defaultdict[str, float] = defaultdict(float)
    for piece, own, _ in plain:
        best[piece.name] = max(best[piece.name], own)
    result: list[Piece] = []
    total: Counter[str] = Counter()
    for at, (piece, own, counts) in enumerate(plain):
        beside = max(
            (plain[near][1] for near in (at - 1, at + 1) if 0 <= near < len(plain)),
            default=0.0,
        )
        total.update(counts)
        score = (
            own + _BESIDE * beside + (_WITHIN * best[piece.name] if piece.name else 0.0)
        )
        if score > 0:
            words = tuple(sorted(counts, key=lambda word: (-rarity[word], word)))
            size = (
                sum(map(len, lines[piece.first - 1 : piece.last]))
                + piece.last
                - piece.first
                + 1
            )
            result.append(
                Piece(piece.first, piece.last, piece.name, score, words, size)
            )
    ordered = sorted(result, key=lambda piece: (-piece.score, piece.first))
    return Judged(tuple(ordered), total, sum(len(there) for _, there in parts))


def relevance(
    counts: Mapping[str, int], length: float, rarity: Mapping[str, float]
) -> float:
    """BM25. `length` is beside the average."""
    norm = _SATURATION * (1 - _LENGTH + _LENGTH * length)
    return sum(
        rarity[word] * count * (_SATURATION + 1) / (count + norm)
        for word, count in counts.items()
    )


def head(found: Sequence[Definition]) -> int:
    """The last line of a file's beginning, before its first definition."""
    return min(_HEAD, *(each.first - 1 for each in found)) if found else 0
