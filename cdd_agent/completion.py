"""Completions of a typed text, and the names that it may stand for."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Completion(NamedTuple):
    line: str
    """The whole line that the typed one becomes."""
    shown: str
    """The completed word."""
    help: str = ""


class Matches(NamedTuple):
    """The names that a typed text may stand for."""

    starting: Sequence[str]
    containing: Sequence[str]
    scattered: Sequence[str]
    """Names that have its letters in this order, the closest together first."""

    @property
    def best(self) -> Sequence[str]:
        return self.starting or self.containing or self.scattered

    @property
    def good(self) -> Sequence[str]:
        """The names that have the text, else those with its letters."""
        return [*self.starting, *self.containing] or self.scattered


def find_matches(typed: str, names: Iterable[str]) -> Matches:
    """Upper and lower case are the same."""
    typed = typed.casefold()
    starting: list[str] = []
    containing: list[str] = []
    scattered: list[tuple[int, str]] = []
    for name in names:
        folded = name.casefold()
        if folded.startswith(typed):
            starting.append(name)
        elif typed in folded:
            containing.append(name)
        else:
            places = _find_letters(typed, folded)
            if places:
                scattered.append((places[-1] - places[0], name))
    scattered.sort(key=lambda pair: pair[0])
    return Matches(starting, containing, [name for _, name in scattered])


def _find_letters(letters: str, name: str) -> list[int]:
    """Return the place of each letter, in their order; empty if one is missing."""
    places: list[int] = []
    place = -1
    for letter in letters:
        place = name.find(letter, place + 1)
        if place < 0:
            return []
        places.append(place)
    return places
