"""The amount of examples: few in `make test`, all in `make test-all`."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any, TypeVar

from hypothesis import settings

Row = TypeVar("Row", bound=tuple[Any, ...])

IS_THOROUGH = settings().max_examples > 1_000
"""True in `make test-all`, whose Hypothesis profile has many examples."""


def count_examples(count: int) -> int:
    """Return the number of examples to try: `count` in `make test-all`, a fifth of it
    in `make test`.
    """
    return count if IS_THOROUGH else max(count // 5, 10)


def fewer(divisor: int) -> settings:
    """Return settings with that fraction of the profile's examples."""
    return settings(max_examples=settings().max_examples // divisor)


def cover_pairs(rows: Sequence[Row], columns: int) -> list[Row]:
    """Return some rows of a table of all combinations; all of them in `make test-all`.

    Every pair of values in two of the first `columns` columns of a row is in a returned
    row.
    """
    if IS_THOROUGH:
        return list(rows)
    missing = {pair for row in rows for pair in _pairs(row, columns)}
    chosen = []
    while missing:
        best = max(rows, key=lambda row: len(_pairs(row, columns) & missing))
        missing -= _pairs(best, columns)
        chosen.append(best)
    return chosen


def _pairs(row: tuple[Any, ...], columns: int) -> set[Any]:
    return set(combinations(enumerate(row[:columns]), 2))
