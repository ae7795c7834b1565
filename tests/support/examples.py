"""The amount of examples: few in `make test`, all in `make test-all`."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any, TypeVar

import pytest
from hypothesis import settings

Row = TypeVar("Row", bound=tuple[Any, ...])

IS_THOROUGH = settings().max_examples > 1_000
"""True in `make test-all`, whose Hypothesis profile has many examples."""


def count_examples(count: int) -> int:
    """Return the number of examples to try: `count` in `make test-all`, a fifth of it
    in `make test`.
    """
    return count if IS_THOROUGH else max(count // 5, 10)


def long_rows(*values: object) -> list[Any]:
    """Return rows of `pytest.mark.parametrize` that are left to `make test-all`."""
    return [pytest.param(value, marks=pytest.mark.long) for value in values]


def fewer(divisor: int) -> settings:
    """Return settings with that fraction of the profile's examples."""
    return settings(max_examples=settings().max_examples // divisor)


def cover_pairs(rows: Sequence[Row], columns: int) -> list[Row]:
    """Return some rows of a table of all combinations; all of them in `make test-all`.

    Every pair of values in two of the first `columns` columns of a row is in a returned
    row.
    """
    return _cover(rows, columns, 2)


def cover_values(rows: Sequence[Row], columns: int) -> list[Row]:
    """Return fewer rows: each value of one of the first columns is in one of them."""
    return _cover(rows, columns, 1)


def _cover(rows: Sequence[Row], columns: int, size: int) -> list[Row]:
    if IS_THOROUGH:
        return list(rows)
    missing = {group for row in rows for group in _groups(row, columns, size)}
    chosen = []
    while missing:
        best = max(rows, key=lambda row: len(_groups(row, columns, size) & missing))
        missing -= _groups(best, columns, size)
        chosen.append(best)
    return chosen


def _groups(row: tuple[Any, ...], columns: int, size: int) -> set[Any]:
    return set(combinations(enumerate(row[:columns]), size))
