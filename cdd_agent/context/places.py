"""The map's answer: files with reasons, and the places in them."""

from collections.abc import Sequence

from msgspec import Struct


class Place(Struct, frozen=True):
    """Some lines of a file, at most about 30."""

    first: int
    """Counted from 1."""
    last: int
    """Inclusive."""
    name: str
    """The definition that it is or is in, as `Parser.parse`; empty for a piece without
    one.
    """
    why: str
    """A clause for people."""
    use: float = 0.0
    """How useful it is beside the other places of an answer: the more the better,
    whichever file they are in.
    """


class RankedFile(Struct, frozen=True):
    path: str
    reasons: tuple[str, ...]
    """Short clauses for people, the most telling first."""
    is_named: bool
    """The text names it, or a person pinned it: it is always to be shown."""
    places: tuple[Place, ...]
    """The most useful first; empty where nothing is better than the beginning."""


def sort_places(ranked: Sequence[RankedFile]) -> list[tuple[RankedFile, Place]]:
    """Return the places of all these files, the most useful first."""
    places = [(file, place) for file in ranked for place in file.places]
    return sorted(places, key=lambda pair: -pair[1].use)
