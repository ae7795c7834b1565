"""The words of texts and of code: `parseRange`, `parse_range` and "parse the range" have two in common."""

import re
from collections.abc import Iterator

_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\dA-Z_]+")
_SHORTEST = 2


def words(text: str) -> Iterator[str]:
    """The words of all identifiers in a text, in lower case."""
    for identifier in _IDENTIFIER.findall(text):
        for part in _PARTS.findall(identifier):
            if len(part) >= _SHORTEST:
                yield stem(part.lower())


def stem(word: str) -> str:
    """A word without the endings that its forms differ by: `parsing`, `parsed` and `parses` are `pars`."""
    for ending in ("ing", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            return word[: -len(ending)]
    return word
