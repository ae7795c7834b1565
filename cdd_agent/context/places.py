"""The answer to a query: files with reasons and places."""

from collections.abc import Sequence

from msgspec import Struct


class CodePlace(Struct, frozen=True):
    """About 30 lines of a file at most."""

    first: int
    """Counted from 1."""
    last: int
    """Inclusive."""
    name: str
    """The definition that it is or is in, such as `Parser.parse`, or empty."""
    why: str
    """A clause for the user."""
    use: float = 0.0
    """Usefulness, comparable across all files of the answer."""


class RankedFile(Struct, frozen=True):
    path: str
    reasons: tuple[str, ...]
    """Short clauses for the user, most telling first."""
    is_named: bool
    """True if the query names the file or the user pinned it. It is always shown."""
    places: tuple[CodePlace, ...]
    """Most useful first; empty if none is better than the beginning."""


def sort_places(ranked: Sequence[RankedFile]) -> list[tuple[RankedFile, CodePlace]]:
    """Return the places of all these files, most useful first."""
    places = [(file, place) for file in ranked for place in file.places]
    return sorted(places, key=lambda pair: -pair[1].use)
