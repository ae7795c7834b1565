"""The answer to a query: files with reasons, and the places in them."""

from collections.abc import Sequence

from msgspec import Struct


class CodePlace(Struct, frozen=True):
    """Some lines of a file, about 30 at most."""

    first: int
    """Counted from 1."""
    last: int
    """Inclusive."""
    name: str
    """The definition that it is or is in, such as `Parser.parse`; may be empty."""
    why: str
    """A clause for the user."""
    use: float = 0.0
    """Its usefulness among the places of all files of the answer."""


class RankedFile(Struct, frozen=True):
    path: str
    reasons: tuple[str, ...]
    """Short clauses for the user, the most telling first."""
    is_named: bool
    """True if the query names the file or the user pinned it. It is always shown."""
    places: tuple[CodePlace, ...]
    """The most useful first; empty if none is better than the beginning."""


def sort_places(ranked: Sequence[RankedFile]) -> list[tuple[RankedFile, CodePlace]]:
    """Return the places of all these files, the most useful first."""
    places = [(file, place) for file in ranked for place in file.places]
    return sorted(places, key=lambda pair: -pair[1].use)
