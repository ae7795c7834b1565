"""The map's answer: files with reasons, and the places in them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """Some lines of a file, at most about 30."""

    first: int
    """Counted from 1."""
    last: int
    """Inclusive."""
    name: str
    """The definition that it is or is in, as `Parser.parse`; empty for a piece without one."""
    why: str
    """A clause for people."""


@dataclass(frozen=True)
class RankedFile:
    path: str
    reasons: tuple[str, ...]
    """Short clauses for people, the most telling first."""
    is_named: bool
    """The text names it, or a person pinned it: it is always to be shown."""
    places: tuple[Place, ...]
    """The most useful first; empty where nothing is better than the beginning."""


def in_order(ranked: Sequence[RankedFile]) -> Iterator[tuple[RankedFile, Place]]:
    """The places of all these files in the order in which they are worth being shown while there is room."""
    order = [(rank + 4 * at, rank, at) for rank, file in enumerate(ranked) for at in range(len(file.places))]
    for _, rank, at in sorted(order):
        yield ranked[rank], ranked[rank].places[at]
