"""Completions of a text that is being typed, and which of many names it may mean."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Completion(NamedTuple):
    """A whole line that the line so far can become."""

    line: str
    shown: str
    """The candidate by itself, for a list."""
    help: str = ""
    """A few words on what it is."""


class Fitting(NamedTuple):
    """The names that a typed text may mean, by how well they fit."""

    begin: Sequence[str]
    """Those that begin so."""
    hold: Sequence[str]
    """Those that have it further on."""
    spread: Sequence[str]
    """Those that have its letters in that order, the closest together first."""

    @property
    def best(self) -> Sequence[str]:
        """Only the kind that fits best."""
        return self.begin or self.hold or self.spread

    @property
    def good(self) -> Sequence[str]:
        """Those that have the text; where none has, those that have its letters."""
        return [*self.begin, *self.hold] or self.spread


def fitting(typed: str, names: Iterable[str]) -> Fitting:
    """Upper and lower case are the same."""
    typed = typed.casefold()
    letters = re.compile(".*?".join(map(re.escape, typed)), re.DOTALL)
    begin, hold = list[str](), list[str]()
    spread = list[tuple[int, str]]()
    for name in names:
        folded = name.casefold()
        if folded.startswith(typed):
            begin.append(name)
        elif typed in folded:
            hold.append(name)
        elif found := letters.search(folded):
            spread.append((found.end() - found.start(), name))
    return Fitting(
        begin, hold, [name for _, name in sorted(spread, key=lambda one: one[0])]
    )
