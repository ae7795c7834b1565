"""How much is tried: little in `make test`, and all of it in `make test-all`."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any, TypeVar

from hypothesis import settings

Row = TypeVar("Row", bound=tuple[Any, ...])

IS_THOROUGH = settings().max_examples > 1_000
"""True in `make test-all`, whose profile of Hypothesis has many examples."""


def count_examples(count: int) -> int:
    """Return the number of examples to try: `count` in `make test-all`, a fifth of them
    in `make test`.
    """
    return count if IS_THOROUGH else max(count // 5, 10)


def fewer(divisor: int) -> settings:
    """Return settings with that fraction of the examples that the profile asks for."""
    return settings(max_examples=settings().max_examples // divisor)


def cover_pairs(rows: Sequence[Row], columns: int) -> list[Row]:
    """Return some rows of a table of all combinations; all of them in `make test-all`.

    Every pair of values that two of the first `columns` columns have in some row is
    in a row that is returned.
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
