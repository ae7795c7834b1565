"""Completions of a typed text, and the names that it may mean."""

from collections.abc import Iterable, Sequence
from enum import Enum, auto
from typing import NamedTuple

from cdd_agent.pattern import Pattern

_SHORTEST_TYPO = 3
"""The fewest letters of a text that may have a wrong letter."""
_WORD = Pattern(r"[^\W_]+")


class CompletionKind(Enum):
    """The effect of Enter on a highlighted completion."""

    WORD = auto()
    """Enter inserts the completion."""
    COMMAND = auto()
    """A slash command without a required argument: Enter sends it."""
    OPENING = auto()
    """A slash command with a required argument: Enter inserts it and offers the
    argument.
    """


class Completion(NamedTuple):
    line: str
    shown: str
    help: str = ""
    kind: CompletionKind = CompletionKind.WORD
    group: str = ""

    @property
    def is_command(self) -> bool:
        """True for the name of a slash command."""
        return self.kind is not CompletionKind.WORD


class Matches(NamedTuple):
    """The names that a typed text may mean."""

    starting: Sequence[str]
    containing: Sequence[str]
    scattered: Sequence[str]
    """Names with its letters in this order, closest together first."""
    misspelled: Sequence[str] = ()
    """Names whose beginning, or a word in them, differs from the text by one letter.
    Empty if another name matches.
    """

    @property
    def certain(self) -> Sequence[str]:
        """The names that begin with the text, or else contain it."""
        return self.starting or self.containing

    @property
    def best(self) -> Sequence[str]:
        return self.certain or self.scattered or self.misspelled

    @property
    def good(self) -> Sequence[str]:
        """The names that contain the text, else similar ones."""
        return [*self.starting, *self.containing] or self.scattered or self.misspelled


def find_matches(typed: str, names: Iterable[str]) -> Matches:
    """Return the names that a typed text may mean, ignoring case."""
    typed = typed.casefold()
    starting: list[str] = []
    containing: list[str] = []
    scattered: list[tuple[int, str]] = []
    all_names = list(names)
    for name in all_names:
        folded = name.casefold()
        if folded.startswith(typed):
            starting.append(name)
        elif typed in folded:
            containing.append(name)
        else:
            places = _find_letters(typed, folded)
            if places:
                scattered.append((places[-1] - places[0], name))
    if starting or containing or scattered:
        scattered.sort(key=lambda pair: pair[0])
        return Matches(starting, containing, [name for _, name in scattered])
    return Matches((), (), (), [name for name in all_names if _has_typo(typed, name)])


def _find_letters(letters: str, name: str) -> list[int]:
    """Return the index of each letter, in order; empty if one is missing."""
    places: list[int] = []
    place = -1
    for letter in letters:
        place = name.find(letter, place + 1)
        if place < 0:
            return []
        places.append(place)
    return places


def _has_typo(typed: str, name: str) -> bool:
    """True if a text is the beginning of a name, or of a word in it, with one letter
    missing, added, wrong or swapped with the next one.
    """
    if len(typed) < _SHORTEST_TYPO:
        return False
    name = name.casefold()
    starts = [match.start() for match in _WORD.finditer(name)]
    lengths = (len(typed) - 1, len(typed), len(typed) + 1)
    for start in starts:
        for length in lengths:
            if _differs_once(typed, name[start : start + length]):
                return True
    return False


def _differs_once(one: str, other: str) -> bool:
    if one == other or abs(len(one) - len(other)) > 1:
        return False
    same = 0
    while same < min(len(one), len(other)) and one[same] == other[same]:
        same += 1
    rest, other_rest = one[same:], other[same:]
    if len(rest) > len(other_rest):
        return rest[1:] == other_rest
    if len(rest) < len(other_rest):
        return rest == other_rest[1:]
    is_swap = rest[:2] == other_rest[1::-1] and rest[2:] == other_rest[2:]
    return rest[1:] == other_rest[1:] or is_swap
