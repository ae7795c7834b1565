"""Keys of providers, cleaned of text that was copied along."""

import re
from collections.abc import Callable, Mapping
from functools import partial

from cdd_agent.pattern import Pattern
from cdd_agent.values.partly_shown import PartlyShown

_BLANKS = (
    " \t\r\n\v\f\N{NO-BREAK SPACE}\N{ZERO WIDTH SPACE}\N{ZERO WIDTH NO-BREAK SPACE}"
)
_QUOTES = "\"'`“”‘’"
_NAME = Pattern(
    r"(?:(?:export|set)\s+|\$env:)?[A-Z_][A-Z0-9_]*(?:KEY|TOKEN)\s*=\s*(?=[^=\s])"
)
_SCHEME = Pattern(r"(?:authorization\s*:\s*)?bearer\s+", re.IGNORECASE)


class Key(PartlyShown, frozen=True):
    """A key that can be sent. `removed` names the text around it."""

    text: str
    removed: tuple[str, ...] = ()

    hidden_fields = ("text",)


def clean_key(text: str) -> Key:
    """Return the key without blanks, quotes, `Bearer` and `NAME=` around it."""
    removed: list[str] = []
    previous = None
    while text != previous:
        previous = text
        for name, clean in _CLEANERS.items():
            cleaned = clean(text)
            if cleaned != text and name not in removed:
                removed.append(name)
            text = cleaned
    return Key(text, tuple(removed))


def is_sendable(key: str) -> bool:
    """True if a header can contain the key."""
    return key.isascii() and key.isprintable()


def key_header(key: str | None) -> dict[str, str]:
    """Return the usual header for a key; empty without a key."""
    if not key or not is_sendable(key):
        return {}
    return {"Authorization": f"Bearer {key}"}


def _without_start(pattern: Pattern[str], text: str) -> str:
    match = pattern.match(text)
    if match is None:
        return text
    return text[match.end() :]


_CLEANERS: Mapping[str, Callable[[str], str]] = {
    "blanks": lambda text: text.strip(_BLANKS),
    "quotes": lambda text: text.strip(_QUOTES),
    "the name of a variable": partial(_without_start, _NAME),
    "`Bearer`": partial(_without_start, _SCHEME),
}
"""By what they remove. They repeat until nothing changes."""
