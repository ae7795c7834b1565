"""Split a file into pieces and score each for a query. A piece is a definition, a part
of one, or the lines between two.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.context.definitions import Definition
from cdd_agent.context.words import BETWEEN, Vocabulary, words_in

_LINES = 30
"""Maximum lines of a piece."""
_SMALLEST = 6
"""Lines. Smaller neighbours become one piece."""
_HEAD = 20
"""Lines of a file's beginning, mostly imports, to show with its best piece."""
_SATURATION = 1.2
"""BM25's k1."""
_LENGTH = 0.75
"""BM25's b."""
_AVERAGE = 120
"""Words of a piece."""
_TO_NEIGHBOUR = 0.2
"""Share of a piece's score that its neighbours gain."""
_TO_DEFINITION = 0.3
"""Share that other parts of the same definition gain."""
_WORDS = BETWEEN[:10] + b"\n" + BETWEEN[11:]


class ExcerptPiece(Struct, frozen=True):
    first: int
    last: int
    name: str
    """The innermost definition around it, or the first one in it."""
    score: float = 0.0
    words: tuple[str, ...] = ()
    """The query's words in it, rarest first."""
    size: int = 0
    """Bytes."""


def pieces(lines: int, definitions: Sequence[Definition]) -> list[ExcerptPiece]:
    """Split a file of `lines` lines where definitions begin or end, and pieces that are
    too long further.
    """
    cuts = {1, lines + 1}
    for definition in definitions:
        for line in (definition.first, definition.last + 1):
            if 1 <= line <= lines:
                cuts.add(line)
    result: list[ExcerptPiece] = []
    around: list[Definition] = []
    place = 0
    for begin, end in pairwise(sorted(cuts)):
        while place < len(definitions) and definitions[place].first <= begin:
            around.append(definitions[place])
            place += 1
        around = [definition for definition in around if definition.last >= begin]
        name = around[-1].name if around else ""
        count = math.ceil((end - begin) / _LINES)
        for part in range(count):
            first = begin + (end - begin) * part // count
            last = begin + (end - begin) * (part + 1) // count - 1
            _append(result, ExcerptPiece(first, last, name))
    return result


def _append(result: list[ExcerptPiece], piece: ExcerptPiece) -> None:
    if result:
        previous = result[-1]
        smaller = min(piece.last - piece.first, previous.last - previous.first)
        is_short = piece.last - previous.first < _LINES
        if is_short and smaller < _SMALLEST - 1:
            name = previous.name or piece.name
            result[-1] = ExcerptPiece(previous.first, piece.last, name)
            return
    result.append(piece)


class Judged(Struct, frozen=True):
    """The relevance of a file's text for a query."""

    pieces: tuple[ExcerptPiece, ...]
    """The pieces with words of the query, best first."""
    counts: Mapping[str, int]
    """Occurrences in the text, by word of the query."""
    length: int
    """Number of words of the text."""


def judged(
    data: bytes,
    definitions: Sequence[Definition],
    rarity: Mapping[str, float],
    vocabulary: Vocabulary,
) -> Judged:
    """Judge a text by the words of a query, with the `rarity` of each."""
    lines = data.translate(_WORDS).removesuffix(b"\n").split(b"\n")
    parts: list[tuple[ExcerptPiece, float, Counter[str]]] = []
    best: defaultdict[str, float] = defaultdict(float)
    total: Counter[str] = Counter()
    length = 0
    for piece in pieces(len(lines), definitions):
        identifiers = b" ".join(lines[piece.first - 1 : piece.last]).split()
        counts = Counter(word for word in words_in(piece.name) if word in rarity)
        for identifier in identifiers:
            for word in vocabulary[identifier]:
                if word in rarity:
                    counts[word] += 1
        score = relevance(counts, len(identifiers) / _AVERAGE, rarity)
        best[piece.name] = max(best[piece.name], score)
        parts.append((piece, score, counts))
        total.update(counts)
        length += len(identifiers)
    scored: list[ExcerptPiece] = []
    for place, (piece, own_score, counts) in enumerate(parts):
        nearby = [0.0]
        for near in (place - 1, place + 1):
            if 0 <= near < len(parts):
                nearby.append(parts[near][1])
        score = own_score + _TO_NEIGHBOUR * max(nearby)
        if piece.name:
            score += _TO_DEFINITION * best[piece.name]
        if score > 0:
            words = tuple(sorted(counts, key=lambda word: (-rarity[word], word)))
            size = sum(len(line) + 1 for line in lines[piece.first - 1 : piece.last])
            scored.append(replace(piece, score=score, words=words, size=size))
    scored.sort(key=lambda piece: (-piece.score, piece.first))
    return Judged(tuple(scored), total, length)


def relevance(
    counts: Mapping[str, int], length: float, rarity: Mapping[str, float]
) -> float:
    """Return the BM25 score. `length` is 1 for a text of average length."""
    norm = _SATURATION * (1 - _LENGTH + _LENGTH * length)
    score = 0.0
    for word, count in counts.items():
        score += rarity[word] * count * (_SATURATION + 1) / (count + norm)
    return score


def head(definitions: Sequence[Definition]) -> int:
    """Return the last line of a file's beginning, before its first definition."""
    return min(_HEAD, *(each.first - 1 for each in definitions)) if definitions else 0
